"""SMAC3's facade for hyperparameter optimization: a random forest, expected improvement, local and random search.

The space is passed with its conditions. Rules over up to four discrete parameters are passed as forbidden clauses if
they can be listed (a sum over many parameters, a rule over reals or auxiliaries cannot).
"""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar
from weakref import finalize

import ConfigSpace as cs
import joblib
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import TrialInfo, TrialValue

from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Dimension, Shape

CLAUSES = 100
"""A rule that needs more clauses than this is not passed, as ConfigSpace checks each clause at each sample and neighbour."""
ACCEPTED = 0.2
"""Clauses are passed while at least this share of uniform draws satisfies them, as ConfigSpace samples by rejection."""


SEED = 0
"""The only seed for which SMAC keeps trials of a deterministic function; it adopts the seed of the first reported trial."""


class SmacMethod(Method):
    """Method described in the module's docstring.

    Attributes:
        challengers: random configurations scored per suggestion, beside the local search; the facade's 10,000 take seconds.
        retrain: the forest is trained after every fourth evaluation; the facade's default is every eighth.
    """

    packages: ClassVar[tuple[str, ...]] = ("smac", "ConfigSpace")
    challengers: ClassVar[int] = 1000
    retrain: ClassVar[int] = 4

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        logging.getLogger("smac").setLevel(logging.ERROR)
        self.shape = shape
        self.space, self.told = configuration_space(shape, seed, initial[0][0])
        folder = Path(tempfile.mkdtemp(prefix="smac-"))
        finalize(self, shutil.rmtree, folder, True)
        scenario = Scenario(self.space, output_directory=folder, deterministic=True, n_trials=10 * budget, seed=seed + 1)
        try:
            self.smac = self._facade(scenario, [])
        except RuntimeError:  # SMAC adds one design point, and its own clauses may forbid every point
            self.smac = self._facade(scenario, [self.space.get_default_configuration()])
        for config, loss in initial:
            self._tell(config, loss)

    def _facade(self, scenario: Scenario, design: list[cs.Configuration]) -> HyperparameterOptimizationFacade:
        """Return SMAC with an initial design; reported trials are the rest of it."""
        facade = HyperparameterOptimizationFacade
        return facade(
            scenario,
            lambda config, seed: 0.0,
            initial_design=facade.get_initial_design(scenario, n_configs=0, additional_configs=design),
            acquisition_maximizer=facade.get_acquisition_maximizer(scenario, challengers=self.challengers),
            config_selector=facade.get_config_selector(scenario, retrain_after=self.retrain),
            logging_level=logging.ERROR,
            overwrite=True,
        )

    def suggest(self) -> dict[str, Any]:
        with joblib.parallel_config(backend="sequential"):  # the forest would use all cores and wait for them
            self.asked = self.smac.ask()
        values = dict(self.asked.config)
        return self.shape.active({n: _value(self.shape.by_name[n], v) for n, v in values.items() if n in self.shape.by_name})

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        # The suggestion gets the loss of the configuration evaluated in its place, which is reported too if it differs.
        self.smac.tell(self.asked, TrialValue(cost=float(loss)), save=False)
        self._tell(config, loss)

    def _tell(self, config: dict[str, Any], loss: float) -> None:
        raw = {n: _raw(self.shape.by_name[n], v) for n, v in config.items()}
        try:
            made = cs.Configuration(self.space, values=raw)
        except cs.ForbiddenValueError:
            return  # clauses never suggest a forbidden point, but rounding may make a repaired one forbidden
        if made not in self.smac.runhistory.get_configs():
            self.smac.tell(TrialInfo(made, seed=SEED), TrialValue(cost=float(loss)), save=False)


def hyperparameter(d: Dimension, default: Any) -> Any:
    """Return a hyperparameter. Ordinals and categories are represented by their index."""
    if d.kind == "real":
        return cs.UniformFloatHyperparameter(d.name, d.low, d.high, default, log=d.log)
    raw = _raw(d, default)
    if d.kind == "integer" and d.step == 1:
        return cs.UniformIntegerHyperparameter(d.name, int(d.low), int(d.high), raw, log=d.log)
    if d.kind == "categorical":
        return cs.CategoricalHyperparameter(d.name, list(range(len(d.values))), default_value=raw)
    return cs.UniformIntegerHyperparameter(d.name, 0, len(d.choices) - 1, raw)


def _natural(d: Dimension) -> bool:
    return d.kind == "real" or (d.kind == "integer" and d.step == 1)


def _value(d: Dimension, raw: Any) -> Any:
    if _natural(d):
        return float(raw) if d.kind == "real" else int(raw)
    return d.choices[int(raw)]


def _raw(d: Dimension, value: Any) -> Any:
    return value if _natural(d) else d.index(value)


def configuration_space(shape: Shape, seed: int, default: dict[str, Any]) -> tuple[cs.ConfigurationSpace, list[str]]:
    """Return the space with conditions and forbidden clauses, and the names of the rules among the clauses.

    Args:
        default: a legal configuration; ConfigSpace requires that the default values satisfy the clauses.
    """
    space = cs.ConfigurationSpace(seed=seed)
    values = shape.full(default)
    made = {d.name: hyperparameter(d, values[d.name]) for d in shape.dimensions}
    space.add(list(made.values()))
    for d in shape.dimensions:
        conditions = [
            cs.InCondition(made[d.name], made[parent], [_raw(shape.by_name[parent], v) for v in values])
            for parent, values in d.parents
        ]
        if conditions:
            space.add(conditions[0] if len(conditions) == 1 else cs.AndConjunction(*conditions))
    told = []
    passed = 1.0
    for name, bad in shape.forbidden():
        clauses = _clauses(shape, made, bad)
        share = len(bad) / math.prod(len(shape.by_name[n].choices) for n in bad[0]) if bad else 0.0
        if len(clauses) > CLAUSES or passed * (1 - share) < ACCEPTED:
            continue
        passed *= 1 - share
        space.add(clauses)
        told.append(name)
    return space, told


def _clauses(shape: Shape, made: dict[str, Any], bad: list[dict[str, Any]]) -> list[Any]:
    """Return forbidden clauses, merging combinations that differ in the last parameter only."""
    found = []
    for key, group in groupby(bad, key=lambda b: list(b.items())[:-1]):
        members = list(group)
        last = list(members[0])[-1]
        values = [_raw(shape.by_name[last], b[last]) for b in members]
        parts = [cs.ForbiddenEqualsClause(made[n], _raw(shape.by_name[n], v)) for n, v in key]
        parts.append(cs.ForbiddenInClause(made[last], values))
        found.append(parts[0] if len(parts) == 1 else cs.ForbiddenAndConjunction(*parts))
    return found
