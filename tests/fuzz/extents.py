"""Comparison of ``Space.bounds`` with brute force."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tests.fuzz.described import Drawn, Parameter, Term, Value
from tests.fuzz.record import Record
from tests.fuzz.table import HOLDS_UP_TO, OPEN
from tests.fuzz.truth import ALLOWED, Truth

TINY = 1e-5
"""Range of a real below which an end may be off by a further ten times ``ENDS`` of the range."""
ENDS = 1e-6
"""Tolerance of the ends of a real, relative to the ends and to its range."""
ABSOLUTE = 1e-9
"""Distance of an end from a point of a grid that counts as zero: such a point may be legal by the tolerance of rules alone."""
ROUNDED = Fraction(11, 10)
"""Factor of a rule's tolerance, since its terms are rounded too."""


def check_bounds(truth: Truth, record: Record, solver: str, found: Mapping[str, Any]) -> None:
    """Compare the least and greatest value of each parameter, its values, and whether it is always active."""
    for p in truth.table.drawn.parameters:
        on = truth.table.on[p.name][truth.legal]
        if not on.any() or p.name not in found:
            if on.any() or p.name in found:
                record.wrong("bounds", solver, f"{p.name!r} {'can' if on.any() else 'can never'} be active", found)
            continue
        extent = found[p.name]
        if extent.always != bool(on.all()):
            record.wrong("bounds", solver, f"{p.name!r} always active: {bool(on.all())}", extent)
        problem = _real(truth, p, extent) if p.kind == "real" else _discrete(truth, p, extent)
        if problem:
            record.wrong("bounds", solver, f"{p.name!r}: {problem}", extent)


def check_bounds_on_a_grid(drawn: Drawn, truth: Truth, record: Record, solver: str, found: Mapping[str, Any]) -> None:
    """Check that every legal point of a grid lies within the extents."""
    for p in drawn.parameters:
        levels = truth.table.levels[p.name][truth.legal]
        values = [truth.table.drawn[p.name].values[l] for l in np.unique(levels[levels >= 0])]
        extent: Any = found.get(p.name)
        if values and (extent is None or (extent.always and bool((levels < 0).any()))):
            record.wrong("bounds", solver, f"{p.name!r} can be {'inactive' if extent else 'active'}", found)
        elif values and p.numeric:
            slack = max(ENDS * max(abs(values[0]), abs(values[-1]), 1e-3 * (p.high - p.low)), ABSOLUTE)
            if extent.low > values[0] + slack or extent.high < values[-1] - slack:
                record.wrong("bounds", solver, f"{p.name!r} from {values[0]!r} to {values[-1]!r}", extent)


def _discrete(truth: Truth, p: Parameter, extent: Any) -> str:
    levels = np.unique(truth.table.levels[p.name][truth.legal])
    values = tuple(p.values[l] for l in levels if l >= 0)
    if p.kind == "ordering":
        members = sorted(values[0])
        places = tuple((m, tuple(sorted({v.index(m) + 1 for v in values}))) for m in members)
        return "" if extent.values == places else f"values {places}"
    if truth.table.drawn.wide(p):
        said = (extent.low, extent.high)
        return "" if said == (values[0], values[-1]) else f"from {values[0]} to {values[-1]}"
    if list(map(repr, extent.values or ())) != list(map(repr, values)):
        return f"values {values}"
    ends = (values[0], values[-1]) if p.kind in ("integer", "stepped", "ordinal") else (None, None)
    return "" if (extent.low, extent.high) == ends else f"from {ends[0]} to {ends[1]}"


def _real(truth: Truth, p: Parameter, extent: Any) -> str:
    low, high = _ends(truth, p, None)
    slack = [ENDS * max(abs(float(e)), 1e-3 * (p.high - p.low)) for e in (low, high)]
    if p.high - p.low < TINY:  # rounded decimals move the solution of an equation by more
        slack = [s + 10.0 * ENDS * (p.high - p.low) for s in slack]
    if any(j.status[r] == OPEN for j in truth.judged for r in np.flatnonzero(truth.legal)):
        # extrapolate the ends to a tolerance of zero for rounding
        half = _ends(truth, p, HOLDS_UP_TO / 2)
        slack = [s + 2.0 * max(0.0, float(d)) for s, d in zip(slack, (half[0] - low, high - half[1]), strict=True)]
    near = abs(extent.low - float(low)) <= slack[0] and abs(extent.high - float(high)) <= slack[1]
    if not extent.proven:  # an unproven extent may be wider than necessary
        near = extent.low <= float(low) + slack[0] and extent.high >= float(high) - slack[1]
    if not near:  # the tolerances of rules move the ends
        loose = _ends(truth, p, ALLOWED * ROUNDED)
        near = (
            float(loose[0]) - slack[0] <= extent.low <= float(low) + slack[0]
            and float(high) - slack[1] <= extent.high <= float(loose[1]) + slack[1]
        )
    return "" if near else f"from {float(low)!r} to {float(high)!r}"


def _ends(truth: Truth, p: Parameter, tolerance: Fraction | None) -> tuple[Fraction, Fraction]:
    """Return the least and greatest value over the legal assignments in which the real is active."""
    active = truth.legal & truth.table.on[p.name]
    at = Truth(truth.table, truth.judged, active, truth.knife, truth.cells)
    return at.extremes((Term(1.0, (Value(p.name),)),), tolerance)
