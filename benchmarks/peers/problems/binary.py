"""Two problems over bits without rules: contamination control and low-autocorrelation binary sequences."""

from __future__ import annotations

from functools import cache

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described

STAGES = 25
DRAWS = 100
LIMIT = 0.1
PRICE = 1e-2
SEED = 5
LENGTH = 24


def bits(title: str, n: int) -> mc.Space:
    made = mc.Space(title)
    for i in range(1, n + 1):
        made.integer(f"x{i}", 0, 1)
    return made


# -- contamination control: Baptista and Poloczek, Section 4.3 (their rates, costs and limit; 100 fixed draws) --------------


@cache
def rates() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the initial contamination (draws,), and contamination and prevention rates (stages, draws)."""
    rng = np.random.default_rng(SEED)
    return (rng.beta(1.0, 30.0, DRAWS), rng.beta(1.0, 17.0 / 3.0, (STAGES, DRAWS)), rng.beta(1.0, 3.0 / 7.0, (STAGES, DRAWS)))


def step(z: np.ndarray, stage: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contamination after a stage, and its costs: price of prevention, and share of draws above the limit.

    Args:
        z: contamination before the stage, shape (n, draws).
        x: whether prevention is used, shape (n,).
    """
    _, spread, prevented = rates()
    x = x[:, None]
    after = spread[stage] * (1 - x) * (1 - z) + (1 - prevented[stage] * x) * z
    return after, (1.0 + PRICE) * x[:, 0] + (after > LIMIT).mean(axis=1)


def contamination(config: Config) -> float:
    z, total = rates()[0][None], 0.0
    for stage in range(STAGES):
        z, cost = step(z, stage, np.array([float(config[f"x{stage + 1}"])]))
        total += float(cost[0])
    return total


# -- low-autocorrelation binary sequences: least energy E = sum_k C_k^2; the loss is the negative merit factor -n^2 / 2E -----


def merit(config: Config) -> float:
    s = np.array([2.0 * config[f"x{i}"] - 1.0 for i in range(1, LENGTH + 1)])
    side = np.correlate(s, s, mode="full")[LENGTH:]
    return -(LENGTH**2) / (2.0 * float(side @ side))


PROBLEMS = (
    described("contamination", lambda: bits("contamination control", STAGES), contamination),
    described("labs", lambda: bits("low-autocorrelation binary sequence", LENGTH), merit),
)
