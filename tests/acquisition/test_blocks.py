"""Moves of blocks: legal, with what is remembered of a level behind it; every algorithm is within reach."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.blocks import BlockMoves, blocks_of, least_tried, only_level
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusions
from tests.spaces import ALL


def pipeline(rules: bool = True) -> mc.Space:
    """Three modules; rules that a change of one algorithm breaks, one of which a second change cannot mend."""
    space = mc.Space("pipeline")
    scaler = space.module("scaler", {"none": {}, "a": {"s": mc.Real(0, 1)}, "b": {"n": mc.Integer(1, 9)}})
    selector = space.module("selector", {"none": {}, "c": {"p": mc.Integer(1, 99)}})
    estimator = space.module(
        "estimator",
        {"e": {"x": mc.Real(0, 1), "k": mc.Integer(1, 20)}, "f": {"y": mc.Real(0, 1)}, "g": {}},
    )
    space.real("free", 0, 1)
    if rules:
        space.rule("f takes scaled columns", estimator["f"] <= scaler["a"])
        space.rule("g takes both", 2 * estimator["g"] <= scaler["b"] + selector["c"])
    return space


def moves_of(space: mc.Space, n: int, seed: int) -> tuple[Domain, list[dict[str, Any]], BlockMoves]:
    """Of some samples, the first of which is the best."""
    domain = Domain.of(space)
    configs = space.sample(n, seed)
    observed = domain.encode(configs)
    near = Neighbourhood.beside(domain, [], observed)
    return domain, configs, BlockMoves(domain, blocks_of(domain), near, observed)


@pytest.mark.parametrize("name", [*ALL, "pipeline"])
def test_every_point_is_legal(name: str) -> None:
    space = pipeline() if name == "pipeline" else ALL[name]()
    for seed in range(3):
        domain, _, moves = moves_of(space, 10, seed)
        points = moves.points(np.random.default_rng(seed))
        for point in points:
            assert not space.validate(domain.raw(point))
            assert np.allclose(point.units, domain.scale.rounded(point.units), atol=1e-12)
        assert len(points) or not moves.blocks


def test_a_swap_brings_what_the_best_observation_with_the_algorithm_has_behind_it_and_keeps_the_rest() -> None:
    space = pipeline(rules=False)
    domain, configs, moves = moves_of(space, 40, 1)
    swaps = [domain.raw(p) for p in moves.swaps(np.random.default_rng(0))]
    incumbent = configs[0]
    modules = ("scaler", "selector", "estimator")
    expected = []
    for module in modules:
        for algorithm in space.parameters[module].domain.values:
            best = next((c for c in configs if c[module] == algorithm), None)
            assert best is not None
            if algorithm == incumbent[module]:
                continue
            swapped = {k: v for k, v in incumbent.items() if k != module and not k.startswith(f"{module}.")}
            behind = {k: v for k, v in best.items() if k == module or k.startswith(f"{module}.")}
            expected.append(swapped | behind)
    assert len(expected) == 2 + 1 + 2
    for config in expected:
        assert any(
            found.keys() == config.keys()
            and all(
                found[k] == pytest.approx(v) if not isinstance(v, str) else found[k] == v for k, v in config.items()
            )
            for found in swaps
        )


def test_every_algorithm_is_within_reach_of_any_incumbent_where_rules_break_single_swaps() -> None:
    space = pipeline()
    reached: set[tuple[str, str]] = set()
    for seed in range(12):
        domain, configs, moves = moves_of(space, 12, seed)
        for p in moves.swaps(np.random.default_rng(seed)):
            config = domain.raw(p)
            changed = [m for m in ("scaler", "selector", "estimator") if config[m] != configs[0][m]]
            assert changed
            reached |= {(m, config[m]) for m in changed}
    assert reached == {(m, a) for m in ("scaler", "selector", "estimator") for a in space.parameters[m].domain.values}


@pytest.mark.parametrize("name", ["conv_net", "pipeline"])
def test_what_a_solver_mends_is_the_nearest_legal_levels_with_the_new_algorithm(name: str) -> None:
    space = pipeline() if name == "pipeline" else ALL[name]()
    domain, _, moves = moves_of(space, 12, 3)
    program, legality = domain.program, domain.free_legality
    if not program.numbers and name == "pipeline":
        every = np.array(list(product(*(range(int(n)) for n in program.n_levels))))
        legal = np.unique(legality.effective(every), axis=0)
        legal = legal[legality.check(legal)]
    for block in moves.blocks:
        for level in range(program.groups[block.group].n_levels):
            incumbent = moves.observed[0]
            latent, units = moves.swapped(
                incumbent, block, level, moves.memory(block.group, level), np.random.default_rng(0)
            )
            point = moves.mended(latent, units, block.group, level)
            assert point is not None
            assert point.levels[block.group] == level
            assert not space.validate(domain.raw(point))
            if name == "pipeline":
                same = (legal == latent).sum(axis=1)[legal[:, block.group] == level]
                assert (point.levels == latent).sum() == same.max()


def test_numbers_in_rules_leave_all_kinds_of_moves() -> None:
    """Swaps that are legal as they are are found, all of them; copies have those numbers as they were."""
    space = pipeline()
    space.rule("few of k", space["estimator"]["e"]["x"] + space["free"] <= 1.5, when=space["estimator"]["e"])
    kind = space.categorical("kind", ["r", "s"])
    space.rule("s needs room", space["free"] + 0.2 * kind["s"] <= 1)
    for seed in range(6):
        domain, _, moves = moves_of(space, 12, seed)
        assert domain.program.numbers
        rng = np.random.default_rng(seed)
        swaps = [domain.raw(p) for p in moves.swaps(rng)]
        assert not any(map(space.validate, swaps))
        for block in (b for b in moves.blocks if b.module):
            for level in range(domain.program.groups[block.group].n_levels):
                memory = moves.memory(block.group, level)
                if memory is None or level == moves.observed.levels[0][block.group]:
                    continue
                latent, units = moves.swapped(moves.observed[0], block, level, memory, rng)
                config = domain.raw(Point(domain.free_legality.effective(latent[None])[0], units))
                assert space.validate(config) or config in swaps
        copies = moves.tuned(rng)
        held = [l in {n.label for n in domain.program.numbers} for l in domain.scale.labels]
        assert len(copies)
        assert len(moves.revisits(rng))
        for p in copies:
            assert not space.validate(domain.raw(p))
            assert any(np.allclose(p.units[held], o.units[held]) for o in moves.observed)


def test_swaps_that_switch_off_every_number_of_a_rule_that_needs_one() -> None:
    space = mc.Space("one of two")
    c, d = space.categorical("c", [0, 1]), space.categorical("d", [0, 1])
    x = space.real("x", -1e6, 1e6, when=c[1])
    y = space.real("y", -1e6, 1e6, when=d[1])
    space.rule("r", x + y >= 1)
    for seed in range(2):
        result = mc.minimize(lambda q: q.get("x", 0.0) + q.get("y", 0.0), space, 14, seed=seed, progress=False)
        assert result.n_done == 14
        assert not any(space.validate(t.config) for t in result.history)


def test_a_level_that_no_legal_configuration_has_is_left_out() -> None:
    space = pipeline()
    space.rule("never g", space["estimator"]["g"] <= 0)
    domain, _, moves = moves_of(space, 12, 0)
    block = next(b for b in moves.blocks if domain.program.groups[b.group].label == "estimator")
    latent = moves.near.latent(moves.observed.levels[0])
    latent[block.group] = 2
    assert moves.mended(latent, moves.observed.units[0], block.group, 2) is None
    found = moves.swaps(np.random.default_rng(0))
    assert not (found.levels[:, block.group] == 2).any()


def test_blocks_are_modules_and_categories_beside_numbers() -> None:
    space = pipeline()
    labels = [Domain.of(space).program.groups[b.group].label for b in blocks_of(Domain.of(space))]
    assert labels == ["scaler", "selector", "estimator"]
    beside = mc.Space("beside")
    beside.categorical("kind", ["a", "b", "c"])
    assert blocks_of(Domain.of(beside)) == ()
    beside.real("x", 0, 1)
    (block,) = blocks_of(Domain.of(beside))
    assert not block.module


def test_a_category_beside_numbers_is_revisited_about_its_own_numbers_and_inside() -> None:
    space = mc.Space("beside")
    space.categorical("kind", ["a", "b", "c"])
    for d in range(4):
        space.real(f"x{d}", 0, 1)
    domain = Domain.of(space)
    configs = [
        {"kind": k, **{f"x{d}": v for d in range(4)}} for k, v in (("a", 1.0), ("b", 0.2), ("c", 0.7), ("b", 0.9))
    ]
    observed = domain.encode(configs)
    moves = BlockMoves(domain, blocks_of(domain), Neighbourhood.beside(domain, [], observed), observed)
    found = moves.revisits(np.random.default_rng(0))
    for kind, (level, own) in enumerate(((0, 1.0), (1, 0.2), (2, 0.7))):
        units = found.units[found.levels[:, 0] == level]
        close = np.isclose(units, own).any(axis=1)
        assert close.sum() >= 5, kind
        inside = units[~close]
        assert len(inside) >= 5
        assert np.all(np.mean((inside > 0.0) & (inside < 1.0), axis=1) == 1.0)


def test_the_least_tried_algorithm_of_a_module_of_the_incumbent() -> None:
    space = pipeline()
    domain = Domain.of(space)
    program, blocks = domain.program, blocks_of(domain)
    tried = domain.encode(space.sample(30, 0)).levels
    rng = np.random.default_rng(0)
    modules = [b.group for b in blocks]
    chosen = set()
    for _ in range(40):
        admitted = Exclusions.of(least_tried(program, blocks, tried[0], tried, rng)).admitted
        swapped = np.repeat(tried[:1], sum(program.groups[g].n_levels for g in modules), axis=0)
        swapped[:, modules] = [
            [level if h == g else tried[0, h] for h in modules]
            for g in modules
            for level in range(program.groups[g].n_levels)
        ]
        (left,) = swapped[admitted(swapped)]  # one swap of the incumbent, and nothing else
        (g,) = (h for h in modules if left[h] != tried[0, h])
        counts = [int((tried[:, g] == l).sum()) for l in range(program.groups[g].n_levels) if l != tried[0, g]]
        assert (tried[:, g] == left[g]).sum() == min(counts)
        chosen.add(g)
    assert chosen == set(modules)
    assert least_tried(program, [], tried[0], tried, rng) == []


def test_no_point_repeats_what_is_excluded() -> None:
    space = pipeline(rules=False)
    domain, _, moves = moves_of(space, 12, 0)
    block = moves.blocks[0]
    excluded = only_level(domain.program, block.group, 1)
    near = Neighbourhood.beside(domain, excluded, moves.observed)
    found = BlockMoves(domain, moves.blocks, near, moves.observed).points(np.random.default_rng(0))
    assert isinstance(found, Points)
    assert len(found)
    assert (found.levels[:, block.group] == 1).all()
