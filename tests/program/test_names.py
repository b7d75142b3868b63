"""Names of variables in transformed models after garbage collection, and names with unusual characters."""

from __future__ import annotations

import gc

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.program import algebra
from mipcash.space.compiled import declaration_of


def test_variables_of_a_transformed_clone_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyomo refers to parents weakly, so the compiler must not read names from a clone that was collected."""
    original = algebra._Transformed.collect

    def collected(self: object, declaration: object, groups: object) -> object:
        found = original(self, declaration, groups)
        del self
        gc.collect()
        return found

    monkeypatch.setattr(algebra._Transformed, "collect", collected)
    space = mc.Space("disjunctive")
    a, b = space.integer("a", 0, 3), space.integer("b", 0, 3)
    space.model.choice = Disjunction(expr=[[a + b <= 1], [a + b >= 5]])
    found = algebra.algebraic_model(declaration_of(space))
    gc.collect()
    names = {v.name for row in found.rows for v in row.body.variables.values()}
    assert {f"choice_disjuncts[{k}].binary_indicator_var" for k in (0, 1)} <= names
    assert space.optimum(a - b, "max").value == 1


@pytest.mark.parametrize("name", ["a b", "a.b", "a[1]", "x]y", "quote'", 'double"', "ünï", "a:b", "*", "[", "a,b", "1"])
def test_any_string_may_name_a_parameter_an_auxiliary_variable_or_a_rule(name: str) -> None:
    space = mc.Space(name)
    k, x = space.integer(name, 0, 3), space.real(name + "x", 0.0, 1.0)
    auxiliary = space.auxiliary(name + "h", 0, 3)
    space.rule(name, k + x <= 2.5)
    space.rule(name + "even", k == 2 * auxiliary)
    space.model.logic = pyo.LogicalConstraint(expr=pyo.lnot(k.boolean(0)))
    solution = space.optimum(k + x + auxiliary, "max")
    assert solution.value == pytest.approx(3.5)
    assert solution.config == {name: 2, name + "x": pytest.approx(0.5)}
    assert not space.is_legal({name: 1, name + "x": 0.1})
