"""A thousand tight rules between integers: what local search does there ends with the time, and the solver has the rest."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.heuristics.repair import MANY, repaired
from mipcash.deadline import Deadline
from mipcash.space import counting
from mipcash.space.compiled import QUESTION, compiled, minimiser_of
from mipcash.space.counting import Count, count


def tight(rules: int, integers: int = 60, room: int = 3) -> mc.Space:
    """Rules between three integers each, which a hidden configuration keeps, some of them just so."""
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
    return tight(MANY + 200)


def ticking(end: float) -> tuple[Deadline, itertools.count[int]]:
    """A deadline whose clock goes on by one second each time that it is read."""
    readings = itertools.count()
    return Deadline(end, lambda: float(next(readings))), readings


def test_repair_is_legal_or_says_nothing() -> None:
    space = tight(60, 20, 12)
    legality, program = minimiser_of(space).free_legality, compiled(space).program
    rng = np.random.default_rng(0)
    made = [repaired(legality, rng.integers(10, size=20), rng) for _ in range(8)]
    found = [levels for levels in made if levels is not None]
    assert len(found) >= 5
    for levels in found:
        assert space.is_legal(program.decode(levels, compiled(space).active(levels, {})))


def test_questions_and_proposals_keep_their_time_under_tight_rules(
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
    found = thousand.sample(3, time_limit=5)
    assert len(found) == 3
    assert all(thousand.is_legal(c) for c in found)
    assert [next(r) <= 250 for r in made] == [True]  # of 500: the rest is the solver's
    made.clear()
    study = mc.Study(thousand, optimizer=mc.Method(seconds_per_proposal=2))
    assert thousand.is_legal(study.ask().config)
    assert [next(r) <= 100 for r in made] == [True]


def test_a_count_of_very_many_rules_knows_of_a_legal_point_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    minimiser = minimiser_of(tight(MANY + 10, room=40))
    monkeypatch.setattr(counting, "_counted", lambda *_: Count(0, False))
    assert str(count(minimiser, 10, QUESTION)) == "at least 1"
    assert str(count(minimiser, 10, QUESTION, Deadline.after(0.0))) == "at least 0"


def test_bounds_without_a_solver_leave_out_what_one_rule_alone_does() -> None:
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
