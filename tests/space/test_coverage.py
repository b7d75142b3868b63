"""Coverage of initial designs against enumeration: every point shows as many new algorithms as possible."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.compiled import compiled
from mipcash.space.counting import points_needed

Combination = tuple[int, ...]


def drawn(seed: int, rules: bool) -> tuple[mc.Space, set[Combination]]:
    """Return a space of three modules with up to six algorithms, and its legal combinations.

    Some algorithms have no hyperparameters. Rules may forbid algorithms and pairs of them.
    """
    rng = np.random.default_rng(seed)
    space, sizes = mc.Space("drawn"), rng.integers(2, 7, size=3).tolist()
    modules = []
    for m, size in enumerate(sizes):
        algorithms = {f"a{k}": {"x": mc.Real(0, 1)} if k == 0 or rng.random() < 0.5 else {} for k in range(size)}
        modules.append(space.module(f"m{m}", algorithms))
    legal = set(product(*map(range, sizes)))
    for r in range(6 if rules else 0):
        i, j = rng.choice(3, size=2, replace=False).tolist()
        a, b = int(rng.integers(sizes[i])), int(rng.integers(sizes[j]))
        kept = {c for c in legal if not (c[i] == a and c[j] == b)}
        if kept:
            legal = kept
            space.rule(f"not both {r}", modules[i][f"a{a}"] + modules[j][f"a{b}"] <= 1)
    if rules and rng.random() < 0.5 and (kept := {c for c in legal if c[0] != sizes[0] - 1}):
        legal = kept
        space.rule("never", modules[0][f"a{sizes[0] - 1}"] <= 0)
    return space, legal


def new(combination: Combination, seen: list[set[int]]) -> int:
    return sum(a not in s for a, s in zip(combination, seen, strict=True))


@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_proposal_of_the_design_shows_the_most_new_algorithms(seed: int, rules: bool) -> None:
    space, legal = drawn(seed, rules)
    optimizer, history = make_optimizer("hybrid", space), list[Observation]()
    seen: list[set[int]] = [set(), set(), set()]
    needed = points_needed(compiled(space).program)
    assert needed == max(len(space.parameters[f"m{m}"].domain.values) for m in range(3))
    for k in range(needed + 2):
        most = max(new(c, seen) for c in legal)
        covering = k < needed and most > 0
        proposal = optimizer.ask(Request(history, np.random.default_rng([seed, k])))
        found = tuple(int(str(proposal.config[f"m{m}"])[1:]) for m in range(3))
        assert found in legal
        if covering:
            assert new(found, seen) == most
        assert (proposal.origin == "initial design") == (covering or k < 6)
        for s, a in zip(seen, found, strict=True):
            s.add(a)
        history.append(Observation(proposal.config, "done", float(k)))
    if not rules:
        assert [len(s) for s in seen] == [len(space.parameters[f"m{m}"].domain.values) for m in range(3)]
