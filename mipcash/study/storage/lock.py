"""Lock of a journal for one writer, or for several that share it; it is released when its process ends.

The lock is an exclusive SQLite transaction on an empty file beside the journal, or a read transaction, which several writers can
hold. The operating system releases it however the process ends, so a journal is never left locked. The journal itself is not locked
between writes, so ``mipcash show`` can read a run in progress.

The lock is found by the journal's real path, absolute and with symbolic links resolved, so that all paths to a file lead to one
lock. It is not placed on the journal's inode, which hard links share: ``flock`` and the POSIX locks that SQLite takes on the same
file are independent only on Linux. Journals with hard links are refused instead, by ``mipcash.study.storage.sqlite``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from mipcash.errors import StorageError
from mipcash.study.storage.address import without_credentials


class InUseError(StorageError):
    """Raised if another writer has the journal open."""


def real_path(path: Path) -> Path:
    """Return the absolute path of the file itself, with symbolic links resolved.

    Raises:
        StorageError: the links form a cycle, or the path is invalid.
    """
    try:
        found = Path(os.path.expanduser(path)).resolve()  # a file may be named "~x" although no user is
        if found.is_symlink():  # Python 3.13 and later leave a cycle as it is
            raise OSError("its symbolic links form a cycle")
        return found
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(
            f"{without_credentials(path)} leads to no file ({without_credentials(error)}); give another storage"
        ) from None


def create_private(path: Path) -> bool:
    """Create an empty file of mode 0600, whatever the umask. Return False, and leave the file as it is, if it exists."""
    try:
        # O_EXCL: closing a second descriptor of a locked file would drop the locks that this process holds on it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        if hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):  # a file system without modes
                os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return True


class WriterLock:
    """Lock of a journal, held from construction to ``release``.

    Args:
        shared: True if other writers that pass ``shared=True`` may hold the lock at the same time.

    Raises:
        InUseError: another study writes to the journal.
        StorageError: its folder is not writable.
    """

    def __init__(self, journal: Path, shared: bool = False) -> None:
        file = real_path(journal)
        self._shared = shared
        self._path = file.with_name(file.name + ".lock")
        self._connection: sqlite3.Connection | None = None
        for _ in range(100):
            connection = self._acquire(journal)
            if connection is not None:
                self._connection = connection
                return
        raise StorageError(f"the lock {self._path} is replaced again and again by other processes; try again")

    def _acquire(self, journal: Path) -> sqlite3.Connection | None:
        """Lock the file at the path. Return None if the previous writer removed the file meanwhile."""
        try:
            create_private(self._path)
            before = os.lstat(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"{without_credentials(journal)} cannot be written to: {error.strerror}. Give a storage in a folder that you "
                "may write to"
            ) from None  # the cause quotes the path
        if not stat.S_ISREG(before.st_mode):
            raise StorageError(f"{self._path} is not a lock of mipcash (no regular file); move it aside")
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._begin(connection)
            after = os.lstat(self._path)
        except FileNotFoundError:
            connection.close()
            return None
        except sqlite3.Error as error:
            connection.close()
            raise self._refusal(journal, error) from error
        if (before.st_ino, before.st_dev) != (after.st_ino, after.st_dev):
            connection.close()
            return None
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        if self._shared:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        else:
            connection.execute("BEGIN EXCLUSIVE")

    def _refusal(self, journal: Path, error: sqlite3.Error) -> StorageError:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_BUSY:
            if self._shared:
                return InUseError(
                    f"{journal} is in use by another study, which does not share it. Wait for it, or stop it and start it again "
                    f"with storage='sqlite:///{journal}' (or `mipcash work {journal}`), which others may join"
                )
            return InUseError(
                f"{journal} is in use by another study (in this or another process); two writers would spoil "
                "each other. Wait for it, stop it (or close() it), or give another storage; to write to one study from several "
                f"processes, start each of them with storage='sqlite:///{journal}' (or `mipcash work {journal}`)"
            )
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return StorageError(
                f"{self._path} cannot be opened ({error}): another user holds {journal}, or left its lock; ask them, or give "
                "another storage"
            )
        return StorageError(f"{self._path} is not a lock of mipcash ({error}); move it aside")

    def release(self) -> None:
        """Release the lock and remove its file; a second call has no effect."""
        if self._connection is None:
            return
        # Removed while held exclusively: a process that opened the old file notices in _acquire that it is not at the path.
        with contextlib.suppress(OSError, sqlite3.Error):
            if self._shared:
                self._connection.execute("ROLLBACK")
                self._connection.execute("BEGIN EXCLUSIVE")  # fails if other writers share it
            self._path.unlink()
        self._connection.close()
        self._connection = None
