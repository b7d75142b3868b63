"""Drawing on matplotlib axes: colours, axes, bars, bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.errors import MipcashError
from mipcash.report.data.convergence import Curve, time_unit
from mipcash.report.data.effects import Spread
from mipcash.report.data.slices import Slice, slice_bounds
from mipcash.text import abridged, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

INK, SOFT, GRID = "#2b2f36", "#6b7280", "#e5e7eb"
DOT, STEP, CROSS, RING = "#4a90c9", "#0b3f78", "#b3261e", "#b3540a"
BAR, INNER, GREEN, VIOLET = "#a9cbe8", "#0b5cad", "#1b7a4b", "#7a3e9d"


def draw_convergence(axes: Axes, c: Curve, by_seconds: bool = False) -> None:
    """Draw the picture of ``plot_convergence``, without a legend."""
    from matplotlib.ticker import MaxNLocator

    unit, name = time_unit(c.last_seconds) if by_seconds else (1.0, "")
    x, failed, step = (
        (c.seconds / unit, c.failed_seconds / unit, c.step_seconds / unit) if by_seconds else (c.x, c.failed, c.step_x)
    )
    inside = c.inside
    kinds: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("evaluation", inside & ~c.incomplete & ~c.infeasible, {"color": DOT, "linewidths": 0}),
        (c.reason, inside & c.incomplete, {"color": DOT, "marker": "_", "linewidths": 1.6}),
        (
            "violates a constraint",
            inside & ~c.incomplete & c.infeasible,
            {"facecolors": "none", "edgecolors": RING, "linewidths": 1.3},
        ),
    )
    for label, which, look in kinds:
        if which.any():
            axes.scatter(x[which], c.loss[which], s=26, label=label, zorder=2, **look)
    if not inside.all():
        rim = np.full(int((~inside).sum()), c.rim)
        axes.scatter(
            x[~inside],
            rim,
            s=30,
            marker="v" if c.objectives.maximised else "^",
            color=DOT,
            clip_on=False,
            label="off the scale",
            zorder=3,
        )
    if failed.size:
        style: dict[str, Any] = {
            "s": 34,
            "marker": "x",
            "color": CROSS,
            "linewidths": 1.6,
            "clip_on": False,
            "zorder": 3,
        }
        above = axes.get_xaxis_transform()
        axes.scatter(failed, np.full(failed.size, 0.985), label="failed", transform=above, **style)
    if c.step_y.size > 1:
        axes.step(step, c.step_y, where="post", color=STEP, linewidth=2, label="best so far", zorder=4)
        found = c.found
        axes.scatter(step[found], c.step_y[found], s=60, color=STEP, edgecolors="white", zorder=5)
    if c.log:
        axes.set_yscale("log")
    axes.set_ylim(c.low, c.high)
    if by_seconds:
        axes.set_xlim(0.0, max(c.last_seconds / unit, 1e-9) * 1.01)
    else:
        axes.set_xlim(0.5, c.last + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    dress(axes, f"time at work ({name})" if by_seconds else "evaluation", c.objectives.word)


def draw_best_so_far(axes: Axes, c: Curve, by_seconds: bool, label: str) -> None:
    """Draw the best value so far of one of several runs, in the next colour, up to the end of its run."""
    if c.step_y.size:
        draw_steps(axes, c.step_seconds if by_seconds else c.step_x, c.step_y, label)
    dress(axes, "time at work (s)" if by_seconds else "evaluation", c.objectives.word)


def draw_steps(axes: Axes, x: ArrayLike, y: ArrayLike, label: str) -> None:
    """Draw a step function of one of several runs, in the next colour."""
    axes.step(x, y, where="post", linewidth=2, label=plain(label, 44))


def add_legend(axes: Axes, figure: Any = None, **options: Any) -> None:
    """Add a legend to the axes, or to a figure, if anything drawn has a label; labels are no mathematics."""
    if axes.get_legend_handles_labels()[0]:
        made = (figure or axes).legend(frameon=False, fontsize=9, labelcolor=INK, **options)
        for text in made.get_texts():
            text.set_parse_math(False)


def drawable() -> bool:
    """Return True if matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def needs_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        MipcashError: it is not.
    """
    if not drawable():
        raise MipcashError("a picture needs the package matplotlib; pip install 'mipcash[plots]'")


def new_axes(ax: Axes | None, size: tuple[float, float] = (7.0, 4.0)) -> Axes:
    needs_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def dress(axes: Axes, x: str, y: str) -> None:
    """Set the names of the axes and a light grid, and remove the frame."""
    axes.set_xlabel(x, color=INK, parse_math=False)
    axes.set_ylabel(y, color=INK, parse_math=False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=SOFT, labelsize=9)
    for one in (axes.xaxis, axes.yaxis):
        if one.get_scale() == "log":
            _round_ticks(one)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)


def _round_ticks(axis: Any) -> None:
    """Set ticks at 1, 2 and 5 times powers of ten, or only at powers over three decades or more, as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if low > 0.0 and high / low < 1e3 else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_bars(axes: Any, rows: Sequence[tuple[str, Spread]], color: str, label: str) -> None:
    y, middle = np.arange(len(rows)), [100 * s.middle for _, s in rows]
    axes.barh(y, middle, color=color, height=0.55, label=label, zorder=1)
    for k, (_, s) in enumerate(rows):
        axes.plot([100 * s.low, 100 * s.high], [k, k], color=INK, linewidth=1.2, marker="|", markersize=6, zorder=3)
    axes.set_yticks(y, [plain(name, 44) for name, _ in rows], parse_math=False)
    axes.invert_yaxis()
    dress(axes, "share of the variance (%)", "")
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def draw_slice(axes: Any, s: Slice) -> None:
    x = np.array([float(v) for v in s.values]) if s.number else np.arange(len(s.values), dtype=float)
    edges = np.concatenate(
        [[x[0] - (0.0 if s.number else 0.5)], (x[1:] + x[:-1]) / 2, [x[-1] + (0.0 if s.number else 0.5)]]
    )
    for k, (first, last) in enumerate(s.forbidden):
        axes.axvspan(
            edges[first],
            edges[last + 1],
            color="#8792a0",
            alpha=0.25,
            linewidth=0,
            label="" if k else "forbidden by rules",
        )
    if s.number:
        axes.fill_between(x, s.low, s.high, color=INNER, alpha=0.18, linewidth=0, label="± 2 standard deviations")
        axes.plot(x, s.mean, color=INNER, linewidth=2, label="predicted")
        axes.set_xscale("log" if s.log else "linear")
    else:
        axes.vlines(x, s.low, s.high, color=INNER, alpha=0.25, linewidth=6, label="± 2 standard deviations")
        axes.scatter(x, s.mean, s=30, color=INNER, label="predicted", zorder=3)
        axes.set_xticks(x, [plain(t, 18) for t in s.texts], rotation=30, ha="right", parse_math=False)
    axes.axvline(x[s.at], color=STEP, linewidth=1, linestyle="--")
    axes.set_ylim(*slice_bounds([s], False)[:2])  # evaluations far from the slice do not change the scale
    axes.scatter(*s.evaluated.T, s=12, color=DOT, alpha=0.6, label="other evaluations", zorder=2)
    if math.isfinite(s.incumbent):
        axes.scatter([x[s.at]], [s.incumbent], s=60, color=STEP, edgecolors="white", label="incumbent", zorder=5)
    dress(axes, plain(s.label, 60), s.word)
    add_legend(axes)


def plain(text: str, limit: int) -> str:
    """Return text that matplotlib can write, abridged to ``limit`` characters."""
    return abridged(visible(text), limit)
