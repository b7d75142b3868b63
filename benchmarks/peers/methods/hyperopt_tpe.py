"""Hyperopt's TPE, one trial at a time.

Hyperopt does not support rules. An inactive parameter is left out of its trial, so its density is learned from the
other trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from hyperopt import STATUS_OK, Trials, hp, tpe
from hyperopt.base import JOB_STATE_DONE, Domain, spec_from_misc

from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Dimension, Shape


def expression(d: Dimension) -> Any:
    """Return the prior of a dimension. Ordinals and stepped integers are represented by their index."""
    if d.kind == "real":
        return hp.loguniform(d.name, np.log(d.low), np.log(d.high)) if d.log else hp.uniform(d.name, d.low, d.high)
    if d.kind == "categorical":
        return hp.choice(d.name, list(range(len(d.values))))
    if d.kind == "integer" and d.log and d.step == 1:
        return hp.qloguniform(d.name, np.log(d.low - 0.499), np.log(d.high + 0.499), 1)
    return hp.quniform(d.name, -0.499, len(d.choices) - 0.501, 1)


class HyperoptMethod(Method):
    """TPE with its defaults."""

    packages: ClassVar[tuple[str, ...]] = ("hyperopt",)

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        self.shape, self.rng = shape, np.random.default_rng(np.random.SeedSequence([seed, 3]))
        self.domain = Domain(lambda _: 0.0, {d.name: expression(d) for d in shape.dimensions})
        self.trials = Trials()
        self.startup = len(initial)
        for config, loss in initial:
            self._add(config, loss)

    def suggest(self) -> dict[str, Any]:
        ids = self.trials.new_trial_ids(1)
        (document,) = tpe.suggest(
            ids, self.domain, self.trials, int(self.rng.integers(2**31)), n_startup_jobs=self.startup, verbose=False
        )
        raw = spec_from_misc(document["misc"])
        return self.shape.active({d.name: _value(d, raw[d.name]) for d in self.shape.dimensions})

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self._add(config, loss)

    def _add(self, config: dict[str, Any], loss: float) -> None:
        (tid,) = self.trials.new_trial_ids(1)
        names = [d.name for d in self.shape.dimensions]
        values = {n: [_raw(self.shape.by_name[n], config[n])] if n in config else [] for n in names}
        misc = {
            "tid": tid,
            "cmd": ("domain_attachment", "FMinIter_Domain"),
            "workdir": None,
            "idxs": {n: [tid] if values[n] else [] for n in names},
            "vals": values,
        }
        (document,) = self.trials.new_trial_docs([tid], [None], [{"loss": float(loss), "status": STATUS_OK}], [misc])
        document["state"] = JOB_STATE_DONE
        self.trials.insert_trial_docs([document])
        self.trials.refresh()


def _natural(d: Dimension) -> bool:
    """Return True if hyperopt samples the value itself, not its index among the choices."""
    return d.kind == "real" or (d.kind == "integer" and d.log and d.step == 1)


def _value(d: Dimension, raw: float) -> Any:
    if d.kind == "real":
        return min(d.high, max(d.low, float(raw)))
    if _natural(d):
        return int(min(d.high, max(d.low, round(raw))))
    return d.choices[min(len(d.choices) - 1, max(0, round(raw)))]


def _raw(d: Dimension, value: Any) -> float | int:
    if _natural(d):
        return float(value)
    return d.index(value) if d.kind == "categorical" else float(d.index(value))
