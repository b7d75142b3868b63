"""The file of a journal that is open for writing: its lock, its connection, its transactions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mipcash.errors import StorageError
from mipcash.study.storage.address import without_credentials
from mipcash.study.storage.sqlite.lock import WriterLock, create_private, real_path
from mipcash.study.storage.sqlite.reading import connect, explain


class JournalFile:
    """Open from construction to :meth:`close`.

    Args:
        storage: the file, which is made where there is none.
        shared: whether others may write to it that say the same.

    Raises:
        StorageError: the folder does not exist, another writer has the file open, or it has a second name (a hard link).

    Attributes:
        path: absolute, as it was given.
        database: the connection.
    """

    database: sqlite3.Connection

    def __init__(self, storage: str | os.PathLike[str], shared: bool = False) -> None:
        given = Path(os.fspath(storage)).expanduser()
        self.path = given.absolute()  # a later chdir must not lead elsewhere
        file = real_path(given)
        _check_folder(given, file)
        self._lock = WriterLock(given, shared)
        try:
            with explain(self.path):
                self._identity = _prepare(file)
                self._file = str(file)
                self.database = self.another()
        except BaseException:
            self.close()
            raise

    def another(self) -> sqlite3.Connection:
        """Another connection."""
        database = connect(self._file)
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = EXTRA")  # FULL, and the removal of the rollback file is synced too
        return database

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in it, or nothing; nobody else writes meanwhile.

        Raises:
            StorageError: the file cannot be written to, or is not the one that was opened.
        """
        with explain(self.path):
            self._check_place()
            self.database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.database.execute("COMMIT")
            except BaseException:
                if self.database.in_transaction:  # SQLite itself rolls back where the disk is full
                    self.database.execute("ROLLBACK")
                raise

    def tighten(self) -> None:
        """0600 for the journal, from which SQLite takes the mode of its rollback file."""
        with contextlib.suppress(OSError):  # the file of another user, or a file system without modes
            os.chmod(self._file, stat.S_IRUSR | stat.S_IWUSR)

    def close(self) -> None:
        """Close the file and let other writers in; doing it twice does no harm."""
        database = getattr(self, "database", None)
        if database is not None:
            database.close()
        self._lock.release()

    def _check_place(self) -> None:
        """What is written to a file that was moved, deleted or replaced is lost, or meets the writes of another study."""
        with contextlib.suppress(FileNotFoundError):
            now = os.stat(self._file)
            if (now.st_dev, now.st_ino) == self._identity:
                return
        raise StorageError(
            f"the journal {self.path} was moved, deleted or replaced while this study writes to it; put it back and "
            "resume it, or start a new one"
        )


def _check_folder(given: Path, file: Path) -> None:
    try:
        is_folder, exists = file.is_dir(), file.exists()
    except OSError as error:
        raise StorageError(
            f"{without_credentials(given)} cannot be looked at: {error.strerror}; give another storage"
        ) from None  # the cause quotes the path
    if is_folder:
        raise StorageError(f"{given} is a folder; give a file for the journal, such as {given / 'run.db'}")
    if not file.parent.is_dir():
        folder = without_credentials(file.parent if given.is_symlink() else given.parent)
        raise StorageError(
            f"the folder {folder} of journal {without_credentials(given.name)!r} does not exist; create it (mkdir -p {folder})"
        )
    if exists and not file.is_file():
        raise StorageError(f"{given} is no regular file; give another storage")


def _prepare(file: Path) -> tuple[int, int]:
    """Make the file, private, where there is none; its device and inode.

    A file of two names is refused: SQLite calls its rollback file after the name it was given, so that a run killed
    under one name is not mended under the other, and neither name's lock keeps the other's writer out.
    """
    try:
        create_private(file)
        found = os.stat(file)
    except OSError as error:
        raise StorageError(f"the journal {file} cannot be used: {error.strerror}; check its permissions") from error
    if found.st_nlink > 1:
        raise StorageError(
            f"the journal {file} has {found.st_nlink} names (hard links); a run resumed under one of them would spoil what "
            f"another has open. Remove the others (find . -samefile {file.name} lists them), or copy the file and use the copy"
        )
    return found.st_dev, found.st_ino
