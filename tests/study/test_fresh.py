"""A run that starts anew: the journal that is there is renamed, whole and with what SQLite keeps beside it."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_processes import finish, launch

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.progress import Progress
from mipcash.study.storage import sqlite
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.sqlite import read_journal


class Notes(Progress):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def go(storage: Any, budget: int = 2, **options: Any) -> mc.Result:
    space = tiny.tiny_space()
    journal = mc.Journal(storage, options.pop("fresh", True))
    return mc.minimize(
        tiny.loss, space, budget, optimizer=tiny.Counter(space), storage=journal, **{"progress": False, **options}
    )


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_the_old_journal_is_kept_under_the_first_free_name_which_is_told(journal: Path) -> None:
    for budget, expected in ((1, []), (2, ["run.old-1.db"]), (3, ["run.old-2.db"])):
        notes = Notes()
        assert go(journal, budget, progress=notes).n_done == budget
        assert notes.notes == [f"the journal that was there is {journal.with_name(n)} now" for n in expected]
    assert names(journal.parent) == ["run.db", "run.old-1.db", "run.old-2.db"]
    (journal.parent / "run.old-1.db").unlink()
    go(f"sqlite:///{journal}", 4)
    assert [len(read_journal(journal.with_name(n))[1]) for n in names(journal.parent)] == [4, 3, 2]
    assert go(journal, 5, fresh=False).n_done == 5


def test_without_a_journal_nothing_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for storage in (None, ":memory:"):
        assert go(storage).n_done == 2
    assert names(tmp_path) == []
    with pytest.raises(StorageError, match="is a folder"):
        go(tmp_path)


def test_a_journal_that_is_written_to_is_refused(journal: Path) -> None:
    space = tiny.tiny_space()
    for storage in (journal, f"sqlite:///{journal}"):
        with mc.Study(space, tiny.Counter(space), storage=storage) as study:
            for again in (journal, f"sqlite:///{journal}"):
                with pytest.raises(StorageError, match="in use by another study"):
                    go(again)
            study.ask()
    assert names(journal.parent) == ["run.db"]


def test_what_is_no_file_is_refused_with_the_cure() -> None:
    with pytest.raises(
        StorageError, match=r"postgresql://[.]{3}@host/db is no file; name a new study, [?]study=NAME, or another"
    ):
        go("postgresql://ann:s3cr3t@host/db")
    with pytest.raises(StorageError, match=r"the storage MemoryStorage .* is no file; make a new one"):
        go(MemoryStorage())


def test_nothing_is_renamed_for_a_study_that_cannot_begin(journal: Path) -> None:
    go(journal)
    with pytest.raises(ValueError, match="seed"):
        go(journal, seed=-1)
    assert names(journal.parent) == ["run.db"]


def test_a_write_that_was_killed_is_taken_back_first(journal: Path) -> None:
    finish(launch(journal, "--die", "outcome", "4"), -signal.SIGKILL)
    assert "run.db-journal" in names(journal.parent)
    go(journal)
    assert [name for name in names(journal.parent) if name.startswith("run.db")] == ["run.db"]
    rows = read_journal(journal.with_name("run.old-1.db"))[1]
    assert [row.status for row in rows] == ["done"] * 4 + ["pending"]
    assert len(read_journal(journal)[1]) == 2


def test_what_sqlite_could_not_finish_goes_along(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reader keeps it from that: what was left beside the journal would be taken for that of the new one."""

    def busy(path: Path) -> None:
        raise StorageError(f"the journal {path} cannot be used: database is locked")

    monkeypatch.setattr(sqlite, "read_journal", busy)
    journal.write_bytes(b"no database" * 1000)
    for end in ("-journal", "-wal", "-shm"):
        Path(f"{journal}{end}").write_bytes(end.encode())
    go(journal)
    old = [f"run.old-1.db{end}" for end in ("", "-journal", "-shm", "-wal")]
    assert names(journal.parent) == ["run.db", *old]
    assert len(read_journal(journal)[1]) == 2


def test_a_journal_in_wal_mode_is_renamed_whole(journal: Path) -> None:
    go(journal)
    with sqlite3.connect(journal) as database:
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    go(journal, 3)
    assert names(journal.parent) == ["run.db", "run.old-1.db"]
    assert len(read_journal(journal.with_name("run.old-1.db"))[1]) == 2


def test_a_link_stays_and_leads_to_the_new_journal(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file = tmp_path / "far" / "kept.db"
    os.symlink(file, journal)
    go(journal)
    notes = Notes()
    go(journal, 3, progress=notes)
    assert notes.notes == [f"the journal that was there is {file.with_name('kept.old-1.db')} now"]
    assert journal.is_symlink()
    assert [len(read_journal(path)[1]) for path in (file, file.with_name("kept.old-1.db"))] == [3, 2]
