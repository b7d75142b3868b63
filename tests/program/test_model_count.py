"""Model counting by decision diagrams, against enumeration and against closed forms for wide spaces."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from mipcash.deadline import Deadline
from mipcash.program import model_count
from mipcash.program.model_count import Diagram, LinearRow, StateCount, _Layer, count_states
from mipcash.program.rule_tables import RuleTable

WEIGHTS = (0.0, 1.0, -1.0, 2.0, 0.1, 0.3, -0.7, 5.0)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[int], list[RuleTable], list[LinearRow]]:
    """Draw up to six variables, tables over none to four of them, and rows over any number of them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = []
    for _ in range(draw(st.integers(0, 5))):
        scope = sorted(rng.choice(len(sizes), size=rng.integers(0, min(4, len(sizes)) + 1), replace=False).tolist())
        legal = rng.random([sizes[i] for i in scope]) < rng.choice([0.5, 0.8, 0.95])
        tables.append(RuleTable(tuple(scope), np.asarray(legal)))
    rows = []
    for _ in range(draw(st.integers(0, 3))):
        scope = rng.permutation(len(sizes))[: rng.integers(1, len(sizes) + 1)].tolist()
        weights = tuple(rng.choice(WEIGHTS, size=sizes[i]) for i in scope)
        some = sum(float(rng.choice(w)) for w in weights)
        low, high = [(-math.inf, some), (some, math.inf), (some, some), (some - 1.0, some + 1.0)][rng.integers(4)]
        rows.append(LinearRow(tuple(scope), weights, low - 1e-9, high + 1e-9, 1e-9))
    return sizes, tables, rows


def listed(sizes: list[int], tables: list[RuleTable], rows: list[LinearRow]) -> int:
    """Return the number of joint states that satisfy all tables and rows, by enumeration."""
    found = 0
    for states in itertools.product(*map(range, sizes)):
        kept = all(t.legal[tuple(states[i] for i in t.scope)] for t in tables)
        sums = [sum(float(w[states[i]]) for i, w in zip(r.scope, r.weights, strict=True)) for r in rows]
        found += kept and all(r.low <= s <= r.high for r, s in zip(rows, sums, strict=True))
    return found


@given(networks())
@settings(max_examples=30, deadline=None)
def test_the_count_agrees_with_enumeration(network: tuple[list[int], list[RuleTable], list[LinearRow]]) -> None:
    assert count_states(*network) == StateCount(listed(*network), True)


@given(networks(), st.integers(1, 8), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_the_count_does_not_depend_on_how_residues_are_kept(
    network: tuple[list[int], list[RuleTable], list[LinearRow]], bits: int, masked: int
) -> None:
    """Counts and keys beyond the word length, and tables of two variables without masks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_count, "WHOLE", 1 << bits)
        patched.setattr(model_count, "MASKED", masked)
        assert count_states(*network) == StateCount(listed(*network), True)


@given(networks())
@settings(max_examples=30, deadline=None)
def test_draws_from_a_diagram_are_uniform(network: tuple[list[int], list[RuleTable], list[LinearRow]]) -> None:
    number, diagram = listed(*network), Diagram.of(*network)
    assert (diagram is None) == (number == 0)
    if diagram is not None:
        _, seen = np.unique(diagram.drawn(40 * number, np.random.default_rng(0)), axis=0, return_counts=True)
        assert len(seen) == number, "every legal state is drawn"
        assert number == 1 or chisquare(seen).pvalue > 1e-4
        edges = sum(len(states) for _, _, states, _ in diagram.layers)
        assert Diagram.of(*network, edges=edges - 1) is None
        assert Diagram.of(*network, edges=math.prod(network[0]) * len(network[0])) is not None
        assert Diagram.of(*network, deadline=Deadline(0.0, lambda: 1.0)) is None


def test_equal_residues_are_one_node() -> None:
    """Layers of a precedence over positions are subsets, layers of a sum its values, of a chain the last state."""
    n = 6
    apart = ~np.eye(n, dtype=bool)
    ordering = [RuleTable((i, j), apart) for i, j in itertools.combinations(range(n), 2)]
    sums = [LinearRow(tuple(range(n)), (np.array([0.0, 1.0, 2.0]),) * n, 5.0, 7.0, 1e-9)]
    chain = [RuleTable((i, i + 1), np.tri(4, 4, 1, dtype=bool)) for i in range(n - 1)]
    for sizes, tables, rows, widest in (
        ([n] * n, ordering, [], math.comb(n, n // 2)),
        ([3] * n, [], sums, 9),
        ([4] * n, chain, [], 4),
    ):
        diagram = Diagram.of(sizes, tables, rows)
        assert diagram is not None
        assert max(len(starts) - 1 for starts, *_ in diagram.layers) <= widest
    assert count_states([n] * n, ordering).number == math.factorial(n)


@given(networks(), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_a_diagram_that_is_cut_gives_a_lower_bound(
    network: tuple[list[int], list[RuleTable], list[LinearRow]], kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_count, "KEPT_NODES", kept)
        found = count_states(*network, deadline=Deadline(0.0, lambda: 1.0))
    number = listed(*network)
    assert found.number <= number
    assert not found.exact or found.number == number


def test_counts_beyond_64_bits_are_exact() -> None:
    assert count_states([7] * 40, []) == StateCount(7**40, True)
    row = LinearRow(tuple(range(100)), (np.array([0.0, 1.0]),) * 100, -math.inf, 50.0, 1e-9)
    assert count_states([2] * 100, [], [row]) == StateCount(sum(math.comb(100, k) for k in range(51)), True)


@pytest.mark.parametrize("large", [1, 10**30])
def test_a_layer_that_is_cut_keeps_the_nodes_with_the_most_assignments(large: int) -> None:
    layer = _Layer([2, 2], [RuleTable((0, 1), np.ones((2, 2), dtype=bool))], [])
    layer.counts = np.array([5 * large, 40 * large, 3, 20 * large, 7], dtype=np.int64 if large == 1 else object)
    layer.cut(2)
    assert layer.counts.tolist() == [40 * large, 20 * large]
