"""Plateaus: what the best observations share is left, and nothing else."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.turns import shared_choice
from mipcash.program.forms import Indices
from mipcash.space.compiled import compiled
from mipcash.space.exclusion import ANY, Exclusion


def learners() -> mc.Space:
    """A learner, its kernel, which only one of them has, a switch and an integer with rules."""
    space = mc.Space("learners")
    learner = space.categorical("learner", ["svm", "tree", "linear"])
    space.categorical("kernel", ["rbf", "poly"], when=learner.is_("svm"))
    space.categorical("scale", [False, True])
    depth = space.integer("depth", 1, 5)
    space.rule("deep", depth >= 2 * learner.is_("tree"))
    return space


def encoded(space: mc.Space, **changes: object) -> Indices:
    config = {"learner": "tree", "scale": True, "depth": 3} | changes
    return compiled(space).program.encode(config)


def test_without_a_tie_nothing_is_left() -> None:
    space, rng = learners(), np.random.default_rng(0)
    s = np.array([encoded(space)] * 5)
    assert shared_choice(compiled(space).program, s, np.array([0.1, 0.1, 0.2, 0.3, 0.4]), rng) is None
    assert shared_choice(compiled(space).program, s[:0], np.zeros(0), rng) is None


def test_what_the_best_do_not_share_stays() -> None:
    space, rng = learners(), np.random.default_rng(0)
    s = np.array([encoded(space), encoded(space, learner="linear"), encoded(space, scale=False)])
    assert shared_choice(compiled(space).program, s, np.full(3, 0.25), rng) is None


def test_a_shared_choice_is_left_and_ordered_levels_or_off_are_none() -> None:
    space = learners()
    s = np.array([encoded(space), encoded(space, scale=False), encoded(space)])
    labels = [g.label for g in compiled(space).program.groups]
    for seed in range(8):
        left = shared_choice(compiled(space).program, s, np.array([0.25, 0.25, 0.25]), np.random.default_rng(seed))
        assert left is not None
        counts = np.flatnonzero(left.levels != ANY)
        assert [labels[g] for g in counts] == ["learner"]  # "depth" is ordered, "kernel" off
        assert left.levels[counts[0]] == s[0, counts[0]]


def test_several_shared_choices_are_left_in_turn() -> None:
    space = learners()
    s, y = np.array([encoded(space)] * 3), np.full(3, 0.25)
    found = [shared_choice(compiled(space).program, s, y, np.random.default_rng(seed)) for seed in range(20)]
    groups = {int(np.flatnonzero(f.levels != ANY)[0]) for f in found if f is not None}
    assert {compiled(space).program.groups[g].label for g in groups} == {"learner", "scale"}


@pytest.mark.parametrize("distance", [1, 2])
def test_the_cut_of_a_partial_exclusion_admits_what_the_formula_does(distance: int) -> None:
    """Over all levels, legal or not: one row and one formula for the same thing."""
    space, rng = learners(), np.random.default_rng(distance)
    program = compiled(space).program
    every = np.array(list(product(*(range(int(n)) for n in program.sizes))))
    for _ in range(10):
        levels = np.where(rng.random(len(program.groups)) < 0.5, every[rng.integers(len(every))], ANY)
        if np.sum(levels != ANY) < distance:
            continue
        exclusion = Exclusion(levels, distance)
        cut = exclusion.cut(program)
        row = program.one_hot(every)[:, cut.columns] @ cut.values
        assert np.array_equal(row <= cut.high + 1e-9, [exclusion.admits(s) for s in every])
        assert 0 < np.sum(row <= cut.high + 1e-9) < len(every)
