"""Functions of the mixed-integer and categorical sets of rbfopt, implemented from their definitions; two have rules.

Costa and Nannicini, "RBFOpt: an open-source library for black-box optimization with costly function evaluations", and
its test set. It has Branin and Hartman 6 (Dixon and Szego) with a categorical choice of the periodic term or of the
weights. It also has nvs09 (MINLPLib) with a choice of the transformation, and a function of Schoen's class with
integers. Schoen's points are drawn here by a seed; the other functions have the published constants, and Branin and
Hartman the published optima. (rbfopt states -53.18 for nvs09 with categories; enumeration finds -55.35, at 8
throughout.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described

# -- Branin with a categorical periodic term ------------------------------------------------------------------------------------

WAVES: dict[str, Callable[[float], float]] = {
    "cos": math.cos,
    "sin": math.sin,
    "cos squared": lambda v: math.cos(v + math.pi / 4) ** 2,
    "sin squared": lambda v: math.sin(v + math.pi / 4) ** 2,
}


def branin_space() -> mc.Space:
    s = mc.Space("branin-cat")
    s.real("x1", -5, 10)
    s.real("x2", 0, 15)
    s.categorical("wave", list(WAVES))
    return s


def branin(config: Config) -> float:
    x, y = config["x1"], config["x2"]
    bend = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * WAVES[config["wave"]](x) + 10


# -- Hartman 6 with categorical weights ------------------------------------------------------------------------------------------

RATES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
PLACES = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
WEIGHTS = {
    "a": (1.0, 1.2, 3.0, 3.2),
    "b": (3.2, 2.5, 0.2, 0.7),
    "c": (2.2, 1.2, 3.1, 1.7),
    "d": (0.1, 2.1, 0.3, 3.7),
    "e": (1.8, 0.4, 3.1, 2.4),
}
REALS = [f"x{j}" for j in range(1, 7)]
SUM, PAIR, SHARE = 1.7, 0.08, 0.45


def hartman_space(rules: bool) -> mc.Space:
    s = mc.Space("hartman6-cat")
    weights = s.categorical("weights", list(WEIGHTS))
    x = [s.real(name, 0, 1) for name in REALS]
    if rules:
        s.rule("sum", sum(x) <= SUM)
        s.rule("bilinear: x1 x3", x[0] * x[2] <= PAIR)
        s.rule("x6 where the weights are a or c", x[5] <= SHARE, when=weights.is_("a", "c"))
        s.rule("x4 above x5 elsewhere", x[3] >= x[4], when=weights.is_("b", "d", "e"))
    return s


def hartman_of(x: np.ndarray, weights: str) -> float:
    return -float(np.array(WEIGHTS[weights]) @ np.exp(-(RATES * (x - PLACES) ** 2).sum(axis=1)))


def hartman(config: Config) -> float:
    return hartman_of(np.array([config[name] for name in REALS]), config["weights"])


# -- nvs09 with a categorical transformation ------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "identity": abs,
    "reciprocal": lambda v: 1 / (v - 0.9),
    "log": math.log,
    "shift": lambda v: v - 2,
}
INTEGERS = [f"i{k}" for k in range(1, 11)]
TOTAL, PRODUCT = 66, 38


def nvs09_space(rules: bool) -> mc.Space:
    s = mc.Space("nvs09-cat")
    x = [s.integer(name, 3, 9) for name in INTEGERS]
    transform = s.categorical("transform", list(TRANSFORMS))
    if rules:
        s.rule("total", sum(x) <= TOTAL)
        for k in range(0, 10, 2):
            s.rule(f"bilinear: product {k + 1}", x[k] * x[k + 1] <= PRODUCT)
            s.rule(f"reciprocal: pair {k + 1} apart", x[k] - x[k + 1] >= 1, when=transform["reciprocal"])
    return s


def nvs09(config: Config) -> float:
    g, x = TRANSFORMS[config["transform"]], [config[name] for name in INTEGERS]
    return sum(g(v - 2) ** 2 + g(10 - v) ** 2 for v in x) - math.prod(x) ** 0.2


# -- Schoen's class with integers --------------------------------------------------------------------------------------------------

POINTS, MINIMA = 50, 3
SEED = 21


@cache
def schoen_points() -> tuple[np.ndarray, np.ndarray]:
    """Return stationary points, shape (50, 6), and values; three are global minima at -1000 with legal integers."""
    rng = np.random.default_rng(SEED)
    z = rng.uniform(size=(POINTS, 6))
    f = np.concatenate([np.full(MINIMA, -1000.0), rng.uniform(0, 1000, POINTS - MINIMA)])
    z[:MINIMA, :4] = np.round(10 * z[:MINIMA, :4]) / 10
    return z, f


def schoen_space() -> mc.Space:
    s = mc.Space("schoen-int")
    for k in range(1, 5):
        s.integer(f"i{k}", 0, 10)
    s.real("x5", 0, 10)
    s.real("x6", 0, 10)
    return s


def schoen(config: Config) -> float:
    """Return sum_i f_i prod_{j != i} d_j / sum_i prod_{j != i} d_j, a mean weighted by 1 / d_i, d squared distances."""
    z, f = schoen_points()
    x = np.array([*(config[f"i{k}"] for k in range(1, 5)), config["x5"], config["x6"]]) / 10
    d = np.maximum(((x - z) ** 2).sum(axis=1), 1e-300)
    weights = d.min() / d
    return float(weights @ f / weights.sum())


PROBLEMS = (
    described("branin-cat", branin_space, branin),
    described("hartman6-cat", partial(hartman_space, False), hartman),
    described("hartman6-rules", partial(hartman_space, True), hartman),
    described("nvs09-cat", partial(nvs09_space, False), nvs09),
    described("nvs09-rules", partial(nvs09_space, True), nvs09),
    described("schoen-int", schoen_space, schoen),
)
