"""Baselines that know the rules and have no model: legal samples, and mutations of the best configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Dimension, Shape

PARENTS = 5
TRIES = 300
WIDTH = 0.15
"""Standard deviation of a small change of a number, on the unit scale."""


class RandomMethod(Method):
    """Legal samples, drawn together for a good spread."""

    legal: ClassVar[bool] = True
    takes_limits: ClassVar[bool] = True

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        self.left = shape.space.sample(max(0, budget - len(initial)), rng)

    def suggest(self) -> dict[str, Any]:
        return self.left.pop()

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        pass


class MutationMethod(Method):
    """One or two changes of one of the five best configurations. Illegal and known results are redrawn."""

    legal: ClassVar[bool] = True

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        self.shape, self.rng = shape, np.random.default_rng(np.random.SeedSequence([seed, 2]))
        self.seen = [(dict(c), y) for c, y in initial]

    def suggest(self) -> dict[str, Any]:
        best = sorted(self.seen, key=lambda s: s[1])[:PARENTS]
        weights = 0.5 ** np.arange(len(best))
        known = [c for c, _ in self.seen]
        for attempt in range(TRIES):
            parent = best[int(self.rng.choice(len(best), p=weights / weights.sum()))][0]
            # if rules couple several parameters, all single changes may be illegal, so the number of changes grows
            changes = 1 + int(self.rng.integers(2)) + attempt // 60
            config = self._mutated(parent, changes)
            if config not in known and self.shape.space.is_legal(config):
                return config
        return self.shape.space.sample(1, self.rng)[0]

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.seen.append((config, loss))

    def _mutated(self, parent: dict[str, Any], changes: int) -> dict[str, Any]:
        values = {d.name: parent.get(d.name, d.draw(self.rng)) for d in self.shape.dimensions}
        names = list(parent)
        for name in self.rng.choice(len(names), size=min(changes, len(names)), replace=False):
            d = self.shape.by_name[names[name]]
            values[d.name] = self._changed(d, values[d.name])
        return self.shape.active(values)

    def _changed(self, d: Dimension, value: Any) -> Any:
        """Return another category, a small step of an ordered value, or sometimes a uniform draw."""
        if d.kind == "categorical" or self.rng.uniform() < 0.3:
            others = [d.draw(self.rng) for _ in range(8)]
            return next((v for v in others if v != value), value)
        step = self.rng.normal() * WIDTH
        if d.kind == "real":
            return d.decode(float(np.clip(d.code(value) + step, 0.0, 1.0)))
        at, size = d.index(value), len(d.choices)
        move = max(1, round(abs(step) * (size - 1))) * (1 if step > 0 else -1)
        return d.choices[min(size - 1, max(0, at + move))]
