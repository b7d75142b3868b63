"""Moves: every single change once and nothing else; swaps keep permutations; walks stay legal."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.legality import Legality
from mipcash.program.moves import Moves, moves_of
from mipcash.program.program import orders_of
from mipcash.space.compiled import compiled
from tests.spaces import ALL


def points(space: mc.Space, n: int = 6) -> np.ndarray:
    return np.array([compiled(space).program.encode(c) for c in space.sample(n, 0)])


def changed(moves: Moves, before: np.ndarray, after: np.ndarray) -> set[int]:
    """Groups whose latent level differs."""
    return set(np.flatnonzero(before != after).tolist())


@pytest.mark.parametrize("name", list(ALL))
def test_single_moves_are_every_other_level_and_every_swap_once(name: str) -> None:
    space = ALL[name]()
    program, moves = compiled(space).program, Moves(compiled(space).program)
    levels = points(space)
    latent = moves.latent(levels, np.zeros(len(program.groups), dtype=np.int64))
    owner, moved = moves.singles(levels, latent)
    ordered = {g for members in orders_of(program).values() for g in members}
    for r in range(len(levels)):
        mine = moved[owner == r]
        assert len({m.tobytes() for m in mine}) == len(mine)
        expected = sum(
            len(group.values) - 1
            for g, group in enumerate(program.groups)
            if g not in ordered and levels[r, g] != program.off_levels[g]
        )
        assert len(mine) == expected + len(moves.swaps)
        for m in mine:
            groups = changed(moves, latent[r], m)
            if len(groups) == 1:
                assert not groups & ordered
            else:
                assert tuple(sorted(groups)) in moves.swaps
            for members in orders_of(program).values():
                assert sorted(m[members]) == sorted(latent[r, members])


@pytest.mark.parametrize("name", list(ALL))
def test_structural_moves_are_the_single_moves_of_parents_and_orderings(name: str) -> None:
    space = ALL[name]()
    moves = Moves(compiled(space).program)
    levels = points(space)
    latent = moves.latent(levels, np.zeros(len(compiled(space).program.groups), dtype=np.int64))
    all_owner, all_moved = moves.singles(levels, latent)
    owner, moved = moves.structural(levels, latent)
    found = {(int(r), m.tobytes()) for r, m in zip(owner, moved, strict=True)}
    special = set(moves.parents.tolist()) | {g for pair in moves.swaps for g in pair}
    assert found == {
        (int(r), m.tobytes())
        for r, m in zip(all_owner, all_moved, strict=True)
        if changed(moves, latent[r], m) <= special
    }
    plain = np.unique(compiled(space).program.group_of[moves.plain_columns])
    assert not special & set(plain.tolist())


def test_pairs_are_two_single_moves() -> None:
    space = ALL["discrete"]()
    moves, rng = Moves(compiled(space).program), np.random.default_rng(0)
    (levels,) = points(space, 1)
    latent = moves.latent(levels, np.zeros(len(levels), dtype=np.int64))
    _, singles = moves.singles(levels[None], latent[None])
    every = moves.pairs(levels, latent, 10**6, rng)
    assert len(every) == len(singles) * (len(singles) - 1) // 2
    some = moves.pairs(levels, latent, 7, rng)
    assert {m.tobytes() for m in some} <= {m.tobytes() for m in every}
    assert len(some) == 7


@pytest.mark.parametrize("name", list(ALL))
def test_random_changes_are_single_moves_and_walks_end_at_legal_levels(name: str) -> None:
    space = ALL[name]()
    moves, rng = moves_of(compiled(space).program), np.random.default_rng(0)
    assert moves_of(compiled(space).program) is moves
    levels = points(space)
    latent = moves.latent(levels, np.zeros(len(compiled(space).program.groups), dtype=np.int64))
    owner, moved = moves.singles(levels, latent)
    for r in range(len(levels)):
        known = {m.tobytes() for m in moved[owner == r]} | {latent[r].tobytes()}
        for choice in range(moves.n_choices):
            assert moves.change(levels[r], latent[r], choice, rng).tobytes() in known
    legality = Legality(compiled(space).program)
    if legality.complete:
        walked = legality.effective(moves.walk(legality, levels, 20, rng))
        assert legality.check(walked).all()
        assert (walked != levels).any()
