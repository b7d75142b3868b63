"""What ``limits=`` of a search names: scores, or what using the model costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mipcash.errors import DataError
from mipcash.integrations.sklearn.search.hints import meant
from mipcash.integrations.sklearn.search.objective import FIT_SECONDS, MEASURES
from mipcash.optimizers.outcome import LOSS
from mipcash.study.records.limits import limits_of


def limited_of(
    given: Any, metrics: Mapping[str, Any] | None
) -> tuple[dict[str, Callable[..., float] | None], tuple[str, ...]]:
    """Scorers by name (None: one that is computed anyway), and names of measures.

    Args:
        given: ``limits=``.
        metrics: what scoring computes; None: nobody knows before it is called.

    Raises:
        DataError: there is neither a score nor a measure of that name.
    """
    from sklearn.metrics import get_scorer, get_scorer_names

    scorers: dict[str, Callable[..., float] | None] = {}
    measures = []
    for name in (limit.output for limit in limits_of(given)):
        if name == LOSS:
            continue
        if name in (*MEASURES, FIT_SECONDS):
            measures.append(name)
        elif metrics is not None and name in metrics:
            scorers[name] = None
        elif name in get_scorer_names():
            scorers[name] = get_scorer(name)
        elif metrics is None:
            scorers[name] = None
        else:
            known = [*MEASURES, FIT_SECONDS, *metrics, *get_scorer_names()]
            raise DataError(
                f"limits= names {name!r}, which is no score and none of {', '.join([*MEASURES, FIT_SECONDS])}; "
                f"{meant(name, known, 0)} "
                "For a measure of your own give scoring= a dict with a scorer of that name"
            )
    return scorers, tuple(measures)
