"""Checks that Pyomo's transformations can handle the model's logic, made before anything is transformed."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import logical_expr as logic
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.gdp import Disjunct, Disjunction

from mipcash.errors import RuleError

BLOCKS = (pyo.Block, Disjunct)

CONNECTIVES = (
    *(logic.NotExpression, logic.XorExpression, logic.EquivalenceExpression, logic.ImplicationExpression),
    *(logic.AndExpression, logic.OrExpression),
)
COUNTS = (logic.AtLeastExpression, logic.AtMostExpression, logic.ExactlyExpression)
"""Their first argument is a number, all other arguments are logical."""


def refuse_logic(model: Any) -> None:
    """Refuse logic that cannot be transformed.

    Raises:
        RuleError: a logical constraint that contains a relation, a count up to a variable or an unknown operator; an active
            disjunct that no active disjunction lists.
    """
    for data in model.component_data_objects(pyo.LogicalConstraint, active=True, descend_into=BLOCKS):
        _check(data.name, data.expr)
    listed = set[int]()
    for data in model.component_data_objects(Disjunction, active=True, descend_into=BLOCKS):
        listed.update(map(id, data.disjuncts))
    for disjunct in model.component_data_objects(Disjunct, active=True, descend_into=BLOCKS):
        if id(disjunct) not in listed:
            raise RuleError(
                f"disjunct {disjunct.name!r} is in no active Disjunction, so that nothing says when it holds; list it in one "
                "(an empty Disjunct may be the alternative), or deactivate it"
            )


def _check(name: str, expression: Any) -> None:
    if isinstance(expression, RelationalExpression):
        raise RuleError(
            f"logical constraint {name!r} holds the relation {expression}; put it into a Disjunct and use its indicator_var, "
            "or use indicators such as layers.boolean(2)"
        )
    if not getattr(expression, "is_expression_type", lambda: False)():
        return
    arguments = list(expression.args)
    if isinstance(expression, COUNTS):
        count = arguments.pop(0)
        if getattr(count, "is_potentially_variable", lambda: False)():
            raise RuleError(
                f"logical constraint {name!r} counts up to {count}, which is not a constant; give the number, or write the "
                "count as a constraint over binaries"
            )
    elif not isinstance(expression, CONNECTIVES):
        raise RuleError(
            f"logical constraint {name!r} uses {type(expression).__name__}, which cannot be turned into rows; write it with "
            "and, or, not, implies, atleast, atmost, exactly"
        )
    for argument in arguments:
        _check(name, argument)
