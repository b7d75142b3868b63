"""Wide spaces: thousands of levels and hundreds of parameters, legal and new at every step."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mipcash as mc
from benchmarks.proxies import proxy
from mipcash.optimizers.hybrid import HybridSettings
from mipcash.optimizers.optimizer import Observation, Proposal, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer


def levels() -> mc.Space:
    """A category and an ordinal of many levels beside reals, and rules that bind them."""
    space = mc.Space("levels")
    kind = space.categorical("kind", [f"kind {k}" for k in range(2000)])
    size = space.ordinal("size", list(range(1200)))
    x, y = (space.real(name, 0, 1) for name in "xy")
    space.rule("together", x + y <= 1.5)
    space.rule("the first is dear", kind["kind 0"] + x <= 1.2)
    space.rule("not both", kind["kind 1"] + size.is_(0) <= 1)
    return space


def numbers() -> mc.Space:
    """Reals and categories under linear rules over many of them, one number only under a condition."""
    space = mc.Space("numbers")
    x = [space.real(f"x{k}", 0, 1) for k in range(60)]
    c = [space.categorical(f"c{k}", list("abcd")) for k in range(60)]
    space.real("beside", 0, 1, when=c[0]["a"])
    space.rule("room", sum(x) <= 30)
    space.rule("few", sum(p["a"] for p in c) <= 20)
    space.rule("dear", sum(x[:5]) + 2 * c[1]["b"] <= 4)
    return space


def binaries() -> mc.Space:
    """Many categories without a number, so that earlier proposals are excluded by their levels."""
    space = mc.Space("binaries")
    for k in range(150):
        space.categorical(f"c{k}", list("abcd"))
    return space


SPACES = {"levels": levels, "numbers": numbers, "binaries": binaries}


def proposals(space: mc.Space, optimizer: str, count: int, settings: HybridSettings | None = None) -> list[Proposal]:
    chosen = make_optimizer(optimizer, space) if settings is None else make_optimizer(optimizer, space, settings)
    objective, history, found = proxy(space), list[Observation](), list[Proposal]()
    for k in range(count):
        state = dict(found[-1].state) if found else {}
        found.append(chosen.ask(Request(history, np.random.default_rng(k), state)))
        history.append(Observation(found[-1].config, DONE, objective(found[-1].config)))
    return found


@pytest.mark.parametrize("name", SPACES)
def test_proposals_of_a_wide_space_are_legal_and_new(name: str) -> None:
    space = SPACES[name]()
    found = proposals(space, "hybrid", 8)
    assert [p.origin for p in found].count("initial design") == 6
    for p in found:
        assert space.is_legal(p.config)
        assert p.solution is not None
        assert p.solution.config == p.config
    for p in found[6:]:
        assert p.solution is not None
        assert (p.solution.status, p.solution.bound) == ("feasible", -math.inf)
        assert "wide" in p.trace["certificate"]
    assert len({repr(sorted(p.config.items())) for p in found}) == len(found)
