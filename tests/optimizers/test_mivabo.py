"""Settings of MiVaBO: priors, feature maps and declared interactions, each tested with complete proposals."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.errors import SpaceError
from mipcash.methods.mivabo.blocks import FeatureSizes
from mipcash.methods.mivabo.interactions import resolve
from mipcash.methods.mivabo.mivabo import MiVaBOSettings
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import SparseSettings
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from tests.spaces import ALL, loss

SIZES = FeatureSizes(fourier=16, per_number=4, product_columns=200, nodes=3)
BRIEF = SparseSettings(burn_in=10, draws=10)


def propose(space, settings, n=2, seed=0):
    """Return the optimizer and n proposals after eight observations. The state passes through JSON."""
    optimizer = make_optimizer("mivabo", space, settings=settings)
    configs = space.sample(8, seed)
    history = [Observation(c, "done", loss(c)) for c in configs]
    state, made = {}, []
    for _ in range(n):
        proposal = optimizer.ask(Request(history, np.random.default_rng([seed, len(history)]), state))
        state = json.loads(json.dumps(dict(proposal.state)))
        history.append(Observation(proposal.config, "done", loss(proposal.config)))
        made.append(proposal)
        assert space.validate(proposal.config) == []
        assert proposal.origin == "thompson"
    return optimizer, made


@pytest.mark.parametrize(("preset", "prior"), [("evidence", "horseshoe"), ("paper", "laplace")])
def test_sparse_priors_propose(preset, prior):
    space = ALL["conv_net"]()
    settings = MiVaBOSettings(
        preset=preset, prior=prior, n_initial=8, starts=2, sizes=SIZES, sparse=BRIEF, tolerance=0.2
    )
    _, made = propose(space, settings)
    assert all(p.state["left_out"] >= 0.0 for p in made)


@pytest.mark.parametrize("prior", ["laplace", "horseshoe"])
def test_sparse_priors_take_groups_of_one_level(prior):
    space = mc.Space("one")
    space.module("a", ["only"])
    space.categorical("b", ["x", "y", "z"])
    space.integer("c", 0, 9)
    method = mc.Method("mivabo", {"prior": prior, "n_initial": 3, "sparse": BRIEF})
    result = mc.minimize(lambda c: float(c["c"]), space, 5, optimizer=method, progress=False)
    assert result.n_done == 5


def test_presets_infer_their_own_sparse_prior():
    assert MiVaBOSettings(prior="laplace").inference == SparseSettings("laplace")
    assert MiVaBOSettings.paper(prior="laplace").inference == SparseSettings(
        "laplace", "variational", by="feature", noise_sd=0.0
    )
    own = MiVaBOSettings(prior="laplace", sparse=SparseSettings(inference="gibbs", draws=7))
    assert (own.inference.prior, own.inference.draws) == ("laplace", 7)


@pytest.mark.parametrize(("preset", "features"), [("evidence", "quadrature"), ("paper", "fourier")])
def test_only_declared_interactions_are_in_the_model(preset, features):
    """The mixed second difference of a sample is zero exactly for the pairs that are not declared."""
    space = ALL["bound_numbers"]()
    declared = (("kind", "level"), ("a", "kind"), ("a", "size"))
    settings = MiVaBOSettings(
        preset=preset, features=features, interactions=declared, n_initial=8, starts=2, sizes=SIZES
    )
    optimizer, _ = propose(space, settings, n=1)
    program, scale = optimizer.program, optimizer.scale
    configs = space.sample(12, 1)
    data = optimizer.data([Observation(c, "done", loss(c)) for c in configs])
    posterior = optimizer.surrogate.fit(data.points, data.merits, {}, np.random.default_rng(0), data.noise())[0]
    assert isinstance(posterior, LinearPosterior)
    f = posterior.sample(np.random.default_rng(1))
    found = resolve(optimizer.domain.declaration, program, scale, declared)
    # without conditional parameters, so that every combination of levels is meaningful
    variables = [("g", g) for g, group in enumerate(program.groups) if not group.conditional]
    variables += [("d", d) for d, conditions in enumerate(scale.conditions) if not conditions]

    def at(*moved):
        levels, units = np.zeros(len(program.groups), dtype=np.int64), np.full(len(scale), 0.3)
        for kind, k in moved:
            if kind == "g":
                levels[k] += 1
            else:
                units[k] += 0.4
        return f.value(program.one_hot(levels), units)

    for a, b in itertools.combinations(variables, 2):
        product = abs(at(a, b) - at(a) - at(b) + at())
        among = {"gg": found.groups, "gd": found.mixed, "dd": found.numbers}[a[0] + b[0]]
        assert product > 1e-6 if (a[1], b[1]) in among else product < 1e-9, (a, b)


def test_too_large_a_grid_is_refused_with_its_size():
    settings = MiVaBOSettings(features="quadrature", n_initial=8, sizes=FeatureSizes(nodes=20))
    with pytest.raises(SpaceError, match=r"20\^3 = 8000 features"):
        propose(ALL["bound_numbers"](), settings, n=1)
    # with declared interactions, the features are a sum over pairs
    small = MiVaBOSettings(features="quadrature", n_initial=8, starts=1, interactions=(), sizes=FeatureSizes(nodes=20))
    propose(ALL["bound_numbers"](), small, n=1)


def test_the_last_continuous_step_is_kept_where_auxiliaries_leave_the_levels_to_the_solver(monkeypatch):
    space = mc.Space("auxiliaries")
    a, x, y = space.integer("a", 1, 6), space.real("x", 0, 4), space.real("y", 0, 4)
    v, w = space.auxiliary("v", 0, 3), space.auxiliary("w", 0, 3)
    for k, rule in enumerate(
        (x + y >= a * 0.5 + 0.25, x + y <= a + 1, x <= v + 1.5, y <= w + 0.9, v + w + a <= 7, v * w <= 4)
    ):
        space.rule(f"r{k}", rule)
    step, alternate = ContinuousStep.minimise, Alternation.minimise
    seen = []

    def stepped(self, f, point, rng, *args, **options):
        units = step(self, f, point, rng, *args, **options)
        seen.append(f.value(point.one_hot(self.domain.program), units))
        return units

    def alternated(self, *args, **options):
        seen.clear()
        found = alternate(self, *args, **options)
        assert found is None or found.value <= min(seen) + 1e-3
        return found

    monkeypatch.setattr(ContinuousStep, "minimise", stepped)
    monkeypatch.setattr(Alternation, "minimise", alternated)
    settings = MiVaBOSettings(n_initial=4, alternation=AlternatingSettings(rounds=1))
    loss = lambda c: (c["x"] - 1.3) ** 2 + (c["y"] - 0.7) ** 2 + 0.1 * c["a"]  # noqa: E731
    assert mc.minimize(loss, space, 9, optimizer=mc.Method("mivabo", settings), progress=False).value < 0.2


def test_invalid_settings_are_refused():
    for wrong in (
        {"prior": "ridge"},
        {"features": "wavelets"},
        {"tolerance": -0.1},
        {"interactions": ["lr"]},
        {"n_initial": 0},
        {"alpha": -1.0},
        {"beta": 0.0},
        {"sigma": math.nan},
    ):
        with pytest.raises(SpaceError):
            MiVaBOSettings(**wrong)
    with pytest.raises(SpaceError, match="horseshoe prior has no variational inference"):
        MiVaBOSettings(prior="horseshoe", sparse=SparseSettings("laplace", "variational"))
    with pytest.raises(SpaceError, match="did you mean 'layers'"):
        make_optimizer("mivabo", ALL["conv_net"](), settings=MiVaBOSettings(interactions=(("lr", "layer"),)))
