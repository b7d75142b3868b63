"""Spaces with a thousand rules: configurations found without a solver are legal, and time limits hold."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.heuristics import repair
from mipcash.backends.polytope import MANY, Polytope
from mipcash.deadline import Deadline
from mipcash.space import counting
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.counting import Count, count
from mipcash.space.domain import Domain
from tests.slow import SOLVES, counted
from tests.spaces import designed


@pytest.mark.parametrize("number", range(2))
def test_rows_added_when_violated_lead_to_the_same_vertices(number: int) -> None:
    rng = np.random.default_rng(number)
    k, m = 8, MANY + 200
    matrix, inside = rng.normal(size=(m, k)), rng.uniform(0.3, 0.7, size=k)
    matrix *= rng.random((m, k)) < rng.choice([0.2, 1.0])
    body, room = matrix @ inside, rng.uniform(0.0 if number % 2 else -0.01, 0.3, size=m)
    low, high = np.where(rng.random(m) < 0.3, body - room, -np.inf), body + room
    low[:2] = high[:2] = body[:2]
    lazy, whole = (Polytope(np.zeros(k), np.ones(k), matrix, low, high, lazy=l) for l in (True, False))
    for cost in rng.normal(size=(5, k)):
        a, b = lazy.minimise(cost), whole.minimise(cost)
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert cost @ a == pytest.approx(cost @ b, abs=1e-9)
            assert np.all(matrix @ a >= low - 1e-12)
            assert np.all(matrix @ a <= high + 1e-12)


def dense(rules: int) -> mc.Space:
    """Space of integers with rules over all of them, which a hidden configuration satisfies."""
    rng = np.random.default_rng(0)
    space = mc.Space("dense")
    parameters = [space.integer(f"i{k}", 0, 5) for k in range(12)]
    hidden = rng.integers(6, size=12)
    for r in range(rules):
        weights = rng.normal(size=12).round(2)
        bound = float(weights @ hidden + np.abs(weights).sum() * rng.uniform(0.3, 1.5))
        space.rule(f"rule {r}", sum(w * p for w, p in zip(weights.tolist(), parameters, strict=True)) <= bound)
    return space


def test_a_thousand_rules_over_all_integers_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    space = dense(1100)
    calls = counted(monkeypatch, *SOLVES)
    assert space.explain() == "space 'dense' is not empty"
    assert calls == []
    made = designed(Domain.of(space), 2, np.random.default_rng(0))
    assert all(space.is_legal(c) for c in [*made, *space.sample(2, seed=1)])
    assert len({repr(c) for c in made}) == 2


def tight(rules: int, integers: int = 60, room: int = 3) -> mc.Space:
    """Space with rules over three integers each. A hidden configuration satisfies them, some with equality."""
    rng = random.Random(0)
    space = mc.Space("tight")
    found = [space.integer(f"i{k}", 0, 9) for k in range(integers)]
    hidden = [rng.randint(0, 9) for _ in found]
    for k in range(rules):
        scope, weights = rng.sample(range(integers), 3), [rng.choice([1, -1, 2]) for _ in range(3)]
        most = sum(w * hidden[i] for w, i in zip(weights, scope, strict=True)) + rng.randint(0, room)
        space.rule(f"r{k}", sum(w * found[i] for w, i in zip(weights, scope, strict=True)) <= most)
    return space


@pytest.fixture(scope="module")
def thousand() -> mc.Space:
    return tight(repair.MANY + 200)


def ticking(end: float) -> tuple[Deadline, itertools.count[int]]:
    """Return a deadline whose clock advances by one second with every reading, and the counter of readings."""
    readings = itertools.count()
    return Deadline(end, lambda: float(next(readings))), readings


def test_repair_returns_legal_levels_or_none() -> None:
    space = tight(60, 20, 12)
    legality, program = minimiser_of(space).free_legality, compiled(space).program
    rng = np.random.default_rng(0)
    made = [repair.repaired(legality, rng.integers(10, size=20), rng) for _ in range(8)]
    found = [levels for levels in made if levels is not None]
    assert len(found) >= 5
    for levels in found:
        assert space.is_legal(program.decode(levels, compiled(space).active(levels, {})))


def test_samples_and_proposals_keep_their_time_limit_under_tight_rules(
    thousand: mc.Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    minimiser_of(thousand)
    made: list[itertools.count[int]] = []

    def after(seconds: float) -> Deadline:
        deadline, readings = ticking(100.0 * seconds)
        made.append(readings)
        return deadline

    for module in ("space.space", "optimizers.model_based", "optimizers.in_time"):
        monkeypatch.setattr(f"mipcash.{module}.Deadline", SimpleNamespace(after=after))
    found = thousand.sample(2, time_limit=5)
    assert len(found) == 2
    assert all(thousand.is_legal(c) for c in found)
    assert [next(r) <= 250 for r in made] == [True]  # of 500 seconds; the solver gets the remaining ones
    made.clear()
    study = mc.Study(thousand, optimizer=mc.Method(seconds_per_proposal=2))
    assert thousand.is_legal(study.ask().config)
    assert [next(r) <= 100 for r in made] == [True]


def test_a_count_under_very_many_rules_is_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    minimiser = minimiser_of(tight(repair.MANY + 10, room=40))
    monkeypatch.setattr(counting, "_counted", lambda *_: Count(0, False))
    assert str(count(minimiser, 10)) == "at least 1"
    assert str(count(minimiser.until(Deadline.after(0.0)), 10)) == "at least 0"


def test_bounds_without_a_solver_exclude_values_that_a_single_rule_forbids() -> None:
    space = mc.Space("wide")
    space.rule("low", space.ordinal("c", list(range(300))) <= 295)
    k = space.categorical("k", ["a", "b"])
    space.rule("when", space.integer("d", 0, 9, when=k["a"]) >= 3)
    found = space.bounds(time_limit=0.0)
    assert (found["c"].low, found["c"].high) == (0, 295)
    assert not found["c"].proven
    truth = space.bounds()
    assert set(found["d"].values or ()) >= set(truth["d"].values or ())
    assert set(found["k"].values or ()) >= set(truth["k"].values or ())


def test_the_rows_of_many_parameters_are_no_rules_and_occur_once() -> None:
    space = mc.Space("switches")
    on = [space.integer(f"b{i}", 0, 1) for i in range(1_000)]
    space.rule("three", sum(on) == 3)
    program = compiled(space).program
    assert len(program.base_rows) == 1_001
    assert not repair.many_over_levels(program)
