"""The optimum of an expression over the legal configurations, with a bound that holds for every one of them."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.objective import Objective, ObjectiveData

from mipcash.backends.base import Answer, Backend, SolverSettings, Task
from mipcash.backends.solution import FEASIBLE, INFEASIBLE, OPTIMAL, UNKNOWN, Solution, relative_gap
from mipcash.errors import SpaceError
from mipcash.modelling.domains import Configuration
from mipcash.modelling.quadratic import take_apart
from mipcash.modelling.validation import check
from mipcash.program.compile import compile_space
from mipcash.program.forms import QuadraticForm
from mipcash.program.objective import objective_form
from mipcash.program.rewriting import without_margins
from mipcash.space.compiled import SpaceCore
from mipcash.space.minimiser import Oracle, as_solution


class SpaceOptimum(SpaceCore):
    """A space whose expressions can be minimised and maximised exactly."""

    def optimum(
        self,
        expression: Any,
        sense: str | None = None,
        solver: str | Backend = "auto",
        time_limit: float = 60.0,
        *,
        threads: int = 1,
        seed: int = 0,
        gap: float = 1e-6,
    ) -> Solution:
        """Minimise or maximise an expression over the legal configurations, with proof.

        Args:
            expression: linear or quadratic in the parameters; a product may hold at most one real or wide integer. A Pyomo
                ``Objective`` brings its sense along.
            sense: ``min`` or ``max``; None: that of an ``Objective``, else ``min``.
            time_limit: seconds; when it is reached the incumbent and the bound are returned, never an exception.

        Raises:
            RuleError: degree above two, or parameters of another space.
            SpaceError: an unknown sense, or a product of two numbers.
            SolverError: the solver is not installed.
        """
        expression, sense = _objective(expression, sense)
        unused = self._unused_numbers(expression)
        if unused:
            return self._optimum_with(
                unused, expression, sense, solver, time_limit, threads=threads, seed=seed, gap=gap
            )
        began = time.perf_counter()
        oracle, sign = self.oracle(solver), 1.0 if sense == "min" else -1.0
        form = objective_form(self, oracle.program, expression).scaled(sign)
        settings = SolverSettings(time_limit=time_limit, threads=threads, seed=seed, gap=gap)
        rng = np.random.default_rng(seed)
        point = oracle.minimise(form, settings, rng=rng)
        if point is None:
            answer = self._beyond_margins(oracle, form, oracle.last, settings)
            return as_solution(None, answer, sign, began, oracle.backend.name)
        config = self.configuration(point, rng=None)
        answer = self._beyond_margins(oracle, form, point.answer, settings)
        return as_solution(config, self._revalued(answer, config, expression, sign), sign, began, oracle.backend.name)

    def _revalued(self, answer: Answer, config: Configuration, expression: Any, sign: float) -> Answer:
        """The answer with the objective of the configuration itself, whose numbers may differ from the program's by a rounding."""
        body = take_apart(expression, "the objective")
        values = check(self, config, self._latest().rules).assignment
        if not self._latest().program.numbers or not body.ids <= values.keys():
            return answer
        value = sign * body.value(values)
        return replace(answer, value=value, bound=min(answer.bound, value))

    def _beyond_margins(self, oracle: Oracle, form: QuadraticForm, answer: Answer, settings: SolverSettings) -> Answer:
        """An answer that also holds for what the margins of products of reals leave out of the program."""
        if not oracle.program.margin or answer.status not in (OPTIMAL, INFEASIBLE):
            return answer
        wide = oracle.backend.solve(Task(without_margins(oracle.program), oracle.program.folded(form)), settings)
        if wide.status == INFEASIBLE:
            return answer
        if answer.columns is None:
            return replace(answer, status=UNKNOWN, bound=wide.bound)
        bound = min(answer.bound, wide.bound)
        close = relative_gap(answer.value, bound) <= settings.gap
        return replace(answer, status=OPTIMAL if close else FEASIBLE, bound=bound)

    def _unused_numbers(self, expression: Any) -> set[str]:
        """Labels of the numbers in an expression that no rule mentions, and that the program therefore leaves out."""
        columns = {n.label for n in self.program.numbers}
        used = take_apart(expression, "the objective").ids
        missing = [n for n in self.numbers if n.tuned and n.label not in columns]
        return {n.label for n in missing if any(id(v) in used for v in n.columns())}

    def _optimum_with(self, wanted: Collection[str], *arguments: Any, **options: Any) -> Solution:
        """The optimum over a program that has columns for these numbers too; the space's own program stays as it is."""
        own, oracles = self._current(), self._oracles
        try:
            self._snapshot, self._oracles = replace(own, program=compile_space(self, wanted)), {}
            return self.optimum(*arguments, **options)
        finally:
            self._snapshot, self._oracles = own, oracles


def _objective(expression: Any, sense: str | None) -> tuple[Any, str]:
    """What is optimised and in which sense.

    Raises:
        SpaceError: an unknown sense, or one that contradicts the objective's own.
    """
    if isinstance(expression, IndexedComponent) and expression.is_indexed():
        active = [data for data in expression.values() if data.active]
        if not isinstance(expression, Objective) or len(active) != 1:
            raise SpaceError(
                f"{expression.name!r} is indexed: it holds {len(active)} active members where one is optimised; give one of them"
            )
        (expression,) = active
    own = None
    if isinstance(expression, ObjectiveData):
        own, expression = "max" if expression.sense == pyo.maximize else "min", expression.expr
    if sense not in ("min", "max", None):
        raise SpaceError(f"sense must be 'min' or 'max', got {sense!r}")
    if own is not None and sense is not None and sense != own:
        raise SpaceError(
            f"the objective is to be {own}imised and sense= says {sense!r}; leave sense= out, or give its .expr"
        )
    return expression, sense or own or "min"
