"""One call of the objective, wherever it runs; an executor's workers import this."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mipcash.modelling.domains import Configuration
from mipcash.study.reading import describe_error, stops
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
    """

    returned: Any
    seconds: float
    worker: str = ""


def evaluate(objective: Objective, config: Configuration) -> Evaluation:
    """Call the objective. An exception becomes :class:`Failed`; what orders to stop (Ctrl-C ...) passes through."""
    began = time.perf_counter()
    try:
        returned = objective(config)
    except Failed as failed:
        returned = failed
    except BaseException as error:
        if stops(error):
            raise
        returned = Failed(describe_error(error))
    return Evaluation(returned, time.perf_counter() - began, this_worker())
