"""Dropped products are bounded: brute force over small programs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.backends.reductions.pruned_products import PrunedProducts
from mipcash.backends.reductions.reduction import reduced
from mipcash.backends.task import Task
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled


def program() -> BinaryProgram:
    space = mc.Space("small")
    a = space.categorical("a", ["x", "y", "z"])
    space.integer("b", 0, 2)
    space.categorical("c", ["on", "off"], when=a.is_("x", "y"))
    space.integer("d", 0, 1)
    return compiled(space).program


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 60))
def test_a_bound_on_the_pruned_form_is_a_bound_on_the_form(seed: int, budget: int) -> None:
    compiled, rng = program(), np.random.default_rng(seed)
    i, j = np.triu_indices(compiled.n_z, k=1)
    values = rng.normal(size=len(i)) * (rng.random(len(i)) < 0.7)
    form = compiled.folded(QuadraticForm(0.3, rng.normal(size=compiled.n), i, j, values))
    pruned = PrunedProducts(budget).apply(Task(compiled, form))
    assert pruned.bound(0.0) <= 0.0
    differences = []
    for levels in product(*(range(int(s)) for s in compiled.sizes)):
        z = np.zeros(compiled.n)
        z[: compiled.n_z] = compiled.one_hot(np.array(levels))
        differences.append(form.value(z) - pruned.task.form.value(z))
    assert min(differences) >= pruned.bound(0.0) - 1e-9
    kept = compiled.couplings(pruned.task.form)
    assert sum(int(compiled.sizes[g] * compiled.sizes[h]) for g, h in kept) <= budget
    if budget == 60:
        assert max(map(abs, differences)) == pytest.approx(0.0, abs=1e-9)


def test_additive_blocks_need_no_product_columns() -> None:
    compiled = program()
    rows, cols = np.meshgrid(np.arange(3), np.arange(3, 6), indexing="ij")
    additive = (np.arange(3.0)[:, None] + np.array([5.0, 0.0, 2.0])).ravel()
    form = QuadraticForm(0.0, np.zeros(compiled.n), rows.ravel(), cols.ravel(), additive)
    pruned = PrunedProducts(0).apply(Task(compiled, form))
    assert not len(pruned.task.form.rows)
    assert pruned.bound(0.0) == 0.0


def test_a_program_without_levels_is_left_alone() -> None:
    space = mc.Space("bare")
    x = space.real("x", 0, 1)
    space.rule("half", x <= 0.5)
    task = Task(compiled(space).program, QuadraticForm.zero(compiled(space).program.n))
    easier = reduced(task, [PrunedProducts(0)])
    assert easier.task is task
    assert easier.bound(1.5) == 1.5
