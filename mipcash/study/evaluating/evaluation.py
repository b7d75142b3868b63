"""One call of the objective, wherever it runs; an executor's workers import this."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mipcash.modelling.domains import Configuration
from mipcash.study.evaluating.defects import Raised
from mipcash.study.reading import stops
from mipcash.study.storage.base import this_worker
from mipcash.study.trial import Failed

Objective = Callable[[Configuration], Any]
"""Takes a configuration (its own copy); returns a float, a dict with ``"loss"``, or ``Failed``."""


@dataclass(frozen=True)
class Evaluation:
    """What came out of one call of the objective.

    Attributes:
        returned: what it returned, or :class:`Failed`.
        seconds: wall-clock.
        worker: host and process that called it; empty: it is not known.
        raised: what it raised, but for :class:`Failed`; None: nothing.
    """

    returned: Any
    seconds: float
    worker: str = ""
    raised: Raised | None = None


def evaluate(objective: Objective, config: Configuration) -> Evaluation:
    """Call the objective. An exception becomes :class:`Failed`; what orders to stop (Ctrl-C ...) passes through."""
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
