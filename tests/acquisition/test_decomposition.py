"""Tests of the dual decomposition: its bound is valid after any number of iterations, and exact without coupling.

Bounds of sums of cosines are tested too: they are valid everywhere and tighten with more splits.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mipcash as mc
from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.clock import Clock
from mipcash.methods.mivabo.blocks import FeatureSizes, evidence_blocks, paper_blocks
from mipcash.methods.mivabo.decomposition.continuous_bounds import CosineSums, lower_bounds
from mipcash.methods.mivabo.decomposition.search import DecompositionSettings, decompose
from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.evidence import Layout, always_active
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from tests.spaces import ALL

SIZES = FeatureSizes(fourier=6, per_number=4, product_columns=80)


def drawn(space, preset, seed, spread=1.0):
    """Return a function drawn from the prior of a preset, and the domain of the space."""
    program, rng = compiled(space).program, np.random.default_rng(seed)
    scale = Domain.of(space).scale
    if preset == "paper":
        blocks = paper_blocks(program, scale, SIZES, 4.0, 0.6, rng)
    else:
        layout = Layout(len(program.groups), len(scale), always_active(scale))
        theta = layout.prior()[0] + 0.5 * rng.normal(size=len(layout.prior()[0]))
        blocks = evidence_blocks(program, scale, SIZES, theta, layout, rng)
    weights = tuple(
        spread
        * rng.normal(size=(len(b.variances), 1 if b.cosines is None else b.cosines.size))
        * np.sqrt(b.variances)[:, None]
        for b in blocks
    )
    return WeightSample(tuple(blocks), weights, 0.0, 1.0, program, len(scale)), Domain.of(space)


def alternation(f, domain, seed=0):
    made = Alternation(domain, AlternatingSettings())
    starts = domain.encode(domain.sample(3, np.random.default_rng(seed)))
    return made.minimise(f, starts, [], np.random.default_rng(seed), Clock())


@st.composite
def spaces(draw):
    """Spaces of two to four discrete parameters and up to two numbers, with conditions and rules that mix them."""
    space = mc.Space("drawn", expand_limit=6)
    kind = space.categorical("kind", ["a", "b", "c"])
    level = space.integer("level", 0, draw(st.integers(1, 3)))
    if draw(st.booleans()):
        space.ordinal("depth", [1, 2, 4], when=kind["a"])
    numbers = draw(st.integers(0, 2))
    conditional = numbers == 2 and draw(st.booleans())
    x = space.real("x", 0.0, 1.0) if numbers else None
    if numbers == 2:
        when = level.is_(0) if conditional else None
        y = (
            space.integer("y", 0, 9, when=when)
            if draw(st.booleans())
            else space.real("y", 1e-2, 1.0, log=True, when=when)
        )
    if draw(st.booleans()):
        space.rule("levels", level + kind["c"] <= 1)
    rule = draw(st.sampled_from(["none", "none", "choice", "numbers"])) if numbers else "none"
    if rule == "choice":
        space.rule("choice", x <= 0.2 + 0.5 * level)
    if rule == "numbers" and numbers == 2:
        space.rule("numbers", x + 0.5 * y <= 0.8)
    return space


def least(f, space, domain):
    """Return the least value of many legal configurations; numbers that no rule binds are optimised locally."""
    program, scale = domain.program, domain.scale
    points = domain.encode(space.sample(100, 0))
    values = [f.value(p.one_hot(program), p.units) for p in points]
    if program.numbers or not len(scale):
        return min(values)
    for k in np.unique(points.levels, axis=0, return_index=True)[1]:
        z = points[int(k)].one_hot(program)
        on = scale.active(z[None])[0]
        for start in (0.2, 0.8):
            bounds = [(0.0, 1.0) if a else (0.5, 0.5) for a in on]
            found = minimize(f.section(z), np.where(on > 0, start, 0.5), jac=True, bounds=bounds)
            values.append(f.value(z, scale.rounded(found.x)))
    return min(values)


@settings(max_examples=8, deadline=None)
@given(
    space=spaces(),
    preset=st.sampled_from(["evidence", "evidence", "paper"]),
    seed=st.integers(0, 10_000),
    iterations=st.sampled_from([0, 3, 10]),
    nodes=st.sampled_from([0, 0, 1, 6]),
    splits=st.sampled_from([0, 2, 24]),
)
def test_the_bound_is_valid_after_any_number_of_iterations(space, preset, seed, iterations, nodes, splits):
    f, domain = drawn(space, preset, seed)
    primal = alternation(f, domain, seed)
    limits = DecompositionSettings(iterations=iterations, nodes=nodes, splits=splits)
    found = decompose(f, domain, limits, np.random.default_rng(seed), primal)
    program, scale = domain.program, domain.scale
    z = primal.point.one_hot(program)
    reached = f.value(z, np.where(scale.active(z[None])[0] > 0, scale.rounded(primal.point.units), 0.5))
    truth = min(least(f, space, domain), reached)
    assert max(found.history) <= truth + 1e-6  # the raw bound, before it is capped at the value
    assert list(found.history) == sorted(found.history)
    assert found.lower == pytest.approx(min(found.history[-1], found.value))
    assert found.value <= reached + 1e-9
    assert found.gap == pytest.approx(found.value - found.lower)
    again = domain.encode([domain.decode(found.best.point)])[0]
    assert f.value(again.one_hot(program), again.units) == pytest.approx(found.value, abs=1e-6)


def test_an_inactive_integer_is_at_its_place_and_not_at_the_nearest_value():
    """The preset ``paper`` sees the value of an inactive number, 0.5, which is no value of this integer."""
    space = mc.Space("inactive", expand_limit=6)
    space.categorical("kind", ["a", "b", "c"])
    level = space.integer("level", 0, 3)
    space.real("x", 0.0, 1.0)
    space.integer("y", 0, 9, when=level.is_(0))
    for seed in range(12):
        f, domain = drawn(space, "paper", seed)
        limits = DecompositionSettings(iterations=0, nodes=0, splits=0)
        found = decompose(f, domain, limits, np.random.default_rng(seed), alternation(f, domain, seed))
        again = domain.encode([domain.decode(found.best.point)])[0]
        assert f.value(again.one_hot(domain.program), again.units) == pytest.approx(found.value, abs=1e-6)


def test_the_bound_is_exact_without_mixed_terms():
    space = mc.Space("apart")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    space.real("y", 1e-3, 1.0, log=True)
    space.real("own", 0.0, 1.0, when=kind["b"])  # multiplied by its activity: a separate, exact subproblem
    f, domain = drawn(space, "evidence", 2, spread=2.0)
    weights = tuple(
        np.concatenate([w[:1], 0.0 * w[1:]])
        if b.cosines is not None and isinstance(b.discrete, DiscreteFeatures)
        else w
        for b, w in zip(f.blocks, f.weights, strict=True)
    )
    apart = replace(f, weights=weights)
    found = decompose(apart, domain, DecompositionSettings(nodes=0, splits=400), np.random.default_rng(0))
    assert found.gap <= 1e-5
    assert found.iterations == 1


def test_multipliers_and_branching_close_the_gap():
    space = ALL["bound_numbers"]()
    f, domain = drawn(space, "evidence", 0)
    primal = alternation(f, domain)
    one, root, tree = (
        decompose(f, domain, limits, np.random.default_rng(0), primal)
        for limits in (
            DecompositionSettings(iterations=0, nodes=0),
            DecompositionSettings(iterations=10, nodes=0),
            DecompositionSettings(iterations=10, nodes=5, child_iterations=1),
        )
    )
    assert one.lower < root.lower < tree.lower <= tree.value
    assert tree.gap < 0.7 * root.gap < 0.7 * one.gap
    assert tree.leaves > root.leaves == 1


def test_excluded_levels_are_left_out():
    space = ALL["discrete"]()
    f, domain = drawn(space, "evidence", 1)
    excluded, lowers = [], []
    for _ in range(4):
        found = decompose(f, domain, DecompositionSettings(), np.random.default_rng(0), None, excluded)
        assert all(e.admits(found.best.point.levels) for e in excluded)
        assert found.gap <= 1e-6  # without numbers the subproblem is the MIP itself
        assert found.iterations == 1
        lowers.append(found.lower)
        excluded.append(Exclusion(found.best.point.levels))
    assert lowers == sorted(lowers)
    only = mc.Space("only")
    only.categorical("one", ["a", "b"])
    f, domain = drawn(only, "evidence", 1)
    none = [Exclusion(np.array([0])), Exclusion(np.array([1]))]
    found = decompose(f, domain, DecompositionSettings(), np.random.default_rng(0), None, none)
    assert found.best is None
    assert found.lower == math.inf


# -- sums of cosines ---------------------------------------------------------------------------------------------------


def sums(seed, size, cosines, frequency, functions=3):
    rng = np.random.default_rng(seed)
    omega = frequency * rng.normal(size=(cosines, size))
    omega[rng.random(omega.shape) < 0.3] = 0.0  # some cosines depend on fewer numbers or are constant
    return CosineSums(omega, rng.uniform(0, 2 * np.pi, cosines), rng.normal(size=(functions, cosines)))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 4),
    cosines=st.integers(1, 12),
    frequency=st.sampled_from([0.1, 1.0, 3.0, 30.0]),
    splits=st.sampled_from([0, 1, 5, 40]),
)
def test_no_point_of_the_box_is_below_the_bound(seed, size, cosines, frequency, splits):
    s = sums(seed, size, cosines, frequency)
    rng = np.random.default_rng(seed + 1)
    low = rng.random(size) * 0.5
    high = low + rng.random(size) * (1 - low) * (rng.random(size) < 0.8)  # some numbers are fixed
    found = lower_bounds(s, low, high, splits)
    assert np.all((found.points >= low - 1e-12) & (found.points <= high + 1e-12))
    np.testing.assert_allclose(found.values, s(found.points))
    assert np.all(found.lower <= found.values)
    points = np.concatenate([low + rng.random((400, size)) * (high - low), found.points])
    values = np.cos(points @ s.omega.T + s.phase) @ s.amplitude.T
    assert np.all(found.lower <= values.min(axis=0) + 1e-12)


def test_more_splits_close_the_gap():
    s, low, high = sums(5, 2, 10, 2.0), np.zeros(2), np.ones(2)
    gaps = [np.max(b.values - b.lower) for b in (lower_bounds(s, low, high, n) for n in (0, 8, 64, 600))]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3
    assert gaps[-1] < 0.02 * gaps[0]
