"""Two problems over bits without rules: contamination control and low-autocorrelation binary sequences."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, Problem

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
    """Initial contamination (draws,), contamination and prevention rates (stages, draws)."""
    rng = np.random.default_rng(SEED)
    return (
        rng.beta(1.0, 30.0, DRAWS),
        rng.beta(1.0, 17.0 / 3.0, (STAGES, DRAWS)),
        rng.beta(1.0, 3.0 / 7.0, (STAGES, DRAWS)),
    )


def step(z: np.ndarray, stage: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Contamination after a stage, and what the stage costs: prevention, its price, and the share of draws above the limit.

    Args:
        z: before the stage, shape (n, draws).
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


def certify_contamination() -> tuple[float, dict[str, Any]]:
    """Breadth first over the stages; a prefix that costs as much as a known solution is dropped, as no stage costs less than 0."""
    incumbent = min(contamination({f"x{i + 1}": (p >> (i % 8)) & 1 for i in range(STAGES)}) for p in range(256))
    z, costs, chosen = rates()[0][None], np.zeros(1), np.zeros((1, 0), dtype=np.int8)
    for stage in range(STAGES):
        z, costs, chosen = np.repeat(z, 2, axis=0), np.repeat(costs, 2), np.repeat(chosen, 2, axis=0)
        x = np.tile([0.0, 1.0], len(z) // 2)
        z, cost = step(z, stage, x)
        costs, chosen = costs + cost, np.column_stack([chosen, x.astype(np.int8)])
        kept = costs <= incumbent + 1e-9
        z, costs, chosen = z[kept], costs[kept], chosen[kept]
        # one prefix contaminated no more than another in every draw, and no dearer, makes the other needless
        if len(z) > 2000:
            z, costs, chosen = _undominated(z, costs, chosen)
    k = int(np.argmin(costs))
    return float(costs[k]), {f"x{i + 1}": int(v) for i, v in enumerate(chosen[k])}


def _undominated(z: np.ndarray, costs: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(costs, kind="stable")
    z, costs, chosen = z[order], costs[order], chosen[order]
    kept: list[int] = []
    champions = np.zeros((0, z.shape[1]))
    for k in range(len(z)):
        if len(kept) and (champions <= z[k]).all(axis=1).any():
            continue
        kept.append(k)
        if len(champions) < 200:  # the cheapest prefixes are enough to compare with
            champions = np.vstack([champions, z[k]])
    return z[kept], costs[kept], chosen[kept]


# -- low-autocorrelation binary sequences: least energy E = sum_k C_k^2; the loss is the negative merit factor -n^2 / 2E -----


def merit(config: Config) -> float:
    s = np.array([2.0 * config[f"x{i}"] - 1.0 for i in range(1, LENGTH + 1)])
    side = np.correlate(s, s, mode="full")[LENGTH:]
    return -(LENGTH**2) / (2.0 * float(side @ side))


def certify_merit() -> tuple[float, dict[str, Any]]:
    """All sequences that start with 1 (a flipped sequence has the same energy), in blocks."""
    tail, best = 12, (np.inf, 0)
    for block in range(2 ** (LENGTH - 1 - tail)):
        codes = (block << tail) + np.arange(2**tail)
        s = 2.0 * ((codes[:, None] >> np.arange(LENGTH)) & 1) - 1.0
        energy = sum(((s[:, k:] * s[:, :-k]).sum(axis=1)) ** 2 for k in range(1, LENGTH))
        k = int(np.argmin(energy))
        best = min(best, (float(energy[k]), int(codes[k])))
    config = {f"x{i + 1}": (best[1] >> i) & 1 for i in range(LENGTH)}
    return -(LENGTH**2) / (2.0 * best[0]), config


PROBLEMS = (
    Problem(
        name="contamination",
        space=lambda: bits("contamination control", STAGES),
        objective=contamination,
        group="free",
        optimum=22.46,
        certificate="enumeration",
        source="Baptista and Poloczek, Bayesian optimization of combinatorial structures, 4.3",
        certify=certify_contamination,
    ),
    Problem(
        name="labs",
        space=lambda: bits("low-autocorrelation binary sequence", LENGTH),
        objective=merit,
        group="free",
        optimum=-8.0,
        certificate="enumeration",
        source="Packebusch and Mertens, Low autocorrelation binary sequences: E = 36 at n = 24",
        certify=certify_merit,
    ),
)
