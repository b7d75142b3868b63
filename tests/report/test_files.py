"""Permissions of files derived from a journal: never more than those of the journal."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import tinyrun
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.report import write_page
from mipcash.report.files import mode_of, write_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no permission bits")


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Set the usual umask, under which new files are readable by everyone."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("journal", "wanted", "there"), [(0o600, 0o600, True), (0o640, 0o640, False), (0o666, 0o644, True)]
)
def test_pages_and_pictures_of_a_journal(tmp_path: Path, journal: int, wanted: int, there: bool) -> None:
    pytest.importorskip("matplotlib")
    tinyrun.started(tmp_path / "run.db", 3)
    assert mode(tmp_path / "run.db") == 0o600
    (tmp_path / "run.db").chmod(journal)
    made = [tmp_path / "run.html", tmp_path / "run.png", tmp_path / "other.svg"]
    for path in made if there else ():
        path.write_text("old")
        path.chmod(0o644)
    for command in (["report"], *(["show", "--plot", str(path)] for path in made[1:])):
        done = CliRunner().invoke(app, [command[0], str(tmp_path / "run.db"), *command[1:]])
        assert done.exit_code == 0, done.output
    assert [mode(path) for path in made] == [wanted] * 3
    assert made[1].read_bytes().startswith(b"\x89PNG")
    assert sorted(tmp_path.iterdir()) == sorted([*made, tmp_path / "run.db"])


def test_the_page_of_an_open_study_and_of_an_address(tmp_path: Path) -> None:
    tinyrun.started(tmp_path / "run.db", 3)
    write_page(f"sqlite:///{tmp_path}/run.db", tmp_path / "address.html")
    with mc.Study(tinyrun.space(), "random", storage=tmp_path / "run.db", limits={"ms": 4.0}) as study:
        write_page(study, tmp_path / "study.html")
    assert [mode(tmp_path / f"{name}.html") for name in ("address", "study")] == [0o600, 0o600]
    assert mode_of("postgresql://ann@127.0.0.1:1/studies") == 0o600
    assert mode_of(None) == 0o666


def test_files_are_never_readable_by_others_while_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assert that files are created with their final mode, and that the old file is replaced, not overwritten."""
    seen: list[int] = []
    target, opened = tmp_path / "run.html", os.open
    target.write_text("old")
    reader = target.open()

    def watched(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        seen.append(mode)
        descriptor = opened(path, flags, mode, **more)
        assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    write_file(target, b"new", 0o600)
    assert seen == [0o600]
    assert target.read_bytes() == b"new"
    assert reader.read() == "old"
    reader.close()


def test_links_are_followed_stricter_modes_stay_and_write_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "taken.html").mkdir()
    for target in (tmp_path / "none" / "run.html", tmp_path / "taken.html"):
        with pytest.raises(OSError, match=f"{target.name}'$"):
            write_file(target, b"new", 0o600)
    assert list(tmp_path.iterdir()) == [tmp_path / "taken.html"]
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "real.html").chmod(0o600)
    (tmp_path / "link.html").symlink_to("real.html")
    write_file(tmp_path / "link.html", b"new", 0o644)
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_bytes() == b"new"
    assert mode(tmp_path / "real.html") == 0o600
