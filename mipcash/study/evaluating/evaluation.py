"""One call of the objective; the workers of an executor import this module.

A generator is run to its end here; each of its partial results is a step (``mipcash.study.folds``). The same holds for each
report of an objective that has a parameter ``trial`` (``mipcash.study.reports``).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mipcash.modelling.domains import Configuration
from mipcash.optimizers.outcome import FAILED, LOSS
from mipcash.study.evaluating.raised import Raised
from mipcash.study.folds import Folds, Judge, gathered
from mipcash.study.reading import read_outcome, stops
from mipcash.study.reports import Reports
from mipcash.study.signatures import needs, takes
from mipcash.study.storage.protocol import this_worker
from mipcash.study.trial import Failed, Trial, repeat_origin
from mipcash.text import kind

Function = Callable[..., Any]
"""Takes a configuration (its own copy); returns a float, a dict with ``"loss"``, ``Failed``, or an iterator of partial results."""

Objective = Function | Mapping[str, Function]
"""A function; or one per output, by name, each of which returns that number."""


@dataclass(frozen=True)
class Task:
    """Data that are sent with a configuration to the worker that evaluates it.

    Attributes:
        trial: number of the trial.
        attempt: number of the attempt.
        repeat: number of the repeat, 0 if the trial is no repeat; passed to an objective that has a parameter of this name.
        judge: decides when to stop an objective that yields or reports; None: it is never stopped.
        owed: outputs that each partial result must have.
    """

    trial: int = 0
    attempt: int = 1
    repeat: int = 0
    judge: Judge | None = None
    owed: tuple[str, ...] = (LOSS,)


ALONE = Task()
"""Task of a call that is no part of a study."""


@dataclass(frozen=True)
class Evaluation:
    """Result of one call of the objective.

    Attributes:
        returned: returned value, or ``Failed``; for a generator ``Folds``.
        seconds: wall-clock.
        worker: host and process that called it; empty: unknown.
        raised: the exception, other than ``Failed``; None if there was none.
        parts: results by output, if each output has its own function; ``returned`` is then a dict of their returned values.
    """

    returned: Any
    seconds: float
    worker: str = ""
    raised: Raised | None = None
    parts: Mapping[str, Evaluation] = field(default_factory=dict)

    def sendable(self, dumps: Callable[[Any], bytes]) -> Evaluation:
        """Return this result with a failure for each value that does not survive the way to another process.

        Args:
            dumps: pickles what is sent.
        """
        if survives(self, dumps):
            return self
        if self.parts:
            return Evaluation.together({name: part.sendable(dumps) for name, part in self.parts.items()})
        if type(self.returned) is dict:
            kept = {n: v if survives(v, dumps) else Failed(UNSENT.format(kind(v))) for n, v in self.returned.items()}
            if kept.get(LOSS) is self.returned.get(LOSS):
                return replace(self, returned=kept)
        wording = UNSENT.format(kind(self.returned))
        return Evaluation(Failed(wording), self.seconds, self.worker, Raised(wording))

    @classmethod
    def together(cls, parts: Mapping[str, Evaluation]) -> Evaluation:
        """Combine the evaluations of several outputs."""
        returned, seconds = {n: p.returned for n, p in parts.items()}, sum(p.seconds for p in parts.values())
        return cls(returned, seconds, next((p.worker for p in parts.values()), ""), parts=parts)


UNSENT = "the objective returned {}, which cannot be sent from its worker process; return numbers"
PRUNED = "TrialPruned"
"""Name of the exception with which objectives for Optuna end after ``should_prune``; here it means the same as ``return``."""


def evaluate(
    objective: Objective,
    config: Configuration,
    outputs: Sequence[str] = (),
    task: Task = ALONE,
    output: str = LOSS,
) -> Evaluation:
    """Call the objective. Exceptions become ``Failed``, except requests to stop such as Ctrl-C, which are re-raised.

    Args:
        outputs: outputs to evaluate, if each has its own function. If one function raises, the other outputs are kept. Empty: all.
        output: the output that ``objective`` returns, if it is the function of one output.
    """
    if isinstance(objective, Mapping):
        names = outputs or objective
        return Evaluation.together({n: evaluate(objective[n], {**config}, (), task, n) for n in names})
    began, raised = time.perf_counter(), None
    judge = task.judge if output == LOSS else None
    fits: list[Any] = []
    reports = Reports(judge, output)
    try:
        returned = objective(config, **_beside(objective, config, task, reports))
        if isinstance(returned, Iterator):
            owed = task.owed if output == LOSS else (output,)
            returned = gathered(returned, fits, lambda fit: _numbers(fit, owed), judge)
            if len(reports):
                raise TypeError("the objective yields its results and reports them too; do one of the two")
        if message := reports.missing_return(returned):
            raised = Raised(message)
    except Failed as failed:
        returned = failed
    except BaseException as error:
        if stops(error):
            raise
        if type(error).__name__ == PRUNED and reports.stopped:
            returned = None
        else:
            raised = Raised.of(error)
            returned = Failed(raised.text)
    returned = reports.outcome(_plain(returned))
    if fits and isinstance(returned, Failed):
        returned = Folds(tuple(fits), returned)
    return Evaluation(returned, time.perf_counter() - began, this_worker(), raised)


def survives(value: Any, dumps: Callable[[Any], bytes]) -> bool:
    """Return True if a value can be pickled by ``dumps`` and unpickled again."""
    try:
        pickle.loads(dumps(value))
    except Exception:
        return False
    return True


def _plain(returned: Any) -> Any:
    """Return a result without subclasses of ``Failed``, which may not survive the way to another process."""
    if type(returned) is dict:
        return {name: _failed(value) for name, value in returned.items()}
    return _failed(returned)


def _failed(value: Any) -> Any:
    known = isinstance(value, Failed) and {"message", "values"} <= vars(value).keys()
    return Failed(value.message, value.values) if known else value


def _beside(function: Function, config: Configuration, task: Task, reports: Reports) -> dict[str, Any]:
    """Return the keyword arguments ``repeat`` and ``trial``, if the function has parameters of these names."""
    reported: dict[str, Any] = {}
    if takes(function, "repeat") and (task.repeat or needs(function, "repeat")):
        reported["repeat"] = task.repeat
    if takes(function, "trial"):
        origin = repeat_origin(task.repeat)
        reported["trial"] = Trial(task.trial, {**config}, attempt=task.attempt, origin=origin, reports=reports)
    return reported


def _numbers(fit: Any, owed: Sequence[str]) -> dict[str, float] | None:
    """Return the outputs of a partial result; None if it lacks a required one."""
    read = read_outcome(fit, owed)
    if any(read[output].status == FAILED for output in owed):
        return None
    return {name: o.value for name, o in read.outputs.items() if o.value is not None}
