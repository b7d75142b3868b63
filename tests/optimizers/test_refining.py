"""What a stalled search proposes: refinements by turns and of a least gain, other categories with numbers of their own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.blocks import blocks_of
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.refining import LATER, Copies, Refinements
from mipcash.program.points import Points
from mipcash.space.domain import Domain

WAVES = {"cos": math.cos, "sin": math.sin, "flat": lambda v: 0.5}
BEST = {"x": 3.1, "y": 2.3, "wave": "cos"}
FIRST = 5


def space() -> mc.Space:
    s = mc.Space("waves")
    s.real("x", -5, 10)
    s.real("y", 0, 15)
    s.categorical("wave", list(WAVES))
    return s


def loss(config: dict[str, Any]) -> float:
    bend = config["y"] - 0.13 * config["x"] ** 2 + 1.6 * config["x"] - 6.0
    return bend**2 + 9.6 * WAVES[config["wave"]](config["x"]) + 10.0


def evaluated(since: int) -> list[dict[str, Any]]:
    """Some configurations, the best one, and so many worse ones."""
    first, later = ([c for c in space().sample(n, n) if loss(c) > loss(BEST)] for n in (12, 60))
    return [*first, BEST, *later[:since]]


def stalled(since: int, **settings: Any) -> tuple[Domain, Points, Points]:
    """The domain, the incumbent, and what is proposed after so many evaluations without a better one."""
    domain, told = Domain.of(space()), evaluated(since)
    history = [Observation(c, "done", loss(c)) for c in told]
    optimizer = Hybrid(domain, HybridSettings(**{"refine": FIRST, **settings}))
    proposal = optimizer.ask(Request(history, np.random.default_rng(0)))
    return domain, domain.encode([BEST]), domain.encode([proposal.config])


@pytest.mark.parametrize("times", [1, 2, 4])
def test_the_incumbent_is_refined_after_so_many_evaluations_twice_as_many_and_so_on(times: int) -> None:
    _, best, found = stalled(times * FIRST)
    assert np.array_equal(found.levels, best.levels)
    assert not np.array_equal(found.units, stalled(times * FIRST, refine=0)[2].units)


def test_a_refinement_that_promises_too_little_gives_way() -> None:
    for since in (FIRST, 2 * FIRST):
        domain, best, found = stalled(since, min_gain=1e9)
        assert not Refinements(domain.program, best[0]).holds(found)[0]


def test_the_least_tried_category_and_the_best_one_are_visited_with_numbers_of_their_own() -> None:
    for times in (1, 2, 3):
        since = times * FIRST + LATER
        domain, best, found = stalled(since)
        copies = Copies(domain.program, domain.scale, blocks_of(domain), best[0])
        assert copies.visits(found)[0]
        assert not copies.compared(found)[1][0, -2:].any()
        others = [c for c in evaluated(since) if c["wave"] != BEST["wave"]]
        counts = Counter(c["wave"] for c in others)
        expected = (
            {min(others, key=loss)["wave"]}
            if times % 2 == 0
            else {w for w in counts if counts[w] == min(counts.values())}
        )
        assert list(WAVES)[found.levels[0, 0]] in expected


def test_what_is_proposed_of_other_categories_is_no_copy() -> None:
    for since in (6, 7, 9, 11):
        domain, best, found = stalled(since)
        assert not Copies(domain.program, domain.scale, blocks_of(domain), best[0]).holds(found)[0]
