"""Protocol of a method: ``start``, then ``suggest`` and ``observe`` in turn."""

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
"""Number of initial configurations of a run."""


class MissingPackageError(Exception):
    """Error raised if the library of a method is not installed."""


class Method(ABC):
    """Method that proposes configurations for one run.

    Attributes:
        name: as in results.
        packages: distributions that it needs.
        legal: it never suggests an illegal configuration, so the conventions make no difference.
        own_design: it makes its own initial design; without one it gets legal samples.
        design: size of the initial design.
        takes_limits: it runs on problems with outcome constraints: it overrides ``begin`` and ``learn``, or ignores outcomes.
        revision: version of the adapter, raised when it changes, to distinguish old from new histories.
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
            initial: evaluated legal configurations (empty with ``own_design``).
            budget: evaluations in total, the initial ones included.
        """

    @abstractmethod
    def suggest(self) -> dict[str, Any]:
        """Return the next configuration (active parameters only). It may be illegal unless ``legal``."""

    @abstractmethod
    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        """Receive the result of the latest suggestion.

        Args:
            config: the evaluated suggestion, or its nearest legal configuration in the repair convention.
            loss: its loss, or the penalty if it is illegal.
            violations: rule -> violation by ``config``; empty if it is legal.
        """

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        """Begin a run with all outputs of the initial configurations; by default calls ``start``."""
        self.start(problem, shape, seed, [(c, e.loss) for c, e in initial], budget)  # type: ignore[misc]

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        """Receive the result of the latest suggestion with all outputs; by default calls ``observe``."""
        self.observe(config, evaluation.loss, violations)  # type: ignore[arg-type]

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:  # noqa: B027 - most need nothing
        """Note an illegal suggestion that the convention does not report, so that it is not repeated."""

    def repaired(  # noqa: B027 - most need nothing
        self, config: dict[str, Any], violations: Mapping[str, float], evaluation: Evaluation
    ) -> None:
        """Note an illegal suggestion of which the nearest legal configuration was evaluated and learned."""

    def stamp(self) -> dict[str, Any]:
        """Return the versions that belong to a history."""
        return {"revision": self.revision, **{p: version(p) for p in ("mipcash", *self.packages)}}
