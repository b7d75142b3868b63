"""Problems of the benchmarks: optima are attained and never beaten, and objectives and rules match their sources."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from benchmarks.admm.suite import problems as admm
from benchmarks.admmbo.problems import PROBLEMS as ADMMBO
from benchmarks.admmbo.problems import kept
from benchmarks.cmes.problems import PROBLEMS as CMES
from benchmarks.limits.problems import admmbo
from benchmarks.limits.problems import network as size
from benchmarks.limits.sides import WORKS, Sides
from benchmarks.limits.suite import FOLDER, METHODS
from benchmarks.limits.suite import problems as limited
from benchmarks.paper import table
from benchmarks.peers import history
from benchmarks.peers.problem import Problem, optima
from benchmarks.peers.problem import problems as free
from benchmarks.peers.problems import engineering, ising, rbfopt, sensors
from benchmarks.peers.shape import Shape
from benchmarks.suites import suite
from mipcash.errors import ModelError
from mipcash.models import artificial

PROBLEMS: dict[str, Problem] = {**free(), **limited()}
OPTIMA = optima()
COSTLY = ("pipeline", "xgboost", "spring", "credit", "network")
"""Prefixes of problems that fit a model or solve for the spring."""


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_optima_are_attained_and_never_beaten(name: str) -> None:
    problem = PROBLEMS[name]
    if name.startswith("xgboost"):
        pytest.importorskip("xgboost", reason="xgboost-monks needs the xgboost extra")
    try:
        space = problem.space()
    except ModelError as error:
        pytest.skip(f"{name} needs data that is not here: {error}")
    assert bool(space.rules) == (problem.group == "rules")
    configs = space.sample(4 if name.startswith(COSTLY) else 25, seed=1)
    found = [problem.evaluate(c) for c in configs]
    assert problem.evaluate(configs[0]) == found[0]
    assert problem.crashes or np.isfinite([e.loss for e in found]).all()
    counted = [e.counted for e in found if e.counted is not None]
    assert min(counted, default=np.inf) >= problem.optimum - problem.tolerance
    assert problem.certificate != "best known" or problem.limits
    if problem.limits:
        assert not all(e.kept for e in found)
        assert problem.reference > problem.optimum
    if name in OPTIMA:
        assert space.is_legal(OPTIMA[name])
        best = problem.evaluate(OPTIMA[name])
        assert best.loss == pytest.approx(problem.optimum, abs=problem.tolerance)
        if problem.limits:  # a configuration on the boundary of its limits may violate them by rounding
            assert max(1.0 if v is None else v for v in Sides(problem).row(best)) <= 1e-7


def test_the_suite_has_problems_of_each_kind() -> None:
    listed = suite().chosen()
    assert 0.4 <= sum(p.group == "rules" for p in listed) / len(listed) <= 0.6
    assert 2 <= sum(p.held_out for p in listed) <= 4
    with pytest.raises(ValueError, match="there is no problem nothing"):
        suite().chosen(["nothing"])
    assert {len(p.kept) for p in limited().values()} >= {1, 2, 3, 4, 11}
    config = admm()["artificial-3"].space().sample(1, seed=0)[0]
    assert admm()["artificial-3"].objective(config) == artificial.build(instance=3)[1](config)


def test_the_kept_runs_belong_to_the_suite() -> None:
    for method, rule in product(METHODS, ("", "repair")):
        for run in history.read(method, rule, FOLDER):
            assert run.problem in limited()
            assert len(run.outputs) == len(run.losses) >= 50


# -- definitions ------------------------------------------------------------------------------------------------------


def test_ising_by_the_definition() -> None:
    """Compute log W over all 2^16 states of the grid and the correlations, without transfer matrices."""
    states = np.array(list(product((-1.0, 1.0), repeat=16))).reshape(-1, 4, 4)
    pairs = np.stack([states[:, r, c] * states[:, s, d] for r, c, s, d in ising.EDGES], axis=1)
    energy = pairs @ ising.couplings()
    weights = np.exp(energy - energy.max())
    assert ising.log_partition(ising.couplings()) == pytest.approx(energy.max() + math.log(weights.sum()))
    assert ising.correlations() == pytest.approx((weights @ pairs) / weights.sum(), abs=1e-6)
    x = np.random.default_rng(0).integers(0, 2, 24).astype(float)
    config = dict(zip(ising.NAMES, x.astype(int).tolist(), strict=True))
    assert ising.legal(x) == free()["ising-rules"].space().is_legal(config)


def test_published_values() -> None:
    assert rbfopt.branin({"x1": math.pi, "x2": 2.275, "wave": "cos"}) == pytest.approx(0.397887, abs=1e-5)
    point = (0.177401, 0.153512, 0.516698, 0.256499, 0.323092, 0.646352)
    config = {"weights": "c", **dict(zip(rbfopt.REALS, point, strict=True))}
    assert rbfopt.hartman(config) == pytest.approx(-3.962316, abs=1e-4)
    assert engineering.weight(3.5, 0.7, 17, 7.3, 7.8, 3.350214, 5.286683) == pytest.approx(2996.3, abs=2)
    assert admmbo.problem_17({"x1": 0.1951, "x2": 0.4047})["loss"] == pytest.approx(0.5998, abs=1e-4)
    assert max(list(admmbo.problem_17({"x1": 0.1952, "x2": 0.4048}).values())[1:]) <= 0
    assert admmbo.hartman([0.0, 0.0, 0.0, 0.0]) < 1.1 < admmbo.hartman([0.2, 0.4, 0.3, 0.5])


def test_rules_of_the_reducer_are_the_constraints_of_the_literature() -> None:
    space, rng = free()["speed-reducer"].space(), np.random.default_rng(2)
    shape, legal = Shape(space), []
    names = ("width", "module", "teeth", "length_1", "length_2", "shaft_1", "shaft_2")
    for _ in range(60):
        c = {d.name: d.draw(rng) for d in shape.dimensions}
        if rng.uniform() < 0.7:  # close to the boundary
            c |= {"module": 0.7, "teeth": 17, "width": float(rng.uniform(3.4, 3.6))}
        b, m, t, l1, l2, d1, d2 = (c[n] for n in names)
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
    sites = [2, 9]
    gram = between[np.ix_(sites, sites)] + sensors.NOISE * np.eye(2)
    explained = [across[g, sites] @ np.linalg.solve(gram, across[g, sites]) for g in range(len(across))]
    assert sensors.objective(config) == pytest.approx(100 * (1 - np.mean(explained)))
    assert sensors.objective(dict.fromkeys(sensors.NAMES, 0)) == 100.0


@pytest.mark.parametrize(("name", "share"), [("16", 0.018), ("17", 0.462), ("18", 0.443)])
def test_share_of_the_box_that_is_feasible(name: str, share: float) -> None:
    problem = ADMMBO[name]
    drawn = np.random.default_rng(0).uniform(0.0, problem.high, size=(2000, problem.dimension))
    assert np.mean([kept(problem.objective(x)) for x in drawn]) == pytest.approx(share, abs=0.03)
    assert problem.space().validate(problem.start(0)[0]) == []
    assert problem.start(0) != problem.start(1)


@pytest.mark.parametrize("problem", CMES, ids=lambda p: p.name)
def test_a_problem_has_the_shape_and_feasible_share_of_the_paper(problem: Any) -> None:
    space: mc.Space = problem.space()
    kinds = [p.domain.kind for p in space.parameters.values()]
    assert tuple(kinds.count(k) for k in ("real", "integer", "categorical")) == problem.shape
    values = [problem.evaluate(c) for c in space.sample(16, seed=0)]
    assert np.isfinite(values).all()
    assert abs(np.mean([v <= problem.threshold for _, v in values]) - problem.feasible) < 0.35


# -- outcome constraints and crashes ----------------------------------------------------------------------------------


def test_a_crash_returns_no_outputs() -> None:
    problem = limited()["solvers"]
    config = {
        "blocks": 12,
        "bits": 32,
        "method": "iterative",
        "method.iterative.preconditioner": "ilu",
        "method.iterative.restart": 20,
        "method.iterative.tolerance": 1e-4,
    }
    assert problem.space().is_legal(config)
    crashed = problem.evaluate(config)
    assert (crashed.loss, crashed.counted, crashed.outputs, crashed.kept) == (None, None, None, False)
    row = Sides(problem).row(crashed)
    assert (Sides(problem).names[-1], row[-1], set(row[:-1])) == (WORKS, 1.0, {None})
    assert Sides(problem).row(problem.evaluate(config | {"blocks": 5}))[-1] == -1.0


def test_both_bounds_of_a_limit_give_violations_in_units_of_the_bound() -> None:
    problem = limited()["g04"]
    told, made = problem.evaluate(problem.space().sample(1, 0)[0]), Sides(problem)
    row = dict(zip(made.names, made.row(told), strict=True))
    assert len(row) == 6
    assert row["b >= 90"] == pytest.approx((90 - told.values["b"]) / 90)
    assert row["b <= 110"] == pytest.approx((told.values["b"] - 110) / 110)
    assert told.kept == (max(row.values()) <= 0)


def test_the_cost_of_the_network_under_a_size_limit() -> None:
    config: dict[str, Any] = {
        **{"first": "convolution", "kernel": 4, "stride": 2, "channels": 3, "layers": 1, "width_1": 8},
        **{"activation": "tanh", "optimizer": "adam", "rate": 0.03, "decay": 1e-5},
    }
    # 3 x 3 windows of 4 x 4 pixels times 3 channels; layers of 27 to 8 and 8 to 10 units
    assert size.cost(config) == {"parameters": 51 + 28 * 8 + 90, "multiply_adds": 9 * 16 * 3 + 27 * 8 + 80}
    images, classes, _, _ = size.digits()
    net, x, step = size.Net(config, np.random.default_rng(1)), size.inputs(config, images[:7]), 1e-6
    assert size.cost(config)["parameters"] == sum(w.size for w in net.weights)
    for w, gradient in zip(net.weights, net.gradients(x, classes[:7]), strict=True):
        for at in list(np.ndindex(w.shape))[::41]:
            values = []
            for change in (step, -2.0 * step):
                w[at] += change
                log = size.log_softmax(net.forward(x)[-1])
                values.append(-float(np.mean(log[np.arange(7), classes[:7]])))
            w[at] += step
            assert gradient[at] == pytest.approx((values[0] - values[1]) / (2.0 * step), rel=1e-4, abs=1e-7)
    best = optima()["network"]
    assert size.space().is_legal(best)
    assert all(size.cost(best)[name] <= most for name, most in size.LIMITS.items())
    assert size.objective(best)["loss"] == pytest.approx(0.1547, abs=0.005)


def test_the_table_of_trainings_finds_the_nearest_row() -> None:
    kept, dimensions = table.load("monks"), table.shape().dimensions
    assert len(kept.wrong) >= 20_000
    columns = {d.name: kept.columns[d.name][77].item() for d in dimensions}
    config = {d.name: d.values[columns[d.name]] if d.listed else columns[d.name] for d in dimensions}
    assert kept.errors[77] == kept(config)
    assert len({kept.nearest(config) for config in table.shape().space.sample(10, 1)}) > 5
