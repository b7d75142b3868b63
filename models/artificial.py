"""The artificial objective of pipelines: four modules, 37 algorithms and 92 hyperparameters, and nothing to train.

Appendix B of Ram et al., "Solving constrained CASH problems with ADMM" (ram2020); appendix 15 of Liu et al., "An ADMM based
framework for AutoML pipeline configuration" (liu2020). It has what makes the choice of a pipeline hard, and costs microseconds,
so that what is compared is the optimizers and their own cost.

Notation, for the K_i algorithms j of N modules i, in the order in which they run
    theta_ij    the hyperparameters of the algorithm that is chosen, each on [0, 1]
    w_ij        a weight per hyperparameter, N(0, 1); s_ij: a seed; both follow from the instance and (i, j) alone
    v_i         |w_ij' theta_ij / 1' theta_ij|, a standard deviation
    e_ij (n,)   n = 10 draws of N(0, 1) from the seed s_ij
    f_i         max over m of |f_{i-1} + v_i e_ijm|,   f_0 = 0;   f_N is to be minimised

What the text leaves open, and how it is read here:

* The space is Table A2 of liu2020, which counts continuous (c) and discrete (d) hyperparameters. It has eight scalers with seven
  counts and seven selectors with six names. If the two missing ones have no hyperparameters, there are the 92 of the text. It
  gives no ranges: a discrete one has about as many levels as auto-sklearn gives the hyperparameter that it counts.
* theta is on the unit scale, where no range weighs more than another.
* An algorithm without hyperparameters gives 0 / 0; here v = |w| with one weight (v = 0 would make it the best of its module).
* At theta = 0 it is 0 / 0 again; here the limit along the diagonal, the absolute mean of the weights.

The five properties that the text claims hold, with two exceptions. Small changes of theta make small changes of the value
(the fourth), but not at theta = 0, where the quotient depends on the direction. And an algorithm with one hyperparameter,
w theta / theta, does not depend on it at all (but at 0). Where an algorithm of every module has weights of both signs, v = 0
is within reach of continuous theta, and 0 is the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.models._options import flag, whole

DEFAULTS = {"budget": 60}
DRAWS = 10
"""n of the text, "say 10"."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """The hyperparameters of an algorithm: how many are continuous, and the levels of each discrete one."""

    continuous: int = 0
    levels: tuple[int, ...] = ()

    @property
    def domains(self) -> dict[str, mc.Real | mc.Integer]:
        """c1, c2 ... and d1, d2 ...; a discrete one is an integer from 0."""
        reals = {f"c{k + 1}": mc.Real(0.0, 1.0) for k in range(self.continuous)}
        return reals | {f"d{k + 1}": mc.Integer(0, n - 1) for k, n in enumerate(self.levels)}


NONE = Counts()
MODULES: dict[str, dict[str, Counts]] = {
    "scaler": {
        "none": NONE,
        "normalizer": NONE,
        "quantile": Counts(0, (1991, 2)),
        "minmax": NONE,
        "standard": NONE,
        "robust": Counts(2, (2, 2)),
        "binarizer": NONE,
        "bins": Counts(0, (9, 3)),
    },
    "transformer": {
        "none": NONE,
        "sparse_projection": Counts(1, (99,)),
        "gaussian_projection": Counts(0, (99,)),
        "rbf_sampler": Counts(1, (9951,)),
        "nystroem": Counts(2, (9951, 4, 4)),
        "truncated_svd": Counts(0, (247, 2)),
        "kernel_pca": Counts(2, (1991, 4, 4, 2)),
        "fast_ica": Counts(0, (1991, 2, 3, 2, 10)),
        "factor_analysis": Counts(0, (1991, 2, 10)),
        "pca": Counts(1, (2,)),
        "polynomial": Counts(0, (2, 2, 2)),
    },
    "selector": {
        "none": NONE,
        "percentile": Counts(0, (99,)),
        "fpr": Counts(1),
        "fdr": Counts(1),
        "fwe": Counts(1),
        "variance_threshold": Counts(1),
        "unnamed": NONE,
    },
    "estimator": {
        "gaussian_nb": NONE,
        "qda": Counts(1),
        "gradient_boosting": Counts(3, (451, 10, 19, 20, 1023, 2)),
        "knn": Counts(0, (100, 2, 2)),
        "random_forest": Counts(1, (451, 2, 19, 20, 2)),
        "extra_trees": Counts(1, (451, 2, 19, 20, 2)),
        "adaboost": Counts(1, (451, 2)),
        "decision_tree": Counts(3, (2, 19, 20)),
        "gaussian_process": Counts(0, (11, 10)),
        "logistic_regression": Counts(2, (2, 2, 2)),
        "mlp": Counts(2, (3, 3, 4, 2, 10)),
    },
}
"""Module -> algorithm -> its hyperparameters: Table A2 of liu2020."""


@dataclass(frozen=True)
class Fixed:
    """Constants of an algorithm: weights w_ij, (d,) or (1,) if it has no hyperparameters, and draws e_ij, (n,)."""

    weights: Vector
    draws: Vector

    def deviation(self, theta: Vector) -> float:
        """v at theta (d,) on the unit scale."""
        if not len(theta):
            return float(abs(self.weights[0]))
        total = float(theta.sum())
        return float(abs(self.weights @ theta / total if total > 0.0 else self.weights.mean()))

    def output(self, value: float, theta: Vector) -> float:
        """f_i after f_{i-1} = ``value``."""
        return float(np.max(np.abs(value + self.deviation(theta) * self.draws)))


class Objective:
    """f_N of one instance.

    Args:
        instance: from which all weights and seeds follow.
        output: further functions of the same instance, as black-box limits need them; 0: the objective.
    """

    def __init__(self, instance: int = 0, output: int = 0) -> None:
        self.instance = instance
        self.fixed = {
            (module, algorithm): _fixed((instance, output, i, j), max(1, len(counts.domains)))
            for i, (module, algorithms) in enumerate(MODULES.items())
            for j, (algorithm, counts) in enumerate(algorithms.items())
        }

    def __call__(self, config: Mapping[str, Any]) -> float:
        """The value of a configuration; its modules run in its ``order``, if it has one, and the estimator last."""
        return self.outputs(config)[-1]

    def outputs(self, config: Mapping[str, Any]) -> list[float]:
        """f_1 ... f_N."""
        *others, last = MODULES
        value, found = 0.0, list[float]()
        for module in (*config.get("order", others), last):
            algorithm = config[module]
            value = self.fixed[module, algorithm].output(value, unit(config, module))
            found.append(value)
        return found


def unit(config: Mapping[str, Any], module: str) -> Vector:
    """theta of the algorithm that a configuration chooses for a module: (d,) in [0, 1]."""
    algorithm = config[module]
    domains = MODULES[module][algorithm].domains
    values = (config[f"{module}.{algorithm}.{name}"] / domain.high for name, domain in domains.items())
    return np.fromiter(values, np.float64, len(domains))


def _fixed(key: tuple[int, ...], n_weights: int) -> Fixed:
    rng = np.random.default_rng(key)
    weights, seed = rng.normal(size=n_weights), int(rng.integers(2**32))
    return Fixed(weights, np.random.default_rng(seed).normal(size=DRAWS))


def build(
    *, instance: int | str = 0, limits: int | str = 0, order: bool | str = False
) -> tuple[mc.Space, Callable[[Mapping[str, Any]], Any]]:
    """The space, and the objective of one instance.

    Args:
        instance: the number from which weights and seeds follow; every one is another problem in the same space.
        limits: M further outputs g1 ... gM beside the loss, for limits such as ``--limit g1=1.5``: draws of the same function with
            weights of their own. The papers limit what real pipelines give, which this objective lacks; like theirs they are
            positive.
        order: whether the order of the modules before the estimator is chosen too (appendix A of ram2020).
    """
    space = mc.Space("artificial")
    modules = [
        space.module(name, {algorithm: counts.domains for algorithm, counts in algorithms.items()})
        for name, algorithms in MODULES.items()
    ]
    if flag("order", order):
        space.ordering("order", modules[:-1])
    number = whole("instance", instance)
    objective = Objective(number)
    further = {f"g{m}": Objective(number, m) for m in range(1, whole("limits", limits) + 1)}
    if not further:
        return space, objective

    def outputs(config: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": objective(config)} | {name: g(config) for name, g in further.items()}

    return space, outputs


space, objective = build()
