"""Sensor placement: minimise the variance of a Gaussian field, under budget, power and exclusion rules.

Krause, Singh and Guestrin, "Near-optimal sensor placements in Gaussian processes". 28 candidate sites of four prices;
the loss is the mean posterior variance over a grid of 196 points, in percent of the prior variance.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described

SITES = 28
AT_MOST = 5
BUDGET = 12
TOO_CLOSE = 0.17
LENGTH = 0.28
NOISE = 0.05
SEED = 8
NAMES = [f"s{i}" for i in range(1, SITES + 1)]


@cache
def sites() -> tuple[np.ndarray, np.ndarray]:
    """Return places in the unit square, shape (28, 2), and prices 1 to 4, shape (28,)."""
    rng = np.random.default_rng(SEED)
    return rng.uniform(size=(SITES, 2)), rng.integers(1, 5, SITES)


@cache
def covariances() -> tuple[np.ndarray, np.ndarray]:
    """Return covariances of sites (28, 28) and of grid and sites (196, 28). The field is rougher in the east."""
    places, _ = sites()
    axis = (np.arange(14) + 0.5) / 14
    grid = np.array([(a, b) for a in axis for b in axis])

    def kernel(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        # Gibbs kernel: the length depends on the place
        l, k = LENGTH * (1.3 - 0.7 * p[:, None, 0]), LENGTH * (1.3 - 0.7 * q[None, :, 0])
        square = ((p[:, None] - q[None]) ** 2).sum(axis=-1)
        return 2 * l * k / (l**2 + k**2) * np.exp(-square / (l**2 + k**2))

    return kernel(places, places), kernel(grid, places)


def variance(chosen: np.ndarray) -> np.ndarray:
    """Return the mean posterior variance in percent; chosen: indices, shape (n, k)."""
    between, across = covariances()
    k = chosen.shape[1]
    gram = between[chosen[:, :, None], chosen[:, None, :]] + NOISE * np.eye(k)
    # sum over the grid of c' K^-1 c is the trace of K^-1 times the sum of c c'
    outer = (across.T @ across)[chosen[:, :, None], chosen[:, None, :]]
    explained = np.trace(np.linalg.solve(gram, outer), axis1=1, axis2=2) / len(across)
    return 100.0 * (1.0 - explained)


def objective(config: Config) -> float:
    chosen = np.array([[i for i, name in enumerate(NAMES) if config[name]]], dtype=int)
    return 100.0 if not chosen.size else float(variance(chosen)[0])


def close() -> list[tuple[int, int]]:
    """Return pairs of sites that disturb each other."""
    places, _ = sites()
    return [(i, j) for i, j in combinations(range(SITES), 2) if np.linalg.norm(places[i] - places[j]) < TOO_CLOSE]


def space() -> mc.Space:
    made = mc.Space("sensor placement")
    x = [made.integer(name, 0, 1) for name in NAMES]
    places, prices = sites()
    made.rule("at most five sensors", sum(x) <= AT_MOST)
    made.rule("budget", sum(int(p) * v for p, v in zip(prices, x, strict=True)) <= BUDGET)
    for i, j in close():
        made.rule(f"{NAMES[i]} and {NAMES[j]} disturb each other", x[i] + x[j] <= 1)
    west = [v for v, (a, _) in zip(x, places, strict=True) if a < 0.5]
    made.rule("one power supply: at most three in the west", sum(west) <= 3)
    return made


PROBLEMS = (described("sensors", space, objective),)
