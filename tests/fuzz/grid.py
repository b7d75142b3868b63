"""Questions to spaces of which only a grid of assignments is known: what is said to be empty has no legal point of the grid,
what is returned is legal in exact fractions, and no point of the grid beats an optimum or passes a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mipcash.errors import InfeasibleSpaceError
from tests.fuzz.described import Term, expression
from tests.fuzz.questions import ABSOLUTE_GAP, CONFIGS_ASKED, GAP, Interview, objective, value_at
from tests.fuzz.table import Config
from tests.fuzz.truth import ALLOWED


def interview_on_a_grid(asked: Interview, solvers: Sequence[str]) -> None:
    """All questions that a grid can judge."""
    terms = objective(asked, quadratic=False)
    for solver in solvers:
        if terms:
            _check_optimum(asked, solver, terms)
        found = asked.ask("conflict", solver, asked.space.conflict)
        if found is not None and found.rules and not asked.truth.empty:
            asked.record.wrong("conflict", solver, f"none: {_legal_point(asked)} is legal", found)
        _check_bounds(asked, solver)
    legal = asked.truth.legal_configs
    order = asked.rng.permutation(len(legal))
    order = order[np.argsort(~legal[order], kind="stable")]
    for c in {*order[: CONFIGS_ASKED // 2].tolist(), *order[-CONFIGS_ASKED // 2 :].tolist()}:
        config = asked.truth.table.config(c)
        violation = asked.at(config).violation(config)
        assert violation is not None
        if Fraction(1, 10**11) < violation < asked.edge:
            continue
        said = asked.ask("is_legal", "default", asked.space.is_legal, config)
        if said is not None and said != (violation <= ALLOWED):
            asked.record.wrong("is_legal", "default", f"{not said} at {config}", said)
    _check_count(asked)
    given = asked.truth.table.config(int(order[-1]))
    near = asked.ask("nearest", "default", lambda: _unless_empty(asked, lambda: [asked.space.nearest(given)]))
    sample = asked.ask("sample", "default", lambda: _unless_empty(asked, lambda: asked.space.sample(3)))
    for question, configs in (("nearest", near), ("sample", sample)):
        for reason in filter(None, (asked.illegal(config) for config in configs or ())):
            asked.record.wrong(question, "default", "a legal configuration", reason)


def _unless_empty(asked: Interview, call: Any) -> Any:
    """An answer; None where the library says that a space is empty of which no point of the grid is legal."""
    try:
        return call()
    except InfeasibleSpaceError:
        if asked.truth.empty:
            return None
        raise


def _legal_point(asked: Interview) -> Config:
    return asked.truth.table.config(int(np.flatnonzero(asked.truth.legal_configs)[0]))


def _check_optimum(asked: Interview, solver: str, terms: tuple[Term, ...]) -> None:
    wanted = expression(asked.drawn, terms, asked.space)
    size = max(abs(t.coefficient) for t in terms)
    for which, sense, sign in ((0, "min", 1.0), (1, "max", -1.0)):
        solution = asked.ask(f"optimum {sense}", solver, asked.space.optimum, wanted, sense)
        if solution is None:
            continue
        problem = ""
        asked.record.unproven[solver] += solution.status not in ("optimal", "infeasible")
        if solution.config is not None and not (problem := asked.illegal(solution.config)):
            at = float(value_at(asked.at(solution.config), terms, solution.config))
            if abs(at - solution.value) > GAP * abs(at) + 1e-9 * size:
                problem = f"the value at the configuration, {at!r}"
        if not problem and not asked.truth.empty:
            best = float(asked.truth.extremes(terms)[which])
            slack = GAP * abs(best) + 1e-9 * size + ABSOLUTE_GAP
            if solution.status == "infeasible":
                problem = f"not empty: {_legal_point(asked)} is legal"
            elif solution.status == "optimal" and sign * solution.value > sign * best + slack:
                problem = f"at most {best!r}" if sign > 0 else f"at least {best!r}"
            elif sign * solution.bound > sign * best + slack:
                problem = f"a bound that holds for {best!r}"
        if problem:
            said = f"{solution.status}, value {solution.value!r}, bound {solution.bound!r} at {solution.config}"
            asked.record.wrong(f"optimum {sense}", solver, problem, said)


def _check_bounds(asked: Interview, solver: str) -> None:
    found = asked.ask("bounds", solver, lambda **of: _unless_empty(asked, lambda: asked.space.bounds(**of)))
    legal = asked.truth.legal
    for p in asked.drawn.parameters if found is not None else ():
        levels = asked.truth.table.levels[p.name][legal]
        values = [asked.truth.table.drawn[p.name].values[l] for l in np.unique(levels[levels >= 0])]
        extent = found.get(p.name)
        if not values:
            continue
        if extent is None or (extent.always and bool((levels < 0).any())):
            asked.record.wrong(
                "bounds", solver, f"{p.name!r} is active, and not always" if extent else f"{p.name!r}", found
            )
        elif extent.low is not None and p.numeric:
            slack = 1e-6 * max(abs(values[0]), abs(values[-1]), 1e-3 * (p.high - p.low))
            if extent.low > values[0] + slack or extent.high < values[-1] - slack:
                asked.record.wrong("bounds", solver, f"{p.name!r} from {values[0]!r} to {values[-1]!r}", extent)


def _check_count(asked: Interview) -> None:
    table, drawn = asked.truth.table, asked.drawn
    narrow = [p.name for p in drawn.parameters if p.kind != "real" and not drawn.wide(p)]
    found = asked.ask("count", "default", asked.space.count)
    if found is None:
        return
    columns = np.array([table.levels[n] for n in narrow], dtype=np.int64).reshape(len(narrow), table.size)
    most = np.unique(columns, axis=1).shape[1]
    least = np.unique(columns[:, asked.truth.legal], axis=1).shape[1]
    if (found.exact and found.number < least) or found.number > most:
        asked.record.wrong("count", "default", f"from {least} to {most}", found)
