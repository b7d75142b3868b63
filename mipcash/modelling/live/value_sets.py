"""The values of a Pyomo variable: its domain, a Pyomo set, restricted to its bounds.

Pyomo describes a set as a union of ranges: intervals, progressions, single values. The part between the bounds is an interval
(``Real``), a single value (``Constant``) or several intervals (``Pieces``), such as {0} and [2, 5] of a semi-continuous
variable. A finite set is an ``Integer``, with a step, if its values are whole and evenly spaced, otherwise an ``Ordinal``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from pyomo.core.base.range import NumericRange

from mipcash.errors import SpaceError
from mipcash.modelling.domains import Integer, Ordinal, Real
from mipcash.modelling.quadratic import bounds_of

LEVEL_LIMIT = 1024
"""Largest number of values of a finite set that is no progression of whole numbers; each becomes a binary."""
PIECE_LIMIT = 64
"""Largest number of intervals of a union; each becomes a binary."""
LISTING_LIMIT = 100_000
"""Largest number of values of overlapping progressions that are listed to merge them."""
ROUNDING = 1e-9
"""Tolerance within which a bound counts as a whole number."""
SAME = 1e-12
"""Relative difference between bounds below which the variable is a constant: 0.3 and 0.1 + 0.2."""
STEP_SHARE = 1e-3
"""Largest share of a step by which a value may miss a bound, however large it is."""


@dataclass(frozen=True)
class Piece:
    """The numbers between two ends; a single value if they are equal."""

    low: float
    high: float
    low_closed: bool = True
    high_closed: bool = True


@dataclass(frozen=True)
class Pieces:
    """Several closed intervals that do not touch, in ascending order."""

    parts: tuple[Piece, ...]

    @property
    def hull(self) -> Real:
        return Real(self.parts[0].low, self.parts[-1].high)


@dataclass(frozen=True)
class Constant:
    """A continuous variable whose bounds leave one value."""

    value: float


Values = Real | Integer | Ordinal | Pieces | Constant


def is_plain(variable: Any) -> bool:
    """Return True if a variable's values are all reals, or all integers, between its bounds, and the bounds are among them."""
    if variable.is_integer():
        return all(math.isinf(b) or b == math.floor(b) for b in bounds_of(variable))
    return bool(variable.is_continuous()) and not _is_open(variable)


def values_of(variable: Any) -> Values:
    """Return the values that a variable can take.

    Raises:
        SpaceError: the domain contains something that is not a number, is not bounded, is empty, is open at an end of an
            interval (so that no value is nearest to the end), or has too many values to be listed.
    """
    name, (runs, pieces) = variable.name, _clipped(variable)
    if not runs and not pieces:
        low, high = bounds_of(variable)
        raise SpaceError(
            f"variable {name!r} can take no value: its domain {_text(variable)} has none in [{low:g}, {high:g}]; "
            "widen its bounds or its domain"
        )
    if pieces:
        return _of_pieces(variable, runs, pieces)
    return _progression(runs) or _of_values(variable, _listed(variable, runs))


def _text(variable: Any, shown: int = 4) -> str:
    ranges = [str(r) for _, r in zip(range(shown + 1), variable.domain.ranges(), strict=False)]
    return " | ".join(ranges[:shown] + ["..."] * (len(ranges) > shown)) or "{}"


def _is_open(variable: Any) -> bool:
    low, high = bounds_of(variable)
    ranges = [r for r in variable.domain.ranges() if isinstance(r, NumericRange)]
    return any((not r.closed[0] and low == r.start) or (not r.closed[1] and high == r.end) for r in ranges)


def _clipped(variable: Any) -> tuple[list[Sequence[float]], list[Piece]]:
    """Return progressions and intervals of the domain within the bounds.

    Raises:
        SpaceError: the domain contains something that is not a number, or is not bounded.
    """
    ranges = list(variable.domain.ranges())
    for r in ranges:
        if not isinstance(r, NumericRange):
            raise SpaceError(
                f"variable {variable.name!r} has the domain {_text(variable)}, which is not a set of numbers; give it one "
                "(Reals, Integers, a Set of numbers), or use a BooleanVar or a categorical parameter"
            )
    low, high = bounds_of(variable)
    if abs(high - low) <= SAME * max(1.0, abs(low), abs(high)):
        low, high = min(low, high), max(low, high)
    runs, pieces = list[Sequence[float]](), list[Piece]()
    for r in ranges:
        if r.step or r.start == r.end:
            run = _clipped_run(variable, r, low, high)
            runs += [run] if run else []
        elif low <= r.end and high >= r.start and low <= high:
            piece = _clipped_piece(r, low, high)
            if not (math.isfinite(piece.low) and math.isfinite(piece.high)):
                _refuse_unbounded(variable)
            pieces.append(piece)
    return sorted(runs, key=lambda run: run[0]), pieces


def _refuse_unbounded(variable: Any) -> NoReturn:
    raise SpaceError(
        f"variable {variable.name!r} needs finite bounds to be searched; set both (setlb, setub), or name it in auxiliary= "
        "where no rule uses it"
    )


def _clipped_piece(r: Any, low: float, high: float) -> Piece:
    return Piece(
        max(low, r.start), min(high, r.end), bool(r.closed[0]) or low > r.start, bool(r.closed[1]) or high < r.end
    )


def _clipped_run(variable: Any, r: Any, low: float, high: float) -> Sequence[float]:
    """Return the members of a discrete range between two bounds, whole numbers as a ``range``."""
    start, step = r.start, abs(r.step) or 1
    first, last = (r.end, start) if r.step < 0 else (start, r.end)
    low -= min(ROUNDING + SAME * abs(low), STEP_SHARE * step)
    high += min(ROUNDING + SAME * abs(high), STEP_SHARE * step)
    least, most = max(low, first), min(high, last)
    if least > most:
        return ()
    if not (math.isfinite(least) and math.isfinite(most)):
        _refuse_unbounded(variable)
    below, above = math.ceil((least - start) / step - ROUNDING), math.floor((most - start) / step + ROUNDING)
    if float(start).is_integer():
        return range(int(start) + below * step, int(start) + above * step + 1, step)
    if above - below >= LISTING_LIMIT:
        _refuse_many(variable, above - below + 1, LISTING_LIMIT)
    return [start + k * step for k in range(below, above + 1)]


def _progression(runs: Sequence[Sequence[float]]) -> Integer | None:
    """Return progressions that continue one another as one: the integers are two, from 0 up and from 0 down."""
    whole = [run for run in runs if isinstance(run, range)]
    if len(whole) < len(runs) or len({(run.step, run[0] % run.step) for run in whole}) > 1:
        return None
    if any(b[0] > a[-1] + a.step for a, b in pairwise(whole)):
        return None
    return Integer(whole[0][0], max(run[-1] for run in whole), whole[0].step)


def _listed(variable: Any, runs: Sequence[Sequence[float]]) -> list[float]:
    count = sum(map(len, runs)) - sum(b[0] in a for a, b in pairwise(runs))  # 0 is in both parts of the integers
    if count > LISTING_LIMIT:
        _refuse_many(variable, count, LISTING_LIMIT)
    return sorted({v for run in runs for v in run})


def _refuse_many(variable: Any, count: int, limit: int) -> NoReturn:
    raise SpaceError(
        f"variable {variable.name!r} has a domain of {count} values that are not evenly spaced whole numbers, more than "
        f"{limit}; use an integer variable and calculate the value from it in a constraint, or name fewer values"
    )


def _of_values(variable: Any, values: Sequence[float]) -> Integer | Ordinal:
    whole = all(float(v).is_integer() for v in values)
    steps = {b - a for a, b in pairwise(values)}
    if whole and len(steps) <= 1:
        return Integer(int(values[0]), int(values[-1]), int(steps.pop()) if steps else 1)
    if len(values) > LEVEL_LIMIT:
        _refuse_many(variable, len(values), LEVEL_LIMIT)
    return Ordinal(tuple(int(v) if whole else float(v) for v in values))


def _of_pieces(variable: Any, runs: Sequence[Sequence[float]], pieces: Iterable[Piece]) -> Values:
    parts = _united([*pieces, *(Piece(v, v) for v in _listed(variable, runs))])
    for part in parts:
        if not (part.low_closed and part.high_closed):
            end, bound = (part.low, "setlb") if not part.low_closed else (part.high, "setub")
            raise SpaceError(
                f"variable {variable.name!r} has the domain {_text(variable)}, which is open at its end {end:g}: there is no "
                f"nearest value to it; set the last value that counts ({bound}) or take the closed domain"
            )
    if len(parts) > PIECE_LIMIT:
        _refuse_many(variable, len(parts), PIECE_LIMIT)
    if len(parts) > 1:
        return (
            Pieces(tuple(parts)) if any(p.low < p.high for p in parts) else _of_values(variable, [p.low for p in parts])
        )
    low, high = parts[0].low, parts[0].high
    return Constant(low) if high - low <= SAME * max(1.0, abs(low), abs(high)) else Real(low, high)


def _united(pieces: Iterable[Piece]) -> list[Piece]:
    """Merge intervals that overlap or touch. An end is closed if one of the merged intervals includes it."""
    found: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.low, not p.low_closed)):
        last = found[-1] if found else Piece(-math.inf, -math.inf, False, False)
        if piece.low > last.high or (piece.low == last.high and not (piece.low_closed or last.high_closed)):
            found.append(piece)
            continue
        far = max((last, piece), key=lambda p: (p.high, p.high_closed))
        found[-1] = Piece(last.low, far.high, last.low_closed, far.high_closed)
    return found
