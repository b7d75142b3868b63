"""Departures: when a search holds itself for stuck, and where it goes then."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.base import Observation
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.model_based import Data
from mipcash.optimizers.registry import make_optimizer
from tests.spaces import ALL


def settled(*losses: float) -> Data:
    found = np.array(losses)
    order = np.argsort(found, kind="stable")
    z, u = np.ones((len(found), 1)), np.zeros((len(found), 0))
    return Data(np.zeros((len(found), 1), dtype=np.int64), z, u, found, order)


def test_a_search_is_stalled_since_it_came_near_its_best() -> None:
    losses = [3.0, 5.0, 4.0, 4.0, 4.0, 1.0, 2.0, 0.99, 2.0, 2.0]  # median 2.5, so a spread of 1.51
    assert settled(*losses).stalled() == 2
    assert settled(*losses).stalled(0.05) == 4, "0.99 is hardly better than 1"
    assert settled(*losses).stalled(0.001) == 2
    assert settled(*losses, 0.5).stalled(0.05) == 0
    assert settled(1.0, 1.0, 1.0).stalled(0.05) == 2, "without a spread any incumbent is the first of its value"
    assert settled(1e300, -1e300).stalled(0.05) == 0
    none = settled(1.0, 1.0)
    assert Data(none.levels, none.z, none.u, none.losses, np.zeros(0, dtype=np.int64)).stalled() == 1


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "discrete"])
def test_a_stalled_search_differs_from_the_incumbent_in_most_groups_every_third_time(name: str) -> None:
    space = ALL[name]()
    history = [Observation(c, "done", float(k > 0)) for k, c in enumerate(space.sample(13, 0))]
    history = [Observation(o.config, "done", o.loss + k % 5 if k else 0.0) for k, o in enumerate(history)]

    def proposed(depart: int) -> list[tuple[str, bool]]:
        optimizer = make_optimizer("hybrid", space, settings=HybridSettings(depart=depart))
        assert isinstance(optimizer, Hybrid)
        incumbent, found = optimizer.data(history).best(1)[0][0], []
        for k in range(3):  # after 13, 14 and 15 observations, of which the first was the best
            seen = [*history, *history[1 : k + 1]]
            proposal = optimizer.ask(seen, np.random.default_rng(k), {})
            assert space.is_legal(proposal.config)
            assert proposal.solution is not None
            assert proposal.solution.bound <= proposal.solution.value + 1e-6
            away = int(np.sum(optimizer.program.encode(proposal.config) != incumbent))
            found.append((proposal.origin, away > len(incumbent) / 2))
        return found

    with_departures = proposed(3)
    assert with_departures[2] == ("exploration", True)
    assert [origin for origin, _ in with_departures[:2]] == ["log-ei"] * 2
    assert [origin for origin, _ in proposed(0)] == ["log-ei"] * 3


def test_a_search_that_cannot_depart_goes_on_beside_the_incumbent() -> None:
    space = mc.Space("at most one of three may change")
    bits = [space.integer(name, 0, 1) for name in "abc"]
    space.real("x", 0, 1)
    space.rule("one at a time", sum(bits) <= 1)
    legal = [s for s in product((0, 1), repeat=3) if sum(s) <= 1]
    configs = [{**dict(zip("abc", s, strict=True)), "x": k / 15} for k, s in enumerate(legal * 3)]
    assert not sum(legal[0])
    history = [Observation(c, "done", float(k)) for k, c in enumerate([*configs, configs[1], configs[2], configs[3]])]
    proposal = make_optimizer("hybrid", space).ask(history, np.random.default_rng(0), {})
    assert space.is_legal(proposal.config)
    assert proposal.origin != "exploration", "no legal configuration differs from the incumbent in two of three"
