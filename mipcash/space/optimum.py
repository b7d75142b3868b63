"""The optimum of an expression over the legal configurations, with a proven bound.

The Pyomo expression becomes a quadratic form over a program's base columns.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.objective import Objective, ObjectiveData
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.core.pyomoobject import PyomoObject
from pyomo.gdp import Disjunct

from mipcash.backends.reductions.scaling import objective_unit
from mipcash.backends.task import FEASIBLE, OPTIMAL, Answer, SolverSettings
from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, is_bool, is_number
from mipcash.modelling.names import user_name
from mipcash.modelling.parameters import ChoiceParameter
from mipcash.modelling.quadratic import Quadratic, parse_quadratic
from mipcash.modelling.validation import check
from mipcash.modelling.wording import shortened, written
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import CompiledSpace
from mipcash.space.direction import MAXIMIZE, MINIMIZE, direction_of
from mipcash.space.minimiser import Minimiser
from mipcash.space.solution import Solution, as_solution

ONE = -1
"""Column of the constant 1 in an image."""
Image = dict[int, float]
"""Column -> coefficient: a variable as a sum over columns."""


def form_of(declaration: Declaration, program: BinaryProgram, body: Quadratic) -> QuadraticForm:
    """Return a polynomial over declared variables as a form over the base columns of the program.

    Raises:
        SpaceError: a variable has no column, or two numbers are multiplied.
    """
    images, total = _images(declaration, program), defaultdict[tuple[int, int], float](float)
    for i, c in body.linear.items():
        for a, s in _image(images, body.variables[i]).items():
            total[a, ONE] += c * s
    for (i, j), c in body.products.items():
        for a, s in _image(images, body.variables[i]).items():
            for b, t in _image(images, body.variables[j]).items():
                if a >= program.n_z and b >= program.n_z:
                    first, second = (user_name(body.variables[k]) for k in (i, j))
                    raise SpaceError(
                        f"the objective multiplies two numbers ({first} and {second}); a product may hold at most one real, "
                        "wide integer or integer auxiliary variable; declare a real, set it equal to the product by a rule, and "
                        "optimise that"
                    )
                total[a, b] += c * s * t
    pairs, values = np.array(list(total), dtype=np.int64).reshape(-1, 2), np.array(list(total.values()))
    single, linear = np.any(pairs == ONE, axis=1), np.zeros(program.n + 1)
    np.add.at(linear, pairs[single].max(axis=1), values[single])
    rows, cols = pairs[~single].T
    return program.folded(QuadraticForm(body.constant + float(linear[ONE]), linear[:ONE], rows, cols, values[~single]))


def value_at(declaration: Declaration, program: BinaryProgram, body: Quadratic, columns: Vector) -> float:
    """Return the value of a polynomial over declared variables at base columns, (n,).

    Raises:
        SpaceError: a variable has no column.
    """
    images, known = _images(declaration, program), np.append(columns, 1.0)
    of = {i: _image(images, variable) for i, variable in body.variables.items()}
    return body.value({i: sum(t * float(known[column]) for column, t in image.items()) for i, image in of.items()})


def _shifted(program: BinaryProgram, form: QuadraticForm, levels: Indices | None = None) -> QuadraticForm:
    """Return the form with costs of levels that start from 0 in each group: one level is taken, so a common cost is a constant.

    Beside costs of 3e5 a solver's tolerance on reduced costs ignores 1e-4, even if the levels of a group differ by 9 only.

    Args:
        levels: level of each group whose cost becomes 0, shape (n_groups,); the cheapest ones if None.
    """
    linear, constant = form.linear.copy(), form.constant
    for i, group in enumerate(program.groups):
        costs = linear[group.start : group.stop]
        common = float(costs.min() if levels is None else costs[levels[i]])
        linear[group.start : group.stop] -= common
        constant += common
    return replace(form, linear=linear, constant=constant)


def _images(declaration: Declaration, program: BinaryProgram) -> dict[int, Image]:
    """Return the images of the variables with columns, by id."""
    images: dict[int, Image] = {}
    for spec, group in zip(declaration.groups, program.groups, strict=True):
        images.update((id(v), {group.start + l: 1.0}) for l, v in enumerate(spec.variables))
    columns = {n.label: n.column for n in program.numbers}
    images.update((id(n.variable), {columns[n.label]: 1.0}) for n in declaration.numbers if n.label in columns)
    for link in declaration.links:
        image: Image = defaultdict(float, {ONE: link.value.constant})
        for i, c in link.value.linear.items():
            for column, t in images[i].items():
                image[column] += c * t
        images[id(link.variable)] = image
    model: Any = declaration.model
    named = {v.name: v for v in model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct))}
    for name, column in program.variable_columns.items():
        if name in named:  # other variables were added by the transformation of logic
            images.setdefault(id(named[name]), {column: 1.0})
    return images


def _image(images: dict[int, Image], variable: Any) -> Image:
    if id(variable) not in images:
        raise SpaceError(
            f"the objective uses {variable.name!r}, which occurs in no rule and so has no column in the program; "
            "minimise over the discrete parameters and the numbers that rules mention"
        )
    return images[id(variable)]


LEAST_UNIT = 1e-290
"""Smallest number by which an objective is divided."""
MOVED = 1e-5
"""Relative difference between the value of a configuration and the program's above which the value is not called optimal."""


def optimum(
    space: CompiledSpace, minimiser: Minimiser, expression: Any, direction: str | None, settings: SolverSettings
) -> Solution:
    """Optimise an expression; see ``mipcash.Space.optimum``.

    Args:
        minimiser: minimiser over the space's program.
        settings: solver limits; the seed is also used for local search.
    """
    expression, direction = _objective(_expression(space.declaration, expression), direction)
    body = parse_quadratic(expression, "the objective")
    space.declaration.refuse_foreign("the objective", body)
    missing = [n for n in space.tuned if n.label not in space.in_rules]
    if unused := {n.label for n in missing if any(id(v) in body.ids for v in n.columns())}:
        space = space.wider(unused)
        minimiser = Minimiser(space.program, minimiser.backend)
    began = time.perf_counter()
    sign, solver = 1.0 if direction == MINIMIZE else -1.0, minimiser.backend.name
    form = form_of(space.declaration, space.program, body)
    # tolerances are absolute, and would hide the differences of an objective in farads
    unit = min(1.0, max(LEAST_UNIT, objective_unit(np.concatenate([form.linear, form.values]))))
    form = form.scaled(sign / unit)
    config: Configuration | None = None
    exact, levels = None, None
    for _ in range(2):  # costs that are counted from the levels of the first answer have no rounding there
        rng = np.random.default_rng(settings.seed)
        answer = minimiser.minimise(_shifted(space.program, form, levels), settings, rng=rng)
        if answer.columns is None:
            break
        levels = space.program.levels_of(answer.columns)
        config = space.configuration(levels, answer.columns)
        exact = _revalued(space, answer, config, body, sign / unit)
        if exact.status == answer.status:
            break
    return as_solution(config, exact or answer, sign * unit, began, solver)


def _revalued(space: CompiledSpace, answer: Answer, config: Configuration, body: Quadratic, factor: float) -> Answer:
    """Return the answer with the objective value of the configuration, which may differ from the program's by rounding.

    If it differs by more, the bound is lowered by the difference, and the answer is not called optimal.

    Args:
        factor: by which the objective was multiplied.
    """
    values = check(space.declaration, config, space.rules).assignment
    if not body.ids <= values.keys():
        return answer
    value = factor * body.value(values)
    distance = abs(value - answer.value)
    if distance <= MOVED * max(1.0, abs(value), abs(answer.value)):
        return replace(answer, value=value, bound=min(answer.bound, value))
    status = FEASIBLE if answer.status == OPTIMAL else answer.status
    return replace(answer, status=status, value=value, bound=min(answer.bound, value) - distance)


def _expression(declaration: Declaration, expression: Any) -> Any:
    """Return an expression that can be optimised; the name of a parameter stands for that parameter.

    Raises:
        SpaceError: an unknown name, or an expression without a numeric value.
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
    """Return the expression to optimise and its direction, ``minimize`` if none is given.

    Raises:
        SpaceError: an indexed component without exactly one active member, an invalid direction, or a direction that contradicts
            the objective's own.
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
            f"the objective has the direction {own}, and direction= is {direction!r}; leave direction= out, or give its .expr"
        )
    return expression, given or own or MINIMIZE
