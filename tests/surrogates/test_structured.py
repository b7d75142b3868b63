"""The structured model: analytic gradients, exact forms, posterior moments in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from itertools import combinations, product

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.interactions import Interactions
from mipcash.surrogates.level_kernels import level_kernel
from mipcash.surrogates.structured.encoded import Encoded, distinct_rows
from mipcash.surrogates.structured.evidence import FITTED, Evidence, fit
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from tests.spaces import alternatives


def nested() -> mc.Space:
    """A number under two conditions (in no pair), one under one condition, and three that are always active."""
    space = mc.Space("nested")
    kind = space.categorical("kind", ["a", "b", "c"])
    depth = space.integer("depth", 1, 4, when=kind.is_("a", "b"))
    space.real("rate", 0, 1)
    space.real("decay", 1e-3, 1, log=True)
    space.integer("wide", 1, 500)
    space.real("one", 0, 1, when=kind["a"])
    space.real("two", 0, 1, when=[kind["a"], depth.is_(2)])
    return space


SPACES = {
    name: lambda name=name: import_module(f"mipcash.models.{name}").space for name in ("synthetic", "vae", "xgboost")
}
SPACES["nested"] = nested
WITH_ALTERNATIVES = {**SPACES, "alternatives": alternatives}


def observed(space: mc.Space, n: int = 30, sparse: bool = False) -> tuple[BinaryProgram, Structure, Points, Encoded]:
    """Legal points of a space, and as its kernel reads them."""
    program = compiled(space).program
    scale = Domain.of(space).scale
    allowed = None
    if sparse:
        rng = np.random.default_rng(5)
        g, d = len(program.groups), len(scale)
        allowed = Interactions(
            frozenset(p for p in combinations(range(g), 2) if rng.random() < 0.5),
            frozenset(p for p in product(range(g), range(d)) if rng.random() < 0.5),
            frozenset(p for p in combinations(range(d), 2) if rng.random() < 0.5),
        )
    structure = Structure.of(program, scale, allowed)
    configs = space.sample(n, 0)
    points = Points(np.array([program.encode(c) for c in configs]), scale.units(configs))
    return program, structure, points, Encoded.of(structure, points)


def some_theta(structure: Structure, seed: int = 1) -> np.ndarray:
    mean, sd = structure.prior
    return mean + 0.4 * np.random.default_rng(seed).normal(size=len(mean)) * sd


@pytest.mark.parametrize("name", ["xgboost", "nested"])
def test_the_gradient_of_the_evidence_agrees_with_finite_differences(name: str) -> None:
    """Of some interactions; of all: tests/surrogates/test_structured_surrogate.py."""
    _, structure, _, x = observed(SPACES[name](), sparse=True)
    evidence = Evidence.of(Tables(structure, x), np.random.default_rng(0).normal(size=len(x)))
    theta = some_theta(structure)
    gradient = evidence(theta)[1]
    step = 1e-5
    differences = [
        (evidence(theta + step * e)[0] - evidence(theta - step * e)[0]) / (2 * step) for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-5)


def test_distinct_rows_are_told_apart_even_where_their_keys_agree() -> None:
    rows = np.array([[math.cos(2.0), 0.0], [0.0, math.cos(1.0)], [0.5, 0.5], [math.cos(2.0), 0.0]])
    unique, inverse = distinct_rows(rows)
    np.testing.assert_array_equal(unique[inverse], rows)
    assert len(unique) == 3


@pytest.mark.parametrize(("name", "sparse"), [("alternatives", False), ("nested", True)])
def test_mean_and_samples_are_exact_forms_and_sections(name: str, sparse: bool) -> None:
    program, structure, _, x = observed(WITH_ALTERNATIVES[name](), sparse=sparse)
    rng = np.random.default_rng(2)
    posterior = StructuredPosterior.fit(Kernel(structure, some_theta(structure)), x[:20], rng.normal(size=20))
    for surface in (posterior.mean(), posterior.sample(rng), posterior.sample(rng, 0.25)):
        for k in range(20, 30):
            z, u = x.z[k], x.u[k]
            value = surface.value(z, u)
            assert surface.form_at(u).value(np.pad(z, (0, program.n - program.n_z))) == pytest.approx(value, abs=1e-9)
            section = surface.section(z)
            assert section(u)[0] == pytest.approx(value, abs=1e-9)
            step = 1e-6 * np.eye(len(u))
            differences = [(section(u + e)[0] - section(u - e)[0]) / 2e-6 for e in step]
            np.testing.assert_allclose(section(u)[1], differences, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SPACES)
def test_predictions_are_the_closed_form_and_samples_have_their_moments(name: str) -> None:
    _, structure, points, x = observed(SPACES[name]())
    rng = np.random.default_rng(3)
    kernel = Kernel(structure, some_theta(structure))
    y = rng.normal(size=20)
    posterior = StructuredPosterior.fit(kernel, x[:20], y)
    k, cross, prior = (
        kernel(a, b) + kernel.residual(a, b) for a, b in ((x[:20],) * 2, (x[20:], x[:20]), (x[20:],) * 2)
    )
    np.testing.assert_allclose(np.diag(kernel(x[20:], x[20:])), kernel.diagonal(x[20:]), atol=1e-12)
    inverse = np.linalg.inv(k + (kernel.noise + 1e-8) * np.eye(20))
    mean, deviation = posterior.predict(points[20:])
    np.testing.assert_allclose(mean, cross @ inverse @ ((y - y.mean()) / y.std()), atol=1e-7)
    np.testing.assert_allclose(deviation**2, np.maximum(np.diag(prior - cross @ inverse @ cross.T), 1e-8), atol=1e-7)
    np.testing.assert_allclose(posterior.fitted, posterior.predict(points[:20])[0], atol=1e-7)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("shared", [False, True])
def test_sums_over_numbers_are_those_of_their_terms(name: str, shared: bool) -> None:
    """Points that share their numbers, and points that do not, take different ways to the same kernel."""
    _, structure, _, x = observed(SPACES[name]())
    rng = np.random.default_rng(4)
    left = replace(x, u=np.repeat(x.u[:2], len(x) // 2, axis=0) if shared else rng.random(x.u.shape))
    kernel = Kernel(structure, some_theta(structure))
    terms = np.concatenate([kernel.group_terms(left, x), kernel.number_terms(left, x)])
    pairs = 0.5 * np.einsum("vbt,vw,wbt->bt", terms, structure.pairs, terms)
    g, (c1, c2, sc, cm, cq) = structure.n_groups, kernel.factors
    discrete = 0.5 * np.einsum("vbt,vw,wbt->bt", terms[:g], structure.pairs[:g, :g], terms[:g])
    expected = 1.0 + c1 * terms.sum(axis=0) + c2 * pairs
    if len(structure.joint):
        expected = expected + kernel.joint_term(left.u, x) * (sc + cm * terms[:g].sum(axis=0) + cq * discrete)
    np.testing.assert_allclose(kernel(left, x), expected, atol=1e-10)


def test_an_inactive_parameter_contributes_nothing() -> None:
    space = nested()
    _, structure, points, x = observed(space)
    kernel = Kernel(structure, some_theta(structure))
    scale = Domain.of(space).scale
    off = next(k for k in range(len(x)) if x.on[k, scale.labels.index("one")] == 0)
    moved = x.u.copy()
    moved[off, scale.labels.index("one")] = 0.9
    phantom = replace(x, u=moved)
    np.testing.assert_allclose(kernel(phantom, x), kernel(x, x), atol=1e-12)
    np.testing.assert_allclose(kernel.residual(phantom, x), kernel.residual(x, x), atol=1e-12)
    posterior = StructuredPosterior.fit(kernel, x, np.arange(float(len(x))))
    np.testing.assert_allclose(posterior.predict(Points(points.levels, moved)), posterior.predict(points), atol=1e-9)
    section = posterior.section(x.z[off])
    np.testing.assert_allclose(section(moved[off])[:2], section(x.u[off])[:2], atol=1e-9)
    assert all(slope[scale.labels.index("one")] == 0 for slope in section(moved[off])[2:])


def test_the_slope_of_a_level_kernel_agrees_with_finite_differences() -> None:
    space = nested()
    for group in compiled(space).program.groups:
        low, high = level_kernel(group, np.exp(-1.0 - 1e-6))[0], level_kernel(group, np.exp(-1.0 + 1e-6))[0]
        np.testing.assert_allclose(level_kernel(group, np.exp(-1.0))[1], (high - low) / 2e-6, atol=1e-6)


def test_the_fit_improves_on_the_median_and_uses_no_more_than_its_limit() -> None:
    _, structure, _, x = observed(SPACES["synthetic"](), n=FITTED + 40)
    y = x.u[:, 0] + 3.0 * x.z[:, 0] * x.u[:, 1]
    evidence = Evidence.of(Tables(structure, x), (y - y.mean()) / y.std())
    assert len(evidence.y) == FITTED
    assert evidence.y.min() == pytest.approx(((y - y.mean()) / y.std()).min())
    theta, value = fit(evidence, [], iterations=4)
    assert value < evidence(structure.prior[0])[0]
    again, _ = fit(evidence, [theta], iterations=4)
    assert evidence(again)[0] <= value + 1e-9
