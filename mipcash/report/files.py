"""Files derived from a journal, such as pages and pictures."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from mipcash.study.storage.address import Address, is_address
from mipcash.study.storage.checks import is_database

READABLE = 0o666
"""Permission bits that a file may have."""
PRIVATE = 0o600


def mode_of(journal: Path | str | None) -> int:
    """Return the permission bits for files derived from a journal: those of the journal, without execution.

    Args:
        journal: its path or address; a database without a file counts as private. None: there is no journal.
    """
    if journal is None:
        return READABLE
    if isinstance(journal, str) and is_address(journal):
        journal = Address.of(journal).path
    try:
        return os.stat(Path(journal).expanduser()).st_mode & READABLE if journal else PRIVATE
    except OSError:
        return PRIVATE


def write_file(target: Path, content: bytes, mode: int) -> None:
    """Write a file that never has more permission bits than ``mode``, the umask or the file that it replaces.

    The content goes into a new file beside the target, which then replaces it. A process that has the replaced file open cannot
    read the new content.

    Raises:
        OSError: the file cannot be written, or the target is a journal.
    """
    target = Path(os.path.realpath(target))
    if target.is_file() and is_database(target):
        raise OSError(errno.EEXIST, "it is a journal, which is not replaced", str(target))
    with contextlib.suppress(FileNotFoundError):
        mode &= os.stat(target).st_mode
    new = target.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        os.replace(new, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new.unlink()
        if isinstance(error, OSError):  # the message should name the target
            raise OSError(error.errno, error.strerror, str(target)) from None
        raise
