"""Proofs of optima: Gurobi's spatial branch and bound (extra ``gurobi``; its free licence is enough)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

GAP = 1e-7
LIMIT = 600.0
"""Seconds of one proof."""


def minimum(build: Callable[[Any], tuple[Any, Any]], target: float) -> tuple[float, Any]:
    """A number that no value of a function is below, and where the function attains it; no value above a target is looked for.

    Args:
        build: adds variables and constraints to a ``gurobipy.Model`` and returns the objective, to be minimised, and a
            matrix variable to report.

    Returns:
        the bound, to within Gurobi's feasibility tolerance (1e-6 per function constraint), at most ``target``;
        the variable's values, None where nothing is below the target.

    Raises:
        ModuleNotFoundError: gurobipy is not installed.
        RuntimeError: no proof within :data:`LIMIT` seconds.
    """
    import gurobipy as gp

    with (
        gp.Env(params={"OutputFlag": 0, "Threads": 1, "MIPGap": GAP, "TimeLimit": LIMIT}) as env,
        gp.Model(env=env) as model,
    ):
        model.Params.Cutoff = min(target, gp.GRB.INFINITY)
        objective, reported = build(model)
        model.setObjective(objective, gp.GRB.MINIMIZE)
        model.optimize()
        # all variables are bounded, so that nothing is "infeasible or unbounded" but what the cutoff leaves
        if model.Status in (gp.GRB.INFEASIBLE, gp.GRB.CUTOFF, gp.GRB.INF_OR_UNBD):
            return target, None
        if model.Status != gp.GRB.OPTIMAL:
            raise RuntimeError(f"Gurobi ended with status {model.Status} and a bound of {model.ObjBound}, not {target}")
        return float(model.ObjBound), reported.X


def smooth(model: Any, kind: str, argument: Any, low: float, high: float) -> Any:
    """A variable that is ``cos`` or ``exp`` of an argument, which lies between low and high."""
    at = model.addVar(lb=low, ub=high)
    value = model.addVar(lb=-1.0 if kind == "cos" else math.exp(low), ub=1.0 if kind == "cos" else math.exp(high))
    model.addConstr(at == argument)
    add = {"cos": model.addGenConstrCos, "exp": model.addGenConstrExp}[kind]
    add(at, value, options="FuncNonlinear=1")
    return value
