"""Parallel coordinates, with vertical axes on a wide page and horizontal ones on a phone."""

from __future__ import annotations

import math

import numpy as np

from mipcash.report.data.coordinates import Coordinates
from mipcash.report.page.svg import NARROW, Chart, number
from mipcash.text import abridged, told_apart

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


def _tip(shown: Coordinates, k: int) -> str:
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
    tip = _tip(shown, k)
    for run in runs:
        if len(run) > 1:
            chart.path(run, kind, tip)
        elif run:
            chart.dot(*run[0], kind + " alone", tip, 2.5)
