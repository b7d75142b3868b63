"""Choice of linear solvers with conditional settings, which may run out of memory, stagnate or diverge.

The formulas imitate such solvers. A crash returns no outputs. A completed run returns time (the loss), memory and the
remaining error. Each branch has one real, so that the optimum is found by enumeration.
"""

from __future__ import annotations

import math

import mipcash as mc
from benchmarks.peers.problem import Config, described

BITS = {16: (0.6, -3.3), 32: (1.0, -7.0), 64: (1.7, -15.5)}
"""Cost of a number relative to single precision, and log10 of its rounding error."""
PRECONDITIONERS = {"none": (3.0, 0.0, 1.5), "jacobi": (1.6, 0.5, 1.0), "ilu": (0.7, 9.0, 0.3)}
"""Relative iterations, memory, and log10 of the error divided by the tolerance."""
SMOOTHERS = {"jacobi": (0.75, 0.7), "gauss-seidel": (0.5, 1.1), "chebyshev": (0.4, 1.5)}
"""Rate of a sweep at the best damping, and the best damping."""
LIMITS = {"memory": 24.0, "error": -6.0}
MEMORY = 60.0
"""Available memory."""


def space() -> mc.Space:
    s = mc.Space("linear solvers")
    blocks, bits = s.integer("blocks", 1, 16), s.ordinal("bits", list(BITS))
    method = s.module(
        "method",
        {
            "direct": {"fill": mc.Integer(0, 12), "pivot": mc.Real(1e-6, 1, log=True)},
            "iterative": {
                "preconditioner": mc.Categorical(list(PRECONDITIONERS)),
                "restart": mc.Integer(5, 80),
                "tolerance": mc.Real(1e-10, 1e-2, log=True),
            },
            "multigrid": {
                "smoother": mc.Categorical(list(SMOOTHERS)),
                "levels": mc.Integer(1, 8),
                "sweeps": mc.Integer(1, 6),
                "damping": mc.Real(0.2, 1.9),
            },
        },
    )
    s.rule("no factors in half precision", method["direct"] + bits[16] <= 1)
    fill, restart = method.parameter("direct", "fill"), method.parameter("iterative", "restart")
    s.rule("fill fits the blocks", fill <= blocks + 5, when=method["direct"])
    s.rule("the basis fits the blocks", restart <= 5 * blocks + 20, when=method["iterative"])
    levels, sweeps = method.parameter("multigrid", "levels"), method.parameter("multigrid", "sweeps")
    s.rule("few sweeps on many levels", levels + sweeps <= 10, when=method["multigrid"])
    return s


def solve(config: Config) -> dict[str, float]:
    """Return the outputs of a solver; raise mc.Failed if it does not converge."""
    kind = config["method"]
    settings = {k.rpartition(".")[2]: v for k, v in config.items() if k.startswith(f"method.{kind}.")}
    blocks, (cost, rounding) = config["blocks"], BITS[config["bits"]]
    one = {"direct": _direct, "iterative": _iterative, "multigrid": _multigrid}[kind]
    return one(blocks, cost, rounding, **settings)


def _direct(blocks: int, cost: float, rounding: float, fill: int, pivot: float) -> dict[str, float]:
    memory = (1 + 1.3**fill) * blocks**0.9 * cost
    if memory > MEMORY:
        raise mc.Failed("out of memory")
    time = 12 * (1 + (fill - 8) ** 2 / 20) / blocks**0.6 * cost + 0.4 * blocks + 3 * pivot**0.25
    return {"loss": time, "memory": memory, "error": max(rounding + 3, -11 - 1.5 * math.log10(pivot))}


def _iterative(blocks: int, cost: float, rounding: float, preconditioner: str, restart: int, tolerance: float) -> dict[str, float]:
    relative, stored, beyond = PRECONDITIONERS[preconditioner]
    if preconditioner == "none" and tolerance < 1e-6:
        raise mc.Failed("stagnates")
    if preconditioner == "ilu" and blocks > 10:
        raise mc.Failed("a zero pivot")
    digits = -math.log10(tolerance)
    steps = 40 * relative * digits / 6 * (1 + 12 / restart)
    time = steps * cost * (0.05 + 0.009 * stored) / blocks**0.5 + 0.3 * blocks
    memory = 0.25 * restart * cost + stored * cost + 0.3 * blocks
    return {"loss": time, "memory": memory, "error": max(rounding + 1, beyond - digits)}


def _multigrid(
    blocks: int, cost: float, rounding: float, smoother: str, levels: int, sweeps: int, damping: float
) -> dict[str, float]:
    rate, best = SMOOTHERS[smoother]
    left = (rate + 0.25 * (damping - best) ** 2) ** (sweeps**0.7) + 0.02 * (levels - 6) ** 2
    if left >= 1 or (cost < 1 and levels > 5):
        raise mc.Failed("diverges")
    time = 20 * cost * (0.2 + 0.12 * sweeps) * (1 + 0.1 * levels) / blocks**0.4 + 0.35 * blocks
    memory = 1.5 * levels * cost + 1.1 * blocks
    return {"loss": time, "memory": memory, "error": max(rounding + 2, 12 * math.log10(left))}


PROBLEMS = (described("solvers", space, solve, limits=LIMITS, crashes=True),)
