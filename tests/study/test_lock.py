"""One writer per file, by whatever path it is opened; journals are private."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny
from test_processes import finish, launch

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.storage.sqlite import read_journal


def open_study(path: Path | str) -> mc.Study:
    space = tiny.tiny_space()
    return mc.Study(space, tiny.Sampler(space), seed=7, storage=path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def masked(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_symlink_does_not_let_a_second_process_in(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.db"
    link.symlink_to(journal)
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(StorageError, match="in use by another study"):
        open_study(link)
    os.kill(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    with open_study(link) as study:
        assert study.ask().number == 0
        _, err = launch(journal).communicate(timeout=60)
        assert "in use by another study" in err
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link.db", "other", "run.db"]


def test_a_symlink_to_a_folder_and_a_dangling_link(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path)
    (tmp_path / "new.db").symlink_to(tmp_path / "made.db")
    with open_study(journal), pytest.raises(StorageError, match="in use"):
        open_study(tmp_path / "here" / "run.db")
    with open_study(tmp_path / "new.db") as study:
        study.ask()
    assert len(read_journal(tmp_path / "made.db")[1]) == 1
    (tmp_path / "round.db").symlink_to(tmp_path / "round.db")
    with pytest.raises(StorageError, match="leads to no file"):
        open_study(tmp_path / "round.db")


def test_a_hard_link_does_not_let_a_second_process_in(journal: Path, tmp_path: Path) -> None:
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    process.stdout.readline()
    link = tmp_path / "link.db"
    os.link(journal, link)
    with pytest.raises(StorageError, match=r"link.db has 2 names \(hard links\).*Remove the others"):
        open_study(link)
    os.kill(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    with pytest.raises(StorageError, match="has 2 names"):
        open_study(journal)
    assert len(read_journal(link)[1]) == 1  # it may be looked at
    link.unlink()
    with open_study(journal) as study:
        assert study.ask().number == 0


def test_a_relative_path_and_chdir_keep_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    study = open_study("run.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    study.tell(study.ask(), 1.0)
    with pytest.raises(StorageError, match="in use"):
        open_study(tmp_path / "run.db")
    _, err = launch(tmp_path / "run.db").communicate(timeout=60)
    assert "in use by another study" in err
    # another run of that name here has its own lock, which the first one's end must not take away
    with open_study("run.db"):
        study.close()
        with pytest.raises(StorageError, match="in use"):
            open_study(tmp_path / "elsewhere" / "run.db")
    assert study.storage == tmp_path / "run.db"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["elsewhere", "run.db", "run.db"]


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_journal_that_is_taken_away_is_written_to_no_more(journal: Path, tmp_path: Path, how: str) -> None:
    """Under its new name, or in its place, another study may be writing."""
    study = open_study(journal)
    trial = study.ask()
    if how == "moved":
        journal.rename(tmp_path / "kept.db")
    else:
        journal.unlink()
    if how == "replaced":
        journal.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StorageError, match="was moved, deleted or replaced while this study writes to it"):
            study.tell(trial, 1.0)
    if how == "moved":
        (tmp_path / "kept.db").rename(journal)
        assert study.tell(trial, 1.0).done
    study.close()


def test_a_link_in_the_place_of_the_lock_is_not_followed(journal: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    journal.with_name("run.db.lock").symlink_to(target)
    with pytest.raises(StorageError, match="is not a lock of mipcash"):
        open_study(journal)
    assert target.read_text() == "mine"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_journal_lock_and_rollback_file_are_private_whatever_the_umask(journal: Path, mask: int) -> None:
    with masked(mask), open_study(journal) as study:
        assert mode(journal) == 0o600
        assert mode(journal.with_name("run.db.lock")) == 0o600
        with study._storage._database.transaction() as rows:  # type: ignore[attr-defined]
            rows.note({"budget": 3}, 1)
            assert mode(journal.with_name("run.db-journal")) == 0o600
        study.tell(study.ask(), 1.0)
    assert len(read_journal(journal)[1]) == 1


def test_a_journal_that_others_could_read_is_closed_to_them_when_it_is_resumed(journal: Path, tmp_path: Path) -> None:
    with open_study(journal) as study:
        study.ask()
    journal.chmod(0o664)
    read_journal(journal)
    assert mode(journal) == 0o664  # a look changes nothing
    with open_study(journal):
        assert mode(journal) == 0o600
    other = tmp_path / "notes.txt"
    other.write_text("no journal" * 100)
    other.chmod(0o644)
    with pytest.raises(StorageError):
        open_study(other)
    assert mode(other) == 0o644  # and what is none is left alone


def test_the_file_is_private_in_a_process_of_its_own(journal: Path) -> None:
    command = f"umask 0; exec {sys.executable} {Path(tiny.__file__).with_name('run_tiny.py')} {journal} 2"
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert mode(journal) == 0o600
