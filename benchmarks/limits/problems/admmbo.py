"""The synthetic problems (16), (17), (18) of Ariafar et al., as printed functions and with an integer and a rule added.

Ariafar, Coll-Font, Brooks and Dy, "ADMMBO: Bayesian optimization with unknown constraints using ADMM", JMLR 20 (2019),
5.3 to 5.5. Two of them are corrected:

(17) has wrong signs: ``0.5 sin(..) + x1 + 2 x2 + 1.5 <= 0`` has no solution in the unit square. Its source, Gramacy et
     al. (2016), has ``1.5 - x1 - 2 x2 - 0.5 sin(2 pi (x1^2 - 2 x2)) <= 0`` and ``x1^2 + x2^2 - 1.5 <= 0``.
(18) as printed, ``1.1923 (h - 1.1) <= 0``, admits the corner 0, which minimises the sum. With the inequality reversed,
     ``h >= 1.1``, it is a meaningful problem.

``box_16``, ``problem_16`` and so on are the problems of the papers, on boxes without rules. The constrained outputs are
called ``c1`` and ``c2``, with an upper bound of 0 each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described

ONE, TWO = {"c1": 0.0}, {"c1": 0.0, "c2": 0.0}

RATES = np.array([[10, 0.05, 3, 17], [3, 10, 3.5, 8], [17, 17, 1.7, 0.05], [3.5, 0.1, 10, 10]])
"""A, by coordinate and term."""
PLACES = np.array(
    [[0.131, 0.232, 0.234, 0.404], [0.169, 0.413, 0.145, 0.882], [0.556, 0.830, 0.352, 0.873], [0.012, 0.373, 0.288, 0.574]]
)
"""P, by coordinate and term."""
WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
"""E, by term."""


def box_16() -> mc.Space:
    return _box("ADMMBO (16)", 2, 6.0)


def box_17() -> mc.Space:
    return _box("ADMMBO (17)", 2, 1.0)


def _box(name: str, size: int, high: float) -> mc.Space:
    s = mc.Space(name)
    for j in range(size):
        s.real(f"x{j + 1}", 0.0, high)
    return s


def problem_16(config: Config) -> dict[str, float]:
    """Return problem (16): optimum 0.253236, two ovals with 1.2 % of the box."""
    x, y = config["x1"], config["x2"]
    return {"loss": math.sin(x) + y, "c1": math.sin(x) * math.sin(y) + 0.95}


def problem_17(config: Config) -> dict[str, float]:
    """Return problem (17): optimum 0.599788 at (0.1954, 0.4044)."""
    x, y = config["x1"], config["x2"]
    wave = math.sin(2 * math.pi * (x**2 - 2 * y))
    return {"loss": x + y, "c1": 1.5 - x - 2 * y - 0.5 * wave, "c2": x**2 + y**2 - 1.5}


def problem_18(config: Config) -> dict[str, float]:
    return {"loss": sum(_point(config)), "c1": 1.1 - hartman(_point(config))}


def hartman(x: Any) -> float:
    """Return the sum of problem (18), the four-dimensional Hartman function without its sign."""
    return float(WEIGHTS @ np.exp(-np.sum(RATES * (np.asarray(x)[:, None] - PLACES) ** 2, axis=0)))


def _point(config: Config) -> list[float]:
    return [float(config[f"x{j}"]) for j in (1, 2, 3, 4)]


# -- with an integer and a rule -------------------------------------------------------------------------------------------------


def space_16() -> mc.Space:
    s = box_16()
    grade = s.integer("grade", 0, 4)
    x, y = s["x1"], s["x2"]
    s.rule("room: the less, the higher the grade", x + y + 0.5 * grade <= 7.5)
    return s


def graded_16(config: Config) -> dict[str, float]:
    """Return (16) with a grade. A higher grade widens the ovals at a cost."""
    told = problem_16(config)
    return {"loss": told["loss"] + 0.02 * config["grade"] ** 2, "c1": told["c1"] - 0.03 * config["grade"]}


def space_17() -> mc.Space:
    s = box_17()
    grade = s.integer("grade", 0, 3)
    s.rule("the second at most a little above the first", s["x2"] <= s["x1"] + 0.1 + 0.05 * grade)
    return s


def graded_17(config: Config) -> dict[str, float]:
    """Return (17) with a grade. A higher grade leaves more room beside the first coordinate at a cost."""
    told = problem_17(config)
    return told | {"loss": told["loss"] + 0.01 * config["grade"] ** 2}


def space_18() -> mc.Space:
    s = mc.Space("ADMMBO (18), graded")
    x = [s.real(f"x{j}", 0.0, 1.0) for j in (1, 2, 3)]
    s.ordinal("x4", [round(0.05 * k, 2) for k in range(21)])
    kind = s.categorical("kind", ["plain", "strong"])
    s.rule("room for both", x[0] + x[2] <= 0.9)
    s.rule("strong ones start at 0.2", x[1] >= 0.2 * kind["strong"])
    return s


def graded_18(config: Config) -> dict[str, float]:
    """Return (18) with a kind. The strong kind adds a fifth to the sum and costs 0.05."""
    strong = config["kind"] == "strong"
    value = hartman(_point(config)) * (1.2 if strong else 1.0)
    return {"loss": sum(_point(config)) + 0.05 * strong, "c1": 1.1 - value}


PROBLEMS = (
    described("admmbo-16", space_16, graded_16, limits=ONE),
    described("admmbo-17", space_17, graded_17, limits=TWO),
    described("admmbo-18", space_18, graded_18, limits=ONE),
)
