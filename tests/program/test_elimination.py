"""Elimination of auxiliary variables, against joint tables and against the rules as declared in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from mipcash.program import elimination
from mipcash.program.legality import Legality
from mipcash.program.moves import moves_of
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.sampling import uniform_levels
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.spaces import shape_space


def eliminated(program: BinaryProgram) -> Legality:
    """Return the legality with an elimination for every cluster of auxiliary variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Legality, "_tabulate", lambda *_: None)
        return Legality(program)


@on_drawn_spaces(30, 0, kinds=("helpers", "conditional", "logic"))
def test_elimination_agrees_with_joint_tables(drawn: Drawn) -> None:
    space = build(drawn)
    program = compiled(space).program
    whole, chained = Legality(program), eliminated(program)
    assert not chained._tables
    assert chained.complete == whole.complete
    rng = np.random.default_rng(0)
    levels = whole.effective(uniform_levels(minimiser_of(space), 200, rng))
    legal = whole.check(levels)
    np.testing.assert_array_equal(chained.check(levels), legal)
    if whole.complete and not program.numbers:
        for s in levels[legal][:5]:
            base = chained.completed(s)
            for row in program.base_rows:
                assert row.holds(np.array([row.form.value(base)])).all()


def test_layers_of_shapes_are_decided_without_a_solver() -> None:
    """Ten layers are too many for a joint table. The results are those of the rules as declared."""
    space = shape_space()
    program = compiled(space).program
    legality = minimiser_of(space).free_legality
    assert legality.complete
    assert legality.eliminations
    rng = np.random.default_rng(0)
    starts = np.array([program.encode(c) for c in space.sample(3, 0)])
    assert legality.check(starts).all()
    moves = moves_of(program)
    _, near = moves.singles(starts, starts)
    near = near[rng.permutation(len(near))[:60]]
    legal = legality.check(near)
    said = [space.is_legal(program.decode(s, {"rate": 0.01})) for s in near]
    np.testing.assert_array_equal(legal, said)
    assert 0 < legal.sum() < len(legal)
    far = legality.effective(moves.walk(legality, np.repeat(starts, 2, axis=0), 20, rng))
    assert all(space.is_legal(program.decode(s, {"rate": 0.01})) for s in far)


def test_a_batch_can_be_checked_in_parts() -> None:
    """Splitting a batch does not change the result."""
    space = shape_space(4, 16)
    program = compiled(space).program
    whole, parts = eliminated(program), eliminated(program)
    levels = uniform_levels(minimiser_of(space), 500, np.random.default_rng(0))
    found = whole.check(levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "ENTRIES", 1 << 10)
        np.testing.assert_array_equal(parts.check(levels), found)
    assert found.any()
    assert len(parts.check(levels[:0])) == 0


def test_too_large_an_elimination_is_left_to_the_solver() -> None:
    """The rule 'sum' contains all auxiliary variables."""
    space = mc.Space("tied")
    k = space.integer("k", 1, 9)
    auxiliaries = [space.auxiliary(f"h{i}", 1, 40) for i in range(5)]
    space.rule("product", auxiliaries[0] * auxiliaries[1] == k)
    space.rule("sum", sum(auxiliaries) == 20 * k)
    assert not minimiser_of(space).free_legality.complete
    assert space.is_legal({"k": 1})
