"""Killed and interrupted processes, and the single writer of a file under any of its paths."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.minimize import minimize
from mipcash.study.records.encoding import encode_config
from mipcash.study.storage.lock import WriterLock
from mipcash.study.storage.sqlite import read_journal

SCRIPT = Path(__file__).with_name("run_tiny.py")
BUDGET = 7


def launch(journal: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(journal), str(BUDGET), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], code: int) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return out.splitlines()


Record = list[tuple[int, str, float | None]]
"""Number, exact configuration and loss of each trial."""


def run_here(journal: Path | str | None = None, optimizer: str = "Counter", known: int = 0) -> tuple[Record, int]:
    """Run or resume in this process. Return the record and the number of evaluations."""
    space = tiny.tiny_space()
    chosen, given, calls = getattr(tiny, optimizer)(space), tiny.known(space, known), []

    def objective(config: dict[str, Any]) -> float:
        calls.append(config)
        return tiny.loss(config)

    result = minimize(objective, space, BUDGET, optimizer=chosen, seed=7, storage=journal, known=given, progress=False)
    return [(t.number, encode_config(space, t.config), t.loss) for t in result.history], len(calls)


@pytest.mark.parametrize(
    ("where", "at", "told", "known"),
    [("ask", 4, 4, 0), ("insert", 4, 4, 0), ("evaluation", 6, 6, 4), ("outcome", 4, 4, 0), ("told", 4, 5, 0)],
)
def test_a_killed_run_resumes_without_losing_or_repeating_evaluations(
    journal: Path, where: str, at: int, told: int, known: int
) -> None:
    """Assert that a run resumes like an uninterrupted run, wherever SIGKILL strikes.

    No reported outcome is lost or evaluated twice.
    """
    unbroken, _ = run_here(known=known)
    asked = ["--optimizer", "Counter", "--known", str(known)]
    finish(launch(journal, "--die", where, str(at), *asked), -signal.SIGKILL)
    rows = read_journal(journal)[1]
    assert [row.number for row in rows if row.status == "pending"] == (
        [at] if where in ("evaluation", "outcome") else []
    )
    assert [(row.number, row.exact, row.loss) for row in rows if row.status == "done"] == unbroken[:told]
    assert run_here(journal, known=known) == (unbroken, BUDGET + known - told)
    assert [(row.number, row.exact, row.loss) for row in read_journal(journal)[1]] == unbroken


def test_ctrl_c_leaves_a_run_that_resumes(journal: Path) -> None:
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("evaluating")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert [row.status for row in read_journal(journal)[1]] == ["pending"]
    assert not journal.with_name("run.db.lock").exists()
    assert run_here(journal, "Sampler") == run_here(None, "Sampler")


# -- one writer per file ----------------------------------------------------------------------------------------------


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


def test_a_journal_is_locked_and_created_through_symlinks(journal: Path, tmp_path: Path) -> None:
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


def test_a_journal_is_locked_under_all_its_names_until_its_process_is_killed(journal: Path, tmp_path: Path) -> None:
    soft, hard = tmp_path / "soft.db", tmp_path / "hard.db"
    soft.symlink_to(journal)
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    process.stdout.readline()
    for path in (journal, soft):
        with pytest.raises(StorageError, match="in use by another study"):
            open_study(path)
    assert len(read_journal(journal)[1]) == 1  # reading is allowed
    os.link(journal, hard)
    with pytest.raises(StorageError, match=r"hard.db has 2 names \(hard links\).*Remove the others"):
        open_study(hard)
    os.kill(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    with pytest.raises(StorageError, match="has 2 names"):
        open_study(journal)
    assert len(read_journal(hard)[1]) == 1  # reading is allowed
    hard.unlink()
    with open_study(soft) as study:
        assert study.ask().number == 0
    study.close()
    with pytest.raises(StorageError, match="closed"):
        study.ask()


def test_a_refused_second_study_does_not_release_the_lock(journal: Path, tmp_path: Path) -> None:
    """Assert that the lock is kept. POSIX drops a process's locks on a file when any descriptor of it is closed."""
    link = tmp_path / "link.db"
    link.symlink_to(journal)
    with open_study(link):
        with pytest.raises(StorageError, match="in use"):
            open_study(journal)
        _, err = launch(journal).communicate(timeout=60)
        assert "InUseError" in err
        assert "in use by another study" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.db", "run.db"]


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_journal_that_was_moved_deleted_or_replaced_is_not_written_to(
    journal: Path, tmp_path: Path, how: str
) -> None:
    """Assert that writing is refused, because another study may be writing to the moved or the new file."""
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


def test_a_symlink_at_the_path_of_the_lock_is_not_followed(journal: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    journal.with_name("run.db.lock").symlink_to(target)
    with pytest.raises(StorageError, match="is not a lock of mipcash"):
        open_study(journal)
    assert target.read_text() == "mine"


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_journal_lock_and_rollback_file_are_private_whatever_the_umask(journal: Path, mask: int) -> None:
    with masked(mask), open_study(journal) as study:
        assert mode(journal) == 0o600
        assert mode(journal.with_name("run.db.lock")) == 0o600
        with study._storage._database.transaction() as rows:  # type: ignore[attr-defined]
            rows.note({"budget": 3}, 1)
            assert mode(journal.with_name("run.db-journal")) == 0o600
        study.tell(study.ask(), 1.0)
    assert len(read_journal(journal)[1]) == 1


def test_a_journal_that_other_users_could_read_becomes_private_when_it_is_resumed(
    journal: Path, tmp_path: Path
) -> None:
    with open_study(journal) as study:
        study.ask()
    journal.chmod(0o664)
    read_journal(journal)
    assert mode(journal) == 0o664  # reading changes nothing
    with open_study(journal):
        assert mode(journal) == 0o600
    other = tmp_path / "notes.txt"
    other.write_text("no journal" * 100)
    other.chmod(0o644)
    with pytest.raises(StorageError):
        open_study(other)
    assert mode(other) == 0o644  # a file that is no journal is left unchanged


def test_a_lock_that_cannot_be_made_is_an_error_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("mipcash.study.storage.lock.create_private", refused)
    with pytest.raises(StorageError, match="cannot be written to: Read-only file system"):
        WriterLock(tmp_path / "run.db")
