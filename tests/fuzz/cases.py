"""Random spaces for the tests in other folders."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.fuzz.described import Relation
from tests.fuzz.kinds import Case, draw

FEW_LEVELS = ("cycles", "products", "conditional", "helpers", "logic")
"""Kinds without wide integers, and without reals if spaces with reals are left out."""
DISCRETE = (*FEW_LEVELS, "wide integers", "formulas")


def cases(
    count: int, seed: int, kinds: Sequence[str] = DISCRETE, most: int = 400, reals: bool = False
) -> Iterator[Case]:
    """Return the first ``count`` spaces of a seed that have at most ``most`` assignments and suit absolute tolerances.

    Args:
        reals: whether to include spaces with reals.
    """
    found = (draw(seed, k, kinds, most, reals) for k in itertools.count())
    return itertools.islice((case for case in found if not scaled(case)), count)


def scaled(case: Case) -> bool:
    """Return True if coefficients are too small or too large for an absolute tolerance of 1e-6."""
    relations: list[Relation] = [r.relation for r in case.drawn.rules]
    relations += [r for choice in case.drawn.choices for d in choice.disjuncts for r in d]
    return any(not 0.05 <= max(abs(t.coefficient) for t in r.terms) <= 1e3 for r in relations)


def on_drawn_spaces(
    count: int, seed: int, *options: Sequence[Any], kinds: Sequence[str] = DISCRETE, most: int = 400
) -> Callable[[Any], Any]:
    """Call a test on ``count`` drawn spaces, each with the next combination of ``options``."""

    def decorated(test: Callable[..., object]) -> Callable[[], None]:
        def run() -> None:
            combinations = itertools.cycle(itertools.product(*options))
            for case, chosen in zip(cases(count, seed, kinds, most), combinations, strict=False):
                try:
                    test(case.drawn, *chosen)
                except BaseException as error:
                    error.add_note(f"draw({seed}, {case.k}, {kinds}, {most}, reals=False).drawn, {chosen}")
                    raise

        run.__doc__, run.__name__ = test.__doc__, test.__name__
        return run

    return decorated
