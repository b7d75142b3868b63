"""What is on at some levels is looked up in tables: the same as condition by condition."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.group_activity import group_activity
from mipcash.space.domain import Domain
from tests.spaces import ALL


def nested() -> mc.Space:
    """Conditions over one parent, over one that is conditional itself, over two parents at once, and two of them."""
    space = mc.Space("nested")
    kind = space.categorical("kind", ["a", "b", "c"])
    other = space.categorical("other", ["p", "q"])
    inner = space.categorical("inner", ["x", "y"], when=kind["a"])
    space.integer("deep", 0, 3, when=inner["y"])
    space.categorical("both", ["l", "m"], when=[kind.is_("a", "b"), other["q"]])
    space.real("plain", 0.0, 1.0)
    space.real("r", 0.0, 1.0, when=kind["a"])
    space.integer("n", 1, 1000, log=True, when=inner["x"])
    space.integer("m", 5, 905, when=[kind["a"], other["q"]])
    return space


@pytest.mark.parametrize("declared", [nested, *ALL.values()])
def test_tables_say_what_conditions_say(declared):
    domain, rng = Domain.of(declared()), np.random.default_rng(0)
    program, scale = domain.program, domain.scale
    latent = rng.integers(program.n_levels, size=(200, len(program.n_levels)))
    levels = group_activity(program).effective(latent)
    for before, after in zip(latent, levels, strict=True):
        expected = before.copy()
        for g, group in enumerate(program.groups):
            z = program.one_hot(expected)
            if group.conditions and not all(bool(c.holds(z)) for c in group.conditions):
                expected[g] = group.size - 1
        assert np.array_equal(after, expected)
    z = program.one_hot(levels)
    assert np.array_equal(scale.active_at(program, levels), scale.active(z))


def test_integers_are_rounded_at_once_as_they_are_one_by_one():
    space = mc.Space("integers")
    domains = [mc.Integer(-70, 900, 7), mc.Integer(1, 2000, log=True), mc.Integer(3, 10**6, log=True)]
    space.module("kind", {"a": {f"n{k}": d for k, d in enumerate(domains)} | {"x": mc.Real(0.0, 1.0)}, "b": {}})
    scale, rng = Domain.of(space).scale, np.random.default_rng(0)
    units = rng.uniform(-0.1, 1.1, (300, len(scale)))
    rounded = scale.rounded(units)
    for d, domain in enumerate(scale.domains):
        one_by_one = [domain.to_unit(domain.from_unit(u)) for u in units[:, d]]
        expected = units[:, d] if isinstance(domain, mc.Real) else one_by_one
        assert np.allclose(rounded[:, d], expected, rtol=0.0, atol=1e-15)
    assert np.array_equal(scale.rounded(units[0]), rounded[0])
    assert np.array_equal(scale.rounded(rounded), rounded)


def test_what_is_kept_of_a_configuration_knows_true_from_one():
    space = mc.Space("spelt")
    space.categorical("flag", [True, 1.0, "1"])
    space.real("x", 0.0, 2.0)
    domain = Domain.of(space)
    points = domain.encode([{"flag": v, "x": x} for v in (True, 1.0, "1") for x in (1, 1.0)])
    assert points.levels[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(points.units[:, 0], np.full(6, 0.5))
