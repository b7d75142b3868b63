"""Moves: single changes are complete and distinct, swaps keep permutations, and walks stay legal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

import mipcash as mc
from mipcash.deadline import Deadline
from mipcash.program.legality import Legality
from mipcash.program.moves import _pair_at, moves_of
from mipcash.program.program import orders_of
from mipcash.space.compiled import compiled
from tests.spaces import ALL


@pytest.mark.parametrize("name", list(ALL))
def test_moves_are_complete_and_distinct_and_walks_stay_legal(name: str) -> None:
    space, rng = ALL[name](), np.random.default_rng(0)
    program = compiled(space).program
    moves = moves_of(program)
    levels = np.array([program.encode(c) for c in space.sample(6, 0)])
    latent = moves.latent(levels, np.zeros(len(program.groups), dtype=np.int64))
    owner, moved = moves.singles(levels, latent)
    changed = [set(np.flatnonzero(latent[r] != m).tolist()) for r, m in zip(owner, moved, strict=True)]
    ordered = {g for members in orders_of(program).values() for g in members}
    free = [g for g in range(len(program.groups)) if g not in ordered]
    for r in range(len(levels)):
        mine = moved[owner == r]
        assert len({m.tobytes() for m in mine}) == len(mine)
        on = [g for g in free if levels[r, g] != program.off_levels[g]]
        assert len(mine) == sum(len(program.groups[g].values) - 1 for g in on) + len(moves.swaps)
        known = {m.tobytes() for m in mine} | {latent[r].tobytes()}
        for choice in range(moves.n_choices):
            reached = {moves.change(levels[r], latent[r], choice, rng).tobytes() for _ in range(6)}
            assert reached <= known
            group = None if choice >= len(moves._choices) else moves._choices[choice]
            off = group is not None and levels[r, group] == program.off_levels[group]
            assert (latent[r].tobytes() in reached) == off, "an active choice changes"
    for r, m, groups in zip(owner, moved, changed, strict=True):
        assert (len(groups) == 1 and not groups & ordered) or tuple(sorted(groups)) in moves.swaps
        for members in orders_of(program).values():
            assert sorted(m[members]) == sorted(latent[r, members])

    special = set(moves.parents.tolist()) | {g for pair in moves.swaps for g in pair}
    singles = {(int(r), m.tobytes()) for r, m, g in zip(owner, moved, changed, strict=True) if g <= special}
    assert {(int(r), m.tobytes()) for r, m in zip(*moves.structural(levels, latent), strict=True)} == singles
    assert not special & set(np.unique(program.group_of[moves.plain_columns]).tolist())

    count = int((owner == 0).sum())
    some = moves.pairs(levels[0], latent[0], 7, rng)
    every = moves.pairs(levels[0], latent[0], 10**6, rng)
    assert len(every) == count * (count - 1) // 2
    assert {m.tobytes() for m in some} <= {m.tobytes() for m in every}
    assert len(some) == min(7, len(every))
    legality = Legality(program)
    if legality.complete:
        walked = legality.effective(moves.walk(legality, levels, 20, rng))
        assert legality.check(walked).all()
        assert (walked != levels).any()


def test_pairs_are_counted_in_rows() -> None:
    for n in range(2, 7):
        i, j = _pair_at(n, np.arange(n * (n - 1) // 2))
        assert list(zip(i.tolist(), j.tolist(), strict=True)) == list(itertools.combinations(range(n), 2))


def test_a_walk_reaches_every_configuration_equally_often() -> None:
    space = mc.Space("walk")
    members = [space.categorical(name, ["no", "yes"]) for name in "pqr"]
    order = space.ordering("o", members)
    a, b = space.integer("a", 1, 3), space.categorical("b", ["x", "y"])
    space.rule("first", order.position(members[0]) <= order.position(members[1]))
    space.rule("b", b["y"] <= a - 1)
    program = compiled(space).program
    moves, legality = moves_of(program), Legality(program)
    starts = np.array([program.encode(c) for c in space.sample(3, 0)] * 500)
    ended = legality.effective(moves.walk(legality, starts, 40, np.random.default_rng(0)))
    _, seen = np.unique(ended, axis=0, return_counts=True)
    assert len(seen) == space.count()
    assert chisquare(seen).pvalue > 1e-3
    once = moves.latent(starts, np.zeros(len(program.groups), dtype=np.int64))
    stepped = moves.walk(legality, starts, 1, np.random.default_rng(1))
    assert ((once != stepped).sum(axis=1) <= 2).all()
    assert (moves.walk(legality, starts, 40, np.random.default_rng(0), Deadline(0.0, lambda: 1.0)) == once).all()
