"""The pictures of a report on matplotlib axes, from the same data as the page (``mipcash.report.data``).

Every function takes a result, a study, or the path of a journal (with ``space=`` if it is on a Pyomo model). It draws on
``ax`` or on new axes, and returns them. matplotlib is the extra ``plots``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.errors import MipcashError
from mipcash.report.data.convergence import curve, span_of, time_unit
from mipcash.report.data.coordinates import coordinates
from mipcash.report.data.effects import effects
from mipcash.report.data.front import fronts
from mipcash.report.data.limits import limits
from mipcash.report.data.run import Run, Source
from mipcash.report.data.slices import slices
from mipcash.report.data.solving import solving
from mipcash.report.drawing import (
    BAR,
    CROSS,
    DOT,
    GREEN,
    GRID,
    INK,
    INNER,
    RING,
    SOFT,
    STEP,
    VIOLET,
    add_legend,
    draw_bars,
    draw_best_so_far,
    draw_convergence,
    draw_slice,
    dress,
    new_axes,
    plain,
)
from mipcash.report.predictions import effects_of
from mipcash.report.residuals import Residuals, draw_residuals
from mipcash.space.space import Space
from mipcash.text import shown, told_apart, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BY = ("evaluations", "seconds")
SHOWN = 12
"""Largest number of bars."""


def plot_convergence(
    source: Source,
    *,
    by: str = "evaluations",
    ax: Axes | None = None,
    space: Space | None = None,
    label: str | None = None,
) -> Axes:
    """Plot all evaluations, including infeasible and failed ones, and the best value so far.

    Args:
        source: a result, a study, or the path of a journal.
        by: ``evaluations``, or ``seconds`` of work (without pauses).
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.
        label: name of the run. With a name only the best value so far is drawn, to compare several runs on the same axes.

    Returns:
        The axes.

    Raises:
        MipcashError: matplotlib is missing, ``by`` is invalid, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_convergence
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_convergence(run).get_xlabel()
        'evaluation'
    """
    if by not in BY:
        raise MipcashError(f"convergence is drawn by {' or '.join(map(repr, BY))}; got {shown(by)}")
    axes, run = new_axes(ax), Run.of(source, space)
    if label is None:
        draw_convergence(axes, curve(run.result), by == "seconds")
    else:
        draw_best_so_far(axes, curve(run.result), by == "seconds", label)
    add_legend(axes)
    return axes


def plot_parallel_coordinates(
    source: Source,
    *,
    parameters: Sequence[str] | None = None,
    ax: Axes | None = None,
    space: Space | None = None,
) -> Axes:
    """Plot all trials over the ranges of parameters, with the legal ranges in green, and their rank by loss.

    Args:
        source: a result, a study, or the path of a journal.
        parameters: the parameters to show; None: the most important ones.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: fewer than two trials have a loss, a parameter is unknown, matplotlib is missing, or the source is no
            run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_parallel_coordinates
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> axes = plot_parallel_coordinates(run, parameters=["a", "b"])
        >>> [text.get_text() for text in axes.get_xticklabels()]
        ['a', 'b', 'loss (ranked)']
    """
    axes, run = new_axes(ax, (9.0, 4.5)), Run.of(source, space)
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
        labels = told_apart([visible(text) for _, text in axis.ticks], 14)
        for (place, _), text in zip(axis.ticks, labels, strict=True):
            axes.text(x - 0.03, place, text, ha="right", va="center", fontsize=7, color=SOFT, parse_math=False)
    axes.axvline(float(at[-1]), color=INK, linewidth=1)
    names = [*(plain(a.label, 24) for a in shown_.axes), f"{shown_.word} (ranked)"]
    axes.set_xticks(at, names, rotation=20, ha="right", fontsize=8, color=INK, parse_math=False)
    axes.set_yticks([])
    axes.set_xlim(-0.5, at[-1] + 0.2)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def plot_importance(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the share of each parameter in the variance of the modelled loss, alone and with interactions; whiskers: 90 %.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is no model of the loss, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_importance
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_importance(run).get_xlabel()
        'share of the variance (%)'
    """
    axes, found = new_axes(ax), effects_of(source, space)
    rows = [(p.label, p.whole, p.alone) for p in found.parameters[:SHOWN]]
    draw_bars(axes, [(n, w) for n, w, _ in rows], BAR, "with others")
    y = np.arange(len(rows))
    axes.barh(y, [100 * min(a.middle, w.middle) for _, w, a in rows], color=INNER, height=0.55, label="alone", zorder=2)
    add_legend(axes)
    return axes


def plot_interactions(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the shares of pairwise interactions in the variance of the modelled loss; whiskers: 90 %.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is no model of the loss, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_interactions
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_interactions(run).get_xlabel()
        'share of the variance (%)'
    """
    axes, found = new_axes(ax), effects_of(source, space)
    draw_bars(axes, [(f"{p.first} × {p.second}", p.share) for p in found.pairs[:SHOWN]], INNER, "together")
    return axes


def plot_slice(
    source: Source, parameter: str | None = None, *, ax: Axes | None = None, space: Space | None = None
) -> Axes:
    """Plot the predicted loss along one parameter, with the other parameters fixed at the incumbent; forbidden values are grey.

    Args:
        source: a result, a study, or the path of a journal.
        parameter: a parameter that is active in the incumbent; None: the most important one.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is no model of the loss, no such parameter in the incumbent, matplotlib is missing, or the
            source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_slice
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_slice(run, "b").get_xlabel()
        'b'
    """
    axes, run = new_axes(ax), Run.of(source, space)
    found = effects_of(run)
    some = slices(run, found.labels if parameter is None else [parameter])
    if not some:
        raise MipcashError(
            f"there is no slice along {shown(parameter)}: it is not active in the best configuration, or has one value; "
            f"there are {', '.join(s.label for s in slices(run, found.labels)) or 'none'}"
        )
    draw_slice(axes, some[0])
    return axes


def plot_limits(
    source: Source, output: str | None = None, *, ax: Axes | None = None, space: Space | None = None
) -> Axes:
    """Plot an output against the loss, with its outcome constraint and the best feasible loss for each possible bound.

    Args:
        source: a result, a study, or the path of a journal.
        output: name of the output; None: the first output with an outcome constraint, or the first output if there is none.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is no such output, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_limits
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> train = lambda c: {"loss": c["a"], "ms": 9.0 - c["a"]}
        >>> run = mc.minimize(train, space, 5, limits={"ms": 5}, optimizer="random", progress=False)
        >>> plot_limits(run, "ms").get_xlabel()
        'ms'
    """
    axes, found = new_axes(ax), limits(Run.of(source, space))
    one = next((a for a in found if output in (None, a.output)), None)
    if one is None:
        there = (
            f"there are {', '.join(a.output for a in found)}" if found else "no evaluation returned one beside the loss"
        )
        raise MipcashError(f"there is no output{'' if output is None else ' ' + shown(output)}; {there}")
    feasible, violated = one.feasible, ~one.feasible
    kept = "satisfies all constraints" if one.constrained else "evaluation"
    axes.scatter(one.value[feasible], one.loss[feasible], s=26, color=DOT, label=kept, zorder=3)
    if violated.any():
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": RING, "label": "violates a constraint"}
        axes.scatter(one.value[violated], one.loss[violated], s=26, zorder=3, **look)
    for front in one.fronts:
        values, losses = [v for v, _ in front], [l for _, l in front]
        axes.step(values, losses, where="post", color=STEP, linewidth=1.3, linestyle="--", zorder=2)
    for bound in () if one.limit is None else (one.limit.low, one.limit.high):
        if math.isfinite(bound):
            axes.axvline(bound, color=RING, linewidth=1.6)
    dress(axes, plain(one.output, 60), one.objectives.word)
    add_legend(axes)
    return axes


def plot_front(
    source: Source,
    *,
    objectives: tuple[str, str] | None = None,
    ax: Axes | None = None,
    space: Space | None = None,
) -> Axes:
    """Plot two of several objectives: the Pareto front, its balanced trial, and dominated trials.

    Args:
        source: a result, a study, or the path of a journal.
        objectives: names of the objectives on the horizontal and the vertical axis; None: the first two.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is only one objective, no trial has values of two objectives, one that is named does not exist,
            matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_front
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> train = lambda c: {"cost": c["a"], "ms": 9.0 - c["a"] + c["b"]}
        >>> run = mc.minimize(train, space, 5, direction=["cost", "ms"], progress=False)
        >>> plot_front(run).get_xlabel()
        'cost (less is better)'
    """
    axes, found = new_axes(ax), fronts(Run.of(source, space), objectives)
    if not found:
        raise MipcashError("there is no front: the run has one objective, or no trial has the values of two")
    pair = found[0]
    x, y = pair.values.T
    below, on = ~pair.on, pair.on
    axes.scatter(x[below], y[below], s=22, color=DOT, alpha=0.6, label="dominated, or beyond a limit")
    axes.scatter(x[on], y[on], s=40, color=STEP, label="front", zorder=3)
    if pair.steps:
        axes.step(*zip(*pair.steps, strict=True), where="post", color=STEP, linewidth=1.2, linestyle="--")
    if pair.best is not None:
        axes.scatter([x[pair.best]], [y[pair.best]], s=90, color=RING, edgecolors="white", label="balanced", zorder=5)
    names = [f"{plain(g.output, 40)} ({'less' if g.sign > 0 else 'more'} is better)" for g in pair.objectives]
    dress(axes, names[0], names[1])
    add_legend(axes)
    return axes


def plot_residuals(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the residuals of an ADMM optimizer, on a logarithmic scale.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: the optimizer reports no residuals, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_residuals
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> method = mc.Method("admm", settings={"n_initial": 2, "first": 1, "growth": 0})
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer=method, progress=False)
        >>> plot_residuals(run).get_ylabel()
        'residual'
    """
    axes, found = new_axes(ax), Residuals.of(Run.of(source, space).result)
    if found is None:
        raise MipcashError("the optimizer of this run reports no residuals; 'admm' and 'admmbo' do")
    draw_residuals(axes, found)
    dress(axes, "evaluation", "residual")
    add_legend(axes)
    return axes


def plot_times(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the seconds of each proposal and each evaluation, on a logarithmic scale.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_times
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_times(run).get_yscale()
        'log'
    """
    axes, found = new_axes(ax), solving(Run.of(source, space))
    if not np.any(found.evaluation > 0.0) and not np.any(found.ask > 0.0):
        raise MipcashError("there are no times: no evaluation of this run has started here")
    for values, color, label in ((found.evaluation, DOT, "evaluation"), (found.ask, VIOLET, "suggestion")):
        axes.scatter(found.x, np.where(values > 0.0, values, math.nan), s=18, color=color, label=label)
    axes.set_yscale("log")
    dress(axes, "evaluation", "seconds")
    add_legend(axes)
    return axes


def plot_gaps(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the relative optimality gap of the solver call of each proposal, in percent.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: no gap is known, as in a journal that is read without its space, matplotlib is missing, or the source
            is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_gaps
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 8, progress=False)
        >>> plot_gaps(run).get_ylabel()
        'gap (%)'
    """
    axes, found = new_axes(ax), solving(Run.of(source, space))
    known = np.isfinite(found.gap)
    if not known.any():
        raise MipcashError(
            "no gap is known: no proposal was made with a solver, or the journal was read without its space="
        )
    axes.vlines(found.x[known], 0.0, 100 * found.gap[known], color=GRID, linewidth=2)
    axes.scatter(found.x[known], 100 * found.gap[known], s=18, color=DOT)
    dress(axes, "evaluation", "gap (%)")
    return axes


def plot_timeline(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the time from start to end of every evaluation; evaluations that overlap lie on different rows.

    The number of rows is the largest number of evaluations at a time, and gaps in a row are idle workers.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; not needed.

    Returns:
        The axes.

    Raises:
        MipcashError: no evaluation has a time, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_timeline
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_timeline(run).get_ylabel()
        'worker'
    """
    axes, run = new_axes(ax, (9.0, 3.5)), Run.of(source, space)
    from matplotlib.ticker import MaxNLocator

    over = bool(run.result.stopped)  # nothing runs any more
    trials = [t for t in run.result.history if t.attempt and t.started and not (t.known or (t.pending and over))]
    if not trials:
        raise MipcashError("there is no timeline: no evaluation of this run has started here")
    spans = [span_of(t) for t in trials]
    began, ended = min(begin for begin, _ in spans), max(end for _, end in spans)
    spans = [(begin, ended if t.pending else end) for t, (begin, end) in zip(trials, spans, strict=True)]
    unit, name = time_unit(ended - began)
    at = rows(spans)
    kinds = (("succeeded", DOT), ("failed", CROSS), ("pruned", RING), ("running", INK))
    of_kind = [
        "running" if t.pending else "failed" if t.failed else "pruned" if t.pruned else "succeeded" for t in trials
    ]
    for kind, color in kinds:
        chosen = [k for k, one in enumerate(of_kind) if one == kind]
        left = [(spans[k][0] - began) / unit for k in chosen]
        width = [(spans[k][1] - spans[k][0]) / unit for k in chosen]
        if chosen:
            axes.barh(
                [at[k] + 1 for k in chosen], width, left=left, height=0.7, color=color, label=kind, edgecolor="white"
            )
    axes.set_ylim(0.4, max(at) + 1.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    dress(axes, f"time since the first start ({name})", "worker")
    add_legend(axes, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)
    return axes


def rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, from 0, so that spans of one row do not overlap and there are as few rows as possible."""
    ends, chosen = list[float](), [0] * len(spans)
    for k in sorted(range(len(spans)), key=lambda k: spans[k]):
        begin, end = spans[k]
        row = next((r for r, last in enumerate(ends) if last <= begin), len(ends))
        ends[row : row + 1] = [end]
        chosen[k] = row
    return chosen
