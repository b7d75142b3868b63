"""From what a user gives as ``storage=`` to a storage."""

from __future__ import annotations

import os

from mipcash.study.storage.base import Storage
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.sqlite.storage import SQLiteStorage

MEMORY = ":memory:"


def make_storage(storage: str | os.PathLike[str] | Storage | None) -> Storage:
    """A storage that is not open yet: memory for None, a journal for a path, one's own as it is.

    Raises:
        StorageError: see :class:`mipcash.study.storage.sqlite.storage.SQLiteStorage`.
    """
    if storage is None or storage == MEMORY:
        return MemoryStorage()
    if isinstance(storage, (str, os.PathLike)):
        return SQLiteStorage(storage)
    return storage
