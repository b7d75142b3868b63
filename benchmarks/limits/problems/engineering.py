"""Engineering design with listed members, materials and integers: geometry in rules, analysis in outcome constraints.

Pressure vessel (Sandgren), welded beam (Ragsdell and Phillips, with the materials and joints of Deb and Goyal), speed
reducer (Golinski), tension/compression spring (Belegundu), Himmelblau's function with integers (G04 of the CEC sets).
"""

from __future__ import annotations

import math
from typing import Any

import mipcash as mc
from benchmarks.peers.problem import Config, described
from benchmarks.peers.problems import engineering as known

# -- pressure vessel: plates by sixteenths of an inch; the code's least thickness is a rule ----------------------------

SHELLS, HEADS = known.grid(0.4375, 2.0, 0.0625), known.grid(0.3125, 1.5, 0.0625)
STEELS = {"plain": (1.0, 1.0), "high-strength": (1.25, 1.3)}
"""Strength and price, each relative to plain steel."""
VOLUME, SLENDER = 1_296_000.0, 2.0


def vessel_space() -> mc.Space:
    s = mc.Space("pressure vessel")
    shell, head = s.ordinal("shell", SHELLS), s.ordinal("head", HEADS)
    radius = s.real("radius", 30, 80)
    s.real("length", 10, 240)
    steel = s.categorical("steel", list(STEELS))
    for name, (strength, _) in STEELS.items():
        s.rule(f"shell: least thickness, {name}", shell >= 0.0193 / strength * radius, when=steel[name])
        s.rule(f"head: least thickness, {name}", head >= 0.00954 / strength * radius, when=steel[name])
    return s


def vessel(config: Config) -> dict[str, float]:
    r, l = config["radius"], config["length"]
    return {
        "loss": _vessel_cost(config["shell"], config["head"], r, l, STEELS[config["steel"]][1]),
        "volume": math.pi * r**2 * l + 4 / 3 * math.pi * r**3,
        "slender": l / (2 * r),
    }


def _vessel_cost(shell: float, head: float, r: float, l: float, price: float) -> float:
    welds = 3.1661 * shell**2 * l + 19.84 * shell**2 * r
    return price * (0.6224 * shell * r * l + 1.7781 * head * r**2) + welds


# -- welded beam ----------------------------------------------------------------------------------------------------------------

SEAMS, WIDTHS = known.grid(0.125, 1.0, 0.0625), known.grid(0.125, 1.5, 0.0625)
METALS = {
    "steel": (30e3, 30e6, 12e6, 0.1047, 0.0481),
    "cast iron": (8e3, 14e6, 6e6, 0.0489, 0.0224),
    "aluminium": (5e3, 10e6, 4e6, 0.5235, 0.2405),
    "brass": (8e3, 16e6, 6e6, 0.5584, 0.2566),
}
"""Strength (psi), Young's and shear modulus (psi), price per cubic inch of the seam and of the beam."""
LOAD, SPAN = 6000.0, 14.0
BEAM_LIMITS = {"shear": 1.0, "bending": 1.0, "buckling": (LOAD, None), "deflection": 0.25}


def beam_space() -> mc.Space:
    s = mc.Space("welded beam")
    seam, width = s.ordinal("seam", SEAMS), s.ordinal("width", WIDTHS)
    s.real("weld", 0.1, 10)
    s.real("depth", 2, 10)
    metal, joint = s.categorical("metal", list(METALS)), s.categorical("joint", ["two sides", "four sides"])
    s.rule("the seam is no thicker than the beam", seam <= width)
    s.rule("castings and brass are welded on two sides", metal.is_("cast iron", "brass") + joint["four sides"] <= 1)
    return s


def beam(config: Config) -> dict[str, float]:
    """Return the outputs. Moments of the seams: (h + t)^2 / 4 + l^2 / 12 on two sides, (t + l)^3 / 6 on four."""
    h, b, l, t = (config[n] for n in ("seam", "width", "weld", "depth"))
    strength, young, shear, seam_price, price = METALS[config["metal"]]
    four = config["joint"] == "four sides"
    area = math.sqrt(2) * h * (l + t if four else l)
    radius = 0.5 * math.sqrt(l**2 + (h + t) ** 2)
    moment = h * (t + l) ** 3 / (6 * math.sqrt(2)) if four else math.sqrt(2) * h * l * ((h + t) ** 2 / 4 + l**2 / 12)
    direct, turned = LOAD / area, LOAD * (SPAN + 0.5 * l) * radius / moment
    stress = math.sqrt(direct**2 + 2 * direct * turned * l / (2 * radius) + turned**2)
    root = math.sqrt(young * shear * t**2 * b**6 / 36)
    return {
        "loss": (1 + seam_price) * h**2 * (l + t if four else l) + price * t * b * (SPAN + l),
        "shear": stress / (0.577 * strength),
        "bending": 6 * LOAD * SPAN / (b * t**2) / strength,
        "buckling": 4.013 * root / SPAN**2 * (1 - t / (2 * SPAN) * math.sqrt(young / (4 * shear))),
        "deflection": 4 * LOAD * SPAN**3 / (young * b * t**3),
    }


# -- speed reducer: all eleven constraints of Golinski are outcome constraints; rules describe the bearings ------------

BEARINGS = {"plain": (1.9, 0.0), "roller": (1.7, 1.0)}
"""Length of a bearing beside its shaft, and its weight."""
REDUCER_LIMITS = {f"g{k}": 0.0 for k in range(1, 12)}


def reducer_space() -> mc.Space:
    s = mc.Space("speed reducer with limits")
    s.real("width", 2.6, 3.6)
    s.real("module", 0.7, 0.8)
    s.integer("teeth", 17, 28)
    l1 = s.real("length_1", 7.3, 8.3)
    s.real("length_2", 7.3, 8.3)
    d1, d2 = s.real("shaft_1", 2.9, 3.9), s.real("shaft_2", 5.0, 5.5)
    bearing = s.categorical("bearing", list(BEARINGS))
    s.rule("rollers need room", l1 >= 7.3 + 0.2 * bearing["roller"])
    s.rule("the second shaft carries more", d2 >= d1 + 1.5)
    return s


def reducer(config: Config) -> dict[str, float]:
    b, m, z, l1, l2, d1, d2 = (config[n] for n in ("width", "module", "teeth", "length_1", "length_2", "shaft_1", "shaft_2"))
    room, weight = BEARINGS[config["bearing"]]
    return {
        "loss": float(known.weight(b, m, z, l1, l2, d1, d2)) + weight,
        "g1": 27 / (b * m**2 * z) - 1,
        "g2": 397.5 / (b * m**2 * z**2) - 1,
        "g3": 1.93 * l1**3 / (m * z * d1**4) - 1,
        "g4": 1.93 * l2**3 / (m * z * d2**4) - 1,
        "g5": math.sqrt((745 * l1 / (m * z)) ** 2 + 16.9e6) / (110 * d1**3) - 1,
        "g6": math.sqrt((745 * l2 / (m * z)) ** 2 + 157.5e6) / (85 * d2**3) - 1,
        "g7": m * z / 40 - 1,
        "g8": 5 * m / b - 1,
        "g9": b / (12 * m) - 1,
        "g10": (1.5 * d1 + room) / l1 - 1,
        "g11": (1.1 * d2 + room) / l2 - 1,
    }


# -- spring: dimensions of the drawing are rules; deflection, stress and frequency are outcome constraints -------------


def spring_space() -> mc.Space:
    s = mc.Space("spring with limits")
    wire, coil = s.ordinal("wire", known.WIRES), s.ordinal("coil", known.COILS)
    material = s.categorical("material", list(known.MATERIALS))
    s.real("turns", *known.TURNS)
    s.rule("outer diameter", wire + coil <= 1.5)
    s.rule("an index of at least 5, for the winding", coil >= 5 * wire)
    s.rule("bronze is drawn to 0.06 at least", wire >= 0.06 * material["bronze"])
    return s


def spring(config: Config) -> dict[str, float]:
    wire, coil, turns = config["wire"], config["coil"], config["turns"]
    stiffness, strength, _ = known.MATERIALS[config["material"]]
    return {
        "loss": known.spring(config),
        "deflection": 1 - coil**3 * turns / (71785 * stiffness * wire**4),
        "shear": float(known.shear(wire, coil, strength)),
        "surge": 140.45 * wire / (coil**2 * turns),
    }


# -- Himmelblau's function with three integers -------------------------------------------------------------------------

G04_LIMITS = {"a": (0.0, 92.0), "b": (90.0, 110.0), "c": (20.0, 25.0)}


def g04_space() -> mc.Space:
    s = mc.Space("g04 with whole numbers")
    s.integer("x1", 78, 102)
    s.integer("x2", 33, 45)
    s.real("x3", 27, 45)
    x4, x5 = s.integer("x4", 27, 45), s.real("x5", 27, 45)
    s.rule("the two together", x4 + x5 <= 80)
    return s


def g04(config: Config) -> dict[str, float]:
    return dict(zip(("loss", "a", "b", "c"), _g04(*(config[f"x{j}"] for j in range(1, 6))), strict=True))


def _g04(x1: Any, x2: Any, x3: Any, x4: Any, x5: Any) -> tuple[Any, ...]:
    return (
        5.3578547 * x3**2 + 0.8356891 * x1 * x5 + 37.293239 * x1 - 40792.141,
        85.334407 + 0.0056858 * x2 * x5 + 0.0006262 * x1 * x4 - 0.0022053 * x3 * x5,
        80.51249 + 0.0071317 * x2 * x5 + 0.0029955 * x1 * x2 + 0.0021813 * x3**2,
        9.300961 + 0.0047026 * x3 * x5 + 0.0012547 * x1 * x3 + 0.0019085 * x3 * x4,
    )


PROBLEMS = (
    described("vessel", vessel_space, vessel, limits={"volume": (VOLUME, None), "slender": SLENDER}),
    described("beam", beam_space, beam, limits=BEAM_LIMITS),
    described("reducer", reducer_space, reducer, limits=REDUCER_LIMITS),
    described("spring-limits", spring_space, spring, limits={"deflection": 0.0, "shear": 1.0, "surge": (1.0, None)}),
    described("g04", g04_space, g04, limits=G04_LIMITS),
)
