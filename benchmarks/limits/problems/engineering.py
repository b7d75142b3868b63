"""Engineering design with members from lists, materials and whole numbers: what a drawing shows is a rule, what an analysis
tells is a limit.

Pressure vessel (Sandgren), welded beam (Ragsdell and Phillips, with the materials and joints of Deb and Goyal), speed reducer
(Golinski), tension/compression spring (Belegundu), Himmelblau's function with whole numbers (G04 of the CEC sets).
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

import mipcash as mc
from benchmarks.peers.problem import Config, Problem
from benchmarks.peers.problems import engineering as known

Found = tuple[float, dict[str, Any]]

# -- pressure vessel: plates by sixteenths of an inch; the code's least thickness is a rule ------------------------------------

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


def certify_vessel() -> Found:
    """All plates and steels; the cost grows with the length, so that the radius alone is searched."""
    best: Found = (math.inf, {})
    for shell, head, (steel, (strength, price)) in product(SHELLS, HEADS, STEELS.items()):
        top = min(80.0, shell * strength / 0.0193, head * strength / 0.00954)
        if top < 30:
            continue

        def length(r: float) -> float:
            return max(10.0, (VOLUME - 4 / 3 * math.pi * r**3) / (math.pi * r**2))

        def cost(r: float, shell: float = shell, head: float = head, price: float = price) -> float:
            l = length(r)
            return _vessel_cost(shell, head, r, l, price) + 1e9 * max(0.0, l - min(240.0, 2 * SLENDER * r))

        radii = np.linspace(30.0, top, 400)
        k = int(np.argmin([cost(float(r)) for r in radii]))
        low, high = radii[max(0, k - 1)], radii[min(399, k + 1)]
        r = float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).x)
        r = min((r, float(radii[k]), float(low), float(high)), key=cost)
        if cost(r) < best[0]:
            best = (cost(r), {"shell": shell, "head": head, "radius": r, "length": length(r), "steel": steel})
    return best


# -- welded beam ----------------------------------------------------------------------------------------------------------------

SEAMS, WIDTHS = known.grid(0.125, 1.0, 0.0625), known.grid(0.125, 1.5, 0.0625)
METALS = {
    "steel": (30e3, 30e6, 12e6, 0.1047, 0.0481),
    "cast iron": (8e3, 14e6, 6e6, 0.0489, 0.0224),
    "aluminium": (5e3, 10e6, 4e6, 0.5235, 0.2405),
    "brass": (8e3, 16e6, 6e6, 0.5584, 0.2566),
}
"""Strength (psi), Young's and shear modulus (psi), price of the seam and of the beam (a cubic inch)."""
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
    """The seams' moments are those of lines: (h + t)^2 / 4 + l^2 / 12 on two sides, (t + l)^3 / 6 on four."""
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


def certify_beam() -> Found:
    """All members, on a grid of the two numbers, coarse and then fine, and SLSQP from the best of each member's points."""
    l, t = np.meshgrid(np.linspace(0.1, 10, 100), np.linspace(2, 10, 100), indexing="ij")
    starts = []
    for h, b, metal, joint in product(SEAMS, WIDTHS, METALS, ("two sides", "four sides")):
        if h > b or (joint == "four sides" and metal in ("cast iron", "brass")):
            continue
        part = {"seam": h, "width": b, "metal": metal, "joint": joint}
        if METALS[metal][4] * 2 * b * SPAN > 6:
            continue  # dearer than what is known
        values = [
            (v["loss"] if _beam_slack(v) >= -0.05 else math.inf, x, y)
            for x, y in zip(l.ravel()[::7], t.ravel()[::7], strict=True)
            for v in [beam(part | {"weld": float(x), "depth": float(y)})]
        ]
        loss, x, y = min(values)
        if math.isfinite(loss):
            starts.append((loss, x, y, part))
    best: Found = (math.inf, {})
    for _, x, y, part in sorted(starts, key=lambda v: v[0])[:60]:
        for at in ((x, y), (1.1 * x, 1.1 * y)):
            found = minimize(
                lambda v, part=part: beam(part | {"weld": v[0], "depth": v[1]})["loss"],
                at,
                method="SLSQP",
                bounds=[(0.1, 10), (2, 10)],
                constraints={
                    "type": "ineq",
                    "fun": lambda v, part=part: _beam_slacks(beam(part | {"weld": v[0], "depth": v[1]})),
                },
                options={"maxiter": 300, "ftol": 1e-12},
            )
            config = part | {"weld": float(found.x[0]), "depth": float(found.x[1])}
            if _beam_slack(beam(config)) >= -1e-8 and beam(config)["loss"] < best[0]:
                best = (beam(config)["loss"], config)
    return best


def _beam_slacks(v: dict[str, float]) -> list[float]:
    return [1 - v["shear"], 1 - v["bending"], v["buckling"] / LOAD - 1, 1 - v["deflection"] / 0.25]


def _beam_slack(v: dict[str, float]) -> float:
    return min(_beam_slacks(v))


# -- speed reducer: all eleven limits of Golinski are limits; what is known is about the bearings -------------------------------

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
    b, m, z, l1, l2, d1, d2 = (
        config[n] for n in ("width", "module", "teeth", "length_1", "length_2", "shaft_1", "shaft_2")
    )
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


def certify_reducer() -> Found:
    """All teeth and bearings, SLSQP over the six reals from twelve starts."""
    names = ("width", "module", "length_1", "length_2", "shaft_1", "shaft_2")
    low, high = np.array([2.6, 0.7, 7.3, 7.3, 2.9, 5.0]), np.array([3.6, 0.8, 8.3, 8.3, 3.9, 5.5])
    rng, best = np.random.default_rng(0), (math.inf, dict[str, Any]())
    for teeth, bearing in product(range(17, 29), BEARINGS):

        def config(x: Any, teeth: int = teeth, bearing: str = bearing) -> dict[str, Any]:
            return {"teeth": teeth, "bearing": bearing} | dict(zip(names, map(float, x), strict=True))

        def slacks(x: Any, config: Any = config, bearing: str = bearing) -> list[float]:
            told = reducer(config(x))
            return [-told[g] for g in REDUCER_LIMITS] + [x[2] - 7.3 - 0.2 * (bearing == "roller"), x[5] - x[4] - 1.5]

        for start in rng.uniform(low, high, (12, 6)):
            found = minimize(
                lambda x, config=config: reducer(config(x))["loss"] / 3000,
                start,
                method="SLSQP",
                bounds=list(zip(low, high, strict=True)),
                constraints={"type": "ineq", "fun": slacks},
                options={"maxiter": 300, "ftol": 1e-14},
            )
            x = np.clip(found.x, low, high)
            if min(slacks(x)) >= -1e-9 and reducer(config(x))["loss"] < best[0]:
                best = (reducer(config(x))["loss"], config(x))
    return best


# -- spring: what the drawing shows is a rule; deflection, stress and frequency are limits ---------------------------------------


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


def certify_spring() -> Found:
    """All members; the weight grows with the turns, so that the fewest that keep the deflection are the best."""
    best: Found = (math.inf, {})
    for name, (stiffness, strength, _) in known.MATERIALS.items():
        for w, c in product(known.WIRES, known.COILS):
            turns = max(known.TURNS[0], 71785 * stiffness * w**4 / c**3)
            if turns > min(known.TURNS[1], 140.45 * w / c**2) or known.shear(w, c, strength) > 1:
                continue
            config = {"wire": w, "coil": c, "material": name, "turns": float(turns)}
            if w + c <= 1.5 and c >= 5 * w and w >= 0.06 * (name == "bronze"):
                best = min(best, (known.spring(config), config), key=lambda f: f[0])
    return best


# -- Himmelblau's function with three whole numbers ------------------------------------------------------------------------------

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


def certify_g04() -> Found:
    """All whole numbers; the loss grows with x3, whose least value is in closed form, and x5 is searched, coarse then fine."""
    n1, n2, n4 = (v.ravel() for v in np.meshgrid(range(78, 103), range(33, 46), range(27, 46), indexing="ij"))
    best, low, high = (math.inf, dict[str, Any]()), np.full(n1.shape, 27.0), np.minimum(45.0, 80.0 - n4)
    for _ in range(6):  # each time around the best x5 of each triple
        step = (high - low) / 200
        found = np.full((201, n1.size), np.inf)
        thirds = np.empty_like(found)
        for k in range(201):
            x5 = low + k * step
            least = np.maximum.reduce(
                [
                    np.full(n1.shape, 27.0),
                    (85.334407 + 0.0056858 * n2 * x5 + 0.0006262 * n1 * n4 - 92.0) / (0.0022053 * x5),
                    (20.0 - 9.300961) / (0.0047026 * x5 + 0.0012547 * n1 + 0.0019085 * n4),
                    np.sqrt(np.maximum(0, 90.0 - 80.51249 - 0.0071317 * n2 * x5 - 0.0029955 * n1 * n2) / 0.0021813),
                ]
            )
            loss, a, b, c = _g04(n1, n2, least, n4, x5)
            good = (least <= 45) & (a >= 0) & (a <= 92 + 1e-9) & (b <= 110) & (c <= 25) & (b >= 90 - 1e-9)
            found[k], thirds[k] = np.where(good & (c >= 20 - 1e-9), loss, np.inf), least
        at = found.argmin(axis=0)
        j = int(found.min(axis=0).argmin())
        if found[at[j], j] < best[0]:
            x5 = float(low[j] + at[j] * step[j])
            config = {"x1": int(n1[j]), "x2": int(n2[j]), "x3": float(thirds[at[j], j]), "x4": int(n4[j]), "x5": x5}
            best = (float(found[at[j], j]), config)
        middle = low + at * step
        low, high = np.maximum(low, middle - 2 * step), np.minimum(high, middle + 2 * step)
    return best


PROBLEMS = (
    Problem(
        name="vessel",
        space=vessel_space,
        objective=vessel,
        group="rules",
        optimum=6027.931138543033,
        reference=11746.0,
        certificate="enumeration",
        source="Sandgren, Nonlinear integer and discrete programming in mechanical design (1990); a second steel",
        certify=certify_vessel,
        limits={"volume": (VOLUME, None), "slender": SLENDER},
        tolerance=1e-2,
    ),
    Problem(
        name="beam",
        space=beam_space,
        objective=beam,
        group="rules",
        optimum=1.9693609263215803,
        reference=5.0584,
        certificate="best known",
        source="Ragsdell and Phillips (1976), Deb and Goyal (1996): materials and joints",
        certify=certify_beam,
        limits=BEAM_LIMITS,
        tolerance=1e-5,
    ),
    Problem(
        name="reducer",
        space=reducer_space,
        objective=reducer,
        group="rules",
        optimum=2992.8969272695917,
        reference=3954.2,
        certificate="best known",
        source="Golinski (1970); bearings and their rules added",
        certify=certify_reducer,
        limits=REDUCER_LIMITS,
        tolerance=1e-3,
    ),
    Problem(
        name="spring-limits",
        space=spring_space,
        objective=spring,
        group="rules",
        optimum=1.275593922914062,
        reference=2.6346,
        certificate="enumeration",
        source="Belegundu (1982); members made discrete, materials added",
        certify=certify_spring,
        limits={"deflection": 0.0, "shear": 1.0, "surge": (1.0, None)},
        tolerance=1e-6,
    ),
    Problem(
        name="g04",
        space=g04_space,
        objective=g04,
        group="rules",
        optimum=-30585.624677332286,
        reference=-29254.0,
        certificate="enumeration",
        source="Himmelblau (1972), G04 of the CEC sets; three whole numbers and a rule",
        certify=certify_g04,
        limits=G04_LIMITS,
        tolerance=1e-2,
    ),
)
