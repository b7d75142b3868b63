"""What every optimizer owes its users; a new one inherits this suite by being registered."""

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

LENGTH = 13
"""Proposals of a run: a few more than the designs have."""


def run(optimizer, n, seed=0, outcome=loss, history=()):
    """The loop in its barest form; the state passes through JSON as it does in a journal."""
    history, state, proposals = list(history), {}, []
    for t in range(n):
        proposal = optimizer.ask(Request(history, np.random.default_rng([seed, len(history)]), state))
        state = json.loads(json.dumps(dict(proposal.state)))
        value = outcome(proposal.config)
        history.append(
            Observation(proposal.config, "failed") if value is None else Observation(proposal.config, "done", value)
        )
        proposals.append(proposal)
        assert t == len(proposals) - 1
    return proposals


@pytest.fixture(params=OPTIMIZERS)
def name(request):
    return request.param


@functools.cache
def first_run(name, space_name):
    """Proposals on one of the spaces with the first seed, for all that looks at one run."""
    return tuple(run(make_optimizer(name, ALL[space_name]()), LENGTH))


@pytest.mark.parametrize("space_name", list(ALL))
def test_every_proposal_is_legal_new_and_carries_its_solution(name, space_name):
    space = ALL[space_name]()
    proposals = first_run(name, space_name)
    for a, b in itertools.combinations(proposals, 2):
        assert a.config != b.config
    for proposal in proposals:
        assert space.validate(proposal.config) == []
        assert proposal.seconds
        if proposal.solution is not None:
            assert proposal.solution.config == proposal.config
            assert proposal.solution.status in ("optimal", "feasible")
            assert proposal.solution.bound <= proposal.solution.value + 1e-6
    if name in ("mivabo", "mivabo-paper"):
        assert all(p.solution is not None for p in proposals)


@pytest.mark.parametrize("space_name", ["conv_net", "bound_numbers"])
def test_the_same_seed_gives_the_same_proposals(name, space_name):
    first = [p.config for p in first_run(name, space_name)]
    again = [p.config for p in run(make_optimizer(name, ALL[space_name]()), LENGTH)]
    assert again == first
    other = [p.config for p in run(make_optimizer(name, ALL[space_name]()), 3, seed=1)]
    assert other != first[:3]


def test_the_same_seed_in_another_process():
    """One process for all optimizers: loading the library takes longer than most of them."""
    code = (
        "from tests.conformance.test_optimizers import run, make_optimizer, OPTIMIZERS, ALL, LENGTH; "
        "made = {n: run(make_optimizer(n, ALL['conv_net']()), LENGTH) for n in OPTIMIZERS}; "
        "print(repr({n: [p.config for p in proposals] for n, proposals in made.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = {n: [p.config for p in first_run(n, "conv_net")] for n in OPTIMIZERS}
    assert done.stdout.strip() == repr(here)


def test_a_resumed_optimizer_goes_on_as_if_unbroken(name):
    """A fresh instance given history and state proposes what the old one would have: no hidden state."""
    space = ALL["conv_net"]()
    optimizer = make_optimizer(name, space)
    whole = run(optimizer, LENGTH, seed=2)
    history = [Observation(p.config, "done", loss(p.config)) for p in whole[:-1]]
    fresh = make_optimizer(name, ALL["conv_net"]())
    state = json.loads(json.dumps(dict(whole[-2].state)))
    assert fresh.ask(Request(history, np.random.default_rng([2, LENGTH - 1]), state)).config == whole[-1].config


def test_a_small_space_is_exhausted_and_no_further(name):
    space = ALL["discrete"]()
    legal = brute_force_discrete()
    optimizer = make_optimizer(name, space)
    proposals = run(optimizer, len(legal))
    assert sorted(map(repr, (p.config for p in proposals))) == sorted(map(repr, legal))
    history = [Observation(p.config, "done", loss(p.config)) for p in proposals]
    with pytest.raises(SpaceExhaustedError, match="discrete"):
        optimizer.ask(Request(history, np.random.default_rng(0), proposals[-1].state))


def brute_force_discrete():
    found = []
    for bits in itertools.product((0, 1), repeat=4):
        for colour in ("red", "green", "blue"):
            for depth in (1, 2, 4) if colour == "red" else (None,):
                if sum(bits) <= 2:
                    config = {f"b{i}": b for i, b in enumerate(bits)} | {"colour": colour}
                    found.append(config | ({"depth": depth} if depth else {}))
    return found


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
def test_awkward_outcomes(name, outcome):
    space = ALL["conv_net"]()
    for proposal in run(make_optimizer(name, space), LENGTH, outcome=outcome):
        assert space.is_legal(proposal.config)


def test_pending_trials_are_not_proposed_again(name):
    space = ALL["discrete"]()
    done = [Observation(c, "done", loss(c)) for c in brute_force_discrete()[:12]]
    pending = [Observation(c, "pending") for c in brute_force_discrete()[12:40]]
    proposal = make_optimizer(name, space).ask(Request([*done, *pending], np.random.default_rng(0), {}))
    assert proposal.config not in [o.config for o in (*done, *pending)]


def test_known_data_count_as_observations_and_illegal_ones_are_never_the_answer(name):
    """Evaluations made elsewhere: many, twice the same with another loss, and the lowest loss where rules forbid it."""
    space = ALL["bound_numbers"]()
    known = [Observation(c, "done", loss(c), known=True) for c in space.sample(14, seed=4)]
    known += [Observation(o.config, "done", o.loss + 0.1, known=True) for o in known[:4]]
    illegal = [{**c.config, "size": 300, "level": 4} for c in known[:2]]
    assert not any(map(space.is_legal, illegal))
    known += [Observation(c, "done", -50.0, known=True, legal=False) for c in illegal]
    optimizer = make_optimizer(name, space)
    proposals = run(optimizer, 5, history=known)
    assert not any(p.origin == "initial design" for p in proposals)
    assert all(space.is_legal(p.config) for p in proposals)
    before = [o.config for o in known]
    for t, proposal in enumerate(proposals):
        assert proposal.config not in [*before, *(p.config for p in proposals[:t])]
    history = [*known, *(Observation(p.config, "done", loss(p.config)) for p in proposals)]
    best = optimizer.recommend(history)
    assert best.legal
    least = min(o.loss for o in history if o.legal)
    if type(optimizer).ranked is Optimizer.ranked:
        assert best.loss == least
    else:  # what was told twice says that losses are noisy; the model may prefer another that is within the noise
        assert least <= best.loss <= least + 0.1
    again = run(make_optimizer(name, space), 2, history=known)
    assert [p.config for p in again] == [p.config for p in proposals[:2]]


def test_illegal_ones_alone_leave_the_optimizer_to_find_a_legal_one(name):
    space = ALL["bound_numbers"]()
    illegal = [{**c, "size": 300, "level": 4} for c in space.sample(12, seed=4)]
    known = [Observation(c, "done", -50.0 - k, known=True, legal=False) for k, c in enumerate(illegal)]
    assert make_optimizer(name, space).recommend(known) is None
    assert all(space.is_legal(p.config) for p in run(make_optimizer(name, space), 3, history=known))


def test_a_batch_beside_pending_trials_is_legal_and_distinct(name):
    space = ALL["bound_numbers"]()
    study = mc.Study(space, name, seed=3)
    for trial in study.ask(11):
        study.tell(trial, loss(trial.config))
    waiting = [study.ask() for _ in range(2)]
    batch = study.ask(3)
    assert len(batch) == 3
    configs = [t.config for t in study.trials]
    assert [t.config for t in (*waiting, *batch)] == configs[11:]
    for a, b in itertools.combinations(configs, 2):
        assert a != b
    assert all(space.is_legal(c) for c in configs)


def test_asks_without_a_tell_come_to_every_legal_configuration_once(name):
    """Beside a category and a number in a rule: what is pending counts as proposed, to the last one."""
    space = mc.Space("counts")
    a = space.integer("a", 0, 2)
    kind = space.categorical("kind", ["x", "y", "z"])
    n = space.integer("n", 1, 70, when=kind["x"])
    space.rule("few", a + n <= 3)
    legal = [{"a": i, "kind": "x", "n": k} for i in range(3) for k in range(1, 71) if i + k <= 3]
    legal += [{"a": i, "kind": kind} for i in range(3) for kind in "yz"]
    study = mc.Study(space, name, seed=0)
    for trial in study.ask(8):
        study.tell(trial, loss(trial.config))
    assert len(study.ask(len(legal))) == len(legal) - 8
    assert sorted(repr(sorted(t.config.items())) for t in study.trials) == sorted(
        repr(sorted(c.items())) for c in legal
    )
    with pytest.raises(SpaceExhaustedError, match="counts"):
        study.ask()


def test_a_sub_space_is_searched_with_values_that_are_held(name):
    space = ALL["conv_net"]()
    held = dict(itertools.islice(space.sample(1)[0].items(), 1))
    part = make_optimizer(name, space).restricted(held)
    for proposal in run(part, 4):
        assert space.validate(proposal.config) == []
        assert held.items() <= proposal.config.items()
