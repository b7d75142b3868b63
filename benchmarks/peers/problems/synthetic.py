"""The random linear function of Daxberger et al., appendices A.1 (no rule) and A.2 (at most two bits), of the bundled model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.problem import Problem
from benchmarks.peers.spatial import minimum, smooth
from mipcash.models.synthetic import BITS, REALS, Function, build

SOURCE = "Daxberger et al., Mixed-variable Bayesian optimization, appendix A"
SEED = 11
SLACK = 1e-4
TOLERANCES = {"gaussian": 1e-4, "laplace": 1e-3}
"""Of optima, by the weights: losses with Laplace weights are some twenty times as large."""


def certify(weights: str, cardinality: int | None, starts: int = 24) -> tuple[float, dict[str, Any]]:
    """Every setting of the bits, and from ``starts`` points each a polish of the reals.

    Needs no further solver, and may miss the optimum: :func:`prove` says whether it did.
    """
    _, f = build(seed=SEED, cardinality=cardinality, weights=weights)
    assert isinstance(f, Function)
    rng, best = np.random.default_rng(0), (np.inf, dict[str, Any]())
    for bits in product((0, 1), repeat=BITS):
        if cardinality is not None and sum(bits) > cardinality:
            continue
        amplitude, offset = _waves(f, np.array(bits, dtype=float))
        points = rng.uniform(-1, 1, size=(40 * starts, REALS))
        values = offset + np.cos(points @ f.frequencies.T + f.phases) @ amplitude
        for start in points[np.argsort(values)[:starts]]:
            value, x = _polished(f, amplitude, offset, start)
            if value < best[0]:
                best = value, _config(bits, x)
    return best


def solve(
    weights: str, cardinality: int | None, seed: int, sign: float = 1.0, target: float = math.inf, slack: float = SLACK
) -> tuple[float, float, dict[str, Any]]:
    """The least loss by a spatial branch and bound over the reals, for each setting of the bits.

    Args:
        sign: -1 for the negative of the greatest loss.
        target: nothing above it is looked for.
        slack: how far below the least loss the bound may be.

    Returns:
        a bound below every loss, the least loss (the target where nothing is below it), and where it is.

    Raises:
        ModuleNotFoundError: gurobipy is not installed.
    """
    _, f = build(seed=seed, cardinality=cardinality, weights=weights)
    assert isinstance(f, Function)
    settings = [
        (np.array(bits), *_waves(replace(f, weights=sign * f.weights), np.array(bits, dtype=float)))
        for bits in product((0, 1), repeat=BITS)
        if cardinality is None or sum(bits) <= cardinality
    ]
    reach, below, least, config = np.abs(f.frequencies).sum(axis=1), math.inf, target, dict[str, Any]()
    for bits, amplitude, offset in sorted(settings, key=lambda s: float(s[2] - np.abs(s[1]).sum())):
        if offset - np.abs(amplitude).sum() >= least - slack:
            break

        def model_of(model: Any, a: np.ndarray = amplitude, c: float = offset) -> tuple[Any, Any]:
            x, total = model.addMVar(REALS, lb=-1.0, ub=1.0), c
            for row, phase, high, factor in zip(f.frequencies, f.phases, reach, a, strict=True):
                total += factor * smooth(model, "cos", row @ x + phase, phase - high, phase + high)
            return total, x

        bound, start = minimum(model_of, least - slack)
        below = min(below, bound)
        if start is not None:
            value, x = _polished(f, amplitude, offset, start)
            if value < least:
                least, config = value, _config(bits, x)
    return min(below, least - slack), least, config


def prove(weights: str, cardinality: int | None, target: float, seed: int = SEED) -> float:
    """A bound below every loss, at most ``target`` (seconds)."""
    return solve(weights, cardinality, seed, target=target, slack=0.0)[0]


def _polished(f: Function, amplitude: np.ndarray, offset: float, start: np.ndarray) -> tuple[float, np.ndarray]:
    """A local minimum over the reals, by L-BFGS-B."""

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        angle = f.frequencies @ x + f.phases
        return offset + float(amplitude @ np.cos(angle)), -(amplitude * np.sin(angle)) @ f.frequencies

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * REALS)
    return float(found.fun), found.x


def _config(bits: Iterable[int], x: np.ndarray) -> dict[str, Any]:
    config: dict[str, Any] = {f"b{i}": int(b) for i, b in enumerate(bits, 1)}
    return config | {f"x{j}": float(v) for j, v in enumerate(x, 1)}


def _waves(f: Function, bits: np.ndarray) -> tuple[np.ndarray, float]:
    """Amplitudes and offset of the function of the reals that is left when the bits are fixed."""
    i, j = np.triu_indices(len(bits), k=1)
    discrete = np.concatenate([[1.0], bits, bits[i] * bits[j]])
    m, k = len(discrete), len(f.phases)
    mixed = f.weights[m + k :].reshape(m, k)
    return np.sqrt(2 / k) * (f.weights[m : m + k] + discrete @ mixed), float(f.weights[:m] @ discrete)


def _problem(
    name: str, optimum: float, weights: str, cardinality: int | None = None, held_out: bool = False
) -> Problem:
    make = partial(build, seed=SEED, cardinality=cardinality, weights=weights)
    return Problem(
        name=name,
        space=lambda: make()[0],
        objective=make()[1],
        group="free" if cardinality is None else "rules",
        optimum=optimum,
        certificate="branch and bound",
        source=SOURCE,
        certify=partial(certify, weights, cardinality),
        prove=partial(prove, weights, cardinality),
        held_out=held_out,
        tolerance=TOLERANCES[weights],
    )


PROBLEMS = (
    _problem("synthetic", -18.872352503389276, "gaussian"),
    _problem("synthetic-card2", -11.669331931264113, "gaussian", cardinality=2),
    _problem("synthetic-laplace", -360.4731962386553, "laplace", held_out=True),
)
