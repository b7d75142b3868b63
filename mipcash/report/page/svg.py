"""Charts as SVG text: scales, ticks, marks. All text is escaped; colours are classes of the page's style.

Sizes are in pixels of the chart at its design width, in which text is 12 high.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mipcash.report.data.coordinates import nice
from mipcash.text import visible

MOST = 400
"""Number of dots of one kind above which they have no tooltips."""


def escaped(text: object, limit: int | None = None) -> str:
    """Return text for HTML and SVG, escaped so that it is shown literally, on one line, and cut at a limit."""
    message = " ".join(visible(str(text), lines=True).split())
    return html.escape(message if limit is None or len(message) <= limit else message[: max(1, limit - 1)] + "…")


def number(value: float, digits: int = 4) -> str:
    """Return a number for people."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.{digits}g}"
    return (
        text.replace("-", "−") if "e" not in text else text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    )


def seconds(value: float) -> str:
    """Return a time for people, with its unit."""
    if not math.isfinite(value):
        return "–"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.2g} ms"
    if value < 99.5:
        return f"{value:.3g} s"
    if value < 5940:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h"


def at(value: float) -> str:
    """Return a coordinate rounded to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Scale:
    """Map from values to pixels, clipped to the ends.

    Attributes:
        low, high: values at the ends.
        start, end: pixels there.
        log: True if it is logarithmic; then ``low`` > 0.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        return self.all([value])[0]

    def all(self, values: ArrayLike) -> list[float]:
        """Return the pixels of values, shape (n,)."""
        v = np.asarray(values, dtype=float)
        if self.log:
            share = (np.log(np.maximum(v, 1e-300)) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low) or 1.0
            )
        else:
            width = self.high / 2 - self.low / 2  # the ends may be 1e300 and -1e300
            share = (v / 2 - self.low / 2) / width if width else np.full(v.shape, 0.5)
        return list((self.start + share.clip(0.0, 1.0) * (self.end - self.start)).tolist())

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Return the pixels and texts of about ``count`` round values."""
        values = nice(self.low, self.high, self.log, count)
        values = [0.0 if abs(v) < 1e-12 * max(abs(self.low), abs(self.high)) else v for v in values]
        texts = [number(v) for v in values]
        for digits in (6, 9, 15):
            if len(set(texts)) < len(texts):
                texts = [number(v, digits) for v in values]
        return [(self(v), t) for v, t in zip(values, texts, strict=True)]


@dataclass
class Chart:
    """A chart under construction.

    Attributes:
        width, height: of the whole chart.
        label: description for screen readers.
        parts: SVG so far.
        left, right, top, bottom: margins.
    """

    width: float
    height: float
    label: str
    left: float = 62
    right: float = 14
    top: float = 12
    bottom: float = 42
    parts: list[str] = field(default_factory=list)

    @property
    def x0(self) -> float:
        return self.left

    @property
    def x1(self) -> float:
        return self.width - self.right

    @property
    def y0(self) -> float:
        return self.height - self.bottom

    @property
    def y1(self) -> float:
        return self.top

    def scales(
        self, x: tuple[float, float], y: tuple[float, float], log_x: bool = False, log_y: bool = False
    ) -> tuple[Scale, Scale]:
        """Return the scales of the two axes."""
        return Scale(*x, self.x0, self.x1, log_x), Scale(*y, self.y0, self.y1, log_y)

    def text(self, x: float, y: float, text: object, anchor: str = "start", kind: str = "t", turn: float = 0.0) -> None:
        """Add text, rotated by ``turn`` degrees."""
        turned = f' transform="rotate({at(turn)} {at(x)} {at(y)})"' if turn else ""
        self.parts.append(
            f'<text class="{kind}" x="{at(x)}" y="{at(y)}" text-anchor="{anchor}"{turned}>{escaped(text)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a straight line."""
        self.parts.append(f'<line class="{kind}" x1="{at(x1)}" y1="{at(y1)}" x2="{at(x2)}" y2="{at(y2)}"/>')

    def path(self, points: Iterable[tuple[float, float]], kind: str, tip: str = "", close: bool = False) -> None:
        """Add a line through points, or the area within."""
        d = "M" + "L".join(f"{at(x)} {at(y)}" for x, y in points) + ("Z" if close else "")
        if d != "M":
            self.parts.append(_tipped("path", f'class="{kind}" d="{d}"', tip))

    def steps(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> None:
        """Add a step function through points."""
        d = "".join(f"M{at(x)} {at(y)}" if not k else f"H{at(x)}V{at(y)}" for k, (x, y) in enumerate(zip(xs, ys)))  # noqa: B905
        if d:
            self.parts.append(f'<path class="{kind}" d="{d}"/>')

    def dot(self, x: float, y: float, kind: str, tip: str = "", radius: float = 3.5) -> None:
        """Add a dot."""
        self.parts.append(_tipped("circle", f'class="{kind}" cx="{at(x)}" cy="{at(y)}" r="{at(radius)}"', tip))

    def dots(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        rows: Iterable[int],
        kind: str,
        tip: Callable[[int], str],
        radius: float = 3.5,
    ) -> None:
        """Add dots at some rows of ``xs`` and ``ys``, with tooltips; more than ``MOST`` become one path without tooltips."""
        chosen = list(rows)
        if len(chosen) <= MOST:
            for k in chosen:
                self.dot(xs[k], ys[k], kind, tip(k), radius)
            return
        d = "".join(f"M{at(xs[k])} {at(ys[k])}h0" for k in chosen)
        self.parts.append(f'<path class="{kind} many" d="{d}"/>')

    def cross(self, x: float, y: float, kind: str, tip: str = "", size: float = 3.5) -> None:
        """Add a cross."""
        d = f"M{at(x - size)} {at(y - size)}l{at(2 * size)} {at(2 * size)}m0 {at(-2 * size)}l{at(-2 * size)} {at(2 * size)}"
        self.parts.append(_tipped("path", f'class="{kind}" d="{d}"', tip))

    def box(self, x: float, y: float, width: float, height: float, kind: str, tip: str = "", round_: float = 0) -> None:
        """Add a rectangle."""
        corner = f' rx="{at(round_)}"' if round_ else ""
        shape = (
            f'class="{kind}" x="{at(x)}" y="{at(y)}" width="{at(max(0, width))}" height="{at(max(0, height))}"{corner}'
        )
        self.parts.append(_tipped("rect", shape, tip))

    def axes(
        self,
        x: Scale | None,
        y: Scale | None,
        x_title: str,
        y_title: str,
        whole_x: bool = False,
        count: tuple[int, int] | None = None,
    ) -> None:
        """Add grid, ticks and titles; titles include the unit.

        Args:
            whole_x: True if x is a count.
            count: approximate numbers of ticks.
        """
        nx, ny = count or (max(2, int((self.x1 - self.x0) / 90)), max(2, int((self.y0 - self.y1) / 50)))
        if y is not None:
            for p, text in y.ticks(ny):
                self.line(self.x0, p, self.x1, p, "grid")
                self.text(self.x0 - 8, p + 4, text, "end", "tick")
        if x is not None:
            for p, text in x.ticks(nx):
                if whole_x and "." in text:
                    continue
                self.line(p, self.y0, p, self.y0 + 4, "axis")
                self.text(p, self.y0 + 17, text, "middle", "tick")
        self.line(self.x0, self.y0, self.x1, self.y0, "axis")
        if x_title:
            self.text((self.x0 + self.x1) / 2, self.height - 6, x_title, "middle", "title")
        if y_title:
            self.text(11, (self.y0 + self.y1) / 2, y_title, "middle", "title", -90)

    def svg(self, kind: str = "") -> str:
        """Return the chart as SVG."""
        inside = "".join(self.parts)
        return (
            f'<svg class="chart {kind}" viewBox="0 0 {at(self.width)} {at(self.height)}" role="img" '
            f'aria-label="{escaped(self.label)}">{inside}</svg>'
        )


def _tipped(tag: str, shape: str, tip: str) -> str:
    if not tip:
        return f"<{tag} {shape}/>"
    message = html.escape(visible(tip, lines=True))
    return f'<{tag} {shape} tabindex="-1"><title>{message}</title></{tag}>'


def both(wide: str, narrow: str) -> str:
    """Return a chart for wide windows and one for narrow windows; the style shows one of them."""
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


WIDE, NARROW, HALF = 1000.0, 350.0, 500.0
"""Design widths of a full-width chart, of one on a phone, and of one of two side by side."""
