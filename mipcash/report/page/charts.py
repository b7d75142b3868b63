"""Charts over evaluations: convergence, parallel coordinates, outcome constraints against loss, residuals, seconds and gaps."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mipcash.optimizers.optimizer import Limit
from mipcash.program.forms import Vector
from mipcash.report.data.convergence import Curve, axis_limits, loss_limits, time_unit
from mipcash.report.data.coordinates import Coordinates
from mipcash.report.data.front import FrontPair
from mipcash.report.data.limits import OutputScatter
from mipcash.report.data.solving import Solving
from mipcash.report.page.svg import NARROW, Chart, number, seconds
from mipcash.report.residuals import LEAST, NAMES, Residuals
from mipcash.text import abridged, told_apart

TALL, LOW = 340.0, 250.0
"""Heights of a full-width chart, and of one on a phone."""


def height_of(width: float) -> float:
    """Return the height of a chart of a width."""
    return LOW if width <= NARROW else TALL


def convergence_chart(curve: Curve, width: float, by_seconds: bool) -> str:
    """Return the chart of all evaluations and the best so far."""
    unit, name = time_unit(curve.last_seconds)
    last = max(curve.last_seconds / unit, 1e-9) if by_seconds else float(curve.last)
    chart = Chart(width, height_of(width), f"Convergence by {'seconds' if by_seconds else 'evaluation'}")
    xs, fails, steps = (
        (curve.seconds / unit, curve.failed_seconds / unit, curve.step_seconds / unit)
        if by_seconds
        else (curve.x, curve.failed, curve.step_x)
    )
    ends = (0.0, last * 1.01) if by_seconds else (min(1.0, last) - 0.5, last + 0.5)
    chart.top = 24 if len(fails) else 12
    x, y = chart.scales(ends, (curve.low, curve.high), log_y=curve.log)
    title = f"time at work ({name})" if by_seconds else "evaluation"
    word = curve.objectives.word
    chart.axes(x, y, title, f"{word} (log scale)" if curve.log else word, whole_x=not by_seconds)
    tip, inside, at, height = partial(_tip, curve), curve.inside, x.all(xs), y.all(curve.loss)
    for k in np.flatnonzero(~inside).tolist():
        rim = _rim(at[k], y(curve.rim), curve.objectives.maximised)
        chart.path(rim, "off", tip(k) + "\noff the scale", close=True)
    kinds = np.where(curve.incomplete, "estimate", np.where(curve.infeasible, "limit", "dot"))
    for kind in dict.fromkeys(kinds[inside].tolist()):
        chart.dots(at, height, np.flatnonzero(inside & (kinds == kind)).tolist(), kind, tip)
    for k, when in enumerate(fails):
        chart.cross(x(when), 12, "failed", f"evaluation {int(curve.failed[k])} failed")
    if len(curve.step_y) > 1:
        chart.steps(x.all(steps), y.all(curve.step_y), "best")
        found = curve.found
        chart.dot(x(steps[found]), y(curve.step_y[found]), "star", f"best: {number(curve.step_y[found])}", 5.5)
    return chart.svg()


def _tip(curve: Curve, k: int) -> str:
    how = (
        "\nviolates a constraint"
        if curve.infeasible[k]
        else f"\n{curve.reason}: an estimate"
        if curve.incomplete[k]
        else ""
    )
    loss = f"{curve.objectives.word} {number(curve.loss[k])}"
    return f"evaluation {int(curve.x[k])}\n{loss}{how}\nafter {seconds(curve.seconds[k])}"


def _rim(x: float, y: float, down: bool) -> list[tuple[float, float]]:
    """Return a triangle that marks a value beyond the axis and points outward."""
    away = -1.0 if down else 1.0
    return [(x - 5, y + 9 * away), (x + 5, y + 9 * away), (x, y + away)]


SHADES = 5
"""Number of colour classes of lines by rank."""
STEP = 74.0
"""Height of an axis on a phone."""
LABEL = "Parallel coordinates of the trials"


def parallel_chart(shown: Coordinates, width: float) -> str:
    """Return the chart of all trials over the most important parameters, and their loss, an axis of ranks with the best at 1."""
    lying, last = width <= NARROW, len(shown.axes)
    if lying:  # one axis below the other, so that names are readable on a phone
        chart = Chart(width, 24 + STEP * (last + 1), LABEL, left=18, right=18, top=24, bottom=STEP - 24)
        first, gap = chart.top + 6, STEP
    else:
        chart = Chart(width, 400, LABEL, left=70, right=60, top=44, bottom=30)
        first, gap = chart.x0, (chart.x1 - chart.x0) / max(1, last)

    def at(n: int, place: float) -> tuple[float, float]:
        """Return the pixel of a place on an axis."""
        if lying:
            return chart.x0 + place * (chart.x1 - chart.x0), first + n * gap
        return first + n * gap, chart.y0 - place * (chart.y0 - chart.y1)

    def label(n: int, name: str, ticks: list[tuple[float, str]]) -> None:
        """Write the name and the ticks of an axis, below a horizontal one as far as there is room."""
        (x, y), end, until = at(n, 0.0), n == last, -math.inf
        letters = 48 if lying else 14 if end else max(8, (int(2 * gap / 7.6) - 1) * (4 if n else 3) // 4)
        where = (x - 8, y - 10, "start") if lying else (x, 29.0 if n % 2 else 14.0, "middle" if n else "start")
        chart.text(*where[:2], abridged(name, letters), where[2], "name halo")
        texts = told_apart([text for _, text in ticks], 16 if lying else max(6, int(gap / 6.4) - 2))
        for (place, _), text in zip(ticks, texts, strict=True):
            (x, y), wide = at(n, place), 6.4 * len(text)
            begin = x if place < 0.05 else x - wide if place > 0.95 else x - wide / 2
            anchor = "start" if place < 0.05 else "end" if place > 0.95 else "middle"
            if not lying:
                chart.text(x + (7 if end else -7), y + 4, text, "start" if end else "end", "tick halo")
            elif begin >= until + 6:
                chart.text(x, y + 16, text, anchor, "tick halo")
                until = begin + wide

    losses = (1.0 - shown.rank).tolist()
    for k in range(len(shown.trials)):
        _lines(chart, [*(at(n, a.places[k]) for n, a in enumerate(shown.axes)), at(last, losses[k])], shown, k)
    for n, axis in enumerate(shown.axes):
        chart.line(*at(n, 0.0), *at(n, 1.0), "coordinate")
        for low, high in axis.legal or ():
            x, y = at(n, high)
            chart.line(*at(n, low), x, y if lying or high > low else y - 2, "allowed")
        label(n, axis.label, list(axis.ticks))
    chart.line(*at(last, 0.0), *at(last, 1.0), "coordinate strong")
    order = np.argsort(shown.rank)
    worst = [int(order[round(share * (len(order) - 1))]) for share in (1.0, 0.5, 0.0)]
    label(last, f"{shown.word} (ranked)", list(dict.fromkeys((losses[k], number(float(shown.loss[k]))) for k in worst)))
    return chart.svg("parallel")


def _trial_tip(shown: Coordinates, k: int) -> str:
    values = [f"{a.label}: {a.texts[k]}" for a in shown.axes if a.texts[k]]
    return "\n".join([f"trial {shown.trials[k]}, {shown.word} {number(float(shown.loss[k]))}", *values])


def _lines(chart: Chart, points: list[tuple[float, float]], shown: Coordinates, k: int) -> None:
    """Draw one trial: a line with gaps where a parameter is absent; isolated points are dots."""
    best = k == shown.best
    kind = "line top" if best else f"line s{min(SHADES - 1, int(shown.rank[k] * SHADES))}"
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    tip = _trial_tip(shown, k)
    for run in runs:
        if len(run) > 1:
            chart.path(run, kind, tip)
        elif run:
            chart.dot(*run[0], kind + " alone", tip, 2.5)


def against_chart(against: OutputScatter, width: float) -> str:
    """Return the chart of an output against the loss, with its outcome constraint and the best feasible loss for each bound."""
    chart = Chart(width, 260, f"{against.output} against the {against.objectives.word}")
    low, high, log_y = loss_limits(against.objectives, against.loss)
    left, right, log_x = _reach(against.value, against.limit)
    x, y = chart.scales((left, right), (low, high), log_x, log_y)
    if against.limit is not None:
        for outside in _outside(against.limit, left, right):
            a, b = sorted(x(v) for v in outside)
            chart.box(a, chart.y1, b - a, chart.y0 - chart.y1, "forbidden")
    titles = (
        f"{against.output[:34]}{' (log scale)' if log_x else ''}",
        f"{against.objectives.word}{' (log scale)' if log_y else ''}",
    )
    chart.axes(x, y, *titles, count=(4, 4))
    at, height = x.all(against.value), y.all(against.loss)
    for kind, rows in (("limit", ~against.feasible), ("dot", against.feasible)):
        chart.dots(at, height, np.flatnonzero(rows).tolist(), kind, partial(_output_tip, against))
    for steps in against.fronts:
        chart.steps(x.all([v for v, _ in steps]), y.all([l for _, l in steps]), "best thin")
    for bound in () if against.limit is None else (against.limit.low, against.limit.high):
        if math.isfinite(bound):
            chart.line(x(bound), chart.y1, x(bound), chart.y0, "bound")
    if against.best is not None:
        k = against.best
        chart.dot(at[k], height[k], "star", f"best: trial {against.trial[k]}", 5.5)
    return chart.svg()


def _output_tip(against: OutputScatter, k: int) -> str:
    kept = "satisfies all constraints" if against.feasible[k] else "violates a constraint"
    reported = [f"{against.output} {number(against.value[k])}", f"{against.objectives.word} {number(against.loss[k])}"]
    return "\n".join([f"trial {against.trial[k]}", *reported, *([kept] if against.constrained else [])])


def _reach(values: Vector, limit: Limit | None) -> tuple[float, float, bool]:
    ends = [e for e in (() if limit is None else (limit.low, limit.high)) if math.isfinite(e)]
    low, high, log = axis_limits(np.array([*values, *ends]))
    return low, max(high, *ends) if ends else high, log


def _outside(limit: Limit, left: float, right: float) -> list[tuple[float, float]]:
    found = [(left, limit.low)] if math.isfinite(limit.low) and limit.low > left else []
    return found + ([(limit.high, right)] if math.isfinite(limit.high) and limit.high < right else [])


def front_chart(pair: FrontPair, width: float) -> str:
    """Return the chart of two objectives: the front, its balanced trial, and dominated trials."""
    first, second = pair.objectives
    chart = Chart(width, height_of(width), f"{second.output} against {first.output}, and the Pareto front")
    (left, right, log_x), (low, high, log_y) = map(loss_limits, pair.objectives, pair.values.T)
    x, y = chart.scales((left, right), (low, high), log_x, log_y)
    names = [f"{g.output[:30]} ({'less' if g.sign > 0 else 'more'} is better)" for g in pair.objectives]
    chart.axes(x, y, names[0], names[1], count=(4, 5))
    chart.steps(x.all([a for a, _ in pair.steps]), y.all([b for _, b in pair.steps]), "best thin")
    at, height = x.all(pair.values[:, 0]), y.all(pair.values[:, 1])
    for kind, rows in (("limit", ~pair.feasible), ("dot", pair.feasible & ~pair.on), ("member", pair.on)):
        radius = 4.5 if kind == "member" else 3.5
        chart.dots(at, height, np.flatnonzero(rows).tolist(), kind, partial(_pair_tip, pair), radius)
    if pair.best is not None:
        a, b = pair.values[pair.best].tolist()
        chart.dot(x(a), y(b), "star", _pair_tip(pair, pair.best) + "\nbalanced", 6)
    return chart.svg()


def _pair_tip(pair: FrontPair, k: int) -> str:
    reported = zip(pair.objectives, pair.values[k].tolist(), strict=True)
    values = [f"{objective.output} {number(value)}" for objective, value in reported]
    return "\n".join([f"trial {pair.trial[k]}", *values, *(["on the front"] if pair.on[k] else [])])


def residuals_chart(residuals: Residuals, width: float) -> str:
    """Return the chart of residuals by evaluation, on a logarithmic scale."""
    chart = Chart(width, height_of(width) - 60, "Residuals of the operator splitting by evaluation")
    kept = {name: np.maximum(v[np.isfinite(v)], LEAST) for name, v in residuals.values.items()}
    low, high = min(float(v.min()) for v in kept.values()), max(float(v.max()) for v in kept.values())
    x, y = chart.scales((0.5, float(residuals.x[-1]) + 0.5), (low / 1.6, max(high, low * 1.01) * 1.6), log_y=True)
    chart.axes(x, y, "evaluation", "residual (log scale)", whole_x=True)
    for name, values in residuals.values.items():
        at = residuals.x[np.isfinite(values)]
        chart.steps(x.all(at), y.all(kept[name]), f"best r-{list(NAMES).index(name)}")
    return chart.svg()


def times_chart(solving: Solving, width: float) -> str:
    """Return the chart of the seconds of each proposal and each evaluation, on a logarithmic scale."""
    chart = Chart(width, 250, "Seconds of each suggestion and of each evaluation")
    reported = np.concatenate([solving.ask, solving.evaluation])
    reported = reported[np.isfinite(reported) & (reported > 0.0)]
    low, high = (float(reported.min()), float(reported.max())) if reported.size else (0.1, 1.0)
    low = max(low, high * 1e-6, 1e-6)
    x, y = chart.scales((0.5, float(solving.x.max(initial=1.0)) + 0.5), (low / 1.6, high * 1.6), log_y=True)
    chart.axes(x, y, "evaluation", "seconds (log scale)", whole_x=True)
    at = x.all(solving.x)
    for values, kind, name in ((solving.evaluation, "dot", "evaluation"), (solving.ask, "ask", "suggestion")):
        rows = np.flatnonzero(np.isfinite(values) & (values > 0.0)).tolist()
        chart.dots(at, y.all(values), rows, kind, partial(_time_tip, solving, values, name), 3.0)
    return chart.svg()


def _time_tip(solving: Solving, values: Vector, name: str, k: int) -> str:
    return f"{name} {int(solving.x[k])}: {seconds(float(values[k]))}"


def gaps_chart(solving: Solving, width: float) -> str:
    """Return the chart of the optimality gap of each proposal's solver call, in percent."""
    chart = Chart(width, 250, "Relative gap of the solve behind each proposal")
    known = np.isfinite(solving.gap)
    top = 100 * max(0.01, float(np.max(solving.gap[known], initial=0.0)))
    x, y = chart.scales((0.5, float(solving.x.max(initial=1.0)) + 0.5), (0.0, top * 1.06))
    chart.axes(x, y, "evaluation", "gap (%)", whole_x=True)
    numbers, gaps = solving.x[known], 100 * solving.gap[known]
    for a, gap, at, height in zip(numbers, gaps, x.all(numbers), y.all(gaps), strict=True):
        kind, text = ("dot", "proven optimal") if gap <= 1e-4 else ("limit", f"gap {number(float(gap))} %")
        chart.line(at, chart.y0, at, height, "stem")
        chart.dot(at, height, kind, f"evaluation {int(a)}: {text}", 3)
    return chart.svg()
