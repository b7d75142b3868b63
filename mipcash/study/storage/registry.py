"""From what a user gives as ``storage=`` to a storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipcash.errors import StorageError
from mipcash.study.storage.address import SQLITE, Address, is_address
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.protocol import Storage, StudyRecord, TrialRow
from mipcash.study.storage.shared.storage import SharedStorage
from mipcash.study.storage.sqlite.reading import read_journal, rename_journal
from mipcash.study.storage.sqlite.shared import SQLiteTables
from mipcash.study.storage.sqlite.storage import SQLiteStorage
from mipcash.study.text import shown

MEMORY = ":memory:"


@dataclass(frozen=True)
class Journal:
    """Where a study is kept: ``mc.minimize(..., storage=mc.Journal("run.db", fresh=True))``.

    Attributes:
        storage: the path of a file, an address, a storage, or None for memory.
        fresh: whether to start anew: a file that exists is renamed to the first free ``NAME.old-1.db``, ``NAME.old-2.db`` ... and a
            new one begins. A database of a server is refused; name a new study there.
    """

    storage: str | os.PathLike[str] | Storage | None
    fresh: bool = False

    @classmethod
    def of(cls, given: Any) -> Journal:
        """Return what ``storage=`` says."""
        return given if isinstance(given, Journal) else cls(given)


StorageGiven = str | os.PathLike[str] | Storage | Journal | None
"""What ``storage=`` takes."""


def make_storage(storage: str | os.PathLike[str] | Storage | None) -> Storage:
    """A storage that is not open yet: memory for None, a journal for a path, what an address names, one's own as it is.

    Raises:
        TypeError: it is nothing of the kind.
        StorageError: see :class:`mipcash.study.storage.sqlite.storage.SQLiteStorage`.
    """
    if storage is None or storage == MEMORY:
        return MemoryStorage()
    if isinstance(storage, str) and is_address(storage):
        return shared_storage(Address.of(storage))
    if isinstance(storage, (str, os.PathLike)):
        return SQLiteStorage(storage)
    if isinstance(storage, type) or not callable(getattr(storage, "open", None)) or not hasattr(storage, "news"):
        raise TypeError(
            f"storage must be the path of a journal, an address such as postgresql://user@host/database, a Storage, or None for "
            f"memory; got {shown(storage)}"
        )
    return storage


def move_aside(storage: str | os.PathLike[str] | Storage | None) -> Path | None:
    """Rename the file of a journal, so that a new one can begin, and return its new path. Return None if there is no journal.

    Raises:
        StorageError: a run is writing to the journal, or the storage is no file.
    """
    if storage is None or storage == MEMORY:
        return None
    if isinstance(storage, str) and is_address(storage):
        address = Address.of(storage)
        if address.kind != SQLITE:
            raise StorageError(
                f"to start anew the file of a journal is renamed, and {address} is no file; name a new study, ?study=NAME, or "
                "another database"
            )
        storage = address.path
    if not isinstance(storage, (str, os.PathLike)):
        raise StorageError(
            f"to start anew the file of a journal is renamed, and the storage {shown(storage)} is no file; make a new one"
        )
    return rename_journal(Path(storage).expanduser())


def shared_storage(address: Address) -> SharedStorage:
    """A storage that several may write to.

    Raises:
        StorageError: what it needs is not installed, or the database cannot be reached.
    """
    if address.kind == SQLITE:
        return SharedStorage(SQLiteTables(address.path), address.heartbeat_seconds)
    from mipcash.study.storage.shared.postgres import PostgresTables  # needs packages of its own

    return SharedStorage(PostgresTables(address), address.heartbeat_seconds)


def read_study(where: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """The study of a path or an address and its trials, for a look: nothing is written, and whoever writes goes on.

    Raises:
        StorageError: there is none, or it cannot be read.
    """
    if not (isinstance(where, str) and is_address(where)):
        return read_journal(where)
    address = Address.of(where)
    if address.kind == SQLITE:
        return read_journal(address.path)
    found = _read(address)
    if found is None:
        raise StorageError(f"{address} holds no such study; `mipcash work ADDRESS --model FILE` begins one")
    return found


def exists(address: Address) -> bool:
    """Whether there is a study at an address.

    Raises:
        StorageError: the database cannot be reached.
    """
    if address.kind == SQLITE:
        file = Path(address.path)
        return file.is_file() and file.stat().st_size > 0
    return _read(address) is not None


def _read(address: Address) -> tuple[StudyRecord, list[TrialRow]] | None:
    from mipcash.study.storage.shared.postgres import PostgresTables  # needs packages of its own

    tables = PostgresTables(address)
    try:
        return tables.read()
    finally:
        tables.close()
