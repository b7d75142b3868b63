"""Defects: failures that are due to the objective itself, not to the configurations.

An undefined name, a missing package or a misspelt column fails for every configuration. A run with such a defect is stopped, and
its failures do not count. The rules are:

* as long as no evaluation has succeeded, an error that cannot depend on the configuration (``CERTAIN``) stops the run at once,
  unless an earlier run of the study recorded it as a failure,
* the same error, or the same unreadable outcome, in each of the first ``SUSPICIOUS`` evaluations of the study stops it too. Numbers
  and the configuration's values in a message are ignored,
* a constrained output that is missing, or no number, in each of the first ``SUSPICIOUS`` successful evaluations stops it as well:
  the constraint and the objective use different names,
* at the end of the budget, ``LEAST`` evaluations are enough for the two preceding rules,
* ``Failed``, nan, inf, insufficient memory and dead workers describe a configuration and never stop a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mipcash.errors import DefectError
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import MISSING, Outcome
from mipcash.study.evaluating.evaluation import Evaluation
from mipcash.study.evaluating.raised import Raised
from mipcash.study.failures import OUT_OF_MEMORY, kind_of_failure
from mipcash.study.policies.policy import BUDGET, DEFECT, Policy
from mipcash.study.reading import statement
from mipcash.study.result import LEAST, SUSPICIOUS
from mipcash.study.study import Study
from mipcash.study.trial import Trial
from mipcash.study.unreturned import unreturned
from mipcash.text import readable, without_address

_PLACE = re.compile(r" \([^()]*:\d+\)$")
_NUMBER = re.compile(r"[-+]?\b\d[\d.,_]*(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Defect:
    """A failure that is due to the objective itself.

    Attributes:
        trials: numbers of the evaluations that failed because of it.
        text: their failure message.
        raised: the latest exception; None: the returned value could not be read.
        certain: True if the failure cannot depend on the configuration.
    """

    trials: tuple[int, ...]
    text: str
    raised: Raised | None
    certain: bool

    def __str__(self) -> str:
        n, raised = len(self.trials), self.raised or Raised("")
        which = ", whatever the configuration" if self.certain else f" at each of its first {n} evaluations alike"
        cure = raised.cure or "Correct it"
        statements = [
            f"the objective failed{which}: {self.text}",
            raised.trace,
            f"{cure} and run again: nothing of the budget was spent, and the same configurations are evaluated again",
            ""
            if self.certain
            else "If these configurations fail by themselves, raise mc.Failed('why') in the objective, and the run goes on",
        ]
        return "\n".join(line for line in statements if line)


@dataclass(frozen=True)
class Misnamed(Defect):
    """Defect: a constrained output that no evaluation returns."""

    def __str__(self) -> str:
        return (
            f"{self.text}\nReturn it under that name, and run again: nothing of the budget was spent, and the same "
            "configurations are evaluated again.\n"
            "To correct limits= instead, start anew: storage=mc.Journal(path, fresh=True), or --fresh.\n"
            "If a configuration has no such value, return mc.Failed('why') for it"
        )


def misnamed(trials: Sequence[Trial], limits: Sequence[Limit], least: int = SUSPICIOUS) -> Defect | None:
    """Return a defect for the first constrained output that no evaluation has and at least ``least`` lack; else None."""
    found = (m for m in unreturned(trials, limits) if len(m.trials) >= least and not m.stated)
    return next((Misnamed(m.trials, m.text, None, True) for m in found), None)


class Defects:
    """Detector of a defect during a run.

    Args:
        accepted: messages of failures that earlier runs of the study recorded, and that therefore are no defects.

    Attributes:
        found: the defect that stops the run; None if there is none. A defect that is not certain is dropped if a running evaluation
            succeeds.
    """

    def __init__(self, accepted: Collection[str] = ()) -> None:
        self.found: Defect | None = None
        self._accepted = accepted
        self._succeeded = False
        self._certain: list[int] = []
        self._latest: tuple[str, Raised | None] | None = None

    def note(
        self, reported: Trial, returned: object, raised: Raised | None, trials: Callable[[], Sequence[Trial]]
    ) -> None:
        """Update the detector with the outcome of an evaluation.

        Args:
            reported: the evaluated trial.
            returned: the value returned by the objective.
            raised: the exception; None if it returned.
            trials: returns all trials of the study.
        """
        self._succeeded |= reported.done
        told = reported.objectives
        statements = (statement(returned, reported.evaluate or (n,), told.several) for n in told.names)
        at_fault = reported.failed and (raised is not None or not all(statements))
        at_fault = (
            at_fault and kind_of_failure(reported.message) != OUT_OF_MEMORY
        )  # memory use depends on the configuration
        if not at_fault or self._succeeded:
            self._latest = None
            self.found = self.found if self._certain else None
            return
        self._latest = reported.message, raised
        if raised is not None and raised.certain and reported.message not in self._accepted:
            self._certain += [t.number for t in _own(trials()) if t.failed and t.message == reported.message]
            self.found = Defect(tuple(dict.fromkeys(self._certain)), raised.text, raised, True)
        elif not self._certain:
            self.found = self._doubtful(trials(), SUSPICIOUS)

    def at_end(self, trials: Sequence[Trial]) -> None:
        """Look for a defect at the end of the budget, with fewer evaluations as evidence."""
        self.found = self.found or self._doubtful(trials, LEAST)

    def _doubtful(self, trials: Sequence[Trial], least: int) -> Defect | None:
        own = _own(trials)
        if self._latest is None or len(own) < least or not failed_alike(own):
            return None
        return Defect(tuple(t.number for t in own), *self._latest, False)


class EndAtDefect(Policy):
    """Ends the run with an error if the failures are due to the objective itself.

    The failed evaluations are discarded, and repeated when the run is started again.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._accepted = {output.message for t in study.table.trials for output in t.outcome.outputs.values()}
        self._defects: dict[str, Defects] = {}  # by output; the empty name stands for a single function

    @property
    def _found(self) -> Defect | None:
        """The first defect, preferably a certain one; None if there is none."""
        found = [d.found for d in self._defects.values() if d.found is not None]
        return min(found, key=lambda defect: not defect.certain, default=None)

    def waits(self, in_flight: Collection[Trial]) -> bool:
        """Return True while a defect is suspected: running evaluations may still disprove it."""
        return self._found is not None

    def evaluated(self, trial: Trial, evaluation: Evaluation | None) -> str:
        if evaluation is not None:
            for name, part in (evaluation.parts or {"": evaluation}).items():
                reported = _part(trial, name) if name else trial
                # the function of one output has to return a number
                returned = None if name and isinstance(part.returned, Mapping) else part.returned
                defects = self._defects.setdefault(name, Defects(self._accepted))
                defects.note(reported, returned, part.raised, _parts(lambda: self._study.trials, name))
        return ""

    def check(self, in_flight: Collection[Trial]) -> None:
        self._refuse(in_flight, SUSPICIOUS)

    def ends(self, reason: str) -> None:
        """Look for a defect once more if the budget ended before there were enough evaluations to be sure."""
        if reason == BUDGET:
            for name, defects in self._defects.items():
                defects.at_end(_parts(lambda: self._study.trials, name)())
            self._refuse((), LEAST)

    def _refuse(self, in_flight: Collection[Trial], least: int) -> None:
        defect = self._found or misnamed(self._study.table.trials, self._study.limits, least)
        if defect is None or (in_flight and not defect.certain):
            return
        for number in defect.trials:
            self._study.reopen(self._study.trials[number])
        self._study.stop(f"{DEFECT}: {defect.text}")
        raise DefectError(str(defect))


def _parts(trials: Callable[[], Sequence[Trial]], name: str) -> Callable[[], Sequence[Trial]]:
    """Restrict trials to one output; with an empty name (the objective is a single function) leave them as they are."""
    if not name:
        return trials
    return lambda: [_part(t, name) for t in trials() if t.outcome[name].status != MISSING]


def _part(trial: Trial, name: str) -> Trial:
    outcome = Outcome({name: trial.outcome[name]})
    status = trial.status if trial.pending else outcome.status((name,))
    return replace(trial, evaluate=(name,), outcome=outcome, status=status)


def _own(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that the study evaluated."""
    return [t for t in trials if not (t.known or t.pending)]


def failed_alike(reported: Sequence[Trial]) -> bool:
    """Return True if all trials failed with one message, possibly up to numbers or values of their configurations.

    The type and place of the error must agree if they are given; memory addresses are ignored.
    """
    forms = (lambda t: without_address(t.message), _without_numbers, _without_values)
    return all(t.failed for t in reported) and any(len({form(t) for t in reported}) == 1 for form in forms)


def _without_numbers(reported: Trial) -> str:
    return _general(reported.message, ())


def _without_values(reported: Trial) -> str:
    """Return the message without numbers and values. A value may coincide with an unrelated word, so this form is tried last."""
    written = {readable(v, write) for v in reported.config.values() for write in (str, repr)}
    return _general(reported.message, sorted(written - {""}, key=lambda w: (-len(w), w)))


def _general(message: str, values: Sequence[str]) -> str:
    """Replace every number and the given values in a message by ``#``, but keep the file and line at its end."""
    place = _PLACE.search(message)
    text = without_address(message if place is None else message[: place.start()])
    if values:
        text = re.sub("|".join(rf"(?<!\w){re.escape(v)}(?!\w)" for v in values), "#", text)
    return _NUMBER.sub("#", text) + (place.group() if place is not None else "")
