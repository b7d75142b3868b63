"""Conversion of ``storage=`` to a storage. SQLAlchemy is imported only for files and servers."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipcash.errors import StorageError
from mipcash.study.storage.address import SQLITE, Address, is_address
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.protocol import Storage, StudyRecord, TrialRow
from mipcash.text import listed, shown

MEMORY = (":memory:", "sqlite:///:memory:")


@dataclass(frozen=True)
class Journal:
    """Storage of a study, optionally started anew: ``mc.minimize(..., storage=mc.Journal("run.db", fresh=True))``.

    Args:
        storage: the path of a file, an address, a storage, or None for memory.
        fresh: True to start anew: an existing file is renamed to the first free ``NAME.old-1.db``, ``NAME.old-2.db`` ... and a new
            one is created. It raises an error for the database of a server; give the new study another name there.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> for storage in ("run.db", mc.Journal("run.db", fresh=True)):
        ...     with mc.Study(space, "random", storage=storage) as study:
        ...         print(study.tell(study.ask(), 1.0).number, study.renamed)
        0 None
        0 run.old-1.db
    """

    storage: str | os.PathLike[str] | Storage | None
    fresh: bool = False

    @classmethod
    def of(cls, given: Any) -> Journal:
        """Return the journal given as ``storage=``.

        Args:
            given: a journal, or what it is made of.

        Returns:
            The journal.
        """
        return given if isinstance(given, Journal) else cls(given)


StorageGiven = str | os.PathLike[str] | Storage | Journal | None
"""Type of ``storage=``."""


def make_storage(storage: str | os.PathLike[str] | Storage | None) -> Storage:
    """Return a storage, not opened: memory for None, a journal for a path, a database for an address, a storage itself.

    Raises:
        TypeError: the argument is none of these.
        StorageError: see ``mipcash.study.storage.sqlite.JournalFile``.
    """
    if storage is None or storage in MEMORY:
        return MemoryStorage()
    if isinstance(storage, str) and is_address(storage):
        return shared_storage(Address.of(storage))
    if isinstance(storage, (str, os.PathLike)):
        return one_writer(storage)
    wanted = [name for name, method in vars(Storage).items() if callable(method) and not name.startswith("_")]
    lacking = [name for name in wanted if not callable(getattr(storage, name, None))]
    if isinstance(storage, type) or len(lacking) == len(wanted):
        raise TypeError(
            f"storage must be the path of a journal, an address such as postgresql://user@host/database, a Storage, or None for "
            f"memory; got {shown(storage)}"
        )
    if lacking:
        raise TypeError(f"storage {shown(storage)} lacks {listed(lacking)} of mipcash.study.storage.protocol.Storage")
    return storage


def move_aside(storage: str | os.PathLike[str] | Storage | None) -> Path | None:
    """Rename the file of a journal and return its new path, so that a new one can begin. Return None if there is no journal.

    Raises:
        StorageError: a run is writing to the journal, or the storage is no file.
    """
    if storage is None or storage in MEMORY:
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
    from mipcash.study.storage.sqlite import rename_journal

    return rename_journal(Path(os.path.expanduser(storage)))


def one_writer(path: str | os.PathLike[str]) -> Storage:
    """Return a storage in a file that has no other writers.

    Raises:
        StorageError: see ``mipcash.study.storage.sqlite.JournalFile``.
    """
    from mipcash.study.storage.sql import SQLStorage
    from mipcash.study.storage.sqlite import JournalFile

    return SQLStorage(JournalFile(path))


def shared_storage(address: Address) -> Storage:
    """Return a storage for several concurrent writers.

    Raises:
        StorageError: a required package is not installed.
    """
    from mipcash.study.storage.sql import SQLStorage
    from mipcash.study.storage.sqlite import JournalFile

    if address.kind == SQLITE:
        return SQLStorage(JournalFile(address.path, shared=True), address.heartbeat_seconds)
    from mipcash.study.storage.postgres import Server  # needs a package of its own

    return SQLStorage(Server(address), address.heartbeat_seconds)


def read_study(where: str | os.PathLike[str]) -> tuple[StudyRecord, list[TrialRow]]:
    """Return the study of a path or an address and its trials, read-only; writers are not affected.

    Raises:
        StorageError: there is none, or it cannot be read.
    """
    address = Address.of(where) if isinstance(where, str) and is_address(where) else None
    if address is None or address.kind == SQLITE:
        from mipcash.study.storage.sqlite import read_journal

        return read_journal(where if address is None else address.path)
    from mipcash.study.storage.postgres import Server

    with closing(Server(address)) as server:
        return server.read()


def exists(address: Address) -> bool:
    """Return True if there is a study at an address.

    Raises:
        StorageError: the database cannot be reached.
    """
    if address.kind == SQLITE:
        file = Path(address.path).expanduser()
        return file.is_file() and file.stat().st_size > 0
    from mipcash.study.storage.postgres import Server

    with closing(Server(address)) as server:
        return server.find()
