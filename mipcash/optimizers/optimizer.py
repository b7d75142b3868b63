"""The protocol of every optimizer: ``ask(request) -> Proposal`` and ``recommend(history, limits) -> Observation``.

An optimizer is a pure function of the request: history, random generator, limits and its own serialisable state. The study owns
the loop. It derives the generator of trial k from (seed, k) and stores the state with each trial in the journal. So a resumed run
makes the same proposals as an uninterrupted one, without any code in the optimizer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipcash.errors import MipcashError
from mipcash.modelling.domains import Configuration, Value, same_value
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, MISSING, PENDING, PRESENT, VARIANCE, Outcome, Output
from mipcash.optimizers.outcome import Limit as Limit
from mipcash.space.solution import Solution

if TYPE_CHECKING:  # imports scipy, which a journal that is only shown does without
    from mipcash.space.exclusion import MinimumDistance


@dataclass(frozen=True)
class Observation:
    """One configuration that was proposed, or whose results were imported.

    Args:
        config: the configuration.
        status: ``done``, ``failed`` (raised, nan, inf, or reported as Failed) or ``pending`` (being evaluated).
        loss: finite if known, else None. A done observation has a loss unless only other outputs were evaluated. A pending
            observation has a loss if it was reported before the remaining outputs.
        values: further black-box values by name, nan and inf included.
        outcome: every output with its status, message and cost; by default made from loss and values.
        known: True if the result was imported and the configuration was never proposed.
        legal: True if the rules allow the configuration, and it was evaluated at full fidelity. Otherwise models learn from it, but
            it is never an incumbent, a starting point or the recommendation.
        asked: the outputs that were to be evaluated; empty for all.
        repeat: k > 0 for the k-th repeated evaluation of a configuration after the search. It was not proposed, so ``known`` is
            True.

    Examples:
        >>> from mipcash.optimizers.optimizer import Observation
        >>> Observation({"a": 1}, "done", 0.5).loss
        0.5
    """

    config: Configuration
    status: str
    loss: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome, repr=False)
    known: bool = False
    legal: bool = True
    asked: tuple[str, ...] = ()
    repeat: int = 0

    def __post_init__(self) -> None:
        if self.status not in (DONE, FAILED, PENDING):
            raise ValueError(f"an observation is {DONE!r}, {FAILED!r} or {PENDING!r}, and not {self.status!r}")
        if not self.outcome.outputs:
            failed = self.status == FAILED
            reported = Outcome.failure("", self.values) if failed else Outcome.of(self.loss, self.values)
            object.__setattr__(self, "outcome", reported)
        unasked = self.loss is None and self.outcome.some  # only other outputs were evaluated
        if self.status == DONE and not unasked and (self.loss is None or not math.isfinite(self.loss)):
            raise ValueError(f"a done observation needs a finite loss, got {self.loss!r}")

    @property
    def folds(self) -> tuple[float, ...]:
        """The loss of each fit if the evaluation reported partial results, else empty."""
        return self.outcome.folds

    @property
    def steps(self) -> int:
        """Number of fits of the evaluation; 1 if it reported no partial results."""
        return self.outcome.steps

    @property
    def variance(self) -> float:
        """Variance of the loss: of a pruned evaluation as an estimate of the complete one, else the one that it returned, or 0."""
        return self.outcome.variance or self.returned_variance

    @property
    def returned_variance(self) -> float:
        """Noise variance of the loss that the objective returned as output ``variance``; 0 if there is none."""
        returned = self.values.get(VARIANCE, 0.0)
        return returned if 0.0 < returned < math.inf else 0.0

    def within(self, fixed: Mapping[str, Value]) -> Observation:
        """Return the observation of a sub-space with fixed values, in which configurations outside it are illegal.

        Args:
            fixed: label -> value.

        Returns:
            This observation, or a copy that is not legal.
        """
        inside = all(n in self.config and same_value(self.config[n], v) for n, v in fixed.items())
        return self if inside or not self.legal else replace(self, legal=False)


History = Sequence[Observation]
"""Observations in the order of their proposals."""


@dataclass(frozen=True)
class Joined:
    """All known outputs of one configuration, possibly from several decoupled evaluations.

    Attributes:
        merged: an observation with all outputs; the original one if there is only one part.
        parts: indices of the observations in their history, increasing.
    """

    merged: Observation
    parts: tuple[int, ...]


def joined(history: History, names: Collection[str]) -> list[Joined]:
    """Return the history with observations of different outputs of one configuration merged.

    An observation is merged into the first observation of the same configuration with none of its outputs among ``names``. If there
    is none, it is a repeated measurement and stays separate. The result is ordered by the latest part. Observations with none of
    the names are left out.

    Args:
        names: the outputs that count: the loss and the constrained outputs.
    """
    lossless = [o for o in history if o.outcome[LOSS].status == MISSING]
    if all(
        o.outcome[n].status == MISSING for o in lossless for n in names
    ):  # all others have a loss: nothing can be merged
        return [Joined(o, (k,)) for k, o in enumerate(history) if o.outcome[LOSS].status != MISSING]
    reported = [(k, {n for n in names if o.outcome[n].status != MISSING}) for k, o in enumerate(history)]
    rows: dict[str, list[tuple[list[int], set[str]]]] = {}
    for k, outputs in reported:
        if outputs:
            same = rows.setdefault(repr(history[k].config), [])
            parts, there = next((row for row in same if not row[1] & outputs), ([], set()))
            if not parts:
                same.append((parts, there))
            parts.append(k)
            there |= outputs
    found = sorted((parts for same in rows.values() for parts, _ in same), key=lambda parts: parts[-1])
    return [Joined(_merged([history[k] for k in parts]), tuple(parts)) for parts in found]


def averaged(rows: Sequence[Joined]) -> list[Joined]:
    """Return one row per configuration: each output is the mean over its complete measurements. Rows stay in their order."""
    same: dict[str, list[Joined]] = {}
    for row in rows:
        same.setdefault(repr(row.merged.config), []).append(row)
    if len(same) == len(rows):
        return list(rows)
    return [found[0] if len(found) == 1 else _mean(found) for found in same.values()]


def _mean(rows: Sequence[Joined]) -> Joined:
    done = [row.merged for row in rows if row.merged.status == DONE]
    complete = [o for o in done if not o.outcome.pruned] or done or [rows[0].merged]
    outputs = dict[str, Output]()
    for name in dict.fromkeys(name for o in complete for name in o.outcome.outputs):
        found = sorted((o.outcome[name] for o in complete), key=lambda o: o.status != PRESENT)
        values = [o.value for o in found if o.status == PRESENT and o.value is not None]
        outputs[name] = replace(found[0], value=fmean(values)) if values else found[0]
    outcome, first = Outcome(outputs), complete[0]
    parts = tuple(sorted(k for row in rows for k in row.parts))
    return Joined(replace(first, loss=outcome.loss, values=outcome.values, outcome=outcome), parts)


def _merged(parts: History) -> Observation:
    if len(parts) == 1:
        return parts[0]
    outcome = Outcome({name: o for part in parts for name, o in part.outcome.outputs.items()})
    decides = outcome.loss is not None or (outcome[LOSS].status == MISSING and outcome.some)
    status = DONE if decides else FAILED
    first, elsewhere = parts[0], all(o.known for o in parts)
    return Observation(first.config, status, outcome.loss, outcome.values, outcome, elsewhere, first.legal)


@dataclass(frozen=True)
class Request:
    """Input of one call of ``ask``.

    Args:
        history: all observations so far by trial number, with pending and failed trials. An observation stays the same object until
            more of its outputs are known, and must not be modified.
        rng: the only source of randomness.
        state: ``Proposal.state`` of the latest ask, ``{}`` at the first.
        min_distance: minimum Hamming distance of the proposal from other configurations of its batch; None for no minimum.
        limits: outcome constraints; non-empty only for optimizers with ``takes_limits``.
        costs: for decoupled evaluation, the cost of one evaluation of each output by name, with the loss among them; empty if an
            evaluation returns all outputs. An optimizer that selects outputs names them in ``Proposal.outputs``. Observations of
            one configuration may then hold different outputs; ``joined`` merges them.
        seconds: wall-clock limit of the proposal with all of its parts; None for the limits in the optimizer's settings alone. A
            part that reaches the limit returns the best it has found, so such runs differ between machines
            (``Proposal.trace["cut"]`` names the parts). If no legal new configuration is known by then, see
            ``mipcash.optimizers.in_time``.

    Examples:
        >>> import numpy as np
        >>> from mipcash.optimizers.optimizer import Observation, Request
        >>> Request([Observation({"a": 1}, "done", 0.5)], np.random.default_rng(0)).before
        [{'a': 1}]
    """

    history: History
    rng: np.random.Generator
    state: Mapping[str, Any] = field(default_factory=dict)
    min_distance: MinimumDistance | None = None
    limits: tuple[Limit, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None

    @cached_property
    def pending(self) -> tuple[Observation, ...]:
        """The pending observations."""
        return tuple(o for o in self.history if o.status == PENDING)

    @cached_property
    def before(self) -> list[Configuration]:
        """Configurations of all observations, in their order."""
        return [o.config for o in self.history]


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate, and its origin.

    Args:
        config: legal under the space's rules.
        solution: certificate of the solver, in most cases a bound on the model; None if no solver was used.
        origin: ``initial design``, ``acquisition`` ...; for tables.
        seconds: wall-clock seconds by part, e.g. ``{"surrogate": .., "mip": .., "continuous": ..}``.
        state: the optimizer's state after this ask, JSON-serialisable; it is passed to the next ask.
        outputs: names of the outputs to evaluate, each once; empty for all. A configuration may be proposed again for outputs that
            are neither known nor pending; that is a further trial.
        trace: details of this step for reports (residuals, the choice of a bandit ...): JSON-serialisable, never read by the loop.
        stop: reason for which the optimizer requests a stop, else empty. The loop evaluates this proposal and starts no other.

    Examples:
        >>> from mipcash.optimizers.optimizer import Proposal
        >>> Proposal({"a": 1}, origin="mine").config
        {'a': 1}
    """

    config: Configuration
    solution: Solution | None = None
    origin: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    trace: Mapping[str, Any] = field(default_factory=dict)
    stop: str = ""


class Optimizer(ABC):
    """Base class of optimizers, which propose configurations. Construct a subclass with ``(domain, settings)``; see
    ``mipcash.optimizers.registry``.

    Attributes:
        name: name in the registry.
        takes_limits: True if proposals use the outcome constraints of a request; otherwise ``ask`` rejects them.
        reads_losses: False if proposals do not depend on losses; several objectives are then not combined into one.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.optimizers.optimizer import Optimizer, Proposal
        >>> class Fixed(Optimizer):
        ...     name = "fixed"
        ...     def propose(self, request):
        ...         return Proposal({"a": len(request.history)})
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> [trial.config["a"] for trial in mc.Study(space, Fixed()).ask(3)]
        [0, 1, 2]
    """

    name: ClassVar[str]
    takes_limits: bool = False
    reads_losses: ClassVar[bool] = True

    def ask(self, request: Request) -> Proposal:
        """Return the next configuration to evaluate.

        Args:
            request: the history, the random generator, the outcome constraints and the time limit.

        Returns:
            The proposal.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is left at the minimum distance.
            MipcashError: the request has outcome constraints that this optimizer would ignore.
        """
        self.check_limits(request.limits)
        return self.propose(request)

    @abstractmethod
    def propose(self, request: Request) -> Proposal:
        """Return the proposal for [`ask`][mipcash.optimizers.optimizer.Optimizer.ask]; implemented by subclasses.

        Args:
            request: as for [`ask`][mipcash.optimizers.optimizer.Optimizer.ask].

        Returns:
            The proposal.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is left at the minimum distance.
        """

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        """Return the optimizer of the sub-space in which some parameters are active and have given values.

        Args:
            fixed: label -> value of the parameters that are held.

        Returns:
            The optimizer.

        Raises:
            InfeasibleSpaceError: no legal configuration has these values.
            MipcashError: this optimizer cannot search sub-spaces.
        """
        raise MipcashError(
            f"optimizer {self.name!r} cannot search with fixed values of {', '.join(map(repr, fixed))}; leave them "
            "free, or use an optimizer that does, such as 'hybrid'"
        )

    def check_limits(self, limits: Sequence[Limit]) -> None:
        """Raise an error if there are outcome constraints that proposals would ignore.

        Args:
            limits: the outcome constraints.

        Raises:
            MipcashError: there are outcome constraints, and ``takes_limits`` is False.
        """
        if limits and not self.takes_limits:
            raise MipcashError(
                f"optimizer {self.name!r} does not support outcome constraints and was given {', '.join(map(str, limits))}; "
                "leave the limits out, or use an optimizer that takes them"
            )

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        """Return the recommended observation, by default the legal, feasible one with the lowest loss.

        A pruned trial is never recommended, since its loss is an estimate. If constrained outputs of the configuration were
        evaluated in other trials, the trial with the loss is returned.

        Args:
            history: all observations.
            limits: the outcome constraints.

        Returns:
            The observation, or None if there is none.
        """
        return next(iter(self.ranked(history, limits)), None)

    def ranked(self, history: History, limits: Sequence[Limit] = ()) -> list[Observation]:
        """Return the candidates for the recommendation by loss: complete evaluations of legal, feasible configurations.

        Args:
            history: all observations.
            limits: the outcome constraints.

        Returns:
            One observation of each configuration, best first. Of several measurements the mean counts.
        """
        return by_loss(history, limits)

    def finalists(self, history: History, limits: Sequence[Limit], count: int) -> list[Observation]:
        """Return the recommendation and the next observations of the ranking: at most ``count``, of different configurations.

        Args:
            history: observations of the search, without repeated evaluations.
            limits: the outcome constraints.
            count: largest number of observations.

        Returns:
            The observations, best first.
        """
        best = self.recommend(history, limits)
        found: dict[str, Observation] = {}
        for o in () if best is None else (best, *self.ranked(history, limits)):
            found.setdefault(repr(o.config), o)
        return list(found.values())[:count]


def by_loss(history: History, limits: Sequence[Limit]) -> list[Observation]:
    """Return the complete evaluations of legal, feasible configurations, one of each, the lowest (mean) loss first."""
    found = []
    for row in averaged(joined(history, (LOSS, *(limit.output for limit in limits)))):
        o, there = row.merged, [k for k in row.parts if history[k].status == DONE and history[k].loss is not None]
        if there and o.loss is not None and o.legal and not o.outcome.pruned and keeps(o, limits):
            found.append((o.loss, next((k for k in there if not history[k].outcome.pruned), there[0])))
    return [history[k] for _, k in sorted(found)]


def keeps(observation: Observation, limits: Sequence[Limit]) -> bool:
    """Return True if an observation satisfies all outcome constraints."""
    return not any(limit.violation(observation.outcome[limit.output].value) for limit in limits)
