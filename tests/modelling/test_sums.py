"""Sums that are read and written at once are what Pyomo makes of them, to the last digit and in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.errors import RuleError
from mipcash.modelling import quadratic
from mipcash.modelling.quadratic import take_apart
from mipcash.modelling.sums import KeptTexts, linear_terms, pyomo_text

SPACE = mc.Space("sums")
A, B = SPACE.integer("a", -2, 3), SPACE.ordinal("b", [1, 2, 4])
C, X = SPACE.categorical("c", ["p", "q"]), SPACE.real("x", 0.0, 1.0)
W, D = SPACE.integer("w", 0, 5000), SPACE.integer("d", 1, 3, when=C["p"])
LEAVES: list[Any] = [A, B, C["p"], C["q"], X, W, D, A + B, 0.1 * A - 0.3 * X]
FACTORS = st.sampled_from([1, -1, 2, 0.1, -0.7, 1 / 3, 1e-9, np.float64(0.3), 0, 0.0])
TERMS = st.recursive(
    st.sampled_from(range(len(LEAVES))).map(lambda k: LEAVES[k]) | FACTORS,
    lambda inner: st.one_of(
        st.tuples(FACTORS, inner).map(lambda t: t[0] * t[1]),
        st.tuples(inner, FACTORS).map(lambda t: t[0] * t[1]),
        st.lists(inner, min_size=1, max_size=4).map(sum),
        st.tuples(inner, inner).map(lambda t: t[0] - t[1]),
        inner.map(lambda t: -t),
        st.tuples(inner, st.sampled_from([3.0, 7])).map(lambda t: t[0] / t[1]),
        st.just(A * X),
    ),
    max_leaves=12,
)
READ: list[bool] = []


def pyomos(expression: Any, monkeypatch: pytest.MonkeyPatch) -> quadratic.Quadratic:
    with monkeypatch.context() as patched:
        patched.setattr(quadratic, "linear_terms", lambda _: None)
        return take_apart(expression, "it")


@seed(5)
@settings(max_examples=100, database=None, deadline=None)
@given(TERMS)
def test_sums_are_read_as_pyomo_reads_them(expression: Any) -> None:
    if not hasattr(expression, "is_numeric_type"):
        return
    with pytest.MonkeyPatch.context() as patched:
        expected = pyomos(expression, patched)
    READ.append(linear_terms(expression) is not None)
    found = take_apart(expression, "it")
    assert found.constant == expected.constant
    assert list(found.linear.items()) == list(expected.linear.items())
    assert list(found.products.items()) == list(expected.products.items())
    assert list(found.variables) == list(expected.variables)


KEPT: KeptTexts = {}


@seed(6)
@settings(max_examples=60, database=None, deadline=None)
@given(TERMS)
def test_texts_are_pyomos(expression: Any) -> None:
    if hasattr(expression, "is_numeric_type"):
        relation = expression <= 0.5
        assert pyomo_text(relation, KEPT) == relation.to_string()


def test_most_sums_are_read_at_once() -> None:
    test_sums_are_read_as_pyomo_reads_them()
    assert np.mean(READ) > 0.5
    terms = linear_terms(sum(k * p for k, p in enumerate([A, B, X, W], 1)) - 3)
    assert terms is not None
    assert terms[0] == -3


def test_a_fixed_variable_is_a_constant() -> None:
    space = mc.Space("fixed")
    x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
    space.model.parameters["x"].x.fix(0.25)
    assert linear_terms(2 * x + y) is None
    found = take_apart(2 * x + y, "it")
    assert found.constant == 0.5
    assert list(found.linear.values()) == [1.0]


def test_what_a_name_stands_for_may_change() -> None:
    space = mc.Space("changed")
    x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
    kept: KeptTexts = {}
    before = pyomo_text(2 * x + y <= 1, kept)
    x.set_value(y.expr)  # type: ignore[attr-defined]
    assert before != pyomo_text(2 * x + y <= 1, kept) == (2 * x + y <= 1).to_string()


def test_coefficients_that_are_not_finite_are_refused() -> None:
    with pytest.raises(RuleError, match="not finite"):
        take_apart(sum([float("nan") * A, X]), "it")


def test_the_text_of_a_long_rule_is_not_asked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an expression is a number is not found out by the error that Pyomo writes about it."""
    expression = sum(0.5 * p for p in (A, B, X))
    monkeypatch.setattr(type(expression), "__float__", lambda _: pytest.fail("asked for its number"))
    assert len(take_apart(expression, "it").ids) > 3
