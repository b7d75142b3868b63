"""Problems: optima by brute force, never beaten, attained by legal configurations; losses reproducible."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from benchmarks.peers.problem import Problem, optima, problems
from benchmarks.peers.problems import engineering, ising, rbfopt, sensors
from benchmarks.peers.shape import Shape
from benchmarks.suites import suite
from mipcash.errors import ModelError

NAMES = list(problems())
OPTIMA = optima()


def space_of(problem: Problem):
    try:
        return problem.space()
    except ModelError as error:
        pytest.skip(f"{problem.name} needs data that is not here: {error}")


def test_there_are_enough_of_each_kind() -> None:
    listed = suite().chosen()
    assert len(listed) >= 16
    assert 0.4 <= sum(p.group == "rules" for p in listed) / len(listed) <= 0.6
    assert 2 <= sum(p.held_out for p in listed) <= 4
    with pytest.raises(ValueError, match="there is no problem nothing"):
        suite().chosen(["nothing"])


@pytest.mark.parametrize("name", NAMES)
def test_no_sample_beats_the_optimum(name: str) -> None:
    problem = problems()[name]
    space = space_of(problem)
    assert bool(space.rules) == (problem.group == "rules")
    few = name.startswith(("pipeline", "xgboost", "spring"))
    if name.startswith("xgboost"):
        pytest.importorskip("xgboost", reason="xgboost-monks needs the xgboost extra")
    configs = space.sample(3 if few else 30, seed=1)
    losses = [problem.objective(c) for c in configs]
    assert np.isfinite(losses).all()
    assert [problem.objective(c) for c in configs] == losses
    assert min(losses) >= problem.optimum - problem.tolerance


@pytest.mark.parametrize("name", [n for n in NAMES if n in OPTIMA])
def test_optima_are_attained_by_legal_configurations(name: str) -> None:
    problem, config = problems()[name], OPTIMA[name]
    assert problem.objective(config) == pytest.approx(problem.optimum, abs=problem.tolerance)
    assert space_of(problem).is_legal(config)


def test_every_optimum_that_a_run_can_attain_is_certified() -> None:
    assert {p.name for p in problems().values() if p.certificate == "best known"} == set()


def test_ising_by_the_definition() -> None:
    """log W over all 2^16 states of the grid, and the correlations; independent of transfer matrices."""
    states = np.array(list(product((-1.0, 1.0), repeat=16))).reshape(-1, 4, 4)
    pairs = np.stack([states[:, r, c] * states[:, s, d] for r, c, s, d in ising.EDGES], axis=1)
    energy = pairs @ ising.couplings()
    weights = np.exp(energy - energy.max())
    assert ising.log_partition(ising.couplings()) == pytest.approx(energy.max() + math.log(weights.sum()))
    assert ising.correlations() == pytest.approx((weights @ pairs) / weights.sum(), abs=1e-6)
    x = np.random.default_rng(0).integers(0, 2, 24).astype(float)
    assert ising.legal(x) == problems()["ising-rules"].space().is_legal(
        dict(zip(ising.NAMES, x.astype(int).tolist(), strict=True))
    )


def test_published_values() -> None:
    assert rbfopt.branin({"x1": math.pi, "x2": 2.275, "wave": "cos"}) == pytest.approx(0.397887, abs=1e-5)
    point = (0.177401, 0.153512, 0.516698, 0.256499, 0.323092, 0.646352)
    config = {"weights": "c", **dict(zip(rbfopt.REALS, point, strict=True))}
    assert rbfopt.hartman(config) == pytest.approx(-3.962316, abs=1e-4)
    assert engineering.weight(3.5, 0.7, 17, 7.3, 7.8, 3.350214, 5.286683) == pytest.approx(2996.3, abs=2)


def test_rules_of_the_reducer_are_the_limits_of_the_literature() -> None:
    space, rng = problems()["speed-reducer"].space(), np.random.default_rng(2)
    shape, legal = Shape(space), []
    for _ in range(150):
        c = {d.name: d.draw(rng) for d in shape.dimensions}
        b, m, t, l1, l2, d1, d2 = (
            c[n] for n in ("width", "module", "teeth", "length_1", "length_2", "shaft_1", "shaft_2")
        )
        if rng.uniform() < 0.7:  # near the border
            c |= {"module": (m := 0.7), "teeth": (t := 17), "width": (b := float(rng.uniform(3.4, 3.6)))}
        limits = (
            27 / (b * m**2 * t) - 1,
            397.5 / (b * m**2 * t**2) - 1,
            1.93 * l1**3 / (m * t * d1**4) - 1,
            1.93 * l2**3 / (m * t * d2**4) - 1,
            math.sqrt((745 * l1 / (m * t)) ** 2 + 16.9e6) / (110 * d1**3) - 1,
            math.sqrt((745 * l2 / (m * t)) ** 2 + 157.5e6) / (85 * d2**3) - 1,
            m * t / 40 - 1,
            5 * m / b - 1,
            b / (12 * m) - 1,
            (1.5 * d1 + 1.9) / l1 - 1,
            (1.1 * d2 + 1.9) / l2 - 1,
        )
        if min(map(abs, limits)) > 1e-6:
            legal.append(max(limits) <= 0)
            assert space.is_legal(c) == legal[-1], (c, limits)
    assert any(legal)
    assert not all(legal)


def test_sensors_by_the_definition() -> None:
    config = dict.fromkeys(sensors.NAMES, 0) | {"s3": 1, "s10": 1}
    between, across = sensors.covariances()
    chosen_sites = [2, 9]
    gram = between[np.ix_(chosen_sites, chosen_sites)] + sensors.NOISE * np.eye(2)
    explained = [across[g, chosen_sites] @ np.linalg.solve(gram, across[g, chosen_sites]) for g in range(len(across))]
    assert sensors.objective(config) == pytest.approx(100 * (1 - np.mean(explained)))
    assert sensors.objective(dict.fromkeys(sensors.NAMES, 0)) == 100.0
