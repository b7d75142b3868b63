"""Methods of the peers that know what is pending: each suggestion of a batch is made beside those before it.

hybrid ...   our own: a study that is asked until the batch is full
optuna-tpe   TPE with ``constant_liar=True``; what is to be evaluated stands in its study as a running trial
botorch      q-log expected improvement with ``X_pending``, one point after the other (its ``sequential=True``)
random       knows nothing, in a batch or without
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from benchmarks.peers.loading import loaded
from benchmarks.peers.method import Initial
from benchmarks.peers.methods.ours import OurMethod
from benchmarks.peers.methods.simple import RandomMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.optimizers.registry import optimizer_names

Violations = Mapping[str, float]
Told = Sequence[tuple[dict[str, Any], float]]
"""What was evaluated and its losses, in the order of the suggestions."""


class BatchMethod(Protocol):
    """``start``; then, batch by batch: ``suggest`` and ``expect`` in turn, and ``tell`` once."""

    name: str
    legal: bool
    own_design: bool
    design: int

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None: ...

    def suggest(self) -> dict[str, Any]: ...

    def expect(self, config: dict[str, Any]) -> None:
        """The latest suggestion is being evaluated, or in its place the nearest legal configuration."""

    def tell(self, results: Told) -> None:
        """What came of the batch."""

    def stamp(self) -> dict[str, Any]: ...


class OurBatches(OurMethod):
    """A study that is asked several times before it is told."""

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        super().start(problem, shape, seed, initial, budget)
        self.asked: list[Any] = []

    def expect(self, config: dict[str, Any]) -> None:
        self.asked.append(self.trial)

    def tell(self, results: Told) -> None:
        for trial, (_, loss) in zip(self.asked, results, strict=True):
            self.study.tell(trial, loss)
        self.asked = []


class RandomBatches(RandomMethod):
    """As it is."""

    def expect(self, config: dict[str, Any]) -> None:
        pass

    def tell(self, results: Told) -> None:
        pass


PEERS = {
    "random": ("benchmarks.batches.methods", "RandomBatches"),
    "optuna-tpe": ("benchmarks.batches.optuna_liar", "TPEBatches"),
    "botorch": ("benchmarks.batches.botorch_pending", "BotorchBatches"),
}


def make_batch_method(name: str) -> Any:
    """A fresh method by name.

    Raises:
        MissingPackageError: its library is not installed.
        ValueError: there is none that takes batches.
    """
    if name not in PEERS:
        if name.partition(":")[0] in optimizer_names():
            return OurBatches(name)
        raise ValueError(f"there is no method {name!r} for batches; there are {', '.join(PEERS)} and our own")
    return loaded(name, *PEERS[name])
