"""``count`` against brute force: drawn spaces, orderings under rules, components that only a solver decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mipcash as mc
from mipcash.deadline import Deadline
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.counting import count
from tests.fuzz.cases import cases
from tests.fuzz.described import build
from tests.slow import SOLVES, counted


def test_count_is_that_of_brute_force_on_drawn_spaces() -> None:
    exact = []
    for case in cases(20, 0):
        space, table = build(case.drawn), case.truth.table
        labels = {group.parameter for group in compiled(space).program.groups}
        legal = {
            repr({n: v for n, v in table.config(c).items() if n in labels})
            for c in np.flatnonzero(case.truth.legal_configs).tolist()
        }
        found = space.count(limit=60)
        assert found.number == len(legal) if found.exact else found.number <= len(legal), (found, len(legal))
        exact.append(found.exact)
    assert sum(exact) >= 17


def modules_under_rules(n: int, rules: int, number: int) -> tuple[mc.Space, list[tuple[int, int, int]]]:
    """Return an ordering of n modules and the rules on its positions, as (before, after, least difference)."""
    rng = np.random.default_rng(number)
    space = mc.Space("ordered modules")
    modules = [space.module(f"m{k}", {"a": {}, "b": {}}) for k in range(n)]
    order = space.ordering("order", modules)
    hidden, found = rng.permutation(n), list[tuple[int, int, int]]()
    for r in range(rules):
        i, j = sorted(rng.choice(n, size=2, replace=False).tolist(), key=lambda k: hidden[k])
        least = int(rng.integers(1, hidden[j] - hidden[i] + 1))
        space.rule(f"rule {r}", order.position(modules[j]) - order.position(modules[i]) >= least)
        found.append((i, j, least))
    return space, found


@pytest.mark.parametrize(("n", "rules", "number"), [(6, 1, 0), (6, 3, 2), (8, 7, 3)])
def test_orderings_are_counted_like_their_permutations(
    n: int, rules: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, bounded = modules_under_rules(n, rules, number)
    kept = [p for p in itertools.permutations(range(n)) if all(p[j] - p[i] >= least for i, j, least in bounded)]
    calls = counted(monkeypatch, *SOLVES)
    assert (space.count().number, space.count().exact) == (len(kept) * 2**n, True)
    assert calls == []


def test_the_count_of_a_component_that_only_a_solver_decides_is_a_factor() -> None:
    space = mc.Space("parts")
    x = space.real("x", 0.0, 1.0)
    bits = [space.categorical(f"b{k}", ["no", "yes"]) for k in range(3)]
    space.rule("sum", x + sum(b["yes"] for b in bits) <= 1.5)  # at most one is "yes", since two would require x below 0
    for k in range(40):
        space.categorical(f"free {k}", list(range(5)))
    assert (space.count().number, space.count().exact) == (4 * 5**40, True)
    few = space.count(limit=2)
    assert (few.number, few.exact) == (2 * 5**40, False)


def test_after_the_deadline_the_count_is_a_lower_bound() -> None:
    rng = np.random.default_rng(0)
    space = mc.Space("tangled")
    choices = [space.categorical(f"c{k}", list(range(4))) for k in range(20)]
    for r in range(60):
        i, j = rng.choice(20, size=2, replace=False).tolist()
        space.rule(f"rule {r}", choices[i][int(rng.integers(4))] + choices[j][int(rng.integers(4))] <= 1)
    minimiser = minimiser_of(space)
    whole = count(minimiser, 100)
    passed = count(minimiser.until(Deadline(0.0, lambda: 1.0)), 100)
    assert whole.exact
    assert 0 < passed.number <= whole.number


def test_names_of_parameters_do_not_meet_those_of_groups_and_squares() -> None:
    squares = mc.Space("squares")
    on, a, b = squares.categorical("on", [0, 1]), squares.integer("a", 0, 3), squares.integer("square", 0, 3)
    squares.rule("sum", a * a + a * b <= 6, when=on.is_(1))
    assert squares.count() == sum(not (o and x * x + x * y > 6) for o in (0, 1) for x in range(4) for y in range(4))
    orders = mc.Space("orders")
    first, second = orders.module("m", ["p", "q"]), orders.module("n", ["p"])
    order, x, on = orders.ordering("o", [first, second]), orders.integer("o:m", 0, 4), orders.categorical("on", [0, 1])
    orders.rule("sum", x + 2 * order.at(first, 1) <= 4, when=on.is_(1))
    assert orders.count() == 2 * sum(not (o and x + 2 * at > 4) for o in (0, 1) for x in range(5) for at in (0, 1))
