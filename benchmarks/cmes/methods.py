"""Compared methods: an optimizer, its settings, and the feedback from an evaluation.

real        the value of the constrained output, and the loss: real-valued feedback in the paper.
answer      violation (+1) or feasibility (-1), and the loss: binary feedback, observed objective.
hidden      the same, and the loss only if feasible: binary feedback, unobserved objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from benchmarks.rivals.adaptive_percentile import PercentileSettings
from mipcash.methods.cmes.cmes import CmesSettings
from mipcash.optimizers.hybrid import HybridSettings

REAL, ANSWER, HIDDEN = "real", "answer", "hidden"


@dataclass(frozen=True)
class Method:
    """Compared method.

    Attributes:
        name: in tables.
        told: kind of feedback, one of those above.
        optimizer: name in the registry.
        settings: its settings; None for its defaults.
    """

    name: str
    told: str
    optimizer: str
    settings: Any = None


def _cmes(name: str, told: str, **settings: Any) -> Method:
    return Method(name, told, "cmes", CmesSettings(**settings))


def _hybrid(name: str, told: str) -> Method:
    return Method(name, told, "hybrid", HybridSettings())


METHODS = {
    m.name: m
    for m in (
        Method("random", HIDDEN, "random"),
        Method("AP", HIDDEN, "adaptive-percentile", PercentileSettings()),
        _cmes("cMES real", REAL),
        _cmes("cMES real, marginal", REAL, sampling="marginal"),
        _hybrid("cEI real", REAL),
        _cmes("cMES", HIDDEN),
        _cmes("cMES, p = 0.9", HIDDEN, violation_probability=0.9),
        _cmes("cMES, marginal", HIDDEN, sampling="marginal"),
        _cmes("cMES, 40 draws", HIDDEN, minima=40),
        _cmes("cMES, 2 draws", HIDDEN, minima=2),
        _hybrid("cEI", HIDDEN),
        _cmes("cMES observe", ANSWER),
        _cmes("cMES observe, marginal", ANSWER, sampling="marginal"),
        _hybrid("cEI observe", ANSWER),
    )
}
"""Methods by name."""


def with_design(of: Method, n_initial: int) -> Any:
    """Return the settings of a method with the size of the initial design."""
    return None if of.settings is None else replace(of.settings, n_initial=n_initial)
