"""The convergence picture as a file, by matplotlib, with the residuals of the optimizer below it if it reports any."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mipcash.display import counted
from mipcash.errors import MipcashError
from mipcash.report.comparison import check_kind, draw_comparison
from mipcash.report.data.convergence import curve
from mipcash.report.drawing import INK, add_legend, draw_convergence, needs_matplotlib
from mipcash.report.files import READABLE, write_file
from mipcash.study.result import Result
from mipcash.text import visible

SUFFIXES = (".png", ".svg")


def save_convergence(result: Result, path: str | os.PathLike[str], title: str = "", *, mode: int = READABLE) -> Path:
    """Write the convergence picture.

    Args:
        path: ``.png`` or ``.svg``.
        mode: largest permission bits of the file; see ``mipcash.report.files.mode_of``.

    Returns:
        The path of the file.

    Raises:
        MipcashError: matplotlib is missing, the suffix is not supported, or the file cannot be written.
    """
    shown = curve(result)
    return _saved(lambda axes: draw_convergence(axes, shown), title or result.space, path, mode)


def save_comparison(
    results: Mapping[str, Result], path: str | os.PathLike[str], kind: str = "convergence", *, mode: int = READABLE
) -> Path:
    """Write a picture of several runs by name, see ``compare_runs``; arguments and errors as in ``save_convergence``."""
    check_kind(kind)
    curves = {name: curve(result) for name, result in results.items()}
    return _saved(lambda axes: draw_comparison(axes, curves, kind), counted(len(results), "run"), path, mode)


def _saved(draw: Callable[[Any], None], title: str, path: str | os.PathLike[str], mode: int) -> Path:
    needs_matplotlib()
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    try:
        target = Path(path).expanduser()
    except (TypeError, RuntimeError) as error:  # no path, or a user without a home
        raise MipcashError(f"{path!r} is no path of a picture ({error})") from error
    if target.suffix.lower() not in SUFFIXES:
        raise MipcashError(f"{visible(str(target))} cannot be drawn: the suffix must be {' or '.join(SUFFIXES)}")
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained", facecolor="white")
    axes: Any = figure.add_subplot()
    draw(axes)
    axes.set_title(visible(title), loc="left", fontsize=13, color=INK, parse_math=False)
    add_legend(axes, figure, loc="outside lower center", ncols=4)
    content = io.BytesIO()
    figure.savefig(content, format=target.suffix[1:].lower())
    try:
        write_file(target, content.getvalue(), mode)
    except (OSError, ValueError) as error:  # a name that no file can have
        raise MipcashError(
            f"the picture {visible(str(target))} cannot be written: {error}; give another file"
        ) from error
    return target
