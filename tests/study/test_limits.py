"""Outcome constraints in whole runs: they are modelled beside rules, satisfied by the best trial, and resumed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

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
    """Return a loss that falls towards x = 1 and n = 8, where the heat is 1e6. Without limits, c at (1, 8) is best."""
    heat = config["x"] + 0.05 * config["n"] - 0.2 * (config["kind"] == "b")
    return {
        "loss": -config["x"] - 0.1 * config["n"] - 0.3 * (config["kind"] == "c"),
        "heat": heat if heat < 1.0 else 1e6 * heat,
        "grip": 1.0 - 0.1 * config["n"],
    }


def kept(values: dict[str, float]) -> bool:
    return values["heat"] <= 0.5 and values["grip"] >= 0.2


BEST = -1.15
"""Lowest feasible loss: ``c`` at n = 7 and x = 0.15."""


def test_the_best_trial_is_feasible_and_near_the_optimum() -> None:
    space = mixed()
    result = mc.minimize(measured, space, 18, seed=1, limits=LIMITS, progress=False)
    assert all(space.is_legal(t.config) for t in result.history)
    assert result.config is not None
    assert kept(measured(result.config))
    assert BEST - 1e-9 <= result.value <= BEST + 0.025


def test_a_run_under_limits_is_resumed_with_the_same_proposals(tmp_path: Path) -> None:
    def run(budget: int, name: str) -> list[dict[str, Any]]:
        given: dict[str, Any] = {"limits": LIMITS, "seed": 2, "storage": tmp_path / name, "progress": False}
        method = mc.Method(seconds_per_proposal=None)
        return [t.config for t in mc.minimize(measured, mixed(), budget, optimizer=method, **given).history]

    run(8, "parts.db")
    assert run(9, "parts.db") == run(9, "whole.db")


# -- evaluations that lack a constrained output ---------------------------------------------------------------------


UNREAD = {
    "left out": ({"loss": 1.0, "ms": 3.0}, "the objective returned a dict without 'heat', only ['loss', 'ms']"),
    "a number alone": (1.0, "the objective returned float 1.0 and no 'heat'"),
    "nan": ({"loss": 1.0, "heat": math.nan}, "nan, which is no finite number"),
    "inf": ({"loss": 1.0, "heat": -math.inf}, "-inf, which is no finite number"),
    "None": ({"loss": 1.0, "heat": None}, "the objective returned 'heat': None; a further value is a number"),
    "a text": ({"loss": 1.0, "heat": "0.3"}, "the objective returned 'heat': str '0.3'; a further value is a number"),
    "too large": (
        {"loss": 1.0, "heat": 1e200},
        "the objective returned 'heat': float 1e+200; the value of a requested output must lie within",
    ),
    "failed": ({"loss": 1.0, "heat": mc.Failed("no sensor")}, "no sensor"),
}


def test_a_constrained_output_that_is_not_returned_has_failed_with_its_cause(tmp_path: Path) -> None:
    given: dict[str, Any] = {"limits": {"heat": 0.5}, "storage": tmp_path / "run.db"}
    with mc.Study(tiny.line(), "random", **given) as study:
        for returned, cause in UNREAD.values():
            told = study.tell(study.ask(), returned)
            assert (told.status, told.loss) == ("done", 1.0)
            assert told.outcome["heat"].status == "failed"
            assert cause in told.outcome["heat"].message
            assert "heat failed: " in str(told)
            assert str(study.result.violations(told)[0]).startswith("heat failed: ")
        assert (study.result.config, study.result.n_feasible) == (None, 0)
        assert not any(row["feasible"] for row in study.result.to_rows())
        before = study.trials
    with mc.Study(tiny.line(), "random", **given) as study:
        assert [t.outcome["heat"].message for t in study.trials] == [t.outcome["heat"].message for t in before]
        kept = study.tell(study.ask(), {"loss": 2.0, "heat": 0.5})
        assert study.result.best is not None
        assert study.result.best.number == kept.number


def test_constrained_outputs_are_required_when_a_trial_is_complete() -> None:
    study = mc.Study(tiny.line(), "random", limits={"heat": 0.5})
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


def test_known_evaluations_without_a_constrained_output_are_never_the_best() -> None:
    study = mc.Study(tiny.line(), "random", limits={"heat": 0.5})
    lacking = study.add({"x": 0.5}, 1.0)
    assert lacking.outcome["heat"].status == "missing"
    assert study.add({"x": 0.6}, {"loss": 0.5, "heat": "cold"}).outcome["heat"].status == "failed"
    assert study.result.best is None
    study.add({"x": 0.7}, {"loss": 2.0, "heat": 0.1})
    assert study.result.value == 2.0
    assert study.result.problem() == ""


def typo(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": config["x"], "heat_c": config["x"], "ms": 1.0}


@pytest.mark.parametrize(("returned", "workers"), [(typo, 1), (lambda c: {"loss": c["x"], "heat": None}, 3)])
def test_a_constrained_output_that_no_evaluation_returns_stops_the_run_early(
    returned: Any, workers: int, tmp_path: Path
) -> None:
    """Assert that a misnamed output does not use up the budget, and that the corrected objective resumes the run."""
    settings: dict[str, Any] = {
        "optimizer": "random",
        "limits": {"heat": 0.5},
        "progress": False,
        "execution": workers,
        "storage": tmp_path / "run.db",
    }
    said = "none of [5-7] evaluations gave 'heat', which has an outcome constraint: the objective returned"
    with pytest.raises(DefectError, match=said) as refusal:
        mc.minimize(returned, tiny.line(), 50, **settings)
    assert ("only ['loss', 'heat_c', 'ms']; did you mean 'heat_c'?" in str(refusal.value)) == (returned is typo)
    assert "nothing of the budget was spent" in str(refusal.value)
    mended = mc.minimize(lambda c: {"loss": -c["x"], "heat": c["x"]}, tiny.line(), 12, **settings)
    assert (mended.n_done, mended.history[0].attempt) == (12, 2)
    assert mended.value < 0.0


def test_a_constrained_output_that_is_always_nan_is_reported_and_does_not_stop_the_run() -> None:
    def unmeasured(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": config["x"], "heat": math.nan}

    result = mc.minimize(unmeasured, tiny.line(), 8, optimizer="random", limits={"heat": 0.5}, progress=False)
    assert result.n_done == 8
    assert (
        result.problem()
        == "none of 8 evaluations gave 'heat', which has an outcome constraint: nan, which is no finite number"
    )
    assert result.problem() in str(result)
    with pytest.raises(DefectError, match="none of 3 evaluations gave 'heat'"):
        mc.minimize(typo, tiny.line(), 3, optimizer="random", limits={"heat": 0.5}, progress=False)
    one = mc.minimize(typo, tiny.line(), 1, optimizer="random", limits={"heat": 0.5}, progress=False)
    assert (one.n_done, one.config) == (1, None)


def test_a_constraint_is_modelled_from_the_evaluations_that_return_its_output() -> None:
    """Assert that the best trial is feasible although the output is nan in half of the space."""

    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": -config["x"], "heat": math.nan if config["x"] > 0.5 else config["x"]}

    result = mc.minimize(objective, tiny.line(), 14, limits={"heat": 0.4}, progress=False)
    assert result.config is not None
    assert 0.35 <= result.config["x"] <= 0.4


def test_a_limit_on_the_loss_applies_to_the_best_trial() -> None:
    def objective(config: dict[str, Any]) -> float:
        return float((config["x"] - 0.3) ** 2)

    result = mc.minimize(objective, tiny.line(), 10, limits={"loss": 0.01}, progress=False)
    assert 0.0 <= result.value <= 0.01
    never = mc.minimize(objective, tiny.line(), 4, optimizer="random", limits={"loss": -1.0}, progress=False)
    assert never.config is None
    assert never.nearest is not None
    assert never.nearest.trial.loss == min(t.loss for t in never.history if t.loss is not None)


def test_invalid_limits_are_refused() -> None:
    for limits, message in (
        ({"": 1.0}, "has the name of an output"),
        ({1: 1.0}, "has the name of an output"),
        *(
            ({"heat": e}, "is a number that the output may not exceed, or a pair")
            for e in ("5", (1, 2, 3), [None, "x"])
        ),
        ({"heat": math.nan}, "needs a finite low or high"),
        ({"heat": (0.9, 0.1)}, "low <= high"),
        ({"heat": (None, None)}, "needs a finite low or high"),
        (["heat"], "given by the name of their output"),
        ({"heat": np.False_}, "does not say in which direction"),
    ):
        with pytest.raises(ValueError, match=message):
            mc.Study(tiny.line(), "random", limits=limits)  # type: ignore[arg-type]
