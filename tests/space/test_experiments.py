"""Designs of experiments: legality, the criteria against brute force, spaces with fewer configurations than points."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.space.experiments import CRITERIA, LEAST, PER_POINT, RIDGE, candidates, d_optimal, features, maximin


def network() -> mc.Space:
    space = mc.Space("network")
    layers, units = space.integer("layers", 1, 4), space.integer("units", 8, 256, step=8)
    act = space.categorical("activation", ["relu", None, True, 1])
    space.real("dropout", 0.0, 0.6, when=layers >= 2)
    space.ordinal("batch", [16, 32, 128])
    space.ordering(
        "order", [space.module("scale", {"on": {}, "off": {}}), space.module("select", {"on": {}, "off": {}})]
    )
    space.rule("memory", layers * units <= 600)
    space.rule("deep", mc.implies(act["relu"], layers >= 2))
    return space


def log_det(x: np.ndarray, chosen: list[int]) -> float:
    f = np.column_stack([np.ones(len(x)), x])[chosen]
    return float(np.linalg.slogdet(RIDGE * np.eye(f.shape[1]) + f.T @ f)[1])


def least_distance(x: np.ndarray, chosen: list[int]) -> float:
    return min(float(np.linalg.norm(x[i] - x[j])) for i, j in itertools.combinations(chosen, 2))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_design_is_legal_different_reproducible_and_better_than_samples(criterion: str) -> None:
    space, value = network(), log_det if criterion == "d-optimal" else least_distance
    design = space.sample(15, seed=3, criterion=criterion)
    assert design == network().sample(15, seed=3, criterion=criterion)
    assert all(space.is_legal(c) for c in design)
    assert len({repr(c) for c in design}) == 15
    every = range(15)
    plain = [value(features(space.parameters, space.sample(15, seed=s)), list(every)) for s in range(10)]
    assert value(features(space.parameters, design), list(every)) > max(plain)


def test_the_largest_least_distance_is_at_most_twice_that_of_farthest_first() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.uniform(-1, 1, (11, 3))
        best = max(least_distance(x, list(s)) for s in itertools.combinations(range(11), 4))
        assert least_distance(x, maximin(x, 4, rng).tolist()) >= best / 2 - 1e-12


def test_no_exchange_of_one_point_improves_a_d_optimal_design() -> None:
    rng = np.random.default_rng(1)
    gaps = []
    for _ in range(20):
        x = rng.uniform(-1, 1, (12, 3))
        chosen = d_optimal(x, 5, rng).tolist()
        value = log_det(x, chosen)
        for place, k in itertools.product(range(5), set(range(12)) - set(chosen)):
            assert log_det(x, [*chosen[:place], k, *chosen[place + 1 :]]) <= value + 1e-7
        gaps.append(max(log_det(x, list(s)) for s in itertools.combinations(range(12), 5)) - value)
    assert np.median(gaps) == pytest.approx(0.0, abs=1e-7)  # most local optima are the global one


def test_features_of_levels_and_of_inactive_parameters() -> None:
    space = network()
    config = {"layers": 1, "units": 256, "activation": True, "batch": 32, "scale": "on", "select": "off"}
    rows = features(
        space.parameters,
        [{**config, "order": ("select", "scale")}, {**config, "activation": 1, "order": ("scale", "select")}],
    )
    names = [n for n in space.parameters]
    assert names[:4] == ["layers", "units", "activation", "dropout"]
    assert rows[0, :7].tolist() == [-1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]  # True is not 1, an inactive dropout is 0
    assert rows[1, 2:6].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert rows[0, -2:].tolist() == [-rows[1, -2], -rows[1, -1]]
    sizes = mc.Space("sizes")
    order = sizes.ordering("o", [sizes.categorical(name, ["p", "q"]) for name in "abc"])
    assert order is not None
    sizes.ordinal("size", [1, 2, 8, 9])
    middle = features(sizes.parameters, [{"a": "p", "b": "q", "c": "q", "size": 8, "o": ("b", "a", "c")}])
    assert middle[0, 6:].tolist() == pytest.approx([0.0, -1.0, 1.0, 1 / 3])


def test_a_design_larger_than_the_space_warns_and_an_unknown_criterion_is_refused() -> None:
    space = mc.Space("few")
    space.categorical("c", ["a", "b", "c"])
    with pytest.warns(
        UserWarning, match="a design of 5 points of space 'few' has 3, since no more configurations differ"
    ):
        assert len(space.sample(5, criterion="maximin")) == 3
    assert space.sample(0, criterion="maximin") == []
    with pytest.raises(SpaceError, match="no criterion 'latin' of a design; choose one of maximin, d-optimal, uniform"):
        space.sample(5, criterion="latin")


def conditional() -> mc.Space:
    space = mc.Space("conditional")
    layers, batch = space.integer("layers", 1, 4), space.ordinal("batch", [16, 32, 128])
    x, y = space.categorical("x", ["a", "b", "c"], when=layers >= 3), space.integer("y", 0, 5)
    space.real("dropout", 0.0, 0.6, when=layers >= 2)
    space.rule("pair", mc.implies(x["a"], y <= 2))
    space.rule("row", layers + y + 2 * batch.is_(32) <= 7)
    return space


def ordered() -> mc.Space:
    space = mc.Space("ordered")
    modules = [space.module(f"m{k}", ["x", "y"][: 2 - k % 2]) for k in range(4)]
    order = space.ordering("order", modules)
    space.rule("before", order.position(modules[0]) + 1 <= order.position(modules[1]))
    return space


def discrete(config: dict[str, Any]) -> str:
    """Return the discrete part of a configuration as a text."""
    return repr(sorted((k, v) for k, v in config.items() if k != "dropout"))


def chosen() -> mc.Space:
    space = mc.Space("chosen")
    features = [space.integer(f"f{k}", 0, 1) for k in range(9)]
    space.rule("few", sum(features) <= 2)
    space.real("dropout", 0.0, 0.6)
    return space


@pytest.mark.parametrize(
    ("make", "criterion"), [(conditional, "uniform"), (ordered, "uniform"), (ordered, None), (chosen, None)]
)
def test_uniform_samples_pass_a_chi_square_test(make: Callable[[], mc.Space], criterion: str | None) -> None:
    space = make()
    n = int(space.count())
    found = Counter(discrete(c) for c in space.sample(12 * n, seed=1, criterion=criterion))
    assert len(found) <= n
    assert stats.chisquare([*found.values(), *[0] * (n - len(found))]).pvalue > 1e-3
    assert all(space.is_legal(c) for c in space.sample(50, seed=2, criterion=criterion))


@pytest.mark.parametrize("criterion", [None, "uniform"])
def test_an_empty_space_without_discrete_parameters_is_explained(criterion: str | None) -> None:
    space = mc.Space("empty")
    space.real("x", 0.0, 1.0)
    space.rule("odd", 2 * space.auxiliary("h", 0, 4) + 2 * space.auxiliary("g", 0, 4) == 3)
    with pytest.raises(mc.errors.InfeasibleSpaceError, match=r"rule 'odd'"):
        space.sample(2, criterion=criterion)


def test_samples_are_uniform_beside_an_algorithm_with_many_settings() -> None:
    space = chosen()
    model = space.module("model", ["forest", "bayes"])
    space.integer("trees", 1, 50, when=model["forest"])
    least = space.integer("least", 1, 3)
    space.rule("bayes needs two", least >= 2 * model["bayes"])
    found = space.sample(12 * 46, seed=1)
    features = Counter(tuple(c[f"f{k}"] for k in range(9)) for c in found)
    assert stats.chisquare([*features.values(), *[0] * (46 - len(features))]).pvalue > 1e-3
    assert 0.3 < sum(c["model"] == "bayes" for c in found) / len(found) < 0.7


def test_uniform_samples_of_more_configurations_than_a_float_can_count() -> None:
    space = mc.Space("huge")
    chosen = [space.categorical(f"c{k}", range(10)) for k in range(320)]
    for a, b in itertools.pairwise(chosen):
        space.rule(f"{a.label} {b.label}", mc.implies(a[0], b[0]))
    assert int(space.count()) > 10**300
    found = space.sample(40, criterion="uniform")
    assert all(space.is_legal(c) for c in found)
    # c_k = 0 makes every later one 0: of 9^k with the first 0 at k, the last ones dominate
    first = [next((k for k in range(320) if c[f"c{k}"] == 0), 320) for c in found]
    assert min(first) >= 310


def test_uniform_samples_of_what_cannot_be_counted_are_refused() -> None:
    space = mc.Space("mixed")
    x, n = space.real("x", 0.0, 1.0), space.integer("n", 1, 5)
    space.rule("r", x + n <= 4.5)
    with pytest.raises(SpaceError, match=r"space 'mixed' cannot be counted exactly, so there are no uniform draws"):
        space.sample(3, criterion="uniform")
    space.rule("empty", n >= 6)
    with pytest.raises(mc.errors.InfeasibleSpaceError):
        space.sample(3, criterion="uniform")


@pytest.mark.parametrize("kind", ["reals", "integers"])
def test_a_d_optimal_design_of_a_cube_has_its_corners(kind: str) -> None:
    space = mc.Space("cube")
    for k in range(3):
        space.real(f"x{k}", 0, 9) if kind == "reals" else space.integer(f"x{k}", 0, 9)
    x = np.array([[c[f"x{k}"] for k in range(3)] for c in space.sample(8, criterion="d-optimal")]) / 4.5 - 1.0
    f = np.column_stack([np.ones(8), x])
    assert np.linalg.det(f.T @ f) == pytest.approx(8.0**4)  # the largest value: orthogonal columns of norm sqrt(8)


def test_a_d_optimal_design_of_a_mixture_has_corners_of_the_legal_set() -> None:
    space = mc.Space("mixture")
    x = [space.real(f"x{k}", 0, 1) for k in range(3)]
    space.rule("sum", sum(x) == 1)
    space.rule("cap", x[0] <= 0.6)
    found = space.sample(6, criterion="d-optimal")
    assert all(map(space.is_legal, found))
    corners = {(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.6, 0.4, 0.0), (0.6, 0.0, 0.4)}
    assert len(corners & {tuple(round(c[f"x{k}"], 9) for k in range(3)) for c in found}) >= 3


def test_candidates_grow_with_the_points_that_are_selected() -> None:
    assert [candidates(n) for n in (0, 1, 100)] == [0, LEAST, 100 * PER_POINT]
