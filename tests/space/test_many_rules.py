"""Spaces under hundreds of linear rules: what is read off matrices, or under few rules at a time, is what plain code says."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.polytope import MANY, Polytope
from mipcash.space.domain import Domain
from tests.slow import SOLVES, counted


def conditional(rules: int, number: int) -> mc.Space:
    """Reals, some of them conditional, and categories under linear rules that a hidden configuration keeps; some with when=."""
    rng = np.random.default_rng(number)
    space = mc.Space("many rules")
    kinds = [space.categorical(f"kind {k}", ["a", "b", "c"]) for k in range(5)]
    numbers = [space.real(f"x{k}", -1.0, 2.0, **({"when": kinds[k]["a"]} if k < 2 else {})) for k in range(6)]
    hidden_kinds, hidden = rng.integers(3, size=5), rng.uniform(-1.0, 2.0, size=6)
    hidden[:2] *= hidden_kinds[:2] == 0
    for r in range(rules):
        c, d = rng.normal(size=2).round(2).tolist()
        i, j = rng.choice(6, size=2, replace=False).tolist()
        k, l = int(rng.integers(5)), int(rng.integers(3))
        indicator, on = kinds[k]["abc"[l]], float(hidden_kinds[k] == l)
        at, room = c * hidden[i] + d * hidden[j], float(rng.uniform(0.1, 2.0))
        if r % 2:
            space.rule(f"rule {r}", c * numbers[i] + d * numbers[j] - indicator <= at - on + room)
        else:
            space.rule(f"rule {r}", c * numbers[i] + d * numbers[j] <= at + room, when=indicator)
    return space


@pytest.mark.parametrize("number", range(2))
def test_rows_taken_in_as_they_are_broken_lead_to_the_same_vertices(number: int) -> None:
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


def test_a_thousand_rules_take_few_solves_and_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    space = conditional(1000, 0)
    study = mc.Study(space, seed=0)
    calls = counted(monkeypatch, *SOLVES, (Polytope, "minimise"))
    for _ in range(7):
        calls.clear()
        trial = study.ask()
        assert calls.count("solve") <= 10
        assert calls.count("minimise") <= 400
        assert space.is_legal(trial.config)
        study.tell(trial, float(sum(v for v in trial.config.values() if not isinstance(v, str))))


def dense(rules: int) -> mc.Space:
    """Integers under rules over all of them that a hidden configuration keeps."""
    rng = np.random.default_rng(0)
    space = mc.Space("dense")
    parameters = [space.integer(f"i{k}", 0, 5) for k in range(12)]
    hidden = rng.integers(6, size=12)
    for r in range(rules):
        weights = rng.normal(size=12).round(2)
        bound = float(weights @ hidden + np.abs(weights).sum() * rng.uniform(0.3, 1.5))
        space.rule(f"rule {r}", sum(w * p for w, p in zip(weights.tolist(), parameters, strict=True)) <= bound)
    return space


def test_a_thousand_rules_over_all_integers_are_answered_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    space = dense(1100)
    calls = counted(monkeypatch, *SOLVES)
    assert space.explain() == "space 'dense' is not empty"
    assert calls == []
    made = [config for config, _ in Domain.of(space).design(2, np.random.default_rng(0))]
    assert all(space.is_legal(c) for c in [*made, *space.sample(2, seed=1)])
    assert len({repr(c) for c in made}) == 2
