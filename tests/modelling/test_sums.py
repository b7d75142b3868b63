"""Fast reading and writing of sums: terms, order and text are those of Pyomo, to the last digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.modelling import quadratic
from mipcash.modelling.quadratic import parse_quadratic
from mipcash.modelling.sums import KeptTexts, pyomo_text

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
KEPT: KeptTexts = {}


@seed(5)
@settings(max_examples=50, database=None, deadline=None)
@given(TERMS)
def test_sums_are_read_and_written_as_pyomo_does(expression: Any) -> None:
    if not hasattr(expression, "is_numeric_type"):
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quadratic, "linear_terms", lambda _: None)
        expected = parse_quadratic(expression, "it")
    found = parse_quadratic(expression, "it")
    assert found.constant == expected.constant
    assert list(found.linear.items()) == list(expected.linear.items())
    assert list(found.products.items()) == list(expected.products.items())
    assert list(found.variables) == list(expected.variables)
    relation = expression <= 0.5
    assert pyomo_text(relation, KEPT) == relation.to_string()


def test_the_text_follows_a_changed_named_expression() -> None:
    space = mc.Space("changed")
    x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
    kept: KeptTexts = {}
    before = pyomo_text(2 * x + y <= 1, kept)
    x.set_value(y.expr)  # type: ignore[attr-defined]
    assert before != pyomo_text(2 * x + y <= 1, kept) == (2 * x + y <= 1).to_string()
