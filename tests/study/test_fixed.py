"""Asks with fixed values: the proposal has them, is legal and new, and the rest follows the model of all trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError, MipcashError, SpaceError, SpaceExhaustedError


@pytest.fixture
def space() -> mc.Space:
    space = mc.Space("plant")
    heat, feed = space.real("heat", 0.0, 1.0), space.integer("feed", 0, 20)
    space.categorical("catalyst", ["a", "b", "c"])
    space.module("stirrer", {"none": {}, "fast": {"speed": mc.Real(1.0, 9.0)}})
    space.rule("safe", 10 * heat + feed <= 24)
    return space


def loss(config: dict[str, Any]) -> float:
    return (config["heat"] - 0.6) ** 2 + (config["feed"] / 20 - 0.5) ** 2 + (0.3 if config["catalyst"] == "a" else 0.0)


@pytest.mark.parametrize("optimizer", ["hybrid", "random", "mutation"])
@pytest.mark.parametrize(
    "fixed",
    [
        {"heat": 0.1},
        {"feed": 18},
        {"catalyst": "b", "heat": 1.0},
        {"stirrer": "fast"},
        {"stirrer": "fast", "stirrer.fast.speed": 2.5},
    ],
)
def test_a_proposal_has_the_fixed_values_and_is_legal(space: mc.Space, optimizer: str, fixed: dict[str, Any]) -> None:
    with mc.Study(space, optimizer) as study:
        for _ in range(12):
            trial = study.ask()
            study.tell(trial, loss(trial.config))
        asked = [study.ask(fixed=fixed), *study.ask(2, fixed=fixed)]
        for trial in asked:
            assert {n: trial.config[n] for n in fixed} == fixed
            assert space.is_legal(trial.config)
        assert len({repr(t.config) for t in study.trials}) == 15
        for trial in asked:
            study.tell(trial, loss(trial.config))
        study.ask()


def test_the_rest_is_chosen_by_the_model(space: mc.Space) -> None:
    with mc.Study(space) as study:
        for _ in range(25):
            trial = study.ask()
            study.tell(trial, loss(trial.config))
        trial = study.ask(fixed={"feed": 3})  # the first of its kind: an initial design
        study.tell(trial, loss(trial.config))
        for _ in range(2):
            trial = study.ask(fixed={"feed": 3})
            study.tell(trial, loss(trial.config))
        assert abs(trial.config["heat"] - 0.6) < 0.1
        assert trial.config["catalyst"] != "a"


def test_what_waits_waits_on(space: mc.Space) -> None:
    with mc.Study(space, "random") as study:
        waiting = study.enqueue({"heat": 0.5, "feed": 1, "catalyst": "c", "stirrer": "none"})
        assert study.ask(fixed={"feed": 2}).config["feed"] == 2
        assert study.ask().number == waiting.number


def test_a_resumed_study_proposes_the_same(space: mc.Space, journal: Path) -> None:
    def proposals(storage: Path | None, stops: bool) -> list[dict[str, Any]]:
        study = mc.Study(space, storage=storage)
        for k in range(10):
            if stops and k in (7, 8):
                study.close()
                study = mc.Study(space, storage=storage)
            trial = study.ask(fixed={"catalyst": "c"} if k % 3 == 1 else None)
            study.tell(trial, loss(trial.config))
        found = [dict(t.config) for t in study.trials]
        study.close()
        return found

    assert proposals(None, False) == proposals(journal, True)


def test_values_that_cannot_be_fixed_are_named(space: mc.Space) -> None:
    with mc.Study(space) as study:
        with pytest.raises(InfeasibleSpaceError, match="safe"):
            study.ask(fixed={"heat": 1.0, "feed": 20})
        with pytest.raises(SpaceError, match="pressure"):
            study.ask(fixed={"pressure": 1.0})
        with pytest.raises(SpaceError, match="catalyst"):
            study.ask(fixed={"catalyst": "d"})
        assert not study.trials
    with (
        mc.Study(space, optimizer=tiny.Sampler(space)) as study,
        pytest.raises(MipcashError, match="fixed values of 'feed'"),
    ):
        study.ask(fixed={"feed": 2})


def test_a_sub_space_is_exhausted_alone() -> None:
    space = mc.Space("small")
    space.integer("a", 0, 2)
    space.categorical("b", ["x", "y"])
    with mc.Study(space) as study:
        for trial in study.ask(3, fixed={"b": "x"}):
            study.tell(trial, float(trial.config["a"]))
        with pytest.raises(
            SpaceExhaustedError, match="every legal configuration of space 'small' with b = 'x' has been"
        ):
            study.ask(fixed={"b": "x"})
        assert study.ask().config["b"] == "y"


def test_a_study_refuses_a_space_that_was_changed() -> None:
    space = mc.Space("small")
    a, b = space.integer("a", 0, 2), space.integer("b", 0, 2)
    with mc.Study(space, "random") as study:
        for _ in range(4):
            study.tell(study.ask(), 1.0)
        space.rule("sum", a + b <= 2)
        with pytest.raises(SpaceError, match="'small' was changed after the study was made"):
            study.ask()
        known = mc.read_trials(study.result.to_rows(), space, illegal="skip")
    assert all(space.is_legal(config) for config, _ in known)
    with mc.Study(space, "random", known=known) as study:
        assert space.is_legal(study.ask().config)
