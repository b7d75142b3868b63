"""Sparsification of an Ising model on a 4 x 4 grid: keep few of its 24 couplings and stay close in Kullback-Leibler divergence.

Baptista and Poloczek, "Bayesian optimization of combinatorial structures", Section 4.2. Here p is the model, q the
model of the couplings kept (x), <zz> the correlations under p, and W the partition functions.

    loss(x) = sum_e (1 - x_e) J_e <z_i z_j> + log W_q - log W_p + lambda sum_e x_e

W comes from transfer matrices over the 16 states of a row: W = L(x)' B(x) R(x), where L holds the upper two rows, B the
couplings between the middle rows and R the lower two. All 2^24 subsets are 2^10 times 2^4 times 2^10 such products, so
the optimum is certified by enumeration, with or without rules.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product

import numpy as np

import mipcash as mc
from benchmarks.peers.problem import Config, described

SIDE = 4
PRICE = 0.3
"""lambda. The paper's values 1e-4 to 1e-2 keep all but one coupling of this model; 0.3 keeps about half."""
KEEP_AT_MOST = 10
SEED = 3
ACROSS = [(r, c, r, c + 1) for r in range(SIDE) for c in range(SIDE - 1)]
DOWN = [(r, c, r + 1, c) for r in range(SIDE - 1) for c in range(SIDE)]
EDGES = ACROSS + DOWN
NAMES = [f"e{r}{c}{s}{d}" for r, c, s, d in EDGES]
STATES = np.array(list(product((-1.0, 1.0), repeat=SIDE)))


@cache
def couplings() -> np.ndarray:
    """Return J, shape (24,): absolute values uniform in [0.05, 5], random signs, as in the paper."""
    rng = np.random.default_rng(SEED)
    return rng.uniform(0.05, 5.0, len(EDGES)) * rng.choice([-1.0, 1.0], len(EDGES))


def row_weights(row: int, kept: np.ndarray) -> np.ndarray:
    """Return the Boltzmann weights of the 16 states of one row from the couplings inside it, shape (16,)."""
    j = kept[row * (SIDE - 1) : (row + 1) * (SIDE - 1)]
    return np.exp((STATES[:, :-1] * STATES[:, 1:]) @ j)


def between(row: int, kept: np.ndarray) -> np.ndarray:
    """Return the Boltzmann weights between a row and the next, shape (16, 16)."""
    first = len(ACROSS) + row * SIDE
    return np.exp((STATES * kept[first : first + SIDE]) @ STATES.T)


def log_partition(kept: np.ndarray) -> float:
    """Return log W of the model with these couplings, shape (24,)."""
    v = row_weights(0, kept)
    for row in range(1, SIDE):
        v = (v @ between(row - 1, kept)) * row_weights(row, kept)
    return float(np.log(v.sum()))


@cache
def correlations() -> np.ndarray:
    """Return <z_i z_j> under the full model, shape (24,), by central differences of log W, exact to 1e-9 here."""
    full, step, found = couplings(), 1e-5, []
    for e in range(len(EDGES)):
        move = np.zeros(len(EDGES))
        move[e] = step
        found.append((log_partition(full + move) - log_partition(full - move)) / (2 * step))
    return np.array(found)


@cache
def _full() -> float:
    return log_partition(couplings())


def loss(x: np.ndarray) -> float:
    """Return divergence plus price of the kept couplings x, zeros and ones of shape (24,)."""
    j = couplings()
    return float(((1 - x) * j) @ correlations() + log_partition(x * j) - _full() + PRICE * x.sum())


def objective(config: Config) -> float:
    return loss(np.array([config[name] for name in NAMES], dtype=float))


def space(rules: bool) -> mc.Space:
    made = mc.Space("ising")
    x = {name: made.integer(name, 0, 1) for name in NAMES}
    if rules:
        made.rule("at most ten couplings", sum(x.values()) <= KEEP_AT_MOST)
        for r, c in product(range(1, SIDE - 1), repeat=2):  # inner nodes of the grid: two couplings of four at most
            made.rule(f"node {r}{c}: at most two couplings", sum(x[n] for n in at_node(r, c)) <= 2)
        for c in range(SIDE - 1):
            made.rule(f"rows 0 and {SIDE - 1}: not both couplings {c}", x[f"e0{c}0{c + 1}"] + x[f"e3{c}3{c + 1}"] <= 1)
    return made


def at_node(r: int, c: int) -> list[str]:
    """Return the names of the couplings at a node."""
    return [n for n, (a, b, s, d) in zip(NAMES, EDGES, strict=True) if (r, c) in ((a, b), (s, d))]


def legal(x: np.ndarray) -> np.ndarray:
    """Return True for x, shape (..., 24), that satisfy the rules. It is independent of the space."""
    good = x.sum(axis=-1) <= KEEP_AT_MOST
    for r, c in product(range(1, SIDE - 1), repeat=2):
        good &= x[..., [NAMES.index(n) for n in at_node(r, c)]].sum(axis=-1) <= 2
    for c in range(SIDE - 1):
        good &= x[..., NAMES.index(f"e0{c}0{c + 1}")] + x[..., NAMES.index(f"e3{c}3{c + 1}")] <= 1
    return good


PROBLEMS = (described("ising", partial(space, False), objective), described("ising-rules", partial(space, True), objective))
