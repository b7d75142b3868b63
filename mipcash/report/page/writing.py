"""The page as a file."""

from __future__ import annotations

import os
from pathlib import Path

from mipcash.errors import MipcashError
from mipcash.report.data.run import Run, Source
from mipcash.report.files import write_file
from mipcash.report.page.document import page
from mipcash.space.space import Space
from mipcash.text import shown, visible

SUFFIXES = (".html", ".htm")


def write_page(source: Source, path: str | os.PathLike[str], space: Space | None = None) -> Path:
    """Write the report of a run as one self-contained HTML file.

    Args:
        source: a result, a study, or the path of a journal.
        path: ``.html`` or ``.htm``; an existing file is replaced. The page of a journal has at most the journal's
            permission bits.
        space: space of a journal; None: as the journal describes it. A result or a study has its own.

    Returns:
        The path of the file.

    Raises:
        MipcashError: the source is no run, its space differs, or the file cannot be written.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import write_page
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(lambda c: c["a"] ** 2, space, 4, optimizer="random", progress=False)
        >>> print(write_page(run, "run.html"))
        run.html
    """
    try:
        target = Path(path).expanduser()
    except (TypeError, RuntimeError) as error:
        raise MipcashError(f"{shown(path)} is no path of a page ({error}); give a file such as 'run.html'") from error
    name = visible(str(target))
    if target.suffix.lower() not in SUFFIXES:
        raise MipcashError(f"the page {name} cannot be written: its name must end in .html; give one such as run.html")
    run = Run.of(source, space)
    text = page(run)
    try:
        write_file(target, text.encode("utf-8", "backslashreplace"), run.mode)
    except (OSError, ValueError) as error:
        raise MipcashError(f"the page {name} cannot be written: {error}; give another file") from error
    return target
