"""Engineering design with discrete members: speed reducer, spring, gear train. Their constraints are rules.

A function of one ordinal is linear in its indicators. So constraints with powers and quotients of discrete members are
exactly rules of degree two, and no penalty is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described


def of(parameter: Any, function: Callable[[float], float]) -> Any:
    """Return a function of a discrete parameter, as a linear expression of its indicators."""
    return sum(function(v) * parameter.is_(v) for v in parameter.domain.values)


def grid(low: float, high: float, step: float) -> list[float]:
    return [round(low + k * step, 6) for k in range(round((high - low) / step) + 1)]


# -- speed reducer: Golinski's weight; width real, module, shafts and bearings from lists, teeth integer ---------------

MODULES = grid(0.7, 0.8, 0.01)
TEETH = list(range(17, 29))
LENGTHS = grid(7.3, 8.3, 0.1)
SHAFT_1 = grid(2.9, 3.9, 0.1)
SHAFT_2 = grid(5.0, 5.5, 0.05)


def weight(width: Any, module: Any, teeth: Any, l1: Any, l2: Any, d1: Any, d2: Any) -> Any:
    return (
        0.7854 * width * module**2 * (3.3333 * teeth**2 + 14.9334 * teeth - 43.0934)
        - 1.508 * width * (d1**2 + d2**2)
        + 7.4777 * (d1**3 + d2**3)
        + 0.7854 * (l1 * d1**2 + l2 * d2**2)
    )


def stress_1(d: Any) -> Any:
    """Return g5 in the form ``745 l / (module teeth) <= stress_1(d)``."""
    return np.sqrt(np.maximum((110.0 * d**3) ** 2 - 16.9e6, 0.0))


def stress_2(d: Any) -> Any:
    """Return g6 in the form ``745 l / (module teeth) <= stress_2(d)``."""
    return np.sqrt(np.maximum((85.0 * d**3) ** 2 - 157.5e6, 0.0))


def reducer_space() -> mc.Space:
    s = mc.Space("speed reducer")
    width = s.real("width", 2.6, 3.6)
    module, teeth = s.ordinal("module", MODULES), s.integer("teeth", TEETH[0], TEETH[-1])
    l1, l2 = s.ordinal("length_1", LENGTHS), s.ordinal("length_2", LENGTHS)
    d1, d2 = s.ordinal("shaft_1", SHAFT_1), s.ordinal("shaft_2", SHAFT_2)
    for m in MODULES:  # with the module fixed, x1 x2^2 x3 and x1 x2^2 x3^2 are products of the width and one other
        s.rule(f"g1: bending stress, module {m}", width * teeth >= 27.0 / m**2, when=module[m])
        s.rule(f"g2: contact stress, module {m}", width * of(teeth, lambda t: t**2) >= 397.5 / m**2, when=module[m])
    pitch = module * teeth
    for k, l, d, stress in ((3, l1, d1, stress_1), (4, l2, d2, stress_2)):
        s.rule(f"g{k}: deflection", pitch >= of(l, lambda v: 1.93 * v**3) * of(d, lambda v: v**-4))
        allowed = [v for v in d.domain.values if stress(v) > 0]
        s.rule(f"g{k + 2}: shafts that bear the torque", d.is_(*allowed) >= 1)
        inverse = sum(float(745.0 / stress(v)) * d.is_(v) for v in allowed)
        s.rule(f"g{k + 2}: shaft stress", pitch >= l * inverse)
    s.rule("g7: room", pitch <= 40)
    s.rule("g8: face at least five modules", width >= 5 * module)
    s.rule("g9: face at most twelve modules", width <= 12 * module)
    s.rule("g10: bearing 1", l1 >= 1.5 * d1 + 1.9)
    s.rule("g11: bearing 2", l2 >= 1.1 * d2 + 1.9)
    return s


def reducer(config: Config) -> float:
    c = config
    names = ("width", "module", "teeth", "length_1", "length_2", "shaft_1", "shaft_2")
    return float(weight(*(c[n] for n in names)))


# -- spring: Belegundu's weight with wire and coil from lists, coils real, and three materials --------------------------------

WIRES = grid(0.05, 0.09, 0.0025)
COILS = grid(0.25, 1.3, 0.025)
TURNS = (2.0, 15.0)
MATERIALS = {"music wire": (1.0, 1.0, 1.0), "stainless": (0.9, 0.85, 0.97), "bronze": (0.6, 0.55, 0.8)}
"""Stiffness, strength and price by weight, each relative to music wire."""


def spring_space() -> mc.Space:
    s = mc.Space("tension/compression spring")
    wire, coil = s.ordinal("wire", WIRES), s.ordinal("coil", COILS)
    material = s.categorical("material", list(MATERIALS))
    turns = s.real("turns", *TURNS)
    cube, square = of(coil, lambda v: v**3), of(coil, lambda v: v**2)
    for name, (stiffness, strength, _) in MATERIALS.items():
        here = material[name]
        # the numbers are small, so rules are scaled to make the tolerance of the solver small beside them
        s.rule(
            f"g1: deflection, {name}",
            10 * cube * turns >= of(wire, lambda v, k=stiffness: 717850 * k * v**4),  # type: ignore[misc]
            when=here,
        )
        s.rule(
            f"g2: shear stress, {name}",
            sum(wire.is_(w) * of(coil, lambda v, w=w, k=strength: shear(w, v, k)) for w in WIRES) <= 1,  # type: ignore[misc]
            when=here,
        )
    s.rule("g3: surge frequency", square * turns <= 140.45 * wire)
    s.rule("g4: outer diameter", wire + coil <= 1.5)
    return s


def shear(wire: Any, coil: Any, strength: float) -> Any:
    """Return Belegundu's g2, at most 1."""
    return (4 * coil**2 - wire * coil) / (12566 * strength * (coil * wire**3 - wire**4)) + 1 / (5108 * strength * wire**2)


def spring(config: Config) -> float:
    return float(100 * (config["turns"] + 2) * config["coil"] * config["wire"] ** 2 * MATERIALS[config["material"]][2])


# -- gear train: MINLPLib's gear, with rules on size and wear -------------------------------------------------------------------

RATIO = 0.14427932477276
GEARS = [f"teeth_{i}" for i in (1, 2, 3, 4)]


def gear_space() -> mc.Space:
    s = mc.Space("gear train")
    a, b, c, d = (s.integer(name, 12, 60) for name in GEARS)
    s.rule("weight: at most 130 teeth", a + b + c + d <= 130)
    s.rule("shaft distances differ by three at most", a + c - b - d >= -6)
    s.rule("shaft distances differ by three at most, the other way", a + c - b - d <= 6)
    s.rule("wear: the first pinion is the smaller one", a <= b)
    return s


def gear(config: Config) -> float:
    """Return log10 of the squared error of the ratio (plus 1e-12), since the published error spans twelve decades."""
    a, b, c, d = (config[name] for name in GEARS)
    return math.log10((RATIO - a * b / (c * d)) ** 2 + 1e-12)


PROBLEMS = (
    described("speed-reducer", reducer_space, reducer),
    described("spring", spring_space, spring),
    described("gear-rules", gear_space, gear),
)
