"""Initial designs, by enumeration: every point shows as many new algorithms as possible; and samples that spread, or end."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.compiled import compiled
from mipcash.space.counting import points_needed, rewards

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
    counts = [Counter[int](), Counter[int](), Counter[int]()]
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
        if proposal.origin == "covering":
            least = min(n for counted in counts for n in counted.values())
            assert k % 2**least == 0
            assert min(counted[a] for a, counted in zip(found, counts, strict=True)) <= least
        for a, counted in zip(found, counts, strict=True):
            counted[a] += 1
        for s, a in zip(seen, found, strict=True):
            s.add(a)
        history.append(Observation(proposal.config, "done", float(k)))
    if not rules:
        assert [len(s) for s in seen] == [len(space.parameters[f"m{m}"].domain.values) for m in range(3)]


def test_the_points_that_show_every_algorithm_are_counted_through_nested_choices() -> None:
    space = mc.Space("nested")
    space.categorical("alone", list("abcdefgh"))
    assert points_needed(compiled(space).program) == 0
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0, 1, when=kind["a"])
    inner = space.categorical("inner", ["p", "q", "r", "s"], when=kind["b"])
    space.real("y", 0, 1, when=inner["p"])
    assert points_needed(compiled(space).program) == 3 + 3  # b is shown with each of its four
    other = space.categorical("other", list("vwxyz"), when=kind["c"])
    space.real("z", 0, 1, when=other["v"])
    assert points_needed(compiled(space).program) == 3 + 3 + 4


@pytest.mark.parametrize("others", [0.0, 7.0])
def test_rewards_order_points_by_their_new_algorithms(others: float) -> None:
    """More of them before all else; among as many, the more unseen algorithms their modules and what depends on these have."""
    space = mc.Space("nested")
    model = space.module("model", {"a": {}, "b": {}, "c": {}})
    inner = space.module("inner", {"p": {}, "q": {}, "r": {}, "s": {}}, when=model["b"])
    space.module("other", {"u": {}, "v": {}})
    space.real("x", 0, 1, when=inner["p"])
    space.real("y", 0, 1, when=space["other"]["u"])
    space.real("z", 0, 1, when=model["a"])
    program = compiled(space).program
    points = [np.array(levels) for levels in product(range(3), range(4), range(2))]
    every = np.array([[m, i if m == 1 else 4, o] for m, i, o in points])
    for shown in ([], [0], [0, 3], [0, 9, 4], [0, 9, 10, 13, 14]):
        seen = every[shown]
        rest = [set(range(n)) - set(seen[:, g].tolist()) for g, n in enumerate((3, 4, 2))]
        earned = rewards(program, seen, others)
        assert (earned >= 0.0).all()
        assert not earned[program.active_columns == 0].any()
        worth = program.one_hot(every) @ earned
        new = np.array([sum(int(l) in r for l, r in zip(levels, rest, strict=True)) for levels in every])
        for more, less in permutations(range(len(every)), 2):
            if new[more] > new[less]:
                assert worth[more] > worth[less] + others
        behind = [len(rest[0]) + len(rest[1]), len(rest[1]), len(rest[2])]
        most = [earned[program.groups[g].span].max() for g in range(3)]
        for g, h in permutations(range(3), 2):
            if rest[g] and rest[h] and behind[g] > behind[h]:
                assert most[g] > most[h]


def test_every_algorithm_is_proposed_again_less_and_less_often() -> None:
    space = mc.Space("six")
    chosen = space.categorical("algorithm", [f"a{k}" for k in range(6)])
    for k in range(6):
        space.real(f"x{k}", 0, 1, when=chosen[f"a{k}"])

    def loss(config: dict[str, Any]) -> float:
        k = int(config["algorithm"][1:])
        return (config[f"x{k}"] - 0.5) ** 2 + (10.0 if k else 0.0)

    result = mc.minimize(loss, space, 45, seed=17, progress=False)
    shown = Counter(t.config["algorithm"] for t in result.history)
    assert min(shown.values()) >= 3
    assert shown["a0"] > 25
    turns = [t.number for t in result.history if t.origin == "covering"]
    assert turns[0] > 6  # while improvements are expected, the model decides
    without = mc.Method("hybrid", settings={"cover": 0})
    history = mc.minimize(loss, space, 45, optimizer=without, progress=False).history
    assert "covering" not in {t.origin for t in history}


@pytest.mark.parametrize("condition", [False, True])
def test_samples_spread_where_an_equation_pins_a_number_to_a_bound(condition: bool) -> None:
    space = mc.Space("mixture")
    x, y, w = (space.real(name, 0, 1) for name in "xyw")
    c = space.categorical("c", ["low"])
    space.rule("whole", x + y + w == 1)
    space.rule("cap", x <= 0.2)
    space.rule("equation", x == 0.2, when=c["low"] if condition else None)
    values = np.sort([config["y"] for config in space.sample(24)])
    assert values[0] < 0.2
    assert values[-1] > 0.6
    assert np.diff(values).max() < 0.3
    assert len(np.unique(np.round(values, 4))) > 20


def test_a_rule_that_never_holds_excludes_its_condition() -> None:
    space = mc.Space("never")
    x, c = space.integer("x", 0, 3), space.categorical("c", ["u", "v"])
    d = space.categorical("d", ["s", "t"])
    space.rule("both", x < 0, when=[c["u"], d["s"]])
    assert space.count() == 12
    space.rule("one", x < 0, when=c["u"])
    assert space.count() == 8
    with pytest.raises(mc.errors.RuleError, match="always fails"):
        space.rule("none", x < 0)


def test_a_run_ends_with_its_result_where_the_solver_is_too_coarse() -> None:
    space = mc.Space("wide")
    x, y, z = space.real("x", 0, 1e6), space.real("y", 0, 1e6), space.real("z", 0, 1e-6)
    space.rule("r", 3 * x - 0.5 * y - 2 * z >= 3e6)
    result = mc.minimize(lambda config: config["x"], space, 3, progress=False)
    assert result.config["x"] == pytest.approx(1e6)
