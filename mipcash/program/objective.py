"""From a Pyomo expression to a quadratic form over a program's base columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunct

from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.names import user_name
from mipcash.modelling.quadratic import take_apart
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram

Affine = tuple[float, dict[int, float]]


def objective_form(declaration: Declaration, program: BinaryProgram, expression: Any) -> QuadraticForm:
    """The expression as a folded form.

    Raises:
        RuleError: degree above two, or parameters of another space.
        SpaceError: a product of two numbers, or a number that occurs in no rule (it has no column).
    """
    body = take_apart(expression, "the objective")
    declaration.refuse_foreign("the objective", body)
    affine = _images(declaration, program)
    linear = np.zeros(program.n)
    constant = body.constant
    rows: list[int] = []
    cols: list[int] = []
    values: list[float] = []
    for i, c in body.linear.items():
        base, terms = _image(affine, body.variables[i])
        constant += c * base
        for column, t in terms.items():
            linear[column] += c * t
    for (i, j), c in body.products.items():
        base_i, terms_i = _image(affine, body.variables[i])
        base_j, terms_j = _image(affine, body.variables[j])
        constant += c * base_i * base_j
        for column, t in terms_i.items():
            linear[column] += c * base_j * t
        for column, t in terms_j.items():
            linear[column] += c * base_i * t
        for a, s in terms_i.items():
            for b, t in terms_j.items():
                if a >= program.n_z and b >= program.n_z:
                    first, second = (user_name(body.variables[k]) for k in (i, j))
                    raise SpaceError(
                        f"the objective multiplies two numbers ({first} and {second}); "
                        "a product may hold at most one real or wide integer"
                    )
                rows.append(a)
                cols.append(b)
                values.append(c * s * t)
    form = QuadraticForm(
        constant, linear, np.array(rows, dtype=np.int64), np.array(cols, dtype=np.int64), np.array(values)
    )
    return program.folded(form)


def _images(declaration: Declaration, program: BinaryProgram) -> dict[int, Affine]:
    images: dict[int, Affine] = {}
    for spec, group in zip(declaration.groups, program.groups, strict=True):
        for l, variable in enumerate(spec.variables):
            images[id(variable)] = (0.0, {group.start + l: 1.0})
    columns = {n.label: n.column for n in program.numbers}
    for number in declaration.numbers:
        if number.label in columns:
            images[id(number.variable)] = (0.0, {columns[number.label]: 1.0})
    for link in declaration.links:
        terms: dict[int, float] = {}
        for i, c in link.value.linear.items():
            for column, t in images[i][1].items():
                terms[column] = terms.get(column, 0.0) + c * t
        images[id(link.variable)] = (link.value.constant, terms)
    model: Any = declaration.model
    named = {v.name: v for v in model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct))}
    for name, column in program.variable_columns.items():
        variable = named.get(name)  # None for what the transformation of logic added
        if variable is not None and id(variable) not in images:
            images[id(variable)] = (0.0, {column: 1.0})
    return images


def _image(images: dict[int, Affine], variable: Any) -> Affine:
    if id(variable) not in images:
        raise SpaceError(
            f"the objective uses {variable.name!r}, which occurs in no rule and so has no column in the program; "
            "minimise over the discrete parameters and the numbers that rules mention"
        )
    return images[id(variable)]
