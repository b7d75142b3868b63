"""An engineering design: the cheapest cantilever that is stiff and strong enough, with a simulation that fails for thin plates.

A beam of 2 m is clamped at one end and carries 5 kN at the other. Material, kind of section, dimensions and ribs are chosen under
rules of the workshop, which are known in advance. The simulation (Euler-Bernoulli, integrated along the beam) returns the cost and
two outputs with outcome constraints:

* ``deflection_mm``: at the tip, at most 8,
* ``utilisation``: the largest bending stress as a share of the strength, at most 0.7.

Where plates are too slender the simulation finds no equilibrium: the evaluation fails. No rule says where; the search learns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import mipcash as mc

DEFAULTS = {"budget": 40}
LIMITS = {"deflection_mm": 8.0, "utilisation": 0.7}
LENGTH, LOAD = 2.0, 5e3
"""In metres and newtons."""
MATERIALS = {
    "steel": {"modulus": 210e9, "density": 7850.0, "strength": 235e6, "price": 1.6},
    "aluminium": {"modulus": 70e9, "density": 2700.0, "strength": 160e6, "price": 5.5},
    "carbon": {"modulus": 130e9, "density": 1600.0, "strength": 450e6, "price": 38.0},
}
"""SI units; the price is in euros per kilogram, with the work on it."""
HAND_MADE = {"material": "steel", "section": "box", "height": 200, "width": 120, "wall": 5, "ribs": 1, "taper": 1.0}
"""A design by rule of thumb, which satisfies all constraints."""

space = mc.Space("cantilever")
material = space.categorical("material", list(MATERIALS))
section = space.categorical("section", ["box", "tube"])
height = space.integer("height", 60, 300, step=10)  # millimetres; of a tube the diameter
width = space.integer("width", 40, 200, step=10, when=section["box"])
wall = space.ordinal("wall", [2, 3, 4, 5, 6, 8, 10])
ribs = space.integer("ribs", 0, 6, when=section["box"])
taper = space.real("taper", 0.4, 1.0)  # height at the tip as a share of the height at the clamp
space.rule("steel is welded from 3 mm on", wall >= 3, when=material["steel"])
space.rule("carbon is laid up to 5 mm", wall <= 5, when=material["carbon"])
space.rule("tubes are sold up to 140 mm", height <= 140, when=section["tube"])
space.rule("tubes are not tapered", taper >= 1.0, when=section["tube"])
space.rule("a box stands up to three widths high", height <= 3 * width, when=section["box"])
space.rule("a box fits around its walls", wall * 8 <= width, when=section["box"])
space.rule("the tip takes the hook", height * taper >= 60)


def objective(config: Mapping[str, Any]) -> dict[str, float]:
    """The cost in euros, the deflection in millimetres and the utilisation.

    Raises:
        mc.Failed: the plates buckle before there is an equilibrium.
    """
    made = MATERIALS[config["material"]]
    at = np.linspace(0.0, LENGTH, 201)
    high = 1e-3 * config["height"] * (1 - (1 - config["taper"]) * at / LENGTH)
    t, count = 1e-3 * config["wall"], config.get("ribs", 0)
    if config["section"] == "box":
        wide = 1e-3 * config["width"]
        area = wide * high - (wide - 2 * t) * (high - 2 * t)
        inertia = (wide * high**3 - (wide - 2 * t) * (high - 2 * t) ** 3) / 12
        slender = max(high[0] / t / (1 + 0.5 * count), wide / t)
    else:
        area = np.pi * t * (high - t)
        inertia = np.pi / 64 * (high**4 - (high - 2 * t) ** 4)
        slender = 0.5 * high[0] / t
    if slender > 42 * np.sqrt(made["modulus"] / 210e9) * (235e6 / made["strength"]) ** 0.5:
        raise mc.Failed("the plates buckle: no equilibrium after 50 iterations")
    moment = LOAD * (LENGTH - at)
    bending = np.trapezoid(moment * (LENGTH - at) / (made["modulus"] * inertia), at)
    stress = float(np.max(moment * high / 2 / inertia))
    mass = made["density"] * float(np.trapezoid(area, at))
    return {
        "loss": made["price"] * mass + 9.0 * count + (14.0 if config["taper"] < 1.0 else 0.0),
        "deflection_mm": 1e3 * float(bending),
        "utilisation": stress / made["strength"],
    }


def report(result: Any) -> str:
    """The best design beside a design by rule of thumb."""
    by_hand = objective(HAND_MADE)
    saved = 1 - result.value / by_hand["loss"]
    return (
        f"best design found: {result.value:.0f} euros; by rule of thumb: {by_hand['loss']:.0f} euros, with a deflection of "
        f"{by_hand['deflection_mm']:.1f} mm and a utilisation of {by_hand['utilisation']:.2f}; saved: {saved:.0%}"
    )
