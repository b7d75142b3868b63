"""From what a user gives as ``storage=`` to a storage."""

from __future__ import annotations

import os

from mipcash.study.storage.base import Storage
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.sqlite.storage import SQLiteStorage
from mipcash.study.text import shown

MEMORY = ":memory:"


def make_storage(storage: str | os.PathLike[str] | Storage | None) -> Storage:
    """A storage that is not open yet: memory for None, a journal for a path, one's own as it is.

    Raises:
        TypeError: it is nothing of the kind.
        StorageError: see :class:`mipcash.study.storage.sqlite.storage.SQLiteStorage`.
    """
    if storage is None or storage == MEMORY:
        return MemoryStorage()
    if isinstance(storage, (str, os.PathLike)):
        return SQLiteStorage(storage)
    if isinstance(storage, type) or not callable(getattr(storage, "open", None)) or not hasattr(storage, "news"):
        raise TypeError(f"storage must be the path of a journal, a Storage, or None for memory; got {shown(storage)}")
    return storage
