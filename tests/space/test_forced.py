"""Warnings about rules that force a conditional parameter to be active, because an inactive parameter counts as 0."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

import pytest

import mipcash as mc
from benchmarks.peers.problems import binary, engineering, ising, rbfopt, sensors, synthetic
from mipcash.deadline import Deadline
from mipcash.errors import RuleWarning
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.forced import SECONDS, forced
from tests.slow import SOLVES, FakeClock, SlowBackend, counted


def told(question: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        question()
    return [str(w.message) for w in caught if w.category is RuleWarning]


def network() -> mc.Space:
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    space.categorical("act", ["relu", "tanh"])
    space.real("dropout", 0.1, 0.5, when=layers.is_(2, 3))
    space.module("estimator", {"forest": {"n": mc.Integer(2, 9), "split": mc.Categorical(["a", "b"])}, "line": {}})
    return space


def test_the_warning_names_the_rule_the_parameter_and_the_remedy() -> None:
    space = network()
    space.rule("at least", space["dropout"] >= 0.2)
    assert space.is_legal({"layers": 1, "act": "relu", "estimator": "line"}) is False
    assert told(lambda: space.sample(1)) == [
        "rule 'at least' (dropout >= 0.2) forces parameter 'dropout' to be active: if it is inactive, it counts as 0, which "
        "violates the rule. If it is meant only for an active parameter, add when=dropout.is_active(); if not, require it by a "
        "separate rule, layers[2] + layers[3] == 1"
    ]


def test_the_remedy_or_an_explicit_rule_removes_the_warning() -> None:
    space = network()
    space.rule("at least", space["dropout"] >= 0.2, when=space["dropout"].is_active())
    assert told(lambda: space.sample(3)) == []
    assert {c["layers"] for c in space.sample(9)} == {1, 2, 3}
    space = network()
    space.rule("at least", space["dropout"] >= 0.2)
    space.rule("deep", space["layers"].is_(2, 3) == 1)
    assert told(lambda: space.sample(3)) == []


FORCING: dict[str, tuple[Callable[[mc.Space], object], list[str]]] = {
    "a number": (lambda s: s["dropout"] >= 0.2, ["'r' (dropout >= 0.2) forces parameter 'dropout'"]),
    "a product": (lambda s: s["dropout"] * s["layers"] >= 0.3, ["forces parameter 'dropout'"]),
    "an equation": (lambda s: s["dropout"] + 0.1 * s["layers"] == 0.5, ["forces parameter 'dropout'"]),
    "a hyperparameter": (
        lambda s: s["estimator"]["forest"]["n"] >= 3,
        ["when=space['estimator.forest.n'].is_active()"],
    ),
    "a level": (lambda s: s["estimator"]["forest"]["split"]["a"] == 1, ["forces parameter 'estimator.forest.split'"]),
    "two at once": (
        lambda s: s["estimator"]["forest"]["n"] + 10 * s["dropout"] >= 13.5,
        ["forces parameter 'estimator.forest.n'", "forces parameter 'dropout'"],
    ),
}


@pytest.mark.parametrize("what", FORCING)
def test_rules_that_force_a_parameter_are_reported(what: str) -> None:
    relation, messages = FORCING[what]
    space = network()
    space.rule("r", relation(space))
    found = told(lambda: space.optimum("layers"))
    assert len(found) == len(messages)
    assert all(any(part in message for message in found) for part in messages), found


HARMLESS: dict[str, Callable[[mc.Space], object]] = {
    "an upper bound": lambda s: s["dropout"] <= 0.4,
    "beside something else": lambda s: s["dropout"] + s["act"]["relu"] >= 0.2,
    "a level that is not taken": lambda s: s["estimator"]["forest"]["split"]["a"] == 0,
    "activity itself": lambda s: s["estimator"]["forest"]["n"].is_active() == 1,
    "all its levels": lambda s: s["estimator"]["forest"]["split"].is_("a", "b") >= 1,
    "the condition": lambda s: s["layers"] >= 2,
    "only where it is off already": lambda s: s["dropout"] <= s["layers"] / 3,
}


@pytest.mark.parametrize("what", HARMLESS)
def test_rules_that_force_no_parameter_are_not_reported(what: str) -> None:
    space = network()
    space.rule("r", HARMLESS[what](space))
    if what == "the condition":  # then the rule 'at least' is not reported
        space.rule("at least", space["dropout"] >= 0.2)
    assert told(lambda: space.sample(2)) == []


def test_rules_that_force_a_parameter_only_together_are_reported() -> None:
    space = network()
    n = space["estimator"]["forest"]["n"]
    space.rule("relu", n + 5 * space["act"]["relu"] >= 5)
    space.rule("tanh", n + 5 * space["act"]["tanh"] >= 5)
    (message,) = told(lambda: space.sample(2))
    assert message.startswith("rules 'relu' (estimator.forest.n + 5 * act['relu'] >= 5) and 'tanh' (")
    assert "force parameter 'estimator.forest.n' to be active" in message


def test_an_empty_space_forces_nothing() -> None:
    space = mc.Space("plants")
    opened = [space.categorical(f"open{k}", [False, True]) for k in range(3)]
    sizes = [space.ordinal(f"size{k}", [10, 20], when=opened[k][True]) for k in range(3)]
    loads = [space.integer(f"load{k}", 0, 20) for k in range(3)]
    for k in range(3):
        space.rule(f"capacity {k}", loads[k] <= sizes[k])
    space.rule("demand", sum(loads) >= 35)
    space.rule("one plant", sum(o[True] for o in opened) <= 1)
    assert told(space.explain) == []


def test_a_warning_is_issued_once_at_the_line_of_the_caller(recwarn: pytest.WarningsRecorder) -> None:
    space = network()
    space.rule("at least", space["dropout"] >= 0.2)
    mc.minimize(lambda config: 0.0, space, 1, optimizer="random", progress=False)
    (warning,) = [w for w in recwarn if w.category is RuleWarning]
    assert warning.filename == __file__
    assert told(lambda: (space.sample(1), space.optimum("layers"), mc.Study(space).ask())) == []
    assert told(lambda: copy.deepcopy(space).sample(1)) == []
    space.rule("more", space["estimator"]["forest"]["n"] >= 3)  # a new rule is checked again
    assert ["'more'" in m for m in told(lambda: space.sample(1))] == [True]


def test_the_check_takes_few_solves_and_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    space = mc.Space("large")
    gate = [space.categorical(f"g{i}", ["on", "off"]) for i in range(60)]
    held = [space.real(f"x{i}", 1, 2, when=g["on"]) for i, g in enumerate(gate)]
    for i, x in enumerate(held):
        space.rule(f"r{i}", x + held[i - 1] + gate[i - 2]["on"] >= 1)
    here, clock = compiled(space), FakeClock()  # a clock that stands still: the check ends by itself
    calls = counted(monkeypatch, *SOLVES)
    assert not list(forced(here.declaration, here.rules, here.program, here.backend, Deadline.after(SECONDS, clock)))
    assert len(calls) <= 2 * len(gate)
    slow = SlowBackend(clock, SECONDS / 4)
    assert not list(forced(here.declaration, here.rules, here.program, slow, Deadline.after(SECONDS, clock)))
    assert len(slow.limits) <= 4


def bundled() -> Iterator[mc.Space]:
    names = ["synthetic"]
    if find_spec("mipcash.integrations") is not None:  # the tests of the core run without it
        names += ["xgboost", "sklearn_pipeline"]
    for name in names:
        yield import_module(f"mipcash.models.{name}").build()[0]
    for module in (binary, engineering, ising, rbfopt, sensors, synthetic):
        yield from (problem.space() for problem in module.PROBLEMS)


def test_no_bundled_space_has_a_warning() -> None:
    for space in bundled():
        assert told(lambda space=space: minimiser_of(space)) == [], space.name  # type: ignore[misc]
