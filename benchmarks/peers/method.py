"""The protocol of a method: ``start``, then ``suggest`` and ``observe`` in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape

Initial = Sequence[tuple[dict[str, Any], float]]
Evaluated = Sequence[tuple[dict[str, Any], Evaluation]]
INITIAL = 10
"""Configurations that a run starts from."""


class MissingPackageError(Exception):
    """A method's library is not installed."""


class Method(ABC):
    """Proposes configurations for one run.

    Attributes:
        name: as in results.
        packages: distributions that it needs.
        legal: it never suggests an illegal configuration, so that the two conventions are one.
        own_design: it makes its own initial design; others are given legal samples.
        design: size of the initial design, whoever makes it.
        takes_limits: it runs on problems with outcome constraints: it overrides ``begin`` and ``learn``, or ignores outcomes.
        revision: to be raised when the adapter changes, so that old histories are distinguished from new ones.
    """

    name: str
    packages: ClassVar[tuple[str, ...]] = ()
    legal: ClassVar[bool] = False
    own_design: ClassVar[bool] = False
    takes_limits: ClassVar[bool] = False
    revision: ClassVar[int] = 1
    design: int = INITIAL

    @abstractmethod
    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        """Begin a run.

        Args:
            shape: the space of this run in flat terms; ``shape.space`` is the space itself.
            initial: evaluated legal configurations (empty where ``own_design``).
            budget: evaluations in total, the initial ones included.
        """

    @abstractmethod
    def suggest(self) -> dict[str, Any]:
        """The next configuration (active parameters only); it may be illegal unless ``legal``."""

    @abstractmethod
    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        """Receive the result of the latest suggestion.

        Args:
            config: what was evaluated: the suggestion, or, in the repair convention, the nearest legal configuration.
            loss: its loss, or the penalty if it is illegal.
            violations: rule -> violation by ``config``; empty if it is legal.
        """

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        """``start``, with all that is known of the initial configurations."""
        self.start(problem, shape, seed, [(c, e.loss) for c, e in initial], budget)  # type: ignore[misc]

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        """Receive the result of the latest suggestion with all outputs; by default calls ``observe``."""
        self.observe(config, evaluation.loss, violations)  # type: ignore[arg-type]

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:  # noqa: B027 - most need nothing
        """The latest suggestion is illegal, and the convention keeps that from the method; it may note what not to repeat."""

    def stamp(self) -> dict[str, Any]:
        """Versions behind a history."""
        return {"revision": self.revision, **{p: version(p) for p in ("mipcash", *self.packages)}}
