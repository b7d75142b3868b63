"""Charts of the model of the loss: importance, pairs, slices through the incumbent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mipcash.report.data.effects import Effects, Spread
from mipcash.report.data.slices import Slice
from mipcash.report.page.svg import Chart, Scale, number
from mipcash.text import abridged

SHOWN = 12
"""Largest number of parameters whose importance is drawn."""
PAIRS = 8
ROW = 30.0


def importance_chart(effects: Effects, width: float) -> str:
    """Return the chart of importances: with interactions light, alone dark; whiskers: 90 % intervals with interactions."""
    rows = [(p.label, p.whole, p.alone) for p in effects.parameters[:SHOWN]]
    return _bars(rows, width, "Importance of the parameters")


def pairs_chart(effects: Effects, width: float) -> str:
    """Return the chart of the shares of pairwise interactions in the variance."""
    rows = [(f"{p.first} × {p.second}", p.share, None) for p in effects.pairs[:PAIRS]]
    return _bars(rows, width, "Interactions of pairs of parameters")


def _bars(rows: Sequence[tuple[str, Spread, Spread | None]], width: float, label: str) -> str:
    """Return a chart of horizontal bars with names above them."""
    chart = Chart(width, 30 + (ROW + 8) * len(rows), label, left=4, right=52, top=2, bottom=30)
    top = max([spread.high for _, spread, _ in rows], default=1.0)
    x = Scale(0.0, max(top, 1e-6), chart.x0, chart.x1)
    for p, text in Scale(0.0, 100 * max(top, 1e-6), chart.x0, chart.x1).ticks(4):
        chart.line(p, chart.y1, p, chart.y0, "grid")
        chart.text(p, chart.y0 + 17, f"{text} %", "start" if p < 20 else "middle", "tick")
    for k, (name, spread, inner) in enumerate(rows):
        y = 14 + k * (ROW + 8)
        tip = f"{name}\n{_percent(spread)}" + ("" if inner is None else f"\nalone {_percent(inner)}")
        chart.text(chart.x0, y, abridged(name, int(width / 7.2)), "start", "name halo")
        chart.box(chart.x0, y + 6, x(spread.middle) - chart.x0, 12, "bar" if inner is not None else "bar pair", tip, 2)
        if inner is not None:
            chart.box(chart.x0, y + 6, x(min(inner.middle, spread.middle)) - chart.x0, 12, "bar inner", tip, 2)
        chart.line(x(spread.low), y + 12, x(spread.high), y + 12, "whisker")
        for end in (spread.low, spread.high):
            chart.line(x(end), y + 9, x(end), y + 15, "whisker")
        chart.text(x(spread.high) + 7, y + 16, f"{share_text(spread.middle)}", "start", "tick")
    return chart.svg("bars")


def _percent(spread: Spread) -> str:
    return f"{share_text(spread.middle)} (90 %: {share_text(spread.low)} to {share_text(spread.high)})"


def share_text(share: float) -> str:
    """Return a share in percent: two digits, three of 100."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def slice_chart(shown: Slice, bounds: tuple[float, float, bool], width: float = 340.0) -> str:
    """Return the chart of one parameter over its range, the others fixed at the incumbent.

    Args:
        bounds: of the loss axis, which all slices share, and True if it is logarithmic.
    """
    chart = Chart(width, 230, f"Predicted {shown.word} along {shown.label}", left=54, bottom=44, top=10)
    y = Scale(*bounds[:2], chart.y0, chart.y1, bounds[2])
    return (_line if shown.number else _levels)(chart, shown, y)


def _line(chart: Chart, shown: Slice, y: Scale) -> str:
    values = [float(v) for v in shown.values]
    x = Scale(values[0], values[-1], chart.x0, chart.x1, shown.log)
    xs, mean = x.all(values), y.all(shown.mean)
    for first, last in shown.forbidden:
        a = xs[0] if first == 0 else (xs[first - 1] + xs[first]) / 2
        b = xs[-1] if last == len(xs) - 1 else (xs[last] + xs[last + 1]) / 2
        chart.box(a, chart.y1, b - a, chart.y0 - chart.y1, "forbidden", "forbidden by the rules here")
    chart.axes(x, y, f"{abridged(shown.label, 30)}{' (log scale)' if shown.log else ''}", "", count=(4, 4))
    upper, lower = (zip(xs, y.all(ends), strict=True) for ends in (shown.high, shown.low))
    chart.path([*upper, *[*lower][::-1]], "band", close=True)
    chart.path(zip(xs, mean, strict=True), "mean")
    for k in range(0, len(xs), max(1, len(xs) // 40)):
        legal = "" if shown.legal[k] else "\nforbidden by the rules here"
        tip = f"{shown.label} = {shown.texts[k]}\npredicted {number(float(shown.mean[k]))}"
        chart.dot(xs[k], mean[k], "ghost", f"{tip} ({_between(shown, k)}){legal}", 7)
    _evaluated(chart, shown, x, y)
    _here(chart, shown, x(float(shown.values[shown.at])), y)
    return chart.svg("slice")


def _levels(chart: Chart, shown: Slice, y: Scale) -> str:
    count = len(shown.values)
    gap = (chart.x1 - chart.x0) / count
    xs = [chart.x0 + (k + 0.5) * gap for k in range(count)]
    turned = max(map(len, shown.texts)) * 6.2 > gap - 4
    chart.bottom, chart.height = (88.0, chart.height + 44) if turned else (chart.bottom, chart.height)
    for first, last in shown.forbidden:
        a, b = xs[first] - gap / 2, xs[last] + gap / 2
        chart.box(a, chart.y1, b - a, chart.y0 - chart.y1, "forbidden", "forbidden by the rules here")
    chart.axes(None, y, abridged(shown.label, 40), "", count=(4, 4))
    for k, (at, low, high, mean) in enumerate(zip(xs, *map(y.all, (shown.low, shown.high, shown.mean)), strict=True)):
        chart.line(at, low, at, high, "error")
        legal = "" if shown.legal[k] else "\nforbidden by the rules here"
        tip = f"{shown.texts[k]}\npredicted {number(float(shown.mean[k]))} ({_between(shown, k)}){legal}"
        chart.dot(at, mean, "level", tip, 4.5)
        text = abridged(shown.texts[k], 12 if turned else 40)
        if turned and count <= 24:
            chart.text(at + 4, chart.y0 + 12, text, "end", "tick", -38)
        elif not turned:
            chart.text(at, chart.y0 + 17, text, "middle", "tick")
    _evaluated(chart, shown, Scale(0.0, count - 1.0, xs[0], xs[-1]), y)
    _here(chart, shown, xs[shown.at], y)
    return chart.svg("slice")


def _between(shown: Slice, k: int) -> str:
    return f"{number(float(shown.low[k]))} to {number(float(shown.high[k]))}"


def _evaluated(chart: Chart, shown: Slice, x: Scale, y: Scale) -> None:
    """Mark the other evaluations within the range of the loss axis."""
    values, losses = shown.evaluated.T
    rows = np.flatnonzero((y.low <= losses) & (losses <= y.high)).tolist()
    chart.dots(x.all(values), y.all(losses), rows, "evaluated", lambda k: f"{shown.word} {number(losses[k])}", 2.2)


def _here(chart: Chart, shown: Slice, at: float, y: Scale) -> None:
    """Mark the incumbent."""
    chart.line(at, chart.y1, at, chart.y0, "here")
    if math.isfinite(shown.incumbent):
        chart.dot(at, y(shown.incumbent), "star", f"incumbent: {shown.here}\n{shown.word} {number(shown.incumbent)}", 5)
