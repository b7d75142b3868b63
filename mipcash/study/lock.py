"""One writer per journal: a lock that dies with its process.

The lock is an exclusive SQLite transaction on an empty file beside the journal. The operating system drops it when
the process ends, however it ends, so a journal is never left locked; and because the journal itself carries no lock
between writes, ``mipcash show`` can read a run that is going on.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from mipcash.errors import StorageError


class WriterLock:
    """Held from construction to :meth:`release`.

    Raises:
        StorageError: another study writes to the journal, or its folder cannot be written to.
    """

    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(journal.name + ".lock")
        self._connection: sqlite3.Connection | None = None
        for _ in range(100):
            connection = self._acquire(journal)
            if connection is not None:
                self._connection = connection
                return
        raise StorageError(f"the lock {self._path} is replaced again and again by other processes; try again")

    def _acquire(self, journal: Path) -> sqlite3.Connection | None:
        """Lock the file at the path; None where it was removed meanwhile by the writer that has just released it."""
        try:
            # O_EXCL: closing a second descriptor of a locked file would drop the locks that this process holds on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
            before = os.stat(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"{journal} cannot be written to: {error.strerror}. Give a storage in a folder you may write to"
            ) from error
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            after = os.stat(self._path)
        except FileNotFoundError:
            connection.close()
            return None
        except sqlite3.Error as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise StorageError(f"{self._path} is not a lock of mipcash ({error}); move it aside") from error
            raise StorageError(
                f"{journal} is in use by another study (in this or another process); two writers would spoil "
                "each other. Wait for it, stop it (or close() it), or give another storage"
            ) from error
        if (before.st_ino, before.st_dev) != (after.st_ino, after.st_dev):
            connection.close()
            return None
        return connection

    def release(self) -> None:
        """Give the lock back and remove its file; doing it twice does no harm."""
        if self._connection is None:
            return
        # Removed while the lock is held: whoever opened the old file notices in _acquire that it is not at the path.
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._connection.close()
        self._connection = None
