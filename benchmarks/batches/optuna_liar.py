"""Optuna's TPE in batches: ``constant_liar=True`` counts running trials among the bad ones."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.trial import TrialState, create_trial

from benchmarks.batches.methods import Told
from benchmarks.peers.method import Initial
from benchmarks.peers.methods.optuna_samplers import TPEMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape


class TPEBatches(TPEMethod):
    """What is to be evaluated, mended where it had to be, is a running trial until the batch is told."""

    def sampler(self, seed: int, initial: int) -> optuna.samplers.BaseSampler:
        return optuna.samplers.TPESampler(
            n_startup_trials=initial, multivariate=True, group=True, seed=seed, constant_liar=True
        )

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        super().start(problem, shape, seed, initial, budget)
        self.running: list[int] = []

    def expect(self, config: dict[str, Any]) -> None:
        params, told = self._told(config)
        self.study.add_trial(create_trial(params=params, distributions=told, state=TrialState.RUNNING))
        self.running.append(self.study.trials[-1].number)

    def tell(self, results: Told) -> None:
        for number in self.running:
            self.study.tell(number, state=TrialState.FAIL)
        self.running = []
        for config, loss in results:
            self.observe(config, loss, {})
