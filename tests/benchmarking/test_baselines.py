"""The paper's baselines: a relaxation that comes back, walks that stay legal, rounding told apart from mending."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from benchmarks.rivals.annealing import CoolingSettings, GPAnnealing, Walk, _split_energy
from benchmarks.rivals.joint_gp import LEAST_NOISE, GaussianProcess, JointGP, JointGPSettings
from mipcash.acquisition.analytic import LogEI
from mipcash.backends.task import SolverSettings
from mipcash.deadline import NEVER
from mipcash.errors import SpaceError
from mipcash.methods.admm.jopt import RoundedSearch
from mipcash.methods.admm.matern import MaternProcess
from mipcash.methods.mivabo.decomposition.split_function import SplitFunction
from mipcash.models import artificial
from mipcash.optimizers.data import imputed
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.points import Point
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Apart
from tests.acquisition.test_decomposition import drawn
from tests.spaces import ALL, loss

BASELINES = ("mivabo-annealing", "gp-annealing", "joint-gp", "jopt")


def history(space, n=12, seed=0):
    return [Observation(c, "done", loss(c)) for c in space.sample(n, seed)]


@pytest.mark.parametrize("name", list(ALL))
def test_the_relaxation_comes_back(name):
    space = ALL[name]()
    domain, configs = Domain.of(space), space.sample(20, 3)
    points = domain.encode(configs)
    cube = UnitCube(domain.program, len(domain.scale))
    x = cube.encode(points)
    assert np.all((x >= 0) & (x <= 1))
    for k, config in enumerate(configs):
        latent = cube.decode(x[k])
        effective = domain.free_legality.effective(latent.levels[None])[0]
        np.testing.assert_array_equal(effective, points.levels[k])
        np.testing.assert_array_equal(latent.units, points.units[k])
        assert domain.decode(Point(effective, latent.units)).keys() == config.keys()
        # anything at all rounds to levels, orderings to permutations
        somewhere = cube.decode(np.random.default_rng(k).random(x.shape[1])).levels
        for members in cube.orders:
            assert sorted(somewhere[members]) == list(range(len(members)))


def test_the_process_is_scikit_learns_without_the_noise():
    rng = np.random.default_rng(0)
    x = rng.random((15, 3))
    gp = GaussianProcess(x, np.sin(4 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=15), ard=True)
    at = rng.random((6, 3))
    mean, sd = gp(at)
    expected, with_noise = gp.model.predict(at, return_std=True)
    noise = np.exp(gp.model.kernel_.theta[-1])
    np.testing.assert_allclose(mean, expected)
    np.testing.assert_allclose(sd**2 + noise, with_noise**2, rtol=1e-6)


def test_illegal_points_are_mended_or_sent():
    def crowded():
        space = mc.Space("crowded")
        bits = [space.integer(f"b{i}", 0, 1) for i in range(8)]
        space.real("x", 0.0, 1.0)
        space.rule("at most one", sum(bits) <= 1)
        return space

    space = crowded()
    seen, illegal = history(space, 12), 0
    for seed in range(6):
        sent, mended = (
            JointGP(Domain.of(space), JointGPSettings(illegal=i)).ask(Request(seen, np.random.default_rng(seed), {}))
            for i in ("send", "nearest")
        )
        assert space.is_legal(mended.config)
        if not space.is_legal(sent.config):
            illegal += 1
            assert mended.config == space.nearest(sent.config)
    assert illegal > 0


@pytest.mark.parametrize("name", list(ALL))
def test_walks_stay_legal_and_move_everything(name):
    space = ALL[name]()
    domain = Domain.of(space)
    (point,) = domain.encode(space.sample(1, 1))
    walk = Walk(domain, CoolingSettings(), np.zeros(len(point.levels), dtype=np.int64))
    rng, seen = np.random.default_rng(0), []
    for k in range(400):
        found = walk.neighbours.neighbour(point, rng)
        if found is None:
            continue
        point = found
        seen.append(domain.decode(point))
        if k % 4 == 0:
            assert space.validate(seen[-1]) == []
    assert len(seen) > 20
    assert all(0.0 <= v <= 1.0 for v in point.units)
    sampled = space.sample(40, 5)
    for label in space.parameters:
        if len({repr(c.get(label)) for c in sampled}) > 1:  # one order is the only legal one
            assert len({repr(c.get(label)) for c in seen}) > 1, label


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers"])
def test_the_energy_is_the_sample(name):
    space = ALL[name]()
    f, domain = drawn(space, "evidence", 1)
    energy = _split_energy(SplitFunction.of(f, domain.program, domain.scale), domain.program)
    for point in domain.encode(space.sample(8, 2)):
        expected = f.value(point.one_hot(domain.program), point.units)
        assert energy(point) == pytest.approx(expected, abs=1e-9)
        assert energy(point) == pytest.approx(expected, abs=1e-9)


def test_annealing_finds_the_minimum_of_a_small_space():
    space = ALL["discrete"]()
    f, domain = drawn(space, "evidence", 2)
    energy = _split_energy(SplitFunction.of(f, domain.program, domain.scale), domain.program)
    exact = domain.minimise(f.form_at(np.zeros(0)), SolverSettings())
    (start,) = domain.encode(space.sample(1, 1))
    walk = Walk(domain, CoolingSettings(steps=400), np.zeros(len(start.levels), dtype=np.int64))
    found = walk.run(energy, start, lambda point: True, np.random.default_rng(0))
    assert found is not None
    assert found[1] == pytest.approx(exact.value, abs=1e-5)


@pytest.mark.parametrize("name", BASELINES)
def test_a_batch_keeps_its_distance(name):
    space = ALL["conv_net"]()
    seen = history(space)
    apart = Apart((seen[0].config,), 4)
    proposal = make_optimizer(name, space).ask(Request(seen, np.random.default_rng(0), {}, apart))
    program = compiled(space).program
    assert np.sum(program.encode(proposal.config) != program.encode(seen[0].config)) >= 4


def test_settings_are_refused():
    with pytest.raises(SpaceError, match="'nearest' or 'send'"):
        JointGPSettings(illegal="ignore")
    with pytest.raises(SpaceError, match="samples at least starts"):
        JointGPSettings(samples=1)
    with pytest.raises(SpaceError, match="cold <= hot"):
        CoolingSettings(hot=0.1, cold=1.0)
    with pytest.raises(SpaceError, match="steps and walks"):
        CoolingSettings(steps=0)
    cooling = CoolingSettings(steps=10, hot=1.0, cold=0.01)
    assert [cooling.temperature(k) for k in (0, 5, 10)] == pytest.approx([1.0, 0.1, 0.01])


def test_a_number_that_is_off_has_no_say_in_the_energy():
    space = ALL["bound_numbers"]()  # "extra" is there for the kind "deep" alone
    optimizer = make_optimizer("gp-annealing", space)
    assert isinstance(optimizer, GPAnnealing)
    data, labels = optimizer.data(history(space)), optimizer.scale.labels
    energy = optimizer._energy(data, data.points[:0], np.random.default_rng(0))
    on = optimizer.scale.active(data.points.one_hot(optimizer.program))[:, labels.index("extra")]
    for state, expected in ((0, True), (1, False)):
        k = int(np.flatnonzero(on == state)[0])
        point = data.points[k]
        moved = Point(point.levels, point.units.copy())
        moved.units[labels.index("extra")] = 0.93
        assert (energy(moved) == energy(point)) == expected


def test_observations_have_a_known_status():
    with pytest.raises(ValueError, match="'done', 'failed' or 'pending', and not 'running'"):
        Observation({}, "running")


def test_failures_count_as_the_worst_loss():
    filled = imputed(np.array([1.0, np.nan, 3.0]))
    assert filled.tolist() == [1.0, 3.0, 3.0]
    assert imputed(np.array([np.nan])).tolist() == [0.0]


def jopt_search(space):
    domain = Domain.of(space)
    return domain, RoundedSearch(domain, UnitCube(domain.program, len(domain.scale)), 200, 6, 3, 20)


@pytest.mark.parametrize("name", list(ALL))
def test_candidates_of_the_rounded_search_are_configurations(name):
    space = ALL[name]()
    domain, search = jopt_search(space)
    seen = history(space)
    x = search.cube.encode(domain.encode([o.config for o in seen]))
    again, legal = search.rounded(x)
    np.testing.assert_allclose(again, x)  # what is observed is rounded already
    assert legal.all()
    process = MaternProcess.fit(x, np.array([o.loss for o in seen]))
    rows = search.candidates(process, float(process.y.min()), x, np.random.default_rng(0), NEVER)
    np.testing.assert_allclose(search.rounded(rows)[0], rows)
    improvement = LogEI(float(process.y.min()))(*process.predict(rows))
    kept = search.rounded(rows)[1]
    assert (np.diff(improvement[kept]) >= -1e-9).all()  # the most promising first
    assert kept[: kept.sum()].all()  # and what breaks rules behind the rest


def test_neighbours_change_a_few_active_variables():
    space = ALL["conv_net"]()
    domain, search = jopt_search(space)
    x = search.cube.encode(domain.encode(space.sample(6, 0)))
    near = search._neighbours(x, 60, np.random.default_rng(0))
    base = x[np.arange(60) % 6]
    active = search.cube.ordered & (base != 0.5)
    changed = (near != base) & active
    assert 0.5 <= changed.sum(axis=1).mean() <= 5.0
    assert ((near >= 0) & (near <= 1)).all()


def test_jopt_learns_beside_random_search():
    values = {}
    for name in ("jopt", "random"):
        space, objective = artificial.build(instance=1)
        study = mc.Study(space, optimizer=name, seed=1)
        for _ in range(35):
            trial = study.ask()
            study.tell(trial, objective(trial.config))
        values[name] = study.result.value
    assert values["jopt"] < 0.6 * values["random"]
    assert len(study.ask(3)) == 3


def test_jopt_goes_on_from_its_last_fit():
    space = ALL["conv_net"]()
    seen, optimizer = history(space), make_optimizer("jopt", space)
    first = optimizer.ask(Request(seen, np.random.default_rng(0), {}))
    theta = first.state["theta"]
    assert len(theta) == 2 + UnitCube(optimizer.program, len(optimizer.scale)).size
    assert optimizer.ask(Request(seen, np.random.default_rng(0), first.state)).state["theta"] != theta
    same = optimizer.ask(Request(seen, np.random.default_rng(0), {}))
    assert (same.config, same.state) == (first.config, first.state)


def test_a_gaussian_process_given_its_means_keeps_them() -> None:
    rng = np.random.default_rng(0)
    x, new = rng.random((12, 2)), rng.random((3, 2))
    gp = GaussianProcess(x, np.sin(4 * x[:, 0]) + x[:, 1], ard=True)
    after = gp.given(new)
    at = rng.random((40, 2))
    np.testing.assert_allclose(after(at)[0], gp(at)[0], atol=1e-6)
    assert (after(at)[1] <= gp(at)[1] + 1e-9).all()
    assert (after(new)[1] < 0.9 * gp(new)[1]).all()
    noise = gp.model.kernel_.k2.noise_level
    assert (after(new)[1] ** 2 <= 1.1 * max(0.001 * noise, LEAST_NOISE)).all()
    assert np.isfinite(gp.given(np.concatenate([new, new]))(at)).all()  # the same configuration may be pending twice
    assert gp.given(x[:0]) is gp
