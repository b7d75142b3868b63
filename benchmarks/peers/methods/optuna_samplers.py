"""Optuna: TPE (multivariate, grouped by condition) and the Gaussian process sampler.

Both receive the rules as constraints, by the violations of each evaluated configuration. Every evaluated configuration
is added to the study as a separate finished trial, so that a repaired one is recorded as evaluated. The trial that
suggested it is closed as failed, which the samplers ignore. The Gaussian process also gets an illegal suggestion itself, as a
violated trial with the loss of the repaired one: its acquisition is deterministic, and without it it suggests the same point again.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Dimension, Shape

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="optuna")


def distribution(d: Dimension) -> BaseDistribution:
    """Return a distribution. Ordinals and categories are represented by their index, as Optuna takes no tuples."""
    if d.kind == "real":
        return FloatDistribution(d.low, d.high, log=d.log)
    if d.kind == "integer":
        return IntDistribution(int(d.low), int(d.high), log=d.log, step=d.step)
    if d.kind == "ordinal":
        return IntDistribution(0, len(d.values) - 1)
    return CategoricalDistribution(list(range(len(d.values))))


class _Optuna(Method):
    packages: ClassVar[tuple[str, ...]] = ("optuna",)
    flat: ClassVar[bool] = False
    """True to include every parameter in every trial, at the middle of its range if inactive."""

    def sampler(self, seed: int, initial: int) -> optuna.samplers.BaseSampler:
        raise NotImplementedError

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        self.open(shape, seed, len(initial))
        for config, loss in initial:
            self.observe(config, loss, {})

    def open(self, shape: Shape, seed: int, initial: int) -> None:
        """Create a study without trials."""
        self.shape = shape
        self.distributions = {d.name: distribution(d) for d in shape.dimensions}
        self.study = optuna.create_study(direction="minimize", sampler=self.sampler(seed, initial))

    def suggest(self) -> dict[str, Any]:
        trial = self.study.ask(self.distributions if self.flat else None)
        config: dict[str, Any] = {}
        for d in self.shape.dimensions:
            if self.flat or self.shape.exists(d, config):
                given = trial.params[d.name] if self.flat else self._ask(trial, d)
                if self.shape.exists(d, config):
                    config[d.name] = d.values[given] if d.listed else given
        self.study.tell(trial, state=TrialState.FAIL)
        return config

    def _ask(self, trial: optuna.Trial, d: Dimension) -> Any:
        if d.kind == "real":
            return trial.suggest_float(d.name, d.low, d.high, log=d.log)
        if d.kind == "integer":
            return trial.suggest_int(d.name, int(d.low), int(d.high), log=d.log, step=d.step)
        if d.kind == "ordinal":
            return trial.suggest_int(d.name, 0, len(d.values) - 1)
        return trial.suggest_categorical(d.name, list(range(len(d.values))))

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        rules = {"rules": sum(violations.values()) if violations else -1e-3}
        self.add(config, loss, rules if self.shape.rules else None)

    def _told(self, config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
        """Return parameters and distributions of a configuration for the library."""
        values = self.shape.full(config) if self.flat else config
        params = {n: self.shape.by_name[n].index(v) if self.shape.by_name[n].listed else v for n, v in values.items()}
        return params, {n: self.distributions[n] for n in params}

    def add(self, config: dict[str, Any], loss: float, constraints: dict[str, float] | None) -> None:
        """Add a finished trial. Positive constraints are violated."""
        params, told = self._told(config)
        self.study.add_trial(create_trial(params=params, distributions=told, value=loss, constraints=constraints))


class TPEMethod(_Optuna):
    """TPE. Conditional parameters are suggested only if active; ``group`` models each set that occurs together."""

    def sampler(self, seed: int, initial: int) -> optuna.samplers.BaseSampler:
        return optuna.samplers.TPESampler(n_startup_trials=initial, multivariate=True, group=True, seed=seed)


class GPMethod(_Optuna):
    """Gaussian processes for the exact loss and, after violations of rules, for the sum of the violations.

    The sampler would draw conditional parameters at random without a model, so it gets all parameters in every trial.
    """

    packages: ClassVar[tuple[str, ...]] = ("optuna", "torch")
    flat: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    def repaired(self, config: dict[str, Any], violations: Mapping[str, float], evaluation: Evaluation) -> None:
        if evaluation.loss is not None:
            self.add(config, evaluation.loss, {"rules": sum(violations.values())})

    def sampler(self, seed: int, initial: int) -> optuna.samplers.BaseSampler:
        return optuna.samplers.GPSampler(
            seed=seed, n_startup_trials=initial, deterministic_objective=True, warn_independent_sampling=False
        )
