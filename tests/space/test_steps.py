"""Reals with a step against brute force: counts, samples, optima, runs to the last configuration, points and journals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.space.domain import Domain
from tests.named import installed

Config = dict[str, Any]
X, Y, Z = [k / 10 for k in range(8)], [k / 4 - 1 for k in range(7)], [k / 20 for k in range(2, 9)]


def make_space(expand_limit: int) -> mc.Space:
    """Three reals with a step, one of them conditional, in linear rules, a product and an equation."""
    space = mc.Space("steps", expand_limit=expand_limit)
    kind = space.categorical("kind", ["a", "b", "c"])
    x, y = space.real("x", 0, 0.7, step=0.1), space.real("y", -1, 0.5, step=0.25)
    z = space.real("z", 0.1, 0.4, step=0.05, when=kind.is_("a", "b"))
    space.rule("sum", x + y <= 0.3)
    space.rule("product", x * z <= 0.1)
    space.rule("equal", x - 2 * z == 0, when=kind["b"])
    space.rule("both", x * y >= -0.2, when=kind["c"])
    return space


def brute_force() -> list[Config]:
    found = []
    for kind, x, y in itertools.product("abc", X, Y):
        exact = {value: Fraction(repr(value)) for value in (x, y, *Z)}
        for z in Z if kind != "c" else (None,):
            kept = exact[x] + exact[y] <= Fraction("0.3")
            kept &= z is None or exact[x] * exact[z] <= Fraction("0.1")
            kept &= kind != "b" or exact[x] == 2 * exact[z]
            kept &= kind != "c" or exact[x] * exact[y] >= Fraction("-0.2")
            if kept:
                found.append({"kind": kind, "x": x, "y": y} | ({} if z is None else {"z": z}))
    return found


LEGAL = brute_force()
LIMITS = [64, 3]
"""All expanded; none expanded."""


def key(config: Config) -> str:
    return repr(sorted(config.items()))


@pytest.mark.parametrize("expand_limit", LIMITS)
def test_every_question_against_brute_force(expand_limit: int) -> None:
    space = make_space(expand_limit)
    legal = set(map(key, LEGAL))
    for kind, x, y in itertools.product("abc", X, Y):
        for z in Z if kind != "c" else (None,):
            config = {"kind": kind, "x": x, "y": y} | ({} if z is None else {"z": z})
            assert space.is_legal(config) == (key(config) in legal)
    near = {"kind": "a", "x": 0.1 * 3, "y": -1.0, "z": 0.1 + 0.05}
    assert space.is_legal(near)
    assert "nearest is 0.3" in str(space.validate({**near, "x": 0.32})[0])
    assert {key(c) for c in space.sample(20)} <= legal
    for name, extent in space.bounds().items():
        values = sorted({c[name] for c in LEGAL if name in c})
        if extent.values is None:
            assert (extent.low, extent.high) == (values[0], values[-1])
        else:
            assert list(extent.values) == values
    for a, b, c in ((-1, 2, -5), (0.3, 0.7, -0.1)):
        found = space.optimum(a * space["x"] + b * space["y"] + c * space["z"])
        best = min(a * config["x"] + b * config["y"] + c * config.get("z", 0.0) for config in LEGAL)
        assert (found.status, found.value) == ("optimal", pytest.approx(best, abs=1e-7))
        assert key(found.config) in legal


def test_count() -> None:
    assert make_space(64).count() == len(LEGAL)
    assert make_space(7).count() == len({(c["kind"], c["y"], c.get("z")) for c in LEGAL})  # x is not expanded
    assert make_space(3).count() == 3


def test_points() -> None:
    domain = Domain.of(make_space(3))
    points = domain.encode(LEGAL)
    for k, config in enumerate(LEGAL):
        assert domain.decode(points[k]) == config
    scale = domain.scale
    drawn = np.random.default_rng(0).random((200, len(scale)))
    for u in scale.rounded(drawn):
        natural = scale.natural(u)
        assert np.array_equal(scale.to_unit(natural), u)
        assert all(natural[label] in d.values for label, d in zip(scale.labels, scale.domains, strict=True))


def small(expand_limit: int) -> mc.Space:
    space = mc.Space("small", expand_limit=expand_limit)
    kind = space.categorical("kind", ["a", "b"])
    x, z = space.real("x", 0, 0.3, step=0.1), space.real("z", 1, 1.5, step=0.25, when=kind["b"])
    space.rule("r", x + z <= 1.4)
    return space


SMALL = [{"kind": "a", "x": k / 10} for k in range(4)]
SMALL += [{"kind": "b", "x": k / 10, "z": 1 + l / 4} for k in range(4) for l in range(3) if 10 * k + 25 * l <= 40]


def loss(config: Config) -> float:
    return (config["x"] - 0.32) ** 2 + abs(config.get("z", 1.1) - 1.3) + (config["kind"] == "a") / 10


@pytest.mark.parametrize(
    ("expand_limit", "optimizer"), [(64, "hybrid"), *((2, name) for name in installed("hybrid", "mivabo"))]
)
def test_a_run_proposes_every_configuration_once(expand_limit: int, optimizer: str) -> None:
    result = mc.minimize(loss, small(expand_limit), len(SMALL) + 5, optimizer=optimizer, progress=False)
    assert sorted(key(t.config) for t in result.history) == sorted(map(key, SMALL))
    assert result.value == min(map(loss, SMALL))
    assert "space exhausted" in result.stopped


def test_another_step_is_another_space(tmp_path: Path) -> None:
    def space(step: float) -> mc.Space:
        made = mc.Space("s")
        made.real("x", 0, 1, step=step)
        return made

    path = tmp_path / "run.db"
    mc.minimize(lambda c: c["x"], space(0.25), 3, storage=path, progress=False)
    with pytest.raises(MipcashError, match=r"parameter 'x' was .*step=0.25.* and is .*step=0.5"):
        mc.minimize(lambda c: c["x"], space(0.5), 3, storage=path, progress=False)


def wide_rules(space: mc.Space) -> Callable[[Config], bool]:
    """Rules over numbers of a million values, and what they mean in whole millionths."""
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0, 1, step=1e-6), space.real("y", 0, 1, step=1e-6, when=kind["a"])
    space.rule("equal", x + y == 0.8)
    space.rule("apart", x - y >= 0.1234565, when=kind["a"])

    def holds(config: Config) -> bool:
        a, b = (round(1e6 * config.get(name, 0.0)) for name in ("x", "y"))
        on_step = config["x"] == a / 10**6 and config.get("y", 0.0) == b / 10**6
        return on_step and a + b == 800_000 and (config["kind"] == "b" or a - b >= 123_457)

    return holds


def test_a_million_values() -> None:
    space = mc.Space("wide")
    holds = wide_rules(space)
    drawn = space.sample(12)
    assert all(map(holds, drawn))
    assert len({c["x"] for c in drawn if c["kind"] == "a"}) > 3
    least = space.optimum(space["x"] - space["y"])
    assert (least.status, least.config) == ("optimal", {"kind": "a", "x": 0.461729, "y": 0.338271})
    extents = space.bounds()
    assert (extents["x"].low, extents["x"].high) == (0.461729, 0.8)
    assert (extents["y"].low, extents["y"].high) == (0.0, 0.338271)
    method = mc.Method("hybrid", settings={"n_initial": 2, "samples": 1})
    result = mc.minimize(lambda c: (c["x"] - 0.612345) ** 2, space, 5, optimizer=method, progress=False)
    assert all(holds(t.config) for t in result.history)


def test_products_of_wide_steps_are_exact() -> None:
    """A product of two reals is cut short by a margin; of two reals with a step it is exact, in equations too."""
    space = mc.Space("product", expand_limit=2)
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0.1, 0.6, step=0.1), space.real("y", 0.5, 2, step=0.25, when=kind["a"])
    space.rule("product", x * y == 0.3, when=kind["a"])
    space.rule("square", x * x <= 0.25)
    expected = {(k / 10, l / 4) for k in range(1, 6) for l in range(2, 9) if k * l == 12}
    found = {(c["x"], c["y"]) for c in space.sample(40) if c["kind"] == "a"}
    assert found == expected
    assert space.optimum(x, "maximize").value == 0.5
