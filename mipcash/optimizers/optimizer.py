"""The contract of every optimizer: ``ask(request) -> Proposal`` and ``recommend(history, limits) -> Observation``.

An optimizer is a pure function of the request: history, random generator, limits and its own serialisable state. The
study owns the loop: it derives the generator of trial k from (seed, k) and journals the state with each trial, so that a
resumed run makes the same proposals as an unbroken one, for every optimizer, without its doing anything for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mipcash.errors import MipcashError
from mipcash.modelling.domains import Configuration, Value
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, MISSING, PENDING, Outcome
from mipcash.optimizers.outcome import Limit as Limit
from mipcash.space.exclusion import Apart
from mipcash.space.solution import Solution


@dataclass(frozen=True)
class Observation:
    """One configuration that has been proposed, or was evaluated elsewhere.

    Attributes:
        config: the configuration.
        status: ``done``, ``failed`` (raised, nan, inf, or told as Failed) or ``pending`` (being evaluated).
        loss: finite where it is known: of a done one, unless others were asked for alone, and of a pending one told in parts.
        values: further black-box values by name, nan and inf included.
        outcome: every output with its status, message and cost; made from loss and values where it is not given.
        known: whether it was evaluated elsewhere and never proposed.
        legal: whether the rules admit it. One that they do not is known, is learned from, and is never an incumbent, a start or the
            answer.
        asked: the outputs that were asked for; empty: all.
        repeat: k > 0: the k-th further evaluation of a configuration, after the search. It was not proposed, and ``known`` says so.
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
            told = Outcome.failure("", self.values) if failed else Outcome.of(self.loss, self.values)
            object.__setattr__(self, "outcome", told)
        unasked = self.loss is None and self.outcome.some  # others were asked for alone
        if self.status == DONE and not unasked and (self.loss is None or not math.isfinite(self.loss)):
            raise ValueError(f"a done observation needs a finite loss, got {self.loss!r}")

    @property
    def folds(self) -> tuple[float, ...]:
        """The loss of each fit, where the evaluation gave partial results; else empty."""
        return self.outcome.folds

    @property
    def fits(self) -> int:
        """How many fits the evaluation took; 1 where it gave no partial results."""
        return self.outcome.fits

    @property
    def variance(self) -> float:
        """Of the loss as an estimate of what the whole evaluation would have given; 0 where it is what that gave."""
        return self.outcome.variance


History = Sequence[Observation]
"""Observations in the order of their proposals."""


@dataclass(frozen=True)
class Joined:
    """What is known of one configuration whose outputs were evaluated apart.

    Attributes:
        whole: all outputs together; where one observation alone tells them, it.
        parts: numbers of the observations in their history, increasing.
    """

    whole: Observation
    parts: tuple[int, ...]


def joined(history: History, names: Collection[str]) -> list[Joined]:
    """What a history tells, by configuration: those that tell different outputs of one are put together.

    An observation joins the first that lacks all of the names that it tells; where there is none, it is another measurement and
    stands for itself. They are ordered by the latest part. Observations that tell none of the names are left out.

    Args:
        names: the outputs that count: the loss and those with limits.
    """
    told = [(k, {n for n in names if o.outcome[n].status != MISSING}) for k, o in enumerate(history)]
    if all(LOSS in said for _, said in told if said):  # then no two of them tell different outputs
        return [Joined(history[k], (k,)) for k, said in told if said]
    rows: dict[str, list[tuple[list[int], set[str]]]] = {}
    for k, said in told:
        if said:
            same = rows.setdefault(repr(history[k].config), [])
            parts, there = next((row for row in same if not row[1] & said), ([], set()))
            if not parts:
                same.append((parts, there))
            parts.append(k)
            there |= said
    found = sorted((parts for same in rows.values() for parts, _ in same), key=lambda parts: parts[-1])
    return [Joined(_whole([history[k] for k in parts]), tuple(parts)) for parts in found]


def _whole(parts: History) -> Observation:
    if len(parts) == 1:
        return parts[0]
    outcome = Outcome({name: o for part in parts for name, o in part.outcome.outputs.items()})
    decides = outcome.loss is not None or (outcome[LOSS].status == MISSING and outcome.some)
    status = DONE if decides else FAILED
    first, elsewhere = parts[0], all(o.known for o in parts)
    return Observation(first.config, status, outcome.loss, outcome.values, outcome, elsewhere, first.legal)


@dataclass(frozen=True)
class Request:
    """What an optimizer is asked.

    Attributes:
        history: everything proposed so far, pending and failed trials included, by number. An observation is the same object
            until more is told of it, and is not to be changed.
        rng: the only source of randomness.
        state: ``Proposal.state`` of the latest ask, ``{}`` at the first.
        apart: configurations that the proposal must keep a Hamming distance from (those of the same batch); None: none.
        limits: what the outputs of a good configuration keep; only optimizers with ``takes_limits`` are given any.
        costs: what one evaluation of an output costs, by name, of outputs that may be evaluated apart (the loss among them);
            empty: an evaluation gives all outputs. An optimizer that chooses among them says so in ``Proposal.outputs``. Then
            observations of one configuration may tell different outputs; :func:`joined` puts them together.
        seconds: wall-clock seconds that the proposal should take at most, all of its parts together; None: as long as the
            limits of the optimizer's settings let it. A part that they end proposes the best that it has found by then, so
            that a run in which they are reached differs from machine to machine (``Proposal.trace["cut"]`` names the parts).
            Where nothing legal and new is known by then, see :mod:`mipcash.optimizers.in_time`.
    """

    history: History
    rng: np.random.Generator
    state: Mapping[str, Any] = field(default_factory=dict)
    apart: Apart | None = None
    limits: tuple[Limit, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None

    @cached_property
    def pending(self) -> tuple[Observation, ...]:
        """Those that are being evaluated."""
        return tuple(o for o in self.history if o.status == PENDING)

    @cached_property
    def settled(self) -> tuple[Observation, ...]:
        """Those that are done or failed."""
        return tuple(o for o in self.history if o.status != PENDING)

    @cached_property
    def before(self) -> list[Configuration]:
        """Every configuration proposed so far."""
        return [o.config for o in self.history]


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate, and how it came about.

    Attributes:
        config: legal under the space's rules.
        solution: what a solver proved about it: in most cases a bound on the model; None where no solver was asked.
        origin: ``initial design``, ``acquisition`` ...; for tables.
        seconds: wall-clock seconds by part, e.g. ``{"surrogate": .., "mip": .., "continuous": ..}``.
        state: the optimizer's state after this ask: JSON-serialisable, handed back at the next ask.
        outputs: names of the outputs to evaluate, each once; empty: all that the objective gives. A configuration may be
            proposed again for outputs that are not known or pending there; that is another trial.
        trace: what reports may show of this step (residuals, the choice of a bandit ...): JSON-serialisable, never read by
            the loop.
        stop: a wish to stop, and why; empty: none. The loop evaluates this proposal and starts no other.
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
    """Proposes configurations. Construct with ``(domain, settings)``; see :mod:`mipcash.optimizers.registry`.

    Attributes:
        name: as in the registry.
        takes_limits: whether proposals learn from the limits of a request. One that does not refuses them.
    """

    name: ClassVar[str]
    takes_limits: bool = False

    def ask(self, request: Request) -> Proposal:
        """The next configuration to evaluate.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is far enough apart.
            MipcashError: the request has limits that this optimizer would ignore.
        """
        self.check_limits(request.limits)
        return self.propose(request)

    @abstractmethod
    def propose(self, request: Request) -> Proposal:
        """What :meth:`ask` returns; subclasses give it."""

    def restricted(self, fixed: Mapping[str, Value]) -> Optimizer:
        """Return the optimizer of the sub-space in which some parameters are active and have given values.

        Args:
            fixed: label -> value, as for :meth:`mipcash.space.domain.Domain.restricted`.

        Raises:
            InfeasibleSpaceError: no legal configuration has these values.
            MipcashError: this optimizer searches no sub-spaces.
        """
        raise MipcashError(
            f"optimizer {self.name!r} searches no sub-space, and values of {', '.join(map(repr, fixed))} are held; leave them "
            "free, or use an optimizer that does, such as 'hybrid'"
        )

    def check_limits(self, limits: Sequence[Limit]) -> None:
        """Refuse limits that proposals would not learn from.

        Raises:
            MipcashError: there are some, and ``takes_limits`` is False.
        """
        if limits and not self.takes_limits:
            raise MipcashError(
                f"optimizer {self.name!r} does not learn from limits and was given {', '.join(map(str, limits))}; "
                "leave the limits out, or use an optimizer that takes them"
            )

    def recommend(self, history: History, limits: Sequence[Limit] = ()) -> Observation | None:
        """The final answer, one of ``history``: here the first with the lowest loss that keeps all limits; None: there is none.

        An evaluation that was stopped before its last fit is never the answer: its loss is a guess.

        What keeps them may be told by other observations of its configuration (:func:`joined`); the one that tells the loss is
        the answer.
        """
        return next(iter(self.ranked(history, limits)), None)

    def ranked(self, history: History, limits: Sequence[Limit] = ()) -> list[Observation]:
        """What may be the answer, best first: whole evaluations of legal configurations that keep all limits, by their losses."""
        rows = joined(history, (LOSS, *(limit.output for limit in limits)))
        kept = [k for row in rows if row.whole.legal and _keeps(row.whole, limits) for k in row.parts]
        kept = [k for k in kept if not history[k].outcome.stopped]
        done = [(o.loss, k) for k in kept for o in (history[k],) if o.status == DONE and o.loss is not None]
        return [history[k] for _, k in sorted(done)]

    def finalists(self, history: History, limits: Sequence[Limit], count: int) -> list[Observation]:
        """What it recommends, and what comes next in its ranking: at most ``count``, each of another configuration.

        Args:
            history: of the search; no repeats are in it.
        """
        best = self.recommend(history, limits)
        found: dict[str, Observation] = {}
        for o in () if best is None else (best, *self.ranked(history, limits)):
            found.setdefault(repr(o.config), o)
        return list(found.values())[:count]


def _keeps(observation: Observation, limits: Sequence[Limit]) -> bool:
    return not any(limit.violation(observation.outcome[limit.output].value) for limit in limits)
