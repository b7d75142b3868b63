"""Detection of new and repeated configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mipcash.modelling.domains import Configuration, Value, same_value
from mipcash.program.forms import Indices
from mipcash.space.compiled import CompiledSpace
from mipcash.space.exclusion import Exclusion, MinimumDistance

REPEAT_TOLERANCE = 1e-6
"""Difference on the unit scale up to which two numbers count as equal."""


def exclusions(
    space: CompiledSpace,
    encode: Callable[[Configuration], Indices],
    configs: Iterable[Configuration],
    min_distance: MinimumDistance | None = None,
) -> list[Exclusion]:
    """Return the exclusions that a new proposal must respect.

    A configuration without active numerical parameters is identified by its levels, which are excluded exactly. A configuration
    with active numerical parameters is not excluded, since its levels may be proposed again with other values. Each configuration
    of ``min_distance`` excludes all levels within the minimum distance.

    Args:
        encode: gives the levels of a configuration.
    """
    numbers = {x.label for x in space.tuned}
    closed = {l.tobytes(): l for c in configs if not numbers & c.keys() for l in (encode(c),)}
    found = [Exclusion(levels) for levels in closed.values()]
    if min_distance is not None and min_distance.distance > 0:
        found += [Exclusion(encode(c), min_distance.distance) for c in min_distance.configs]
    return found


def repeats(space: CompiledSpace, config: Configuration, before: Iterable[Configuration]) -> bool:
    """Return True if a configuration is in ``before``, up to REPEAT_TOLERANCE on the unit scale in numerical parameters."""
    tuned = {x.label: x.domain for x in space.tuned}

    def same(label: str, a: Value, b: Value) -> bool:
        domain = tuned.get(label)
        if domain is None:
            return same_value(a, b)
        if domain.step is not None:
            return bool(domain.nearest(a) == domain.nearest(b))
        return abs(domain.to_unit(a) - domain.to_unit(b)) <= REPEAT_TOLERANCE

    # comparisons of plain values leave few of thousands of configurations for the exact comparison
    keys, left = config.keys(), list(before)
    for label in config:
        if label in tuned and tuned[label].step is None:
            unit, domain = tuned[label].to_unit(config[label]), tuned[label]
            low, high = (domain.from_unit(unit + 2 * d * REPEAT_TOLERANCE) for d in (-1, 1))
            left = [other for other in left if label in other and low <= other[label] <= high]
    left = [other for other in left if other.keys() == keys]
    return any(all(same(k, v, other[k]) for k, v in config.items()) for other in left)
