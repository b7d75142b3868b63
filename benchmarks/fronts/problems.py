"""Mixed problems with rules and two objectives each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mipcash as mc
from benchmarks.limits.problems.engineering import beam, beam_space, vessel, vessel_space

Config = dict[str, Any]


@dataclass(frozen=True)
class FrontProblem:
    """Black box with several outputs.

    Attributes:
        space: makes the space.
        objectives: directions by output.
        reference: reference point of the hypervolume by output, reached by about the better half of random search.
    """

    name: str
    space: Callable[[], mc.Space]
    objective: Callable[[Config], Mapping[str, float]]
    objectives: Mapping[str, str]
    reference: Mapping[str, float]


def network_space() -> mc.Space:
    """Return layers with separate widths. Deep networks have dropout, and narrow ones no batch normalisation."""
    s = mc.Space("network")
    layers = s.integer("layers", 1, 4)
    width = s.ordinal("width", [16, 32, 64, 128, 256])
    act = s.categorical("activation", ["relu", "gelu", "tanh", "selu"])
    bits = s.ordinal("bits", [4, 8, 16, 32])
    norm = s.categorical("norm", ["none", "batch", "layer"])
    s.real("rate", 1e-4, 1e-1, log=True)
    s.real("dropout", 0.0, 0.6, when=layers.is_(2, 3, 4))
    s.rule("memory", layers * width <= 600)
    s.rule("selu normalises itself", act["selu"] + norm.is_("batch", "layer") <= 1)
    s.rule("four bits need batch normalisation", bits.is_(4) <= norm["batch"])
    return s


def network(config: Config) -> dict[str, float]:
    """Return error and latency of a synthetic network, smooth in the numbers and with interactions of the choices."""
    layers, width, bits = config["layers"], config["width"], config["bits"]
    capacity = math.log2(width * layers)
    best = {"relu": -2.2, "gelu": -2.5, "tanh": -2.0, "selu": -2.8}[config["activation"]] - 0.15 * layers
    rate = (math.log10(config["rate"]) - best) ** 2
    drop = (config.get("dropout", 0.0) - 0.05 * (capacity - 5)) ** 2
    norm = {"none": 0.04 * (layers - 1), "batch": 0.0, "layer": 0.015}[config["norm"]]
    act = {"relu": 0.02, "gelu": 0.0, "tanh": 0.05, "selu": 0.01}[config["activation"]]
    error = 0.08 + 0.5 * math.exp(-0.35 * capacity) + 0.06 * rate + 0.4 * drop + norm + act + 0.35 / bits
    slow = {"none": 0.0, "batch": 0.15, "layer": 0.5}[config["norm"]] + (0.4 if config["activation"] == "gelu" else 0.0)
    latency = 0.3 + layers * ((width / 64) ** 1.3 * (0.15 + bits / 32) + slow)
    return {"error": error, "latency_ms": latency}


DOWN, UP = "minimize", "maximize"
PROBLEMS = {
    p.name: p
    for p in (
        FrontProblem("network", network_space, network, {"error": DOWN, "latency_ms": DOWN}, {"error": 0.4, "latency_ms": 6.0}),
        FrontProblem("vessel", vessel_space, vessel, {"loss": DOWN, "volume": UP}, {"loss": 20_000.0, "volume": 5e5}),
        FrontProblem("beam", beam_space, beam, {"loss": DOWN, "deflection": DOWN}, {"loss": 30.0, "deflection": 0.08}),
    )
}
