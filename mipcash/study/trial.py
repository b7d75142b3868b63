"""One evaluation of the objective: what was proposed, how it came about, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mipcash.display import config_text, counted, table, value_text
from mipcash.errors import MipcashError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, Outcome
from mipcash.space.solution import Solution
from mipcash.study.text import one_line, readable, shown

KNOWN = "known"
"""Origin of an evaluation that was made elsewhere."""
ILLEGAL = "known, illegal"
"""Of one whose configuration breaks rules: it is learned from, and is never the answer."""
ENQUEUED = "enqueued"
"""Of a configuration that the user wants evaluated."""
REPEAT = "repeat "
"""How the origin of another evaluation of a configuration begins; its number follows."""


def repeat_origin(number: int) -> str:
    """Origin of the number-th further evaluation of a configuration; of the first one, where it came from is not known."""
    return f"{REPEAT}{number}" if number else ""


class Failed(Exception):
    """An evaluation without a loss. An objective may return it or raise it; ``study.tell`` takes it as an outcome.

    >>> def train(config):
    ...     return mc.Failed("diverged", values={"latency_ms": 3.0})

    Args:
        message: why there is no loss.
        values: what is known all the same, by name: limits on it are learned from.

    Raises:
        ValueError: values are no dict, or hold the loss.
    """

    def __init__(self, message: str = "failed", values: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = readable(message)
        if not isinstance(values, (Mapping, type(None))):
            raise ValueError(
                f'values of a failure are numbers by name, values={{"latency_ms": 3.0}}; got {shown(values)}'
            )
        self.values = dict(values or {})
        if LOSS in self.values:
            raise ValueError(
                "a failure has no loss; return the dict with the loss instead, or leave the loss out of values="
            )

    def __repr__(self) -> str:
        known = f", values={self.values!r}" if self.values else ""
        return f"Failed({self.message!r}{known})"


class IllegalProposalError(MipcashError, AssertionError):
    """An optimizer proposed what the space forbids: a bug in the optimizer, never the user's mistake."""


class TellError(MipcashError, ValueError):
    """An outcome was told for a trial of another study, or for the second time."""


class LateError(TellError):
    """An outcome was told that another worker told meanwhile, as this one was given up for lost."""


class Reporter(Protocol):
    """What an evaluation that runs reports; see :class:`mipcash.study.reports.Reports`."""

    def report(self, step: int, value: Any) -> None: ...

    def should_stop(self) -> bool: ...

    def outcome(self, returned: Any) -> Any: ...


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One proposal and its evaluation. A trial is a value: ``study.tell`` returns a new one with the outcome.

    One that is being evaluated, as ``study.ask`` returns it or an objective with a parameter ``trial`` is given it, keeps what it
    reports until it is told.

    Attributes:
        number: 0, 1, 2, ... in the order of the proposals.
        config: active parameters only. Each trial handed out carries its own dict, so it may be changed at will; the
            study keeps what it proposed.
        status: ``pending`` (proposed and journaled, outcome not yet told), ``done`` or ``failed``.
        outcome: its outputs by name (the loss among them), each present, missing or failed; of a pending trial the parts
            that were told.
        proof: what a solver proved about the proposal: in most cases a bound on the model; None where no solver was asked.
        origin: ``initial design``, ``acquisition`` ...; ``known`` or ``known, illegal`` of an evaluation made elsewhere,
            ``enqueued`` of a configuration that the user wanted, ``repeat 1`` of another evaluation of one.
        seconds: wall-clock seconds of the ask by part; ``"ask"`` is its total.
        evaluate: names of the outputs that the optimizer wants evaluated; empty: all that the objective gives, in one call.
        trace: what the optimizer tells reports about this proposal.
        stop: why the optimizer wishes no proposal after this one; empty: it does not.
        started, finished: seconds since the epoch; ``finished`` is None while pending.
        duration: wall-clock seconds of the evaluation, None while pending.
        attempt: number of the latest attempt to evaluate it.
        lost: number of attempts whose worker died while the run went on.
        study: the id of the study that it belongs to.
        reports: where its evaluation runs, what it reports; None elsewhere.
        goals: what the study optimises.
    """

    number: int
    config: Configuration
    status: str = PENDING
    outcome: Outcome = field(default_factory=Outcome)
    proof: Solution | None = None
    origin: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    evaluate: tuple[str, ...] = ()
    trace: Mapping[str, Any] = field(default_factory=dict)
    stop: str = ""
    started: float = 0.0
    finished: float | None = None
    duration: float | None = None
    attempt: int = 1
    lost: int = 0
    study: str = ""
    reports: Reporter | None = None
    goals: Goals = MINIMISED

    def report(self, step: int, value: Any) -> None:
        """Note what the evaluation has found so far: after an epoch, a fold. It is kept with the outcome that is told, as a fit.

        >>> for epoch in range(20):
        ...     trial.report(epoch, validate(model))
        ...     if trial.should_stop():
        ...         break

        Args:
            step: a whole number, at least 0, larger than that before. All evaluations should report at the same steps: the k-th
                report is compared with the k-th of others.
            value: the loss, or a dict with ``"loss"`` and further named numbers. One that is not finite, or
                :class:`~mipcash.Failed`, says that the evaluation has failed here.

        Raises:
            ValueError: a step twice or out of order, no whole number, or a value that is no number at all.
            TellError: nobody is evaluating the trial: it was read from a history.
        """
        self._running("report").report(step, value)

    def should_stop(self) -> bool:
        """Whether the evaluation should end now: it is clearly worse than the best so far, by ``racing=``, or has failed.

        Where one ends here, anything may be told or returned: what counts is an estimate of the loss that the whole evaluation
        would have had, with its variance, or the failure. Who goes on and reports more has not been stopped. Without ``racing=``
        it is False, but after a report that is not finite.

        Raises:
            TellError: as for :meth:`report`.
        """
        return self._running("should_stop").should_stop()

    def _running(self, name: str) -> Reporter:
        if self.reports is None:
            raise TellError(
                f"trial {self.number} is not being evaluated; call {name}() of the trial that ask() returned, or that the "
                "objective got as its parameter `trial`"
            )
        return self.reports

    def __repr__(self) -> str:
        return f"<trial {self}>"

    def __str__(self) -> str:
        return f"{self.number}: {self._told()}, {config_text(self.config)}"

    def _told(self) -> str:
        """``done, loss 0.5``, ``done, loss 0.5, ms failed: no clock``, ``failed: out of memory``, ``pending``."""
        if self.failed:
            return f"failed: {one_line(self.message, 80)}" if self.message else "failed"
        told = [] if self.loss is None else [(self.goals.word, self.loss)]
        if self.loss is not None and self.goals.several:
            told = [(name, self.outcome[name].value or 0.0) for name in self.goals.names]
        told += [(name, value) for name, value in self.values.items() if self.loss is None and name in self.evaluate]
        failed = ((name, o.message) for name, o in self.outcome.outputs.items() if o.status == FAILED)
        said = [f"{name} {value:.6g}" for name, value in told]
        said += [f"{name} failed: {one_line(message, 80)}" for name, message in failed]
        stopped = [] if self.whole else [f"stopped after {counted(self.fits, 'fit')}"]
        return ", ".join([self.status, *said, *stopped])

    def _repr_html_(self) -> str:
        rows = [(name, value_text(value)) for name, value in self.config.items()]
        rows += [(f"[{name}]", value_text(value)) for name, value in self.values.items()]
        return table(f"trial {self.number}: {self._told()}", (), rows)

    @property
    def loss(self) -> float | None:
        """As the objective gave it, be it to be minimised or to be maximised; finite where it is present, else None."""
        return self.outcome.loss

    @property
    def minimised(self) -> float | None:
        """The loss as something to be minimised: of what is to be maximised the negative value."""
        return None if self.loss is None else self.goals.sign * self.loss

    def copy(self) -> Trial:
        """Return the trial with a configuration of its own, which may be changed at will."""
        return replace(self, config=dict(self.config))

    def turned(self) -> Trial:
        """With losses that are to be minimised, as an optimizer sees them."""
        return replace(self, outcome=self.outcome.turned(), goals=MINIMISED) if self.goals.maximised else self

    @property
    def values(self) -> dict[str, float]:
        """Further named black-box values."""
        return self.outcome.values

    @property
    def texts(self) -> dict[str, str]:
        """What the objective said beside its numbers, by name."""
        return self.outcome.texts

    @property
    def folds(self) -> tuple[float, ...]:
        """The loss of each fit, where the evaluation gave partial results; else empty."""
        return self.outcome.folds

    @property
    def whole(self) -> bool:
        """Whether its loss is what a whole evaluation gave, and no estimate by racing."""
        return not self.outcome.stopped

    @property
    def fits(self) -> int:
        """How many fits the evaluation took, 1 where it gave no partial results; 0 of what is pending or known."""
        return 0 if self.pending or self.known else self.outcome.fits

    @property
    def message(self) -> str:
        """Why it failed; empty otherwise."""
        return self.outcome.message

    @property
    def known(self) -> bool:
        """Whether it was evaluated elsewhere: then it counts for no budget."""
        return self.origin in (KNOWN, ILLEGAL)

    @property
    def repeat(self) -> int:
        """0: an evaluation of the search. k > 0: the k-th further one of a configuration, on fresh folds where it has some."""
        return int(self.origin.removeprefix(REPEAT)) if self.origin.startswith(REPEAT) else 0

    @property
    def legal(self) -> bool:
        """Whether the rules admit its configuration: of all trials but known ones that were to be learned from nevertheless."""
        return self.origin != ILLEGAL

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def failed(self) -> bool:
        return self.status == FAILED

    @property
    def pending(self) -> bool:
        return self.status == PENDING

    @property
    def running(self) -> bool:
        """Another name of ``pending``."""
        return self.pending
