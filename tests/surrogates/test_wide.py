"""Wide spaces: the model without matrices over pairs of levels is the model with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.program import Group
from mipcash.space.compiled import compiled
from mipcash.surrogates import level_kernels
from mipcash.surrogates.level_kernels import LevelDistance, LevelKernel, level_distance, level_kernel
from mipcash.surrogates.structured.evidence import Evidence
from mipcash.surrogates.structured.kernel import Kernel, level_sums
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from tests.surrogates.test_structured import SPACES, observed, some_theta


def as_wide(structure: Structure, wide: bool) -> Structure:
    """The same space, whose width is decided anew."""
    fresh = replace(structure)
    fresh.__dict__["wide"] = wide
    return fresh


def groups() -> list[Group]:
    """Categories and ordered groups, always active and not."""
    space = mc.Space("groups")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.ordinal("plain", list(range(7)))
    space.ordinal("conditional", list(range(7)), when=kind["a"])
    space.categorical("other", list("vwxyz"), when=kind["b"])
    return list(compiled(space).program.groups)


@pytest.mark.parametrize("length", [0.05, 0.4, 2.0])
def test_entries_of_a_level_kernel_are_those_of_its_matrix(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_kernels, "DENSE", 0)
    for group in groups():
        k, slope = level_kernel(group, length)
        rows, cols = np.indices(k.shape)
        kernel = LevelKernel(group, length)
        assert not kernel.small
        np.testing.assert_allclose(kernel.at(rows, cols), k, atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal, np.diag(k), atol=1e-12)
        np.testing.assert_allclose(kernel.columns(np.array([2, 0])), k[:, [2, 0]], atol=1e-12)
        if level_kernels.has_length(group):
            np.testing.assert_allclose(kernel.slope_at(rows, cols), slope, atol=1e-10)
        np.testing.assert_allclose(LevelDistance(group).at(rows, cols), level_distance(group), atol=1e-12)


@pytest.mark.parametrize("alike", [True, False])
def test_sums_over_groups_of_neighbours_and_of_others(alike: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, size=60)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    levels = rng.integers(sizes, size=(2500, 60))
    if alike:
        moved = np.repeat(levels[:1], 2500, axis=0)
        moved[np.arange(2500), rng.integers(60, size=2500)] = 0
        levels = moved
    tables = [rng.normal(size=(int(sizes.sum()), 4)) for _ in range(2)]
    columns = starts + levels
    for found, table in zip(level_sums(columns, tables), tables, strict=True):
        np.testing.assert_allclose(found, table[columns].sum(axis=1), atol=1e-10)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_wide_model_is_the_same_model(name: str, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_kernels, "DENSE", 0)
    _, structure, points, x = observed(SPACES[name](), sparse=sparse)
    theta = some_theta(structure)
    losses = np.random.default_rng(2).normal(size=20)
    found = []
    for wide in (True, False):
        of = as_wide(structure, wide)
        kernel, mine = Kernel(of, theta), replace(x, structure=of)
        posterior = StructuredPosterior.fit(kernel, mine[:20], losses)
        section = posterior.section(x.z[25])(x.u[25])
        mean, evidence = posterior.mean(), Evidence.of(Tables(of, mine[:20]), losses)(theta)
        together = mine.joined(replace(mine, u=np.repeat(mine.u[:1], len(mine), axis=0)))
        found.append(
            [
                kernel(mine, mine[:7]), kernel(together, mine), kernel.residual(together, mine), kernel.diagonal(mine),
                kernel.group_terms(mine, mine), *posterior.predict(points), *section, *evidence,
                mean.values(points), *mean.section(x.z[25])(x.u[25]),
            ]
        )  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8)
