"""Black-box limits and failures through the whole loop: learned, kept by the answer, resumed; beside rules that are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import DefectError

LIMITS = {"heat": 0.5, "grip": (0.2, None)}


def mixed() -> mc.Space:
    space = mc.Space("limited")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 8)
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def measured(config: dict[str, Any]) -> dict[str, float]:
    """The loss falls towards x = 1 and n = 8, where the heat is 1e6; without limits c with (1, 8) is best."""
    heat = config["x"] + 0.05 * config["n"] - 0.2 * (config["kind"] == "b")
    return {
        "loss": -config["x"] - 0.1 * config["n"] - 0.3 * (config["kind"] == "c"),
        "heat": heat if heat < 1.0 else 1e6 * heat,
        "grip": 1.0 - 0.1 * config["n"],
    }


def kept(values: dict[str, float]) -> bool:
    return values["heat"] <= 0.5 and values["grip"] >= 0.2


def best() -> float:
    space, found = mixed(), math.inf
    for kind in ("a", "b", "c"):
        for n in range(1, 9):
            for x in (k / 1000 for k in range(1001)):
                config = {"kind": kind, "x": x, "n": n}
                values = measured(config)
                if values["loss"] < found and kept(values) and space.is_legal(config):
                    found = values["loss"]
    return found


def test_the_answer_keeps_the_limits_and_is_near_the_best_that_does() -> None:
    space = mixed()
    result = mc.minimize(measured, space, 30, seed=1, limits=LIMITS, progress=False)
    assert all(space.is_legal(t.config) for t in result.history)
    assert result.config is not None
    assert kept(measured(result.config))
    assert best() <= result.value <= best() + 0.025
    ignoring = mc.minimize(measured, space, 30, seed=1, progress=False)
    assert not kept(measured(ignoring.config or {}))


def test_it_starts_where_nothing_keeps_them() -> None:
    space = mixed()
    known = [(c, measured(c)) for c in space.sample(40, 3) if not kept(measured(c))][:10]
    result = mc.minimize(measured, space, 15, seed=0, limits=LIMITS, known=known, progress=False)
    assert result.config is not None
    assert kept(measured(result.config))


def test_while_nothing_keeps_them_there_is_no_answer() -> None:
    result = mc.minimize(measured, mixed(), 12, seed=0, limits={"heat": -5.0}, progress=False)
    assert result.config is None
    assert result.n_done == 12


def crashing(config: dict[str, Any]) -> float:
    if config["x"] > 0.6 or config["kind"] == "b":
        raise mc.Failed("out of memory")
    return -config["x"]


def test_failures_are_learned_and_left_out_of_the_loss() -> None:
    result = mc.minimize(crashing, mixed(), 30, seed=0, progress=False)
    assert result.value == pytest.approx(-0.6, abs=0.01)
    late = result.history[20:]
    assert sum(t.config["kind"] == "b" for t in late) <= 3  # what always fails is left alone


def test_a_run_under_limits_is_resumed_with_the_same_proposals(tmp_path: Path) -> None:
    def settings(name: str) -> dict[str, Any]:
        return {
            "limits": LIMITS,
            "seed": 2,
            "storage": tmp_path / name,
            "progress": False,
            "optimizer": mc.Method(seconds_per_proposal=None),
        }

    whole = mc.minimize(measured, mixed(), 14, **settings("whole.db"))
    mc.minimize(measured, mixed(), 9, **settings("parts.db"))
    parts = mc.minimize(measured, mixed(), 14, **settings("parts.db"))
    assert [t.config for t in parts.history] == [t.config for t in whole.history]


def test_batches_under_limits_are_distinct_and_legal() -> None:
    space = mixed()
    study = mc.Study(space, limits=LIMITS)
    for _ in range(3):
        batch = study.ask(5)
        assert len({repr(t.config) for t in batch}) == 5
        for trial in batch:
            assert space.is_legal(trial.config)
            study.tell(trial, measured(trial.config))


# -- limits that an evaluation does not tell ------------------------------------------------------------------------


def line() -> mc.Space:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    return space


UNREAD = {
    "left out": ({"loss": 1.0, "ms": 3.0}, "the objective returned a dict without 'heat', only ['loss', 'ms']"),
    "a number alone": (1.0, "the objective returned float 1.0 and no 'heat'"),
    "nan": ({"loss": 1.0, "heat": math.nan}, "nan, which is no finite number"),
    "inf": ({"loss": 1.0, "heat": -math.inf}, "-inf, which is no finite number"),
    "None": ({"loss": 1.0, "heat": None}, "the objective returned 'heat': None; a further value is a number"),
    "a text": ({"loss": 1.0, "heat": "0.3"}, "the objective returned 'heat': str '0.3'; a further value is a number"),
    "too large": (
        {"loss": 1.0, "heat": 1e200},
        "the objective returned 'heat': float 1e+200; what is wanted must lie within",
    ),
    "failed": ({"loss": 1.0, "heat": mc.Failed("no sensor")}, "no sensor"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_a_limit_that_an_evaluation_does_not_tell_has_failed_with_its_cause(case: str, tmp_path: Path) -> None:
    returned, cause = UNREAD[case]
    with mc.Study(line(), "random", limits={"heat": 0.5}, storage=tmp_path / "run.db") as study:
        told = study.tell(study.ask(), returned)
        assert (told.status, told.loss) == ("done", 1.0)
        assert told.outcome["heat"].status == "failed"
        assert cause in told.outcome["heat"].message
        assert "heat failed: " in str(told)
        assert (study.result.config, study.result.n_feasible) == (None, 0)
        assert str(study.result.breaks(told)[0]).startswith("heat failed: ")
        assert study.result.to_rows()[0]["feasible"] is False
    with mc.Study(line(), "random", limits={"heat": 0.5}, storage=tmp_path / "run.db") as study:
        assert study.trials[0].outcome["heat"].message == told.outcome["heat"].message
        kept = study.tell(study.ask(), {"loss": 2.0, "heat": 0.5})
        assert study.result.best is not None
        assert study.result.best.number == kept.number


def test_parts_owe_their_limits_at_the_end() -> None:
    study = mc.Study(line(), "random", limits={"heat": 0.5})
    trial = study.ask()
    assert study.tell(trial, {"heat": 0.4}, partial=True).pending
    assert study.tell(trial, {"loss": 1.0}).outcome["heat"].value == 0.4
    trial = study.ask()
    study.tell(trial, {"heat": 0.3}, partial=True)
    crashed = study.tell(trial, mc.Failed("oom"))
    assert (crashed.failed, crashed.outcome["heat"].value) == (True, 0.3)
    trial = study.ask()
    study.tell(trial, {"loss": 1.0}, partial=True)
    assert study.tell(trial, {}, partial=False).outcome["heat"].status == "failed"


def test_known_evaluations_may_lack_a_limit_and_are_not_answers() -> None:
    study = mc.Study(line(), "random", limits={"heat": 0.5})
    lacking = study.add({"x": 0.5}, 1.0)
    assert lacking.outcome["heat"].status == "missing"
    assert study.add({"x": 0.6}, {"loss": 0.5, "heat": "cold"}).outcome["heat"].status == "failed"
    assert study.result.best is None
    study.add({"x": 0.7}, {"loss": 2.0, "heat": 0.1})
    assert study.result.value == 2.0
    assert study.result.problem() == ""


def typo(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": config["x"], "heat_c": config["x"], "ms": 1.0}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("returned", [typo, lambda c: c["x"], lambda c: {"loss": c["x"], "heat": None}])
def test_a_limit_that_no_evaluation_gives_ends_the_run_early(returned: Any, workers: int, tmp_path: Path) -> None:
    """A budget of 50 is not spent on an objective that calls the output by another name; once mended it goes on."""
    settings: dict[str, Any] = {
        "optimizer": "random",
        "limits": {"heat": 0.5},
        "progress": False,
        "execution": workers,
        "storage": tmp_path / "run.db",
    }
    said = "none of [5-7] evaluations gave 'heat', which has a limit: the objective returned"
    with pytest.raises(DefectError, match=said) as refusal:
        mc.minimize(returned, line(), 50, **settings)
    assert ("only ['loss', 'heat_c', 'ms']; did you mean 'heat_c'?" in str(refusal.value)) == (returned is typo)
    assert "nothing of the budget was spent" in str(refusal.value)
    mended = mc.minimize(lambda c: {"loss": -c["x"], "heat": c["x"]}, line(), 12, **settings)
    assert (mended.n_done, mended.history[0].attempt) == (12, 2)
    assert mended.value < 0.0


def test_what_is_stated_of_a_limit_ends_no_run_and_is_said() -> None:
    def unmeasured(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": config["x"], "heat": math.nan}

    result = mc.minimize(unmeasured, line(), 8, optimizer="random", limits={"heat": 0.5}, progress=False)
    assert result.n_done == 8
    assert result.problem() == "none of 8 evaluations gave 'heat', which has a limit: nan, which is no finite number"
    assert result.problem() in str(result)
    with pytest.raises(DefectError, match="none of 3 evaluations gave 'heat'"):
        mc.minimize(typo, line(), 3, optimizer="random", limits={"heat": 0.5}, progress=False)
    one = mc.minimize(typo, line(), 1, optimizer="random", limits={"heat": 0.5}, progress=False)
    assert (one.n_done, one.config) == (1, None)


def test_where_a_limit_always_fails_proposals_do_not_gather_where_evaluations_crash() -> None:
    """Nothing has worked, though losses are known: the design goes on, in place of a search for the losses that crashes hide."""

    def objective(config: dict[str, Any]) -> dict[str, float]:
        if config["kind"] == "b":
            raise mc.Failed("melted")
        return {**measured(config), "heat": math.nan}

    result = mc.minimize(objective, mixed(), 16, limits={"heat": 0.5}, progress=False)
    assert {t.origin for t in result.history} == {"initial design"}
    assert result.n_failed <= 7


def test_a_limit_that_some_evaluations_lack_is_learned_from_the_others() -> None:
    """nan in a half of the space: no silent zero, and no end of the run; the answer keeps the limit."""

    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": -config["x"], "heat": math.nan if config["x"] > 0.5 else config["x"]}

    result = mc.minimize(objective, line(), 20, limits={"heat": 0.4}, progress=False)
    assert result.config is not None
    assert 0.35 <= result.config["x"] <= 0.4


def test_a_limit_on_the_loss_is_what_an_answer_must_reach() -> None:
    def objective(config: dict[str, Any]) -> float:
        return float((config["x"] - 0.3) ** 2)

    result = mc.minimize(objective, line(), 14, limits={"loss": 0.01}, progress=False)
    assert 0.0 <= result.value <= 0.01
    never = mc.minimize(objective, line(), 8, limits={"loss": -1.0}, progress=False)
    assert never.config is None
    assert never.nearest is not None
    assert never.nearest.trial.loss == min(t.loss for t in never.history if t.loss is not None)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"": 1.0}, "has the name of an output"),
        ({1: 1.0}, "has the name of an output"),
        ({"heat": "5"}, "is a number that the output may not exceed, or a pair"),
        ({"heat": math.nan}, "needs a finite low or high"),
        ({"heat": (0.9, 0.1)}, "low <= high"),
        ({"heat": (None, None)}, "needs a finite low or high"),
        (["heat"], "given by the name of their output"),
        ({"heat": True}, "does not say in which direction"),
        ({"heat": np.False_}, "does not say in which direction"),
    ],
)
def test_limits_that_are_none_are_refused(limits: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mc.Study(line(), "random", limits=limits)
