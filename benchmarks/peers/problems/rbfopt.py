"""Functions of the mixed-integer and categorical sets of rbfopt, written anew from their definitions; two with rules added.

Costa and Nannicini, "RBFOpt: an open-source library for black-box optimization with costly function evaluations", and its
test set: Branin and Hartman 6 (Dixon and Szego) with a categorical choice of the periodic term or of the weights, nvs09
(MINLPLib) with a choice of the transformation, and a function of Schoen's class with integers. Schoen's points are drawn
here by a seed; the others have the published constants, and Branin and Hartman the published optima. (rbfopt states -53.18
for nvs09 with categories; enumeration finds -55.35, at 8 throughout.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.optimize import minimize

import mipcash as mc
from benchmarks.peers.problem import Config, Problem
from benchmarks.peers.spatial import minimum, smooth

SOURCE = "test set of rbfopt (Costa and Nannicini)"

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


def certify_hartman(rules: bool, starts: int = 60) -> tuple[float, dict[str, Any]]:
    """Each category, SLSQP from ``starts`` points."""
    rng, best = np.random.default_rng(0), (math.inf, {})
    for name in WEIGHTS:
        limits: list[dict[str, Any]] = []
        if rules:
            limits = [
                {"type": "ineq", "fun": lambda x: SUM - x.sum()},
                {"type": "ineq", "fun": lambda x: PAIR - x[0] * x[2]},
            ]
            other = (lambda x: SHARE - x[5]) if name in "ac" else (lambda x: x[3] - x[4])
            limits.append({"type": "ineq", "fun": other})
        for start in rng.uniform(0, 0.6, (starts, 6)):
            found = minimize(hartman_of, start, (name,), "SLSQP", bounds=[(0, 1)] * 6, constraints=limits, tol=1e-10)
            if found.fun < best[0] and all(c["fun"](found.x) >= -1e-7 for c in limits):
                config = {"weights": name, **dict(zip(REALS, map(float, found.x), strict=True))}
                best = (float(found.fun), config)
    return best


def prove_hartman(rules: bool, target: float) -> float:
    """A bound below every loss, at most ``target``: branch and bound over the reals for each category.

    Raises:
        ModuleNotFoundError: gurobipy is not installed.
    """

    def loss(name: str, model: Any) -> tuple[Any, Any]:
        x, total = model.addMVar(len(REALS), lb=0.0, ub=1.0), 0.0
        if rules:
            model.addConstr(x.sum() <= SUM)
            model.addConstr(x[0] * x[2] <= PAIR)
            model.addConstr(x[5] <= SHARE if name in "ac" else x[3] >= x[4])
        for weight, rates, places in zip(WEIGHTS[name], RATES, PLACES, strict=True):
            exponent = -(rates @ ((x - places) * (x - places)))
            total -= weight * smooth(model, "exp", exponent, -float(rates.sum()), 0.0)
        return total, x

    return min(minimum(partial(loss, name), target)[0] for name in WEIGHTS)


def certify_branin() -> tuple[float, dict[str, Any]]:
    """No term is below 0 - 10 (1 - 1 / (8 pi)) + 10, which the published optimum attains."""
    config = {"x1": math.pi, "x2": 2.275, "wave": "cos"}
    return 10 / (8 * math.pi), config


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


def certify_nvs09(rules: bool) -> tuple[float, dict[str, Any]]:
    """All multisets of integers, or of legal pairs: loss and rules do not depend on their order."""
    best: tuple[float, dict[str, Any]] = (math.inf, {})
    for transform in TRANSFORMS:
        if rules:
            apart = 1 if transform == "reciprocal" else -9
            pairs = [(a, b) for a in range(3, 10) for b in range(3, 10) if a * b <= PRODUCT and a - b >= apart]
            sets = combinations_with_replacement(sorted({tuple(sorted(p, reverse=True)) for p in pairs}), 5)
            tuples = (sum(chosen, ()) for chosen in sets)
        else:
            tuples = combinations_with_replacement(range(3, 10), 10)
        g = TRANSFORMS[transform]
        cost = {v: g(v - 2) ** 2 + g(10 - v) ** 2 for v in range(3, 10)}
        for x in tuples:
            if rules and sum(x) > TOTAL:
                continue
            value = sum(cost[v] for v in x) - math.prod(x) ** 0.2
            if value < best[0]:
                best = (value, {**dict(zip(INTEGERS, map(int, x), strict=True)), "transform": transform})
    return best


# -- Schoen's class with integers --------------------------------------------------------------------------------------------------

POINTS, MINIMA = 50, 3
SEED = 21


@cache
def schoen_points() -> tuple[np.ndarray, np.ndarray]:
    """Stationary points, shape (50, 6), and their values; three global minima at -1000, at legal integers."""
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
    """sum_i f_i prod_{j != i} d_j / sum_i prod_{j != i} d_j, with squared distances d: a weighted mean by 1 / d_i."""
    z, f = schoen_points()
    x = np.array([*(config[f"i{k}"] for k in range(1, 5)), config["x5"], config["x6"]]) / 10
    d = np.maximum(((x - z) ** 2).sum(axis=1), 1e-300)
    weights = d.min() / d
    return float(weights @ f / weights.sum())


def certify_schoen() -> tuple[float, dict[str, Any]]:
    """A weighted mean of the values is never below the least of them, and attains it at its point."""
    z = 10 * schoen_points()[0][0]
    config: dict[str, Any] = {f"i{k + 1}": round(z[k]) for k in range(4)}
    config |= {"x5": float(z[4]), "x6": float(z[5])}
    return schoen(config), config


def _problem(
    name: str, space: Callable[[], mc.Space], objective: Any, optimum: float, certificate: str, certify: Any
) -> Problem:
    group = "rules" if name.endswith("-rules") else "free"
    return Problem(name, space, objective, group, optimum, certificate, SOURCE, certify=certify, tolerance=1e-5)


def _two(
    name: str, space: Any, objective: Any, optima: tuple[float, float], certificate: str, certify: Any
) -> list[Problem]:
    """The function as it is and with rules."""
    return [
        _problem(f"{name}-{kind}", partial(space, rules), objective, optimum, certificate, partial(certify, rules))
        for kind, rules, optimum in zip(("cat", "rules"), (False, True), optima, strict=True)
    ]


_HARTMAN = _two(
    "hartman6", hartman_space, hartman, (-3.9623174076910175, -3.2250376306843), "branch and bound", certify_hartman
)

PROBLEMS = (
    _problem("branin-cat", branin_space, branin, 0.39788735772973816, "construction", certify_branin),
    *(replace(p, prove=partial(prove_hartman, p.group == "rules")) for p in _HARTMAN),
    *_two("nvs09", nvs09_space, nvs09, (-55.35106967758746, -32.137542306234415), "enumeration", certify_nvs09),
    _problem("schoen-int", schoen_space, schoen, -1000.0, "construction", certify_schoen),
)
