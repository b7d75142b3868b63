"""The optimum of an expression over the legal configurations, with a bound that holds for every one of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.objective import Objective, ObjectiveData
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.core.pyomoobject import PyomoObject

from mipcash.backends.base import FEASIBLE, OPTIMAL, Answer, SolverSettings
from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, is_bool, is_number
from mipcash.modelling.parameters import ChoiceParameter
from mipcash.modelling.quadratic import take_apart
from mipcash.modelling.validation import check
from mipcash.modelling.wording import shortened, written
from mipcash.program.objective import objective_form
from mipcash.space.compiled import CompiledSpace
from mipcash.space.direction import MAXIMIZE, MINIMIZE, direction_of
from mipcash.space.minimiser import Minimiser
from mipcash.space.solution import Solution, as_solution

MOVED = 1e-5
"""Relative difference between the value of a configuration and the proven bound from which on it is not called optimal."""


def optimum(
    space: CompiledSpace, minimiser: Minimiser, expression: Any, direction: str | None, settings: SolverSettings
) -> Solution:
    """See :meth:`mipcash.Space.optimum`.

    Args:
        minimiser: of the space's program.
        settings: its seed is that of local search, too.
    """
    expression, direction = _objective(_expression(space.declaration, expression), direction)
    unused = _unused_numbers(space, expression)
    if unused:
        space = space.wider(unused)
        minimiser = Minimiser(space.program, minimiser.backend)
    began = time.perf_counter()
    sign, solver = 1.0 if direction == MINIMIZE else -1.0, minimiser.backend.name
    form = objective_form(space.declaration, space.program, expression).scaled(sign)
    answer = minimiser.minimise(form, settings, rng=np.random.default_rng(settings.seed))
    if answer.columns is None:
        return as_solution(None, answer, sign, began, solver)
    config = space.configuration(space.program.levels_of(answer.columns), answer.columns)
    return as_solution(config, _revalued(space, answer, config, expression, sign), sign, began, solver)


def _revalued(space: CompiledSpace, answer: Answer, config: Configuration, expression: Any, sign: float) -> Answer:
    """The answer with the objective of the configuration itself, whose numbers may differ from the program's by a rounding."""
    body = take_apart(expression, "the objective")
    values = check(space.declaration, config, space.rules).assignment
    if not space.program.numbers or not body.ids <= values.keys():
        return answer
    value = sign * body.value(values)
    bound = min(answer.bound, value)
    # what the rules' own tolerance moved away from the program's point is no longer what was proven
    moved = value - bound > MOVED * max(1.0, abs(value), abs(bound)) and answer.status == OPTIMAL
    return replace(answer, status=FEASIBLE if moved else answer.status, value=value, bound=bound)


def _unused_numbers(space: CompiledSpace, expression: Any) -> set[str]:
    """Labels of the numbers in an expression that no rule mentions, and that the program therefore leaves out."""
    used = take_apart(expression, "the objective").ids
    missing = [n for n in space.tuned if n.label not in space.in_rules]
    return {n.label for n in missing if any(id(v) in used for v in n.columns())}


def _expression(declaration: Declaration, expression: Any) -> Any:
    """What can be optimised: an expression as it is, a parameter by its name.

    Raises:
        SpaceError: a name that there is not, or what has no numeric value.
    """
    if isinstance(expression, str):
        expression = declaration[expression]
    if isinstance(expression, ChoiceParameter):
        cure = f"optimise one of its indicators, such as space[{expression.label!r}]"
        values = getattr(expression.domain, "values", None)
        cure += f"[{values[0]!r}]" if values else ".position(module)"
        raise SpaceError(f"parameter {expression.label!r} ({expression.domain}) has no numeric value; {cure}")
    if is_bool(expression) or isinstance(expression, RelationalExpression):
        raise SpaceError(
            f"optimum() takes an expression such as layers * width, not the relation {shortened(written(expression))}; a relation "
            "belongs into space.rule(name, relation)"
        )
    if not (is_number(expression) or isinstance(expression, PyomoObject)):
        raise SpaceError(
            f"optimum() takes an expression such as layers * width or a parameter's name, got {shortened(repr(expression), 60)}"
        )
    return expression


def _objective(expression: Any, direction: str | None) -> tuple[Any, str]:
    """What is optimised and in which direction.

    Raises:
        SpaceError: no direction, or one that contradicts the objective's own.
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
        own, expression = MAXIMIZE if expression.sense == pyo.maximize else MINIMIZE, expression.expr
    given = None if direction is None else direction_of(direction)
    if own is not None and given is not None and given != own:
        raise SpaceError(
            f"the objective is to be {own}d and direction= says {direction!r}; leave direction= out, or give its .expr"
        )
    return expression, given or own or MINIMIZE
