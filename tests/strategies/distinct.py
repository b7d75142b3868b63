"""A number of distinct drawn cases: hypothesis repeats itself, and a repeated space proves nothing more."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

PHASES = (Phase.generate, Phase.shrink) if os.environ.get("HYPOTHESIS_PROFILE") == "dev" else (Phase.generate,)
DRAWN_PER_SPACE = 4
"""Draws that a distinct space costs at most."""


class _Enough(BaseException):
    """Ends hypothesis' own loop, which catches what is an Exception."""


def check_distinct(cases: st.SearchStrategy[Any], check: Callable[..., None], count: int, number: int) -> None:
    """Call ``check(*case)`` on ``count`` cases whose spaces differ, drawn with the seed ``number``.

    Args:
        cases: tuples, the space first.

    Raises:
        AssertionError: ``check`` fails, or there are fewer distinct spaces.
    """
    distinct: set[str] = set()

    @seed(number)
    @settings(
        max_examples=DRAWN_PER_SPACE * count,
        phases=PHASES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def run(case: tuple[Any, ...]) -> None:
        if repr(case[0]) not in distinct:
            check(*case)
            distinct.add(repr(case[0]))
        if len(distinct) == count:
            raise _Enough

    try:
        run()
    except _Enough:
        return
    raise AssertionError(f"only {len(distinct)} of {count} spaces were drawn")
