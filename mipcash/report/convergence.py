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
from mipcash.report.drawing import INK, SOFT, add_legend, draw_convergence, dress, needs_matplotlib
from mipcash.report.files import READABLE, write_file
from mipcash.report.residuals import Residuals, draw_residuals
from mipcash.study.result import Result
from mipcash.study.text import one_line, visible

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
    target = _target(path)
    heading = visible(title or result.space)  # XML holds no control characters
    shown = curve(result)
    content = _drawn(
        lambda axes: draw_convergence(axes, shown), heading, _caption(result), target.suffix, Residuals.of(result)
    )
    _write(target, content, mode)
    return target


def save_comparison(
    results: Mapping[str, Result], path: str | os.PathLike[str], kind: str = "convergence", *, mode: int = READABLE
) -> Path:
    """Write a picture of several runs by name, see ``compare_runs``; arguments and errors as in ``save_convergence``."""
    check_kind(kind)
    target = _target(path)
    curves = {name: curve(result) for name, result in results.items()}
    title = counted(len(results), "run")
    _write(target, _drawn(lambda axes: draw_comparison(axes, curves, kind), title, "", target.suffix, None), mode)
    return target


def _write(target: Path, content: bytes, mode: int) -> None:
    try:
        write_file(target, content, mode)
    except (OSError, ValueError) as error:  # a name that no file can have
        raise MipcashError(
            f"the picture {visible(str(target))} cannot be written: {error}; give another file with --plot"
        ) from error


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture, checked before the picture is drawn.

    Raises:
        MipcashError: matplotlib is missing, the suffix is not supported, the folder does not exist, or the path is a folder.
    """
    needs_matplotlib()
    try:
        target = Path(path).expanduser()
    except (TypeError, RuntimeError) as error:
        raise MipcashError(f"{path!r} is no path of a picture ({error}); give a file such as 'run.png'") from error
    if target.suffix.lower() not in SUFFIXES:
        raise MipcashError(f"{target} cannot be drawn: the suffix must be {' or '.join(SUFFIXES)}")
    name = visible(str(target))
    try:
        if target.is_dir():
            raise MipcashError(
                f"the picture {name} cannot be written: it is a folder; give a file such as {name}/run.png"
            )
        if not target.parent.is_dir():
            folder = visible(str(target.parent))
            cure = "give another file" if target.parent.exists() else f"create it (mkdir -p {folder})"
            raise MipcashError(f"the picture {name} cannot be written: {folder} is no folder; {cure}")
    except (OSError, ValueError) as error:
        raise MipcashError(f"the picture {name} cannot be written: {error}; give another file") from error
    return target


def _caption(result: Result) -> str:
    best = result.best
    failed = f", {result.n_failed} failed" if result.n_failed else ""
    if best is None and result.n_done and result.under:
        nearest = "" if result.nearest is None else f"; {result.nearest}"
        return visible(one_line(f"nothing satisfies all constraints; {result.n_done} done{failed}{nearest}", 120))
    if best is None and result.n_done:
        return f"no complete evaluation yet, {result.n_done} incomplete{failed}"
    if best is None:
        return f"no evaluation succeeded, {result.n_failed} failed"
    kept = f", {result.n_feasible} satisfy all constraints" if result.under else ""
    if result.objectives.several:
        return visible(one_line(f"{len(result.front)} on the front; {result.n_done} done{kept}{failed}", 120))
    return f"best {best.loss:.6g} at evaluation {best.number + 1}; {result.n_done} done{kept}{failed}"


def _drawn(draw: Callable[[Any], None], title: str, caption: str, suffix: str, residuals: Residuals | None) -> bytes:
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    figure = Figure(figsize=(8, 4.5 if residuals is None else 6.0), dpi=150, layout="constrained", facecolor="white")
    grid = figure.add_gridspec(1 if residuals is None else 2, 1, height_ratios=[3] if residuals is None else [3, 1])
    axes: Any = figure.add_subplot(grid[0])
    draw(axes)
    if residuals is not None:
        lower: Any = figure.add_subplot(grid[1], sharex=axes)
        draw_residuals(lower, residuals)
        dress(lower, "evaluation", "residual")
        axes.set_xlabel("")
    axes.set_title(caption, loc="left", fontsize=9, color=SOFT, pad=14, parse_math=False)
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK, parse_math=False)
    add_legend(axes, figure, loc="outside lower center", ncols=4)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:].lower())
    return content.getvalue()
