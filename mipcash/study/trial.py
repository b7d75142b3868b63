"""One evaluation of the objective: its configuration, its origin and its outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from mipcash.display import config_text, counted, table, value_text
from mipcash.errors import TellError
from mipcash.modelling.domains import Configuration, own
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, Outcome
from mipcash.space.solution import Solution
from mipcash.text import no_attribute, one_line, readable, shown

KNOWN = "known"
"""Origin of an evaluation that was made outside the study."""
ILLEGAL = "known, illegal"
"""Origin of such an evaluation whose configuration violates rules: the model uses it, and it is never recommended."""
ENQUEUED = "enqueued"
"""Origin of a configuration that the user enqueued."""
REPEAT = "repeat "
"""Beginning of the origin of a repeat; its number follows."""


def repeat_origin(number: int) -> str:
    """Return the origin of a repeat, given its number; empty for 0, which is no repeat."""
    return f"{REPEAT}{number}" if number else ""


class Failed(Exception):
    """An evaluation without a loss. An objective may return it or raise it; ``study.tell`` takes it as an outcome.

    Args:
        message: why there is no loss.
        values: outputs that are known nevertheless, by name; outcome constraints on them are modelled.

    Raises:
        ValueError: ``values`` is no dict, or has the loss.

    Examples:
        >>> import mipcash as mc
        >>> def train(config):
        ...     return mc.Failed("diverged", values={"ms": 3.0}) if config["a"] > 4 else {"loss": config["a"], "ms": 1.0}
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(train, space, 10, optimizer="random", progress=False)
        >>> run.n_failed, run.config
        (5, {'a': 0})
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


class Reporter(Protocol):
    """Interface for the reports of a running evaluation; see ``mipcash.study.reports.Reports``."""

    ended: bool

    def report(self, step: int, value: Any) -> None: ...

    def should_stop(self) -> bool: ...

    def outcome(self, returned: Any) -> Any: ...

    def missing_return(self, returned: Any) -> str: ...


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One proposal and its evaluation. A trial is immutable: ``study.tell`` returns a new one with the outcome.

    While it is evaluated, a trial that ``study.ask`` returned, or that an objective got as its parameter ``trial``, collects
    reports.

    Args:
        number: 0, 1, 2, ... in the order of the proposals.
        config: active parameters only. Each trial handed out carries its own dict, which may be changed; the study keeps the
            original.
        status: ``pending`` (proposed and journaled, no complete outcome yet), ``done`` or ``failed``.
        outcome: its outputs by name (the loss among them), each present, missing or failed; for a pending trial the outputs
            recorded so far.
        proof: the solver's certificate for the proposal, usually a bound on the model; None if no solver was used.
        origin: ``initial design``, ``acquisition`` ...; ``known`` or ``known, illegal`` for an evaluation made outside the study,
            ``enqueued`` for a configuration of the user, ``repeat 1`` for a repeat.
        seconds: wall-clock seconds of the ask by part; ``"ask"`` is its total.
        evaluate: names of the outputs that the optimizer requests in decoupled evaluation; empty: all outputs, in one call.
        trace: the optimizer's information on this proposal, for reports.
        stop: why the optimizer wants to stop after this proposal; empty if it does not.
        started, finished: seconds since the epoch. ``started`` is the start of the latest attempt, or the time of the proposal
            before the first one; ``finished`` is None while pending.
        duration: wall-clock seconds of the evaluation, None while pending.
        attempt: number of the latest attempt to evaluate it.
        lost: number of attempts whose worker died during the run.
        study: id of its study.
        reports: collects the reports of its running evaluation; None otherwise.
        objectives: the objectives.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> study = mc.Study(space, "random")
        >>> trial = study.enqueue({"a": 3})
        >>> print(study.tell(study.ask(), {"loss": 0.5, "latency_ms": 2.0}))
        0: done, loss 0.5, a=3
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
    objectives: Objectives = MINIMISED

    def report(self, step: int, value: Any) -> None:
        """Report an intermediate result, e.g. after an epoch or a fold. It is stored with the outcome, as a step.

        Args:
            step: an integer, at least 0, larger than the previous one. All evaluations should report at the same steps, because the
                k-th report is compared with the k-th report of other evaluations.
            value: the loss, or a dict with ``"loss"`` and further named numbers. A value that is not finite, or
                [`Failed`][mipcash.study.trial.Failed], means that the evaluation has failed at this step, unless
                a finite report follows.

        Raises:
            ValueError: the step is no integer, repeated or out of order, or the value is no number at all.
            TellError: the trial is not being evaluated: it was read from a history, or has its outcome.

        Examples:
            >>> import mipcash as mc
            >>> space = mc.Space("box")
            >>> a = space.integer("a", 0, 9)
            >>> study = mc.Study(space, "random", pruning="halving")
            >>> trial = study.ask()
            >>> for epoch in range(20):
            ...     trial.report(epoch, 1 / (epoch + 1))
            ...     if trial.should_stop():
            ...         break
            >>> study.tell(trial, 0.05).steps
            20
        """
        self._running("report").report(step, value)

    def should_stop(self) -> bool:
        """Return True if the evaluation should end now, because ``pruning=`` decides so or it has failed.

        If it ends here, any value may be returned, or passed to ``tell``: the recorded outcome is the failure, or an estimate of
        the loss of the complete evaluation with its variance. An evaluation that goes on and reports more is not pruned. Without
        ``pruning=`` the result is False, except after a report that is not finite.

        Returns:
            True if it should end.

        Raises:
            TellError: as for [`report`][mipcash.study.trial.Trial.report].
        """
        return self._running("should_stop").should_stop()

    def _running(self, name: str) -> Reporter:
        if self.reports is None or self.reports.ended:
            raise TellError(
                f"trial {self.number} is not being evaluated; call {name}() of the trial that ask() returned, or that the "
                "objective got as its parameter `trial`"
            )
        return self.reports

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        return f"<trial {self}>"

    def __str__(self) -> str:
        return f"{self.number}: {self._status_text()}, {config_text(self.config)}"

    def _status_text(self) -> str:
        """Return e.g. ``done, loss 0.5``, ``done, loss 0.5, ms failed: no clock``, ``failed: out of memory``, ``pending``."""
        if self.failed:
            return f"failed: {one_line(self.message, 80)}" if self.message else "failed"
        reported = [] if self.loss is None else [(self.objectives.word, self.loss)]
        if self.loss is not None and self.objectives.several:
            reported = [(name, self.outcome[name].value or 0.0) for name in self.objectives.names]
        reported += [
            (name, value) for name, value in self.values.items() if self.loss is None and name in self.evaluate
        ]
        failed = ((name, o.message) for name, o in self.outcome.outputs.items() if o.status == FAILED)
        wording = [f"{name} {value:.6g}" for name, value in reported]
        wording += [f"{name} failed: {one_line(message, 80)}" for name, message in failed]
        stopped = [f"pruned after {counted(self.steps, 'step')}"] if self.pruned else []
        return ", ".join([self.status, *wording, *stopped])

    def _repr_html_(self) -> str:
        rows = [(name, value_text(value)) for name, value in self.config.items()]
        rows += [(f"[{name}]", value_text(value)) for name, value in self.values.items()]
        return table(f"trial {self.number}: {self._status_text()}", (), rows)

    @property
    def loss(self) -> float | None:
        """Loss with the objective's own sign; finite if present, else None."""
        return self.outcome.loss

    @property
    def minimised(self) -> float | None:
        """Loss in minimisation form: negated if it is maximised."""
        return None if self.loss is None else self.objectives.sign * self.loss

    def copy(self) -> Trial:
        """Return the trial with its own copy of the configuration.

        Returns:
            The copy.
        """
        twin = copy(self)  # faster than to make one
        object.__setattr__(twin, "config", own(self.config))
        return twin

    def in_minimisation_form(self) -> Trial:
        """Return the trial with its loss in minimisation form, as an optimizer sees it.

        Returns:
            The trial in minimisation form; the trial itself if the loss is minimised.
        """
        if not self.objectives.maximised:
            return self
        minimised = replace(MINIMISED, fidelity=self.objectives.fidelity)
        return replace(self, outcome=self.outcome.negated(), objectives=minimised)

    @property
    def values(self) -> dict[str, float]:
        """Numbers that the objective returned beside the loss, by name."""
        return self.outcome.values

    @property
    def texts(self) -> dict[str, str]:
        """Texts that the objective returned beside its numbers, by name."""
        return self.outcome.texts

    @property
    def folds(self) -> tuple[float, ...]:
        """Loss of each step (fold, epoch), if the evaluation gave partial results; else empty."""
        return self.outcome.folds

    @property
    def complete(self) -> bool:
        """True if the loss is that of a complete evaluation, neither an estimate after pruning nor at a low fidelity."""
        return not self.pruned and self.at_full_fidelity

    @property
    def pruned(self) -> bool:
        """True if the loss is an estimate after pruning."""
        return self.outcome.pruned

    @property
    def steps(self) -> int:
        """Number of steps that the evaluation took, 1 if it gave no partial results; 0 for pending and known trials."""
        return 0 if self.pending or self.known else self.outcome.steps

    @property
    def message(self) -> str:
        """Failure message; empty if it has not failed."""
        return self.outcome.message

    @property
    def known(self) -> bool:
        """True if it was evaluated outside the study; it then does not count in the budget."""
        return self.origin in (KNOWN, ILLEGAL)

    @property
    def repeat(self) -> int:
        """Number of the repeat, k > 0, evaluated on fresh folds if the objective supports it; 0 for an evaluation of the search."""
        return int(self.origin.removeprefix(REPEAT)) if self.origin.startswith(REPEAT) else 0

    @property
    def legal(self) -> bool:
        """True if the configuration satisfies the rules. Only known trials added with ``illegal="learn"`` may violate them."""
        return self.origin != ILLEGAL

    @property
    def fidelity(self) -> float:
        """Cost of an evaluation at its fidelity, in evaluations at full fidelity; 1 if the space has no fidelity."""
        return 1.0 if self.objectives.fidelity is None else self.objectives.fidelity.cost(self.config)

    @property
    def at_full_fidelity(self) -> bool:
        """True unless the space has a fidelity and the evaluation is below the full one."""
        return self.fidelity >= 1.0

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def failed(self) -> bool:
        return self.status == FAILED

    @property
    def pending(self) -> bool:
        return self.status == PENDING


COLUMNS = ("number", "status", "loss", "duration", "message", "origin", "pruned")
"""Attributes of a trial that are columns of a table; the other columns have a prefix."""


def flat_row(trial: Trial) -> dict[str, Any]:
    """Return the columns of a trial in ``Result.to_rows()``, which ``mipcash.read_trials`` reads; nan for a failed output."""
    row: dict[str, Any] = {name: getattr(trial, name) for name in COLUMNS}
    failed = {
        name: math.nan for name, output in trial.outcome.outputs.items() if output.status == FAILED and name != LOSS
    }
    values = {**trial.values, **failed} if trial.done else trial.values
    further = (("values", values), ("texts", trial.texts), ("seconds", trial.seconds))
    for prefix, entries in (("config", trial.config), *further):
        row.update({f"{prefix}.{name}": value for name, value in entries.items()})
    return row
