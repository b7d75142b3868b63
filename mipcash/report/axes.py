"""The pictures of a report as matplotlib axes; numbers come from where the page has them (:mod:`mipcash.report.data`).

Every function takes a result, a study, or the path of a journal (with its ``space=``, where the picture needs it), draws on
``ax`` or on new axes, and returns them. matplotlib is the extra ``plots``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.errors import MipcashError
from mipcash.report.data.convergence import Curve, curve, time_unit
from mipcash.report.data.coordinates import coordinates
from mipcash.report.data.effects import Effects, Spread, effects
from mipcash.report.data.limits import limits
from mipcash.report.data.run import Run, Source
from mipcash.report.data.slices import Slice, slices
from mipcash.report.data.solving import solving
from mipcash.report.residuals import Residuals, draw_residuals
from mipcash.space.space import Space
from mipcash.study.text import shown, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, GRID = "#2b2f36", "#6b7280", "#e5e7eb"
DOT, STEP, CROSS, RING = "#4a90c9", "#0b3f78", "#b3261e", "#b3540a"
BAR, INNER, GREEN, VIOLET = "#a9cbe8", "#0b5cad", "#1b7a4b", "#7a3e9d"
BY = ("evaluations", "seconds")
SHOWN = 12
"""Bars, at most."""


def plot_convergence(
    source: Source, *, by: str = "evaluations", ax: Axes | None = None, space: Space | None = None
) -> Axes:
    """Every evaluation, what breaks limits, the failures, and the best value so far.

    Args:
        by: ``evaluations``, or ``seconds``, in which the run was at work.

    Raises:
        MipcashError: matplotlib is missing, or the source is none.
    """
    if by not in BY:
        raise MipcashError(f"convergence is drawn by {' or '.join(map(repr, BY))}; got {shown(by)}")
    axes, run = _axes(ax), Run.of(source, space)
    draw_convergence(axes, curve(run.result), by == "seconds")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


def draw_convergence(axes: Axes, c: Curve, by_seconds: bool = False) -> None:
    """The picture of :func:`plot_convergence`, without a legend."""
    from matplotlib.ticker import MaxNLocator

    unit, name = time_unit(c.last_seconds) if by_seconds else (1.0, "")
    x, failed, step = (
        (c.seconds / unit, c.failed_seconds / unit, c.step_seconds / unit) if by_seconds else (c.x, c.failed, c.step_x)
    )
    inside = c.inside
    kinds: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("evaluation", inside & ~c.stopped & ~c.breaks, {"color": DOT, "linewidths": 0}),
        ("stopped early", inside & c.stopped, {"color": DOT, "marker": "_", "linewidths": 1.6}),
        (
            "breaks a limit",
            inside & ~c.stopped & c.breaks,
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
            marker="v" if c.goals.maximised else "^",
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
        axes.scatter(failed, np.full(failed.size, 1.03), label="failed", transform=above, **style)
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
    dress(axes, f"time at work ({name})" if by_seconds else "evaluation", c.goals.word)


def plot_parallel_coordinates(
    source: Source,
    *,
    parameters: Sequence[str] | None = None,
    ax: Axes | None = None,
    space: Space | None = None,
) -> Axes:
    """All trials over the ranges of parameters, green where the rules leave them, and their rank by loss.

    Args:
        parameters: those to show; None: the most important ones.

    Raises:
        MipcashError: fewer than two trials have a loss; see :func:`plot_convergence`.
    """
    axes, run = _axes(ax, (9.0, 4.5)), Run.of(source, space)
    found = effects(run) if parameters is None else None
    shown_ = coordinates(run, found.labels if found else parameters, all_given=parameters is not None)
    if len(shown_.trials) < 2 or not shown_.axes:
        raise MipcashError("parallel coordinates need two trials with a loss")
    from matplotlib import colormaps

    places = np.array([*(a.places for a in shown_.axes), 1.0 - shown_.rank])
    at = np.arange(len(places))
    for k in range(len(shown_.trials)):
        best = k == shown_.best
        color = RING if best else colormaps["Blues_r"](0.1 + 0.7 * float(shown_.rank[k]))
        axes.plot(
            at,
            places[:, k],
            color=color,
            linewidth=2.6 if best else 1.1,
            marker="." if best else "",
            zorder=3 if best else 2,
        )
    for x, axis in zip(at, shown_.axes, strict=False):
        axes.axvline(float(x), color=SOFT, linewidth=0.8, zorder=1)
        for low, high in axis.legal or ():
            axes.plot([x, x], [low, high], color=GREEN, linewidth=5, alpha=0.45, solid_capstyle="butt", zorder=1)
        for place, text in axis.ticks:
            axes.text(
                x - 0.03, place, _plain(text, 14), ha="right", va="center", fontsize=7, color=SOFT, parse_math=False
            )
    axes.axvline(float(at[-1]), color=INK, linewidth=1)
    names = [*(_plain(a.label, 24) for a in shown_.axes), f"{shown_.word} (ranked)"]
    axes.set_xticks(at, names, rotation=20, ha="right", fontsize=8, color=INK, parse_math=False)
    axes.set_yticks([])
    axes.set_xlim(-0.5, at[-1] + 0.2)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def plot_importance(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Shares of the variance of the modelled loss, by parameter: alone, and with others; whiskers hold 90 %.

    Raises:
        MipcashError: there is no model of the loss; see :func:`plot_convergence`.
    """
    axes, found = _axes(ax), _effects(source, space)
    rows = [(p.label, p.whole, p.alone) for p in found.parameters[:SHOWN]]
    _bars(axes, [(n, w) for n, w, _ in rows], BAR, "with others")
    y = np.arange(len(rows))
    axes.barh(y, [100 * min(a.middle, w.middle) for _, w, a in rows], color=INNER, height=0.55, label="alone", zorder=2)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


def plot_interactions(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Shares of the variance that pairs of parameters have together and neither alone; whiskers hold 90 %.

    Raises:
        MipcashError: as :func:`plot_importance`.
    """
    axes, found = _axes(ax), _effects(source, space)
    _bars(axes, [(f"{p.first} × {p.second}", p.share) for p in found.pairs[:SHOWN]], INNER, "together")
    return axes


def plot_slice(
    source: Source, parameter: str | None = None, *, ax: Axes | None = None, space: Space | None = None
) -> Axes:
    """The predicted loss along one parameter, the others at the incumbent's; grey is what the rules forbid there.

    Args:
        parameter: one that is active in the incumbent; None: the most important one.

    Raises:
        MipcashError: there is no model of the loss, or no such parameter in the incumbent; see :func:`plot_convergence`.
    """
    axes, run = _axes(ax), Run.of(source, space)
    found = effects(run)
    if found is None:
        raise MipcashError(_lacks(run))
    some = slices(run, found.labels if parameter is None else [parameter])
    if not some:
        raise MipcashError(
            f"there is no slice along {shown(parameter)}: it is not active in the best configuration, or has one value; "
            f"there are {', '.join(s.label for s in slices(run, found.labels)) or 'none'}"
        )
    _draw_slice(axes, some[0])
    return axes


def plot_limits(
    source: Source, output: str | None = None, *, ax: Axes | None = None, space: Space | None = None
) -> Axes:
    """An output against the loss, with its limit and the lowest loss that each bound would admit.

    Args:
        output: its name; None: the first with a limit, or the first there is.

    Raises:
        MipcashError: there is no such output; see :func:`plot_convergence`.
    """
    axes, found = _axes(ax), limits(Run.of(source, space))
    one = next((a for a in found if output in (None, a.output)), None)
    if one is None:
        raise MipcashError(
            f"there is no output {shown(output)}; there are {', '.join(a.output for a in found) or 'none'}"
        )
    kept, broken = one.keeps, ~one.keeps
    axes.scatter(one.value[kept], one.loss[kept], s=26, color=DOT, label="keeps all limits", zorder=3)
    if broken.any():
        label = "breaks a limit" if one.limit is not None else "evaluation"
        axes.scatter(
            one.value[broken], one.loss[broken], s=26, facecolors="none", edgecolors=RING, label=label, zorder=3
        )
    for front in one.fronts:
        values, losses = [v for v, _ in front], [l for _, l in front]
        axes.step(values, losses, where="post", color=STEP, linewidth=1.3, linestyle="--", zorder=2)
    for bound in () if one.limit is None else (one.limit.low, one.limit.high):
        if math.isfinite(bound):
            axes.axvline(bound, color=RING, linewidth=1.6)
    dress(axes, _plain(one.output, 60), one.goals.word)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


def plot_residuals(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Residuals of an optimizer by operator splitting, on a logarithmic scale.

    Raises:
        MipcashError: the optimizer tells none; see :func:`plot_convergence`.
    """
    axes, found = _axes(ax), Residuals.of(Run.of(source, space).result)
    if found is None:
        raise MipcashError("the optimizer of this run tells no residuals; those of 'admm' and 'admmbo' are drawn")
    draw_residuals(axes, found)
    dress(axes, "evaluation", "residual")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


def plot_times(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Seconds of each suggestion and of each evaluation, on a logarithmic scale.

    Raises:
        MipcashError: see :func:`plot_convergence`.
    """
    axes, found = _axes(ax), solving(Run.of(source, space))
    for values, color, label in ((found.evaluation, DOT, "evaluation"), (found.ask, VIOLET, "suggestion")):
        axes.scatter(found.x, np.where(values > 0.0, values, math.nan), s=18, color=color, label=label)
    axes.set_yscale("log")
    dress(axes, "evaluation", "seconds")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


def plot_gaps(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """The relative gap of the solve behind each proposal, in percent.

    Raises:
        MipcashError: no gap is known, as in a journal that is read without its space; see :func:`plot_convergence`.
    """
    axes, found = _axes(ax), solving(Run.of(source, space))
    known = np.isfinite(found.gap)
    if not known.any():
        raise MipcashError(
            "no gap is known: no proposal came out of a solve, or the journal was read without its space="
        )
    axes.vlines(found.x[known], 0.0, 100 * found.gap[known], color=GRID, linewidth=2)
    axes.scatter(found.x[known], 100 * found.gap[known], s=18, color=DOT)
    dress(axes, "evaluation", "gap (%)")
    return axes


# -- helpers --------------------------------------------------------------------------------------------------------


def drawable() -> bool:
    """Whether matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def needs_matplotlib() -> None:
    """See that it is there.

    Raises:
        MipcashError: it is not.
    """
    if not drawable():
        raise MipcashError("a picture needs the package matplotlib; pip install 'mipcash[plots]'")


def _axes(ax: Axes | None, size: tuple[float, float] = (7.0, 4.0)) -> Axes:
    needs_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def dress(axes: Axes, x: str, y: str) -> None:
    """Names of the axes, a quiet grid, no frame."""
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
    """1, 2 and 5 times powers of ten, or these alone over many decades, as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if low > 0.0 and high / low < 1e3 else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _effects(source: Source, space: Space | None) -> Effects:
    run = Run.of(source, space)
    found = effects(run)
    if found is None:
        raise MipcashError(_lacks(run))
    return found


def _lacks(run: Run) -> str:
    if run.place is None:
        return "this picture needs the space of the run; give space= with the journal's path"
    return "this picture needs a model of the loss, which takes four evaluations with different losses"


def _bars(axes: Any, rows: Sequence[tuple[str, Spread]], color: str, label: str) -> None:
    y, middle = np.arange(len(rows)), [100 * s.middle for _, s in rows]
    axes.barh(y, middle, color=color, height=0.55, label=label, zorder=1)
    for k, (_, s) in enumerate(rows):
        axes.plot([100 * s.low, 100 * s.high], [k, k], color=INK, linewidth=1.2, marker="|", markersize=6, zorder=3)
    axes.set_yticks(y, [_plain(name, 44) for name, _ in rows], parse_math=False)
    axes.invert_yaxis()
    dress(axes, "share of the variance (%)", "")
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def _draw_slice(axes: Any, s: Slice) -> None:
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
        axes.set_xticks(x, [_plain(t, 18) for t in s.texts], rotation=30, ha="right", parse_math=False)
    axes.axvline(x[s.at], color=STEP, linewidth=1, linestyle="--")
    if math.isfinite(s.incumbent):
        axes.scatter([x[s.at]], [s.incumbent], s=60, color=STEP, edgecolors="white", label="incumbent", zorder=5)
    dress(axes, _plain(s.label, 60), s.word)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def _plain(text: str, limit: int) -> str:
    """Text that matplotlib can write."""
    said = visible(text)
    return said if len(said) <= limit else f"{said[: limit - 1]}…"
