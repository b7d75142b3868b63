"""Methods of the peers benchmark: protocol, equal proposals for equal seeds, and treatment of illegal suggestions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from benchmarks.paper.experiment import violations_until
from benchmarks.peers import runner
from benchmarks.peers.catalogue import LIMITED, PEERS, make_method
from benchmarks.peers.convention import convention
from benchmarks.peers.history import History
from benchmarks.peers.method import Initial, Method, MissingPackageError
from benchmarks.peers.problem import Problem, problems
from benchmarks.peers.runner import Task, run_one
from benchmarks.peers.shape import Shape
from benchmarks.peers.suite import Suite

BUDGET = 12
METHODS = [*PEERS, "hybrid", "mivabo:starts=2", "joint-gp:illegal=send"]


def available(name: str) -> Method:
    try:
        return make_method(name)
    except MissingPackageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("name", "problem"),
    [*product(METHODS, ["branin-cat"]), *product(["random", "optuna-tpe", "hyperopt", "hybrid"], ["vae-proxy"])],
)
def test_conformance(name: str, problem: str, tmp_path: Path) -> None:
    legal = available(name).legal
    repaired = legal or problems()[problem].group == "free"
    for rule in [""] if repaired else ["penalty", "repair"]:
        task = Task(name, problem, 0, rule)
        found = run_one(task, BUDGET, tmp_path)
        assert len(found.losses) == len(found.legal) == len(found.cpu) == BUDGET
        assert [v is not None for v in found.losses] == (list(found.legal) if rule == "penalty" else [True] * BUDGET)
        assert all(found.legal) or not legal
        assert min(v for v in found.losses if v is not None) >= problems()[problem].optimum - 1e-4
        assert found.stamp["revision"] >= 1
        if problem == "branin-cat" and not name.startswith("smac"):
            assert run_one(task, BUDGET, tmp_path).losses == found.losses


@pytest.mark.parametrize(
    ("name", "problem"),
    [*product(LIMITED, ["admmbo-17"]), *product(["optuna-tpe-constrained", "hybrid"], ["solvers"])],
)
def test_conformance_under_limits(name: str, problem: str, tmp_path: Path) -> None:
    made = available(name)
    assert made.takes_limits
    found = run_one(Task(name, problem, 0, "" if made.legal else "repair", "limits"), BUDGET, tmp_path)
    assert len(found.losses) == len(found.outputs) == BUDGET
    assert all(v is None or o is not None for v, o in zip(found.losses, found.outputs, strict=True))
    assert all(found.legal) or not made.legal


def test_unknown_methods_and_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="there is no method 'nothing'"):
        make_method("nothing")
    with pytest.raises(ValueError, match="has no '='"):
        make_method("mivabo:starts")
    monkeypatch.setitem(PEERS, "absent", ("benchmarks.peers.methods.absent", "Absent"))
    with pytest.raises(MissingPackageError, match=r"mipcash\[peers\]"):
        make_method("absent")
    with pytest.raises(ValueError, match="there is no convention"):
        convention("penalty-much")


# -- illegal suggestions, from a method that makes them in a known order ----------------------------------------------


def even() -> mc.Space:
    space = mc.Space("even numbers")
    x = space.integer("x", 0, 9)
    space.rule("not seven or more", x <= 6)
    return space


EVEN = Problem("even", even, lambda c: float(c["x"]), "rules", 0.0, "construction", "made up", penalty=70.0)


class Fake(Method):
    """Method that suggests 9, 8, 7 (illegal) and 6 repeatedly and records the losses that it receives."""

    name = "fake"

    def __init__(self, values: tuple[int, ...] = (9, 8, 7, 6)) -> None:
        self.values, self.at = values, 0
        self.told: list[tuple[int, float | None]] = []

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        assert len(list(initial)) == 2

    def suggest(self) -> dict[str, Any]:
        self.at += 1
        return {"x": self.values[(self.at - 1) % len(self.values)]}

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.told.append((config["x"], loss))

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:
        self.told.append((config["x"], None))


def ran(monkeypatch: pytest.MonkeyPatch, folder: Path, rule: str, fake: Fake) -> History:
    conventions = ("penalty-500", "ignore")
    made = Suite("fake", lambda: {"even": EVEN}, folder, budget=5, initial=2, conventions=conventions)
    monkeypatch.setattr(runner, "suite", lambda name: made)
    monkeypatch.setattr(runner, "make_method", lambda name: fake)
    return runner.run_one(Task("fake", "even", 0, rule, "fake"), 5, folder)


@pytest.mark.parametrize(
    ("rule", "losses", "told"),
    [
        ("penalty", (None, None, None), [(9, 70.0), (8, 70.0), (7, 70.0)]),
        ("repair", (6.0, 6.0, 6.0), [(6, 6.0)] * 3),
        ("penalty-125", (None, None, None, 6.0) * 3, [(9, 125.0), (8, 125.0), (7, 125.0), (6, 6.0)] * 3),
        ("ignore", (None, None, None, 6.0) * 3, [(9, None), (8, None), (7, None), (6, 6.0)] * 3),
    ],
)
def test_treatment_of_illegal_suggestions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, losses: Any, told: Any
) -> None:
    fake = Fake()
    found = ran(monkeypatch, tmp_path, rule, fake)
    assert (found.losses[2:], fake.told) == (losses, told)
    assert found.legal[:4] == (True, True, False, False)
    if len(losses) == 12:
        assert [violations_until(found, n) for n in (2, 3, 4, 5, 99)] == [0, 3, 6, 9, 9]


# -- description of a space for other libraries ------------------------------------------------------------------------


def small() -> mc.Space:
    space = mc.Space("small")
    a, b = space.integer("a", 0, 3), space.integer("b", 0, 3)
    c, x = space.categorical("c", ["u", "v", "w"]), space.real("x", -1.0, 3.0)
    space.real("y", 0.1, 10.0, log=True, when=c["v"])
    space.rule("linear", a + 2 * b + x <= 6)
    space.rule("bilinear", a * b <= 4)
    space.rule("conditional", a <= 1, when=c["w"])
    return space


def test_linear_rules_and_forbidden_values() -> None:
    space, rng = small(), np.random.default_rng(0)
    shape = Shape(space)
    for config in space.sample(10, seed=3):
        assert space.is_legal(shape.decode(shape.codes(config)))
        assert shape.active(shape.full(config)) == config
        assert not shape.violations(config)
    (linear,) = shape.linear_rules()
    for _ in range(20):
        config = {d.name: d.draw(rng) for d in shape.dimensions}
        codes = {d.name: d.code(config[d.name]) for d in shape.dimensions}
        body = linear.constant + sum(s * codes[n] for n, s in linear.slopes.items())
        assert body == pytest.approx(config["a"] + 2 * config["b"] + config["x"])
    assert linear.upper == 6
    forbidden = dict(shape.forbidden())
    assert set(forbidden) == {"bilinear", "conditional"}
    pairs = {(a, b) for a, b in product(range(4), repeat=2) if a * b > 4}
    assert {(f["a"], f["b"]) for f in forbidden["bilinear"]} == pairs
    assert {(f["a"], f["c"]) for f in forbidden["conditional"]} == {(2, "w"), (3, "w")}
    found = shape.violations({"a": 3, "b": 3, "c": "w", "x": 3.0})
    assert set(found) == {"linear", "bilinear", "conditional"}
    assert (found["linear"], found["conditional"]) == (pytest.approx(6 / 13), pytest.approx(2 / 3))
