"""Defaults and priors: weights, the guided acquisition, the first proposals, and data that overrule a wrong prior."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mipcash as mc
from mipcash.errors import SpaceError, StorageError
from mipcash.optimizers.prior import Prior, WeightedPrior
from mipcash.program.points import Points
from mipcash.report.data.run import Run
from mipcash.space.domain import Domain

RATE, DROP, DEPTH = stats.lognorm(1.0, scale=1e-2), stats.norm(0.3, 0.1), stats.norm(4, 2)


def network() -> mc.Space:
    """Return a space with a prior on every kind of parameter, conditions and rules."""
    space = mc.Space("network", expand_limit=16)
    layers = space.integer("layers", 1, 4, prior={2: 3, 3: 1})
    space.real("rate", 1e-4, 1e-1, log=True, prior=RATE)
    drop = space.real("drop", 0.0, 1.0, prior=DROP, when=layers >= 2)
    space.integer("width", 1, 200, prior=stats.poisson(40))
    algorithms = {"tree": {"depth": mc.Integer(1, 9)}, "line": {}}
    net = space.module("net", algorithms, prior={"tree": 1.0, "line": 3.0})
    space.expect("net.tree.depth", prior=DEPTH)
    space.real("free", 0.0, 1.0)
    space.rule("few", layers + drop <= 3.5)
    space.rule("no deep line", layers <= 3, when=net["line"])
    return space


def prior_of(space: mc.Space) -> tuple[Domain, Prior]:
    domain = Domain.of(space)
    prior = Prior.of(domain)
    assert prior is not None
    return domain, prior


BASE = {"layers": 2, "rate": 0.01, "drop": 0.3, "width": 40, "net": "tree", "net.tree.depth": 4, "free": 0.5}


@pytest.mark.parametrize(
    ("changed", "ratio"),
    [
        ({"layers": 3}, math.log(1 / 3)),
        ({"rate": 0.02}, float(RATE.logpdf(0.02) - RATE.logpdf(0.01)) + math.log(2.0)),  # the density on the log scale
        ({"drop": 0.5}, float(DROP.logpdf(0.5) - DROP.logpdf(0.3))),
        ({"width": 50}, float(stats.poisson(40).logpmf(50) - stats.poisson(40).logpmf(40))),
        ({"net.tree.depth": 7}, float(DEPTH.logpdf(7) - DEPTH.logpdf(4))),
        ({"free": 0.9}, 0.0),
        ({"layers": 4}, -15.0),  # no weight is given
    ],
)
def test_weights_have_the_ratios_of_the_prior(changed: dict[str, Any], ratio: float) -> None:
    domain, prior = prior_of(network())
    one, other = prior.log(domain.encode([BASE, {**BASE, **changed}]))
    assert other - one == pytest.approx(ratio, abs=0.03)


def test_inactive_parameters_have_the_mean_weight() -> None:
    domain, prior = prior_of(network())
    line = {k: v for k, v in BASE.items() if k != "net.tree.depth"} | {"net": "line"}
    depths = [{**BASE, "net.tree.depth": d} for d in range(1, 10)]
    weights = np.exp(prior.log(domain.encode([line, *depths])))
    assert weights[0] == pytest.approx(
        3.0 * weights[1:].mean(), rel=0.1
    )  # 3 is the ratio of the weights of line and tree


def test_the_section_is_the_weighted_log_prior_with_its_gradient() -> None:
    domain, prior = prior_of(network())
    points, rng = domain.encode(domain.sample(12, np.random.default_rng(0))), np.random.default_rng(1)
    for k in range(len(points)):
        section = WeightedPrior(prior, 0.7).section(points[k].one_hot(domain.program))
        u, v = rng.random((2, points.units.shape[1]))
        rows = Points(np.repeat(points.levels[k : k + 1], 2, axis=0), np.array([u, v]))
        logs = prior.log(rows)
        assert section(v)[0] - section(u)[0] == pytest.approx(-0.7 * (logs[1] - logs[0]))
        steps = 1e-7 * np.eye(len(u))
        differences = [(section(u + h)[0] - section(u - h)[0]) / 2e-7 for h in steps]
        assert section(u)[1] == pytest.approx(np.array(differences), abs=1e-5, rel=1e-4)


def test_the_first_trial_is_the_default_configuration(tmp_path: Path) -> None:
    space = mc.Space("box")
    a, b = space.integer("a", 0, 9, default=7), space.real("b", 0.0, 1.0, default=0.25)
    space.categorical("c", ["x", None], default="x")
    space.rule("r", a + 4 * b <= 7)
    assert space.default() == {"a": 6, "b": 0.25, "c": "x"}  # the nearest legal one
    for name in ("hybrid", "random", "mutation"):
        run = mc.minimize(lambda c: c["a"] + c["b"], space, 4, optimizer=name, progress=False)
        assert [t.origin for t in run.history].count("default") == 1
        assert (run.history[0].origin, run.history[0].config) == ("default", space.default())
    study = mc.Study(space)
    study.add(space.default(), 1.0)
    assert study.ask().origin != "default"
    path = str(tmp_path / "run.db")
    first = mc.minimize(lambda c: c["a"] + c["b"], space, 2, storage=path, progress=False)
    resumed = mc.minimize(lambda c: c["a"] + c["b"], space, 8, storage=path, progress=False)
    unbroken = mc.minimize(lambda c: c["a"] + c["b"], space, 8, progress=False)
    assert first.history[0].config == space.default()
    assert [t.config for t in resumed.history] == [t.config for t in unbroken.history]


def test_copies_of_a_space_have_its_defaults_and_priors() -> None:
    space = network()
    space.expect("layers", default=2)
    for other in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert other.default()["layers"] == 2
        (domain, one), (_, two) = prior_of(space), prior_of(other)
        points = domain.encode(domain.sample(5, np.random.default_rng(1)))
        assert one.log(points).tolist() == two.log(points).tolist()


def test_the_initial_design_is_drawn_from_the_prior_by_half() -> None:
    space = mc.Space("wide")
    space.categorical("c", list("abcdefgh"), prior={"g": 50.0, **dict.fromkeys("abcdefh", 1.0)})
    space.real("x", 0.0, 1.0, prior=stats.beta(30, 10))
    found = list[dict[str, Any]]()
    for seed in range(12):
        run = mc.minimize(lambda c: c["x"], space, 6, seed=seed, progress=False)
        found += [t.config for t in run.history if t.origin == "prior"]
    assert len(found) >= 30
    assert Counter(c["c"] for c in found).most_common(1)[0][0] == "g"
    assert np.mean([c["x"] for c in found]) > 0.6


def test_a_right_prior_helps_and_a_wrong_one_is_overruled() -> None:
    def run(prior: Any, seed: int, budget: int) -> float:
        space = mc.Space("box")
        space.real("x", 0.0, 1.0, prior=prior)
        space.real("y", 0.0, 1.0)
        space.categorical("k", list("abcd"))
        lossy = mc.minimize(
            lambda c: (c["x"] - 0.8) ** 2 + (c["y"] - 0.4) ** 2 + 0.2 * (c["k"] != "c"),
            space,
            budget,
            seed=seed,
            progress=False,
        )
        return lossy.value

    right, none = ([run(p, s, 9) for s in range(6)] for p in (stats.norm(0.8, 0.05), None))
    assert np.mean(right) < np.mean(none)
    assert max(run(stats.norm(0.1, 0.05), s, 40) for s in range(2)) < 0.01


def test_invalid_defaults_and_priors_are_refused() -> None:
    space = mc.Space("box")
    space.integer("n", 1, 9)
    space.categorical("c", ["x", "y"])
    space.real("x", 0.0, 1.0)
    space.auxiliary("h", 0, 3)
    o = space.ordering("o", [space.module("p", ["a", "b"]), space.module("q", ["a", "b"])])
    for call, message in (
        (lambda: space.real("z", 0, 1, default=2.0), r"parameter 'z': default=2.0 is no value of it: 2.0 is outside"),
        (lambda: space.expect("m", default=1), "no parameter 'm'"),
        (lambda: space.expect("h", default=1), "'h' is an auxiliary variable"),
        (lambda: space.expect("c", prior={"z": 1}), r"'c': prior= weights 'z', and its values are \['x', 'y'\]"),
        (lambda: space.expect("c", prior={"x": -1}), "a weight is a number, at least 0; prior= gives 'x' -1"),
        (lambda: space.expect("c", prior={"x": 0}), "gives weight to no value"),
        (lambda: space.expect("c", prior=stats.norm()), "a dict of weights, {value: weight}; got"),
        (
            lambda: space.integer("wide", 0, 999, prior={1: 100}),
            "'wide' has 1,000 values, and prior= weights at most 257",
        ),
        (lambda: space.expect("x", prior={0.3: 1}), "has no list of values to weight; give prior= a distribution"),
        (
            lambda: space.expect("x", prior=0.3),
            r"or a distribution such as scipy.stats.norm\(0.3, 0.1\); got float 0.3",
        ),
        (lambda: space.expect("x", prior=stats.norm(0, -1)), "gives weight to no value"),
        (lambda: space.expect(o.label, prior={("p", "q"): 1}), "is an order, for which there are no priors"),
    ):
        with pytest.raises(SpaceError, match=message):
            call()


def test_a_parameter_whose_default_is_refused_can_be_declared_again() -> None:
    space = mc.Space("again")
    kind = space.categorical("kind", ["a", "b"])
    with pytest.raises(SpaceError, match="default=2 is no value"):
        space.real("x", 0, 1, when=kind["a"], default=2)
    with pytest.raises(SpaceError, match="prior="):
        space.module("net", {"tree": {"depth": mc.Integer(1, 9)}, "line": {}}, prior=[1, 2])
    space.real("x", 0, 1, when=kind["a"], default=0.2)
    space.module("net", {"tree": {"depth": mc.Integer(1, 9)}, "line": {}})
    assert space.default() == {"kind": "a", "x": 0.2, "net": "tree", "net.tree.depth": 5}
    assert "default 0.2" in str(space)
    assert all(space.is_legal(config) for config in space.sample(20, seed=0))


def test_a_prior_outside_the_range_causes_a_warning() -> None:
    space = mc.Space("percent")
    with pytest.warns(UserWarning, match="parameter 'share': 0.0% of its prior lies in its range"):
        space.real("share", 0, 1, prior=stats.norm(80, 5))


def test_a_journal_of_another_prior_is_refused_and_its_page_is_whole(tmp_path: Path) -> None:
    def space(prior: dict[str, float] | None) -> mc.Space:
        made = mc.Space("prior")
        made.categorical("k", ["a", "b"])
        made.real("x", 0, 1)
        if prior is not None:
            made.expect("k", prior=prior)
        return made

    journal = tmp_path / "run.db"
    for budget in (3, 4):
        result = mc.minimize(lambda c: c["x"], space({"a": 1, "b": 3}), budget, storage=journal, progress=False)
    assert result.n_done == 4
    for prior, said in (({"a": 3, "b": 1}, "the prior of 'k' was"), (None, "the prior of 'k' is gone")):
        with pytest.raises(StorageError, match=said):
            mc.minimize(lambda c: c["x"], space(prior), 5, storage=journal, progress=False)
    assert Run.of(journal).place is not None
