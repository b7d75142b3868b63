"""One call of the objective, wherever it runs; an executor's workers import this."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.defects import Raised
from mipcash.study.reading import stops
from mipcash.study.storage.base import this_worker
from mipcash.study.trial import Failed

Function = Callable[[Configuration], Any]
"""Takes a configuration (its own copy); returns a float, a dict with ``"loss"``, or ``Failed``."""

Objective = Function | Mapping[str, Function]
"""A function; or one per output, by name, each of which returns that number."""


@dataclass(frozen=True)
class Evaluation:
    """What came out of one call of the objective.

    Attributes:
        returned: what it returned, or :class:`Failed`.
        seconds: wall-clock.
        worker: host and process that called it; empty: it is not known.
        raised: what it raised, but for :class:`Failed`; None: nothing.
        parts: by output, where each is a function of its own; then ``returned`` holds what each of them returned.
    """

    returned: Any
    seconds: float
    worker: str = ""
    raised: Raised | None = None
    parts: Mapping[str, Evaluation] = field(default_factory=dict)

    @classmethod
    def together(cls, parts: Mapping[str, Evaluation]) -> Evaluation:
        """Evaluations of several outputs as one."""
        returned, seconds = {n: p.returned for n, p in parts.items()}, sum(p.seconds for p in parts.values())
        return cls(returned, seconds, next((p.worker for p in parts.values()), ""), parts=parts)


def evaluate(objective: Objective, config: Configuration, outputs: Sequence[str] = ()) -> Evaluation:
    """Call the objective. An exception becomes :class:`Failed`; what orders to stop (Ctrl-C ...) passes through.

    Args:
        outputs: those to evaluate, where each is a function of its own; one that raises fails alone. Empty: all.
    """
    if isinstance(objective, Mapping):
        return Evaluation.together({name: evaluate(objective[name], {**config}) for name in outputs or objective})
    began, raised = time.perf_counter(), None
    try:
        returned = objective(config)
    except Failed as failed:
        returned = failed
    except BaseException as error:
        if stops(error):
            raise
        raised = Raised.of(error)
        returned = Failed(raised.text)
    return Evaluation(returned, time.perf_counter() - began, this_worker(), raised)
