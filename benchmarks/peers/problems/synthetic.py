"""The random linear function of Daxberger et al., appendices A.1 (no rule) and A.2 (at most two bits), of the bundled model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.problem import Problem
from mipcash.models.synthetic import BITS, REALS, Function, build

SOURCE = "Daxberger et al., Mixed-variable Bayesian optimization, appendix A"
SEED = 11


def certify(
    weights: str, cardinality: int | None, starts: int = 24, seed: int = SEED, sign: float = 1.0
) -> tuple[float, dict[str, Any]]:
    """Every setting of the bits, and from ``starts`` points each a polish of the reals by L-BFGS-B.

    Args:
        sign: -1 for the maximum, whose negative is returned.
    """
    _, f = build(seed=seed, cardinality=cardinality, weights=weights)
    assert isinstance(f, Function)
    f = replace(f, weights=sign * f.weights)
    rng, best = np.random.default_rng(0), (np.inf, {})
    for bits in product((0, 1), repeat=BITS):
        if cardinality is not None and sum(bits) > cardinality:
            continue
        amplitude, offset = _waves(f, np.array(bits, dtype=float))

        def loss(x: np.ndarray, a: np.ndarray = amplitude, c: float = offset) -> tuple[float, np.ndarray]:
            angle = f.frequencies @ x + f.phases
            return c + float(a @ np.cos(angle)), -(a * np.sin(angle)) @ f.frequencies

        points = rng.uniform(-1, 1, size=(40 * starts, REALS))
        values = offset + np.cos(points @ f.frequencies.T + f.phases) @ amplitude
        for start in points[np.argsort(values)[:starts]]:
            found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * REALS)
            if found.fun < best[0]:
                config: dict[str, Any] = {f"b{i + 1}": b for i, b in enumerate(bits)}
                best = (float(found.fun), config | {f"x{j + 1}": float(v) for j, v in enumerate(found.x)})
    return best


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
        certificate="best known",
        source=SOURCE,
        certify=partial(certify, weights, cardinality),
        held_out=held_out,
        tolerance=1e-4,
    )


PROBLEMS = (
    _problem("synthetic", -18.872352503389276, "gaussian"),
    _problem("synthetic-card2", -11.669331931264113, "gaussian", cardinality=2),
    _problem("synthetic-laplace", -360.4731962386553, "laplace", held_out=True),
)
