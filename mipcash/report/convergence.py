"""The convergence picture: every evaluation, what breaks limits, the failures, and the best value so far; by matplotlib.

Under it the residuals of an optimizer that tells some (:mod:`mipcash.report.residuals`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import MipcashError
from mipcash.optimizers.goals import Goals
from mipcash.report.residuals import Residuals, draw_residuals
from mipcash.study.result import Result
from mipcash.study.text import one_line, visible

INK, SOFT, GRID = "#2b2f36", "#6b7280", "#e5e7eb"
DOT, STEP, CROSS, RING = "#7fa7c9", "#0b5394", "#c0392b", "#c77f1a"
SUFFIXES = (".png", ".svg")


@dataclass(frozen=True)
class _Curve:
    """What is drawn; x counts evaluations from 1.

    Attributes:
        x, loss: (d,) of the evaluations that succeeded.
        breaks: (d,) whether they break a limit.
        stopped: (d,) whether racing stopped them, so that the loss is an estimate.
        failed: (f,) x of those that failed.
        step_x, step_y: (s,) the incumbent, from the first success on.
        low, high: limits of the loss axis. What is worse than the range is drawn at the rim.
        last: the right end of the x axis.
        goals: what the study optimises.
    """

    x: NDArray[np.float64]
    loss: NDArray[np.float64]
    breaks: NDArray[np.bool_]
    stopped: NDArray[np.bool_]
    failed: NDArray[np.float64]
    step_x: NDArray[np.float64]
    step_y: NDArray[np.float64]
    low: float
    high: float
    last: int
    goals: Goals

    @property
    def rim(self) -> float:
        """Where on the axis what is off the scale is drawn: at the end where the worst losses are."""
        return self.low if self.goals.maximised else self.high


def drawable() -> bool:
    """Whether matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def plot_convergence(result: Result, path: str | os.PathLike[str], title: str = "") -> Path:
    """Write the convergence picture.

    Args:
        path: ``.png`` or ``.svg``.

    Returns:
        The file that was written.

    Raises:
        MipcashError: no matplotlib, another suffix, or the file cannot be written.
    """
    if not drawable():
        raise MipcashError("a picture needs the package matplotlib; pip install 'mipcash[plots]'")
    try:
        target = Path(path).expanduser()
    except (TypeError, RuntimeError) as error:
        raise MipcashError(f"{path!r} is no path of a picture ({error}); give a file such as 'run.png'") from error
    if target.suffix.lower() not in SUFFIXES:
        raise MipcashError(f"{target} cannot be drawn: the suffix must be {' or '.join(SUFFIXES)}")
    _check_place(target)
    heading = visible(title or result.space)  # XML holds no control characters
    try:
        _draw(_curve(result), heading, _caption(result), target, Residuals.of(result))
    except (OSError, ValueError) as error:  # a name that no file can have
        raise MipcashError(
            f"the picture {visible(str(target))} cannot be written: {error}; give another file with --plot"
        ) from error
    return target


def _check_place(target: Path) -> None:
    """See that a picture can be written there before it is drawn.

    Raises:
        MipcashError: its folder is missing, or it is a folder.
    """
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


def _caption(result: Result) -> str:
    best = result.best
    failed = f", {result.n_failed} failed" if result.n_failed else ""
    if best is None and result.n_done and result.under:
        nearest = "" if result.nearest is None else f"; {result.nearest}"
        return visible(one_line(f"nothing keeps all limits; {result.n_done} done{failed}{nearest}", 120))
    if best is None:
        return f"no evaluation succeeded, {result.n_failed} failed"
    kept = f", {result.n_feasible} keep all limits" if result.under else ""
    return f"best {result.value:.6g} at evaluation {best.number + 1}; {result.n_done} done{kept}{failed}"


def _curve(result: Result) -> _Curve:
    number, loss, incumbent, _ = result.convergence()
    breaks = np.array([result.standing.feasible(k) is False for k in range(len(number))], dtype=bool)
    x = number.astype(float) + 1
    done, known = np.isfinite(loss), np.isfinite(incumbent)
    failed = np.array([t.number + 1.0 for t in result.history if t.failed])
    last = int(x[-1]) if x.size else 1
    low, high = sorted(result.goals.sign * end for end in _limits(result.goals.sign * loss[done]))
    step_x, step_y = x[known], incumbent[known]
    return _Curve(
        x[done],
        loss[done],
        breaks[done],
        np.array([not t.whole for t in result.history], dtype=bool)[done],
        failed,
        np.append(step_x, last),
        np.append(step_y, step_y[-1:]),
        low,
        high,
        last,
        result.goals,
    )


def _limits(loss: NDArray[np.float64]) -> tuple[float, float]:
    """Limits of the loss axis: the whole range, unless a few outliers would flatten the rest."""
    if not loss.size:
        return 0.0, 1.0
    low, high = float(loss.min()), float(loss.max())
    reach = low + 3 * (float(np.quantile(loss, 0.9)) - low)
    if high - low > 2 * (reach - low) > 0:
        high = float(loss[loss <= reach].max())
    margin = 0.08 * (high - low) or 0.05 * max(1e-12, abs(high)) or 0.5
    return low - margin, high + margin


def _draw(curve: _Curve, title: str, caption: str, target: Path, residuals: Residuals | None = None) -> None:
    from matplotlib.figure import Figure  # without pyplot: no display, no global state
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5 if residuals is None else 6.0), dpi=150, layout="constrained", facecolor="white")
    grid = figure.add_gridspec(1 if residuals is None else 2, 1, height_ratios=[3] if residuals is None else [3, 1])
    axes = figure.add_subplot(grid[0])
    inside = (curve.loss <= curve.high) & (curve.loss >= curve.low)
    whole, stopped = inside & ~curve.stopped, inside & curve.stopped
    keeps, breaks = whole & ~curve.breaks, whole & curve.breaks
    axes.scatter(curve.x[keeps], curve.loss[keeps], s=26, color=DOT, linewidths=0, label="evaluation", zorder=2)
    if stopped.any():
        axes.scatter(
            curve.x[stopped],
            curve.loss[stopped],
            s=22,
            marker="_",
            color=DOT,
            linewidths=1.6,
            label="stopped early",
            zorder=2,
        )
    if breaks.any():
        axes.scatter(
            curve.x[breaks],
            curve.loss[breaks],
            s=26,
            facecolors="none",
            edgecolors=RING,
            linewidths=1.3,
            label="breaks a limit",
            zorder=2,
        )
    if not inside.all():
        beyond = curve.x[~inside]
        axes.scatter(
            beyond,
            np.full(beyond.size, curve.rim),
            s=30,
            marker="v" if curve.goals.maximised else "^",
            color=DOT,
            clip_on=False,
            label="off the scale",
            zorder=3,
        )
    if curve.failed.size:
        rim = np.full(curve.failed.size, 1.03)
        axes.scatter(
            curve.failed,
            rim,
            s=34,
            marker="x",
            color=CROSS,
            linewidths=1.6,
            clip_on=False,
            label="failed",
            transform=axes.get_xaxis_transform(),
            zorder=3,
        )
    if curve.step_y.size > 1:
        axes.step(curve.step_x, curve.step_y, where="post", color=STEP, linewidth=2, label="best so far", zorder=4)
        found = int(np.argmin(curve.goals.sign * curve.step_y))
        axes.scatter(curve.step_x[found], curve.step_y[found], s=60, color=STEP, edgecolors="white", zorder=5)
    axes.set_xlim(0.5, curve.last + 0.5)
    axes.set_ylim(curve.low, curve.high)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if residuals is not None:
        lower = figure.add_subplot(grid[1], sharex=axes)
        draw_residuals(lower, residuals)
        _soften(lower)
        lower.set_ylabel("residual", color=INK)
        lower.set_xlabel("evaluation", color=INK)
    _dress(figure, axes, title, caption)
    axes.set_ylabel(curve.goals.word, color=INK)
    if residuals is not None:
        axes.set_xlabel("")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    figure.savefig(target)


def _dress(figure: Any, axes: Any, title: str, caption: str) -> None:
    axes.set_xlabel("evaluation", color=INK)
    axes.set_title(caption, loc="left", fontsize=9, color=SOFT, pad=14)
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK, parse_math=False)
    _soften(axes)
    if figure.axes[0].get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9, labelcolor=INK)


def _soften(axes: Any) -> None:
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
