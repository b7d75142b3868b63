"""Contract of every registered optimizer."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceExhaustedError
from mipcash.optimizers.optimizer import Observation, Optimizer, Request
from mipcash.optimizers.registry import make_optimizer
from tests.named import OPTIMIZERS
from tests.spaces import ALL, loss

LENGTH = 3
"""Number of proposals of a run that starts with more observations than an initial design has."""


def observed(config, outcome=loss):
    value = outcome(config)
    return Observation(config, "failed") if value is None else Observation(config, "done", value)


def start(space, outcome=loss):
    """Return twelve observations; initial designs have up to ten."""
    return [observed(c, outcome) for c in space.sample(12, seed=4)]


def run(optimizer, n, seed=0, outcome=loss, history=()):
    """Run a minimal loop of proposals; the state passes through JSON as it does in a journal."""
    history, state, proposals = list(history), {}, []
    for _ in range(n):
        proposal = optimizer.ask(Request(history, np.random.default_rng([seed, len(history)]), state))
        state = json.loads(json.dumps(dict(proposal.state)))
        history.append(observed(proposal.config, outcome))
        proposals.append(proposal)
    return proposals


@pytest.fixture(params=OPTIMIZERS)
def name(request):
    return request.param


@functools.cache
def first_run(name, space_name):
    """Return proposals after the design with the first seed, shared by the tests of one run."""
    space = ALL[space_name]()
    return tuple(run(make_optimizer(name, space), LENGTH, history=start(space)))


@pytest.mark.parametrize("space_name", ["conv_net", "bound_numbers", "continuous"])
def test_every_proposal_is_legal_new_and_carries_its_solution(name, space_name):
    space = ALL[space_name]()
    proposals = first_run(name, space_name)
    configs = [o.config for o in start(space)] + [p.config for p in proposals]
    assert not any(a == b for a, b in itertools.combinations(configs, 2))
    for proposal in proposals:
        assert space.validate(proposal.config) == []
        if proposal.solution is not None:
            assert proposal.solution.config == proposal.config
            assert proposal.solution.status in ("optimal", "feasible")
            assert proposal.solution.bound <= proposal.solution.value + 1e-6
    if name in ("mivabo", "mivabo-paper"):
        assert all(p.solution is not None for p in proposals)


def test_the_same_seed_gives_the_same_proposals_also_in_a_resumed_run(name):
    """A new instance with the same history and state makes the same proposal: optimizers have no hidden state."""
    first, space = first_run(name, "conv_net"), ALL["conv_net"]()
    assert [p.config for p in run(make_optimizer(name, space), 1, history=start(space))] == [first[0].config]
    designs = [[p.config for p in run(make_optimizer(name, space), 2, seed=seed)] for seed in (0, 0, 1)]
    assert designs[0] == designs[1] != designs[2]
    history = [*start(space), *(observed(p.config) for p in first[:-1])]
    request = Request(history, np.random.default_rng([0, len(history)]), json.loads(json.dumps(dict(first[-2].state))))
    assert make_optimizer(name, ALL["conv_net"]()).ask(request).config == first[-1].config


def test_the_same_seed_in_another_process():
    """Use one process for all optimizers, because importing the library takes longer than most runs."""
    code = (
        "from tests.conformance.test_optimizers import first_run, OPTIMIZERS; "
        "print(repr({n: [p.config for p in first_run(n, 'bound_numbers')] for n in OPTIMIZERS}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = {n: [p.config for p in first_run(n, "bound_numbers")] for n in OPTIMIZERS}
    assert done.stdout.strip() == repr(here)


def all_discrete():
    """Return every legal configuration of the discrete space, in plain Python."""
    found = []
    for bits in itertools.product((0, 1), repeat=4):
        for colour in ("red", "green", "blue"):
            for depth in (1, 2, 4) if colour == "red" else (None,):
                if sum(bits) <= 2:
                    config = {f"b{i}": b for i, b in enumerate(bits)} | {"colour": colour}
                    found.append(config | ({"depth": depth} if depth else {}))
    return found


def test_every_configuration_of_a_small_space_is_proposed_once(name):
    """Six configurations have no observation, and two of them fail. Each of the six is proposed once."""
    legal, optimizer = all_discrete(), make_optimizer(name, ALL["discrete"]())
    told = [observed(legal[k]) for k in np.random.default_rng(1).permutation(len(legal))[6:]]
    left = [c for c in legal if c not in [o.config for o in told]]
    proposals = run(optimizer, 6, history=told, outcome=lambda c: None if c in left[:2] else loss(c))
    assert sorted(map(repr, (p.config for p in proposals))) == sorted(map(repr, left))
    history = [*told, *(observed(p.config) for p in proposals)]
    with pytest.raises(SpaceExhaustedError, match="discrete"):
        optimizer.ask(Request(history, np.random.default_rng(0), proposals[-1].state))


def test_asking_without_telling_proposes_every_legal_configuration_once(name):
    """Pending trials count as proposed, in a space with a category and a conditional number in a rule."""
    space = mc.Space("counts")
    a = space.integer("a", 0, 2)
    kind = space.categorical("kind", ["x", "y", "z"])
    n = space.integer("n", 1, 70, when=kind["x"])
    space.rule("few", a + n <= 3)
    legal = [{"a": i, "kind": "x", "n": k} for i in range(3) for k in range(1, 71) if i + k <= 3]
    legal += [{"a": i, "kind": kind} for i in range(3) for kind in "yz"]
    study = mc.Study(space, name, seed=0)
    for trial in study.ask(9):
        study.tell(trial, loss(trial.config))
    assert len(study.ask(len(legal))) == len(legal) - 9
    assert sorted(repr(sorted(t.config.items())) for t in study.trials) == sorted(
        repr(sorted(c.items())) for c in legal
    )
    with pytest.raises(SpaceExhaustedError, match="counts"):
        study.ask()


@pytest.mark.parametrize(
    "outcome",
    [
        lambda c: None,
        lambda c: 1.0,
        lambda c: 1e300 * (1 if c["layers"] else -1),
        lambda c: None if c["layers"] == 0 else loss(c),
        lambda c: loss(c) * 1e-12,
    ],
    ids=["all fail", "constant", "huge", "some fail", "tiny"],
)
def test_proposals_are_legal_after_awkward_outcomes(name, outcome):
    space = ALL["conv_net"]()
    for proposal in run(make_optimizer(name, space), 1, outcome=outcome, history=start(space, outcome)):
        assert space.is_legal(proposal.config)


def test_known_data_are_observations_and_illegal_configurations_are_never_recommended(name):
    """Known data repeat configurations with another loss, and their lowest losses are at illegal configurations."""
    space = ALL["bound_numbers"]()
    known = [Observation(c, "done", loss(c), known=True) for c in space.sample(14, seed=4)]
    known.sort(key=lambda o: -o.loss)  # the lowest loss stays a single one
    known += [Observation(o.config, "done", o.loss + 0.1, known=True) for o in known[:4]]
    illegal = [{**c.config, "size": 300, "level": 4} for c in known[:2]]
    assert not any(map(space.is_legal, illegal))
    illegal = [Observation(c, "done", -50.0, known=True, legal=False) for c in illegal]
    optimizer = make_optimizer(name, space)
    (proposal,) = run(optimizer, 1, history=[*known, *illegal])
    assert proposal.origin != "initial design"
    assert space.is_legal(proposal.config)
    assert proposal.config not in [o.config for o in known]
    history = [*known, *illegal, observed(proposal.config)]
    best = optimizer.recommend(history)
    assert best.legal
    least = min(o.loss for o in history if o.legal)
    if type(optimizer).ranked is Optimizer.ranked:
        assert best.loss == least
    else:  # repeated configurations show that losses are noisy; the model may prefer a trial within the noise
        assert least <= best.loss <= least + 0.1
    assert optimizer.recommend(illegal) is None
    assert space.is_legal(run(optimizer, 1, history=illegal)[0].config)


def test_a_batch_beside_pending_trials_is_legal_and_distinct(name):
    space = ALL["bound_numbers"]()
    study = mc.Study(space, name, seed=3)
    for trial in study.ask(11):
        study.tell(trial, loss(trial.config))
    waiting, batch = study.ask(), study.ask(2)
    configs = [t.config for t in study.trials]
    assert [t.config for t in (waiting, *batch)] == configs[11:]
    assert len(configs) == 14
    assert not any(a == b for a, b in itertools.combinations(configs, 2))
    assert all(space.is_legal(c) for c in configs)


def test_a_batch_keeps_its_distance(name):
    space = mc.Space("levels")
    parts = [space.categorical(f"c{k}", ["x", "y", "z"]) for k in range(4)]
    space.rule("few", sum(p["x"] for p in parts) <= 2)
    study = mc.Study(space, name, seed=3)
    for trial in study.ask(11):
        study.tell(trial, sum(v == "z" for v in trial.config.values()))
    batch = [t.config for t in study.ask(3, distance=2)]
    assert all(sum(a[n] != b[n] for n in a) >= 2 for a, b in itertools.combinations(batch, 2))


def test_a_restricted_space_is_searched_with_fixed_values(name):
    space, held = ALL["bound_numbers"](), {"kind": "deep", "a": 0.25}
    for proposal in run(make_optimizer(name, space).restricted(held), 2):
        assert space.validate(proposal.config) == []
        assert held.items() <= proposal.config.items()
