"""Structured model against its formulas (docs/model.md, 2.1 to 2.4), written out for each pair of configurations."""

from __future__ import annotations

import itertools
import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates import level_kernels
from mipcash.surrogates.structured import kernel as kernels
from mipcash.surrogates.structured.encoded import Encoded, distinct_rows
from mipcash.surrogates.structured.evidence import Evidence
from mipcash.surrogates.structured.kernel import Kernel, level_sums
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from tests.surrogates.conformance import T, nested, observed_in
from tests.surrogates.test_structured_surrogate import some_theta, structure_of

Config = dict[str, Any]


def deep() -> mc.Space:
    """Space with a number under three conditions."""
    space = mc.Space("deep")
    a, b, c = (space.categorical(name, ["x", "y"]) for name in "abc")
    space.integer("d", 0, 3)
    space.real("r", 0, 1, when=[a["x"], b["x"], c["x"]])
    space.real("s", 0, 1)
    return space


def centred(kernel: np.ndarray) -> np.ndarray:
    """Return H K H, scaled to a mean diagonal of one."""
    size = len(kernel)
    h = np.eye(size) - np.ones((size, size)) / size
    made = h @ kernel @ h
    return made / np.mean(np.diag(made))


def of_levels(values: list[Any], kind: str, length: float) -> np.ndarray:
    """Return k_v of a discrete variable: the identity, or a squared exponential on [0, 1] plus 1e-3 I."""
    n = len(values)
    if kind == "categorical" or n < 3:
        return centred(np.eye(n))
    place = np.arange(n) / (n - 1)
    return centred(np.exp(-((place[:, None] - place) ** 2) / (2 * length**2)) + 1e-3 * np.eye(n))


class Written:
    """Kernels K and R of two configurations at a given theta, as the formulas define them."""

    def __init__(self, space: mc.Space, theta: np.ndarray) -> None:
        self.program = compiled(space).program
        self.scale = Domain.of(space).scale
        structure = Structure(self.program, self.scale)
        self.p = {name: np.exp(theta[at]) for name, at in structure.slices.items()}
        self.domains = {g.label: space[g.label].domain for g in self.program.groups}
        self.groups = [g.label for g in self.program.groups]
        ordered = [g.label for g in self.program.groups if self.is_ordered(g.label)]
        self.lo = dict(zip(ordered, self.p["lo"], strict=True))
        self.numbers = list(self.scale.labels)
        conditions = dict(zip(self.numbers, map(len, self.scale.conditions), strict=True))
        self.always = [n for n in self.numbers if conditions[n] == 0]
        self.conditions = conditions
        self.conditional = {g.label: g.conditional for g in self.program.groups}

    def is_ordered(self, label: str) -> bool:
        return self.domains[label].kind != "categorical" and len(self.domains[label].values) >= 3

    def u(self, config: Config, name: str) -> float:
        return float(self.scale.units([config])[0][self.numbers.index(name)])

    def discrete(self, g: int, x: Config, y: Config) -> float:
        """Return A_g: 0 if the variable is inactive in x or y. If it is conditional, its activity adds 1/4."""
        label = self.groups[g]
        if label not in x or label not in y:
            return 0.0
        values = list(self.domains[label].values)
        k = of_levels(values, self.domains[label].kind, self.lo.get(label, 1.0))
        at = k[values.index(x[label]), values.index(y[label])] + (0.25 if self.conditional[label] else 0.0)
        return float(self.p["a"][g] * at)

    def number(self, j: int, x: Config, y: Config) -> float:
        """Return A_j. Numbers under more than two conditions are left to R."""
        name = self.numbers[j]
        if name not in x or name not in y or self.conditions[name] > 2:
            return 0.0
        return float(self.p["b"][j] * math.exp(-((self.u(x, name) - self.u(y, name)) ** 2) / (2 * self.p["m"][j] ** 2)))

    def k(self, x: Config, y: Config) -> float:
        p = {name: float(v[0]) for name, v in self.p.items() if len(v) == 1}
        a = [self.discrete(g, x, y) for g in range(len(self.groups))]
        n = [self.number(j, x, y) for j in range(len(self.numbers))]
        degrees = [1] * len(a) + [self.conditions[name] for name in self.numbers]
        terms = a + n
        # a product is quadratic in the binaries: at most two conditions and levels together
        pairs = [(v, w) for v, w in itertools.combinations(range(len(terms)), 2) if degrees[v] + degrees[w] <= 2]
        discrete = list(itertools.combinations(range(len(a)), 2))
        total = 1 + p["s1"] / len(terms) * sum(terms)
        total += p["s2"] / max(1, len(pairs)) * sum(terms[v] * terms[w] for v, w in pairs)
        if self.always:
            squares = [
                ((self.u(x, name) - self.u(y, name)) / l) ** 2 for name, l in zip(self.always, self.p["l"], strict=True)
            ]
            inner = p["sc"] + p["sm"] / max(1, len(a)) * sum(a)
            inner += p["sq"] / max(1, len(discrete)) * sum(a[g] * a[h] for g, h in discrete)
            total += math.exp(-sum(squares) / 2) * inner
        return total

    def r(self, x: Config, y: Config) -> float:
        exponent = sum(self.p["w"][g] * self.apart(label, x, y) for g, label in enumerate(self.groups))
        for j, name in enumerate(self.numbers):
            exponent += (self.u(x, name) - self.u(y, name)) ** 2 / (2 * self.p["r"][j] ** 2)
        return float(self.p["sr"][0] * math.exp(-exponent))

    def apart(self, label: str, x: Config, y: Config) -> float:
        """Return the squared distance d_g. Categories have distance 1, and ordered values lie on [0, 1].

        An inactive value lies at distance 1 from the middle of that interval, perpendicular to it.
        """
        if (label in x) != (label in y):
            if self.domains[label].kind == "categorical":
                return 1.0
            return 1.0 + (self.place(label, x if label in x else y) - 0.5) ** 2
        if label not in x or x[label] == y[label]:
            return 0.0
        if self.domains[label].kind == "categorical":
            return 1.0
        return (self.place(label, x) - self.place(label, y)) ** 2

    def place(self, label: str, x: Config) -> float:
        values = list(self.domains[label].values)
        return values.index(x[label]) / (len(values) - 1) if len(values) > 1 else 0.5


SPACES = {"nested": nested, "deep": deep}
NUMBERS = {"rate": 0.3, "decay": 0.1, "wide": 7, "one": 0.4, "two": 0.6, "r": 0.2, "s": 0.7}


def encoded(space: mc.Space, configs: list[Config]) -> tuple[Structure, Points, Encoded]:
    program, scale = compiled(space).program, Domain.of(space).scale
    structure = Structure(program, scale)
    points = Points(np.array([program.encode(c) for c in configs]), scale.units(configs))
    return structure, points, Encoded.of(structure, points)


def test_variables_are_counted_where_they_are_active() -> None:
    """The mean over all levels: kind a, b, c; depth with a and b; ``one`` with a; ``two`` with a and one of four depths."""
    found = encoded(nested(), nested().sample(1))[0].n_active
    assert found == pytest.approx(1 + 2 / 3 + 3 + 1 / 3 + 1 / 3 / 4, abs=0.05)
    plain = mc.Space("plain")
    plain.integer("a", 0, 3)
    plain.real("b", 0, 1)
    assert encoded(plain, plain.sample(1))[0].n_active == 2.0


@pytest.mark.parametrize("name", list(SPACES))
@pytest.mark.parametrize("sparse", [0.0, 1.0])
def test_the_kernel_agrees_with_its_formula(name: str, sparse: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are stored as matrices or as lists of pairs. Points share their numbers or have different ones."""
    monkeypatch.setattr(kernels, "SPARSE", sparse)
    space = SPACES[name]()
    configs = space.sample(14, 1)
    shared = [{key: NUMBERS.get(key, value) for key, value in c.items()} for c in configs]
    structure, _, points = encoded(space, configs)
    theta = some_theta(structure)
    kernel, written = Kernel(structure, theta), Written(space, theta)
    for rows in (configs, shared):
        left = encoded(space, rows)[2]
        k = np.array([[written.k(x, y) for y in configs] for x in rows])
        r = np.array([[written.r(x, y) for y in configs] for x in rows])
        np.testing.assert_allclose(kernel(left, points), k, rtol=1e-9)
        np.testing.assert_allclose(kernel.residual(left, points), r, rtol=1e-9)
        np.testing.assert_allclose(kernel.covariance(left, points), k + r, rtol=1e-9)
    np.testing.assert_allclose(kernel.diagonal(points), [written.k(x, x) for x in configs], rtol=1e-9)


@pytest.mark.parametrize(("name", "number"), [("deep", "r"), ("nested", "one")])
def test_an_inactive_number_contributes_nothing(name: str, number: str) -> None:
    """Predictions, sections, the mean and samples ignore the value that a search has left in an inactive number."""
    space = SPACES[name]()
    program, configs = compiled(space).program, space.sample(30, 0)
    structure, points, x = encoded(space, configs)
    losses = np.array([3.0 * (c[number] - 0.8) ** 2 if number in c else c.get("s", 0.5) for c in configs])
    posterior = StructuredPosterior.fit(Kernel(structure, some_theta(structure)), x, losses)
    r = Domain.of(space).scale.labels.index(number)
    on, off = ([k for k, c in enumerate(configs) if (number in c) == held] for held in (True, False))
    moved = points.units.copy()
    moved[:, r] = 0.95
    phantom, z = Points(points.levels, moved), points.one_hot(program)
    for before, after in zip(posterior.predict(points), posterior.predict(phantom), strict=True):
        np.testing.assert_allclose(after[off], before[off], atol=1e-9)
        assert np.abs(after[on] - before[on]).max() > 1e-3
    for surface in (posterior.mean(), posterior.sample(np.random.default_rng(0))):
        np.testing.assert_allclose(surface.values(phantom)[off], surface.values(points)[off], atol=1e-9)
        form = surface.form_at(moved[off[0]])
        base = np.concatenate([z[off[0]], np.zeros(program.n - program.n_z)])
        assert form.value(base) == pytest.approx(surface.value(z[off[0]], points.units[off[0]]), abs=1e-9)
    section = posterior.section(z[off[0]])
    assert section(moved[off[0]])[:2] == pytest.approx(section(points.units[off[0]])[:2])
    assert all(slope[r] == 0 for slope in section(moved[off[0]])[2:])


@pytest.mark.parametrize("name", ["nested", "bound_numbers"])
def test_predictions_are_the_closed_form(name: str) -> None:
    observed = observed_in(name)
    structure = structure_of(observed)
    kernel, x, y = Kernel(structure, some_theta(structure)), Encoded.of(structure, observed.every), observed.values
    posterior = StructuredPosterior.fit(kernel, x[:T], y)
    k, cross, prior = (kernel(a, b) + kernel.residual(a, b) for a, b in ((x[:T],) * 2, (x[T:], x[:T]), (x[T:],) * 2))
    inverse = np.linalg.inv(k + (kernel.noise + 1e-8) * np.eye(T))
    mean, deviation = posterior.predict(observed.new)
    np.testing.assert_allclose(mean, cross @ inverse @ ((y - y.mean()) / y.std()), atol=1e-7)
    np.testing.assert_allclose(deviation**2, np.maximum(np.diag(prior - cross @ inverse @ cross.T), 1e-8), atol=1e-7)


@pytest.mark.parametrize("name", ["nested", "discrete"])
def test_a_factor_of_a_level_kernel_is_one_that_every_processor_finds(name: str) -> None:
    """It is triangular, where the eigenvectors of a category's equal eigenvalues are any basis."""
    for group in structure_of(observed_in(name)).groups:
        k = 0.3 * level_kernels.LevelKernel(group).matrix
        c = level_kernels.factor_of(k)
        np.testing.assert_allclose(c @ c.T, k, atol=1e-12)
        assert c.shape[1] == np.linalg.matrix_rank(k)
        np.testing.assert_allclose(np.triu(c, 1), 0.0, atol=1e-12)


# -- wide spaces ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nested", "alternatives", "discrete"])
def test_a_wide_model_is_the_same_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide model is computed without matrices over pairs of levels."""
    monkeypatch.setattr(level_kernels, "DENSE", 0)
    observed = observed_in(name)
    structure = structure_of(observed)
    theta, x, found = some_theta(structure), Encoded.of(structure, observed.every), []
    for wide in (True, False):
        of = copy(structure)
        of.wide = wide  # overrides the choice of the structure
        kernel, mine = Kernel(of, theta), replace(x, structure=of)
        posterior = StructuredPosterior.fit(kernel, mine[:T], observed.values)
        mean, z, u = posterior.mean(), x.z[T + 2], x.u[T + 2]
        together = mine.joined(replace(mine, u=np.repeat(mine.u[:1], len(mine), axis=0)))
        found.append(
            [
                kernel(mine, mine[:7]), kernel(together, mine), kernel.residual(together, mine), kernel.diagonal(mine),
                *posterior.predict(observed.every), *posterior.section(z)(u), mean.values(observed.every),
                *mean.section(z)(u), *Evidence(Tables(of, mine[:T]), observed.values)(theta),
            ]
        )  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("alike", [True, False])
def test_level_sums_of_neighbours_and_of_unrelated_points(alike: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, size=60)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    levels = rng.integers(sizes, size=(2500, 60))
    if alike:
        moved = np.repeat(levels[:1], 2500, axis=0)
        moved[np.arange(2500), rng.integers(60, size=2500)] = 0
        levels = moved
    table = rng.normal(size=(int(sizes.sum()), 4))
    (found,) = level_sums(starts + levels, [table])
    np.testing.assert_allclose(found, table[starts + levels].sum(axis=1), atol=1e-10)


def test_distinct_rows_are_distinguished_even_where_their_keys_agree() -> None:
    rows = np.array([[math.cos(2.0), 0.0], [0.0, math.cos(1.0)], [0.5, 0.5], [math.cos(2.0), 0.0]])
    unique, inverse = distinct_rows(rows)
    np.testing.assert_array_equal(unique[inverse], rows)
    assert len(unique) == 3
