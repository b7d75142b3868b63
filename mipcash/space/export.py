"""The compiled program as a file that other solvers read."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mipcash.errors import SolverError
from mipcash.space.compiled import CompiledSpace


def export(space: CompiledSpace, path: str | os.PathLike[str], suffix: str) -> Path:
    """Write the program, without an objective.

    The solver writes to a folder of its own: one that cannot open a file may end the process, without a word.

    Args:
        path: the file; without the suffix it is added.
        suffix: ``.lp`` or ``.mps``.

    Returns:
        The file that was written.

    Raises:
        SolverError: it cannot be written; path, cause and cure.
        TypeError: it is no path.
    """
    from mipcash.backends.highs import program_text

    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"the path of a program is a str or a Path, such as 'space{suffix}', got {path!r}")
    if not os.fspath(path):
        raise SolverError(f"the program cannot be written: the path is empty; give a file, such as 'space{suffix}'")
    target = _target(Path(path), suffix)
    names = [re.sub(r"[^A-Za-z0-9_]+", "_", name) for name in space.program.names]
    text = program_text(space.program, [f"{name}_{k}" for k, name in enumerate(names)], suffix)
    try:
        target.write_bytes(text)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise SolverError(
            f"the program cannot be written to {str(target)!r}: {cause}; check its permissions and the space on the disk, "
            "or give another file"
        ) from error
    return target


def _target(given: Path, suffix: str) -> Path:
    """The file to write, after a look at the place.

    Raises:
        SolverError: it can be seen that it cannot be written.
    """
    try:
        path = given.expanduser()
        target = path if path.suffix.lower() == suffix else path.with_name(path.name + suffix) if path.name else path
        taken = path if path.is_dir() else target if target.is_dir() else None
        missing = None if target.parent.is_dir() else target.parent
    except (OSError, RuntimeError, ValueError) as error:
        raise SolverError(
            f"the program cannot be written to {str(given)!r}: the path leads to no file ({error}); give another file"
        ) from error
    if taken is not None:
        example = taken / f"space{suffix}"
        raise SolverError(
            f"the program cannot be written to {str(taken)!r}: it is a folder; give a file, such as {str(example)!r}"
        )
    if missing is not None:
        what = (
            "is no folder; give another file" if missing.exists() else f"does not exist; create it (mkdir -p {missing})"
        )
        raise SolverError(f"the program cannot be written to {str(target)!r}: the folder {str(missing)!r} {what}")
    return target
