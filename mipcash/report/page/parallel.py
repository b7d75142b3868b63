"""Parallel coordinates, with vertical axes on a wide page and horizontal ones on a phone."""

from __future__ import annotations

import math

import numpy as np

from mipcash.report.data.coordinates import Axis, Coordinates
from mipcash.report.page.svg import NARROW, Chart, number
from mipcash.text import abridged, told_apart

SHADES = 5
"""Number of colour classes of lines by rank."""
STEP = 74.0
"""Height of an axis on a phone."""


def parallel_chart(shown: Coordinates, width: float) -> str:
    """Return the chart of all trials over the most important parameters, and their loss."""
    return _lying(shown, width) if width <= NARROW else _standing(shown, width)


def _shade(rank: float) -> str:
    return f"line s{min(SHADES - 1, int(rank * SHADES))}"


def _tip(shown: Coordinates, k: int) -> str:
    values = [f"{a.label}: {a.texts[k]}" for a in shown.axes if a.texts[k]]
    return "\n".join([f"trial {shown.trials[k]}, {shown.word} {number(float(shown.loss[k]))}", *values])


def _loss_places(shown: Coordinates) -> tuple[list[float], list[tuple[float, str]]]:
    """Return the loss as an axis of ranks, the best at 1, with some of its values."""
    places = (1.0 - shown.rank).tolist()
    order = np.argsort(shown.rank)
    ticks = []
    for share in (0.0, 0.5, 1.0):
        k = int(order[round(share * (len(order) - 1))])
        ticks.append((1.0 - float(shown.rank[k]), number(float(shown.loss[k]))))
    return places, list(dict.fromkeys(ticks))


def _standing(shown: Coordinates, width: float) -> str:
    chart = Chart(width, 400, "Parallel coordinates of the trials", left=70, right=60, top=44, bottom=30)
    count = len(shown.axes) + 1
    gap = (chart.x1 - chart.x0) / max(1, count - 1)
    xs = [chart.x0 + k * gap for k in range(count)]
    letters, named = int(gap / 6.4), int(2 * gap / 7.6) - 1

    def y(place: float) -> float:
        return chart.y0 - place * (chart.y0 - chart.y1)

    losses, ticks = _loss_places(shown)
    for k, trial in enumerate(range(len(shown.trials))):
        points = [(x, y(a.places[trial])) for x, a in zip(xs, shown.axes, strict=False)]
        _lines(chart, [*points, (xs[-1], y(losses[trial]))], shown, k)
    for n, (x, axis) in enumerate(zip(xs, shown.axes, strict=False)):
        chart.line(x, chart.y1, x, chart.y0, "coordinate")
        for low, high in axis.legal or ():
            chart.line(x, y(low), x, y(high) - (0 if high > low else 2), "allowed")
        _name(
            chart,
            x,
            14 if n % 2 == 0 else 29,
            axis.label,
            named if n else named * 3 // 4,
            "start" if n == 0 else "middle",
        )
        labels = told_apart([text for _, text in axis.ticks], max(6, letters - 2))
        for (place, _), text in zip(axis.ticks, labels, strict=True):
            chart.text(x - 7, y(place) + 4, text, "end", "tick halo")
    chart.line(xs[-1], chart.y1, xs[-1], chart.y0, "coordinate strong")
    _name(chart, xs[-1], 14 if len(shown.axes) % 2 == 0 else 29, f"{shown.word} (ranked)", 14, "middle")
    for place, text in ticks:
        chart.text(xs[-1] + 7, y(place) + 4, text, "start", "tick halo")
    return chart.svg("parallel")


def _lying(shown: Coordinates, width: float) -> str:
    """Return the chart with horizontal axes, one below the other, so that names are readable on a phone."""
    count = len(shown.axes) + 1
    chart = Chart(
        width, 24 + STEP * count, "Parallel coordinates of the trials", left=18, right=18, top=24, bottom=STEP - 24
    )
    ys = [chart.top + 6 + k * STEP for k in range(count)]

    def x(place: float) -> float:
        return chart.x0 + place * (chart.x1 - chart.x0)

    losses, ticks = _loss_places(shown)
    for k in range(len(shown.trials)):
        points = [(x(a.places[k]), h) for h, a in zip(ys, shown.axes, strict=False)]
        _lines(chart, [*points, (x(losses[k]), ys[-1])], shown, k)
    for h, axis in zip(ys, shown.axes, strict=False):
        chart.line(chart.x0, h, chart.x1, h, "coordinate")
        for low, high in axis.legal or ():
            chart.line(x(low), h, x(high), h, "allowed")
        chart.text(chart.x0 - 8, h - 10, abridged(axis.label, 48), "start", "name halo")
        _ticks_below(chart, x, h, axis)
    chart.line(chart.x0, ys[-1], chart.x1, ys[-1], "coordinate strong")
    chart.text(chart.x0 - 8, ys[-1] - 10, f"{shown.word} (ranked)", "start", "name halo")
    for place, text in ticks:
        anchor = "start" if place < 0.1 else "end" if place > 0.9 else "middle"
        chart.text(x(place), ys[-1] + 16, text, anchor, "tick halo")
    return chart.svg("parallel")


def _ticks_below(chart: Chart, x: object, h: float, axis: Axis) -> None:
    """Write tick labels under a horizontal axis, as far as there is room."""
    until = -math.inf
    labels = told_apart([text for _, text in axis.ticks], 16)
    for (place, _), message in zip(axis.ticks, labels, strict=True):
        at = x(place)  # type: ignore[operator]
        wide = 6.4 * len(message)
        begin = at if place < 0.05 else at - wide if place > 0.95 else at - wide / 2
        if begin < until + 6:
            continue
        anchor = "start" if place < 0.05 else "end" if place > 0.95 else "middle"
        chart.text(at, h + 16, message, anchor, "tick halo")
        until = begin + wide


def _lines(chart: Chart, points: list[tuple[float, float]], shown: Coordinates, k: int) -> None:
    """Draw one trial: a line with gaps where a parameter is absent; isolated points are dots."""
    best = k == shown.best
    kind = "line top" if best else _shade(float(shown.rank[k]))
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    tip = _tip(shown, k)
    for run in runs:
        if len(run) > 1:
            chart.path(run, kind, tip)
        elif run:
            chart.dot(*run[0], kind + " alone", tip, 2.5)


def _name(chart: Chart, x: float, y: float, label: str, letters: int, anchor: str) -> None:
    chart.text(x, y, abridged(label, max(8, letters)), anchor, "name halo")
