"""The contract of every optimizer: ``ask(history, rng, state) -> Proposal``.

An optimizer is a pure function of the history, a random generator and its own serialisable state. The study owns the
loop: it derives the generator of trial k from (seed, k) and journals the state with each trial, so that a resumed run
makes the same proposals as an unbroken one, for every optimizer, without its doing anything for it.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mipcash.backends.base import Backend
from mipcash.backends.solution import Solution
from mipcash.modelling.domains import Configuration
from mipcash.space.compiled import Apart
from mipcash.space.space import Space

DONE = "done"
FAILED = "failed"
PENDING = "pending"


@dataclass(frozen=True)
class Observation:
    """One configuration that has been proposed.

    Attributes:
        config: the configuration.
        status: ``done``, ``failed`` (raised, nan, inf, or told as Failed) or ``pending`` (being evaluated).
        loss: the loss where done, else None.
        values: further black-box values by name.
    """

    config: Configuration
    status: str
    loss: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in (DONE, FAILED, PENDING):
            raise ValueError(f"an observation is {DONE!r}, {FAILED!r} or {PENDING!r}, and not {self.status!r}")
        if self.status == DONE and (self.loss is None or not math.isfinite(self.loss)):
            raise ValueError(f"a done observation needs a finite loss, got {self.loss!r}")


History = Sequence[Observation]
"""Observations in the order of their proposals."""


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate, and how it came about.

    Attributes:
        config: legal under the space's rules.
        solution: the solver's answer that made it (its proof).
        origin: ``initial design``, ``acquisition`` ...; for tables.
        seconds: wall-clock seconds by part, e.g. ``{"surrogate": .., "mip": .., "continuous": ..}``.
        state: the optimizer's state after this ask: JSON-serialisable, handed back at the next ask.
    """

    config: Configuration
    solution: Solution | None = None
    origin: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)


class Optimizer(ABC):
    """Proposes configurations. Construct with ``(space, backend, settings)``; see :mod:`mipcash.optimizers.registry`."""

    name: ClassVar[str]

    @abstractmethod
    def ask(
        self, history: History, rng: np.random.Generator, state: Mapping[str, Any], apart: Apart | None = None
    ) -> Proposal:
        """Propose the next configuration.

        Args:
            history: everything proposed so far, pending and failed trials included.
            rng: the only source of randomness.
            state: ``Proposal.state`` of the latest ask, ``{}`` at the first.
            apart: configurations that the proposal must keep a Hamming distance from (those of the same batch).

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is far enough apart.
        """


def solver_made(
    space: Space,
    backend: Backend,
    origin: str,
    history: History,
    rng: np.random.Generator,
    state: Mapping[str, Any],
    apart: Apart | None,
) -> Proposal:
    """The solver's own configuration, far from what was proposed before.

    Raises:
        SpaceExhaustedError: nothing is left, or nothing far enough apart.
    """
    began = time.perf_counter()
    ((config, solution),) = space.design(1, rng, backend, [o.config for o in history], apart)
    return Proposal(config, solution, origin, {"mip": time.perf_counter() - began}, dict(state))
