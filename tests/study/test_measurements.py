"""Configurations that were measured several times count by their means, in every part of a result."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError, TellError
from mipcash.report.data.run import Run


def recipes() -> mc.Space:
    space = mc.Space("recipes")
    space.categorical("recipe", list("ABCD"))
    return space


def mixed() -> mc.Space:
    space = mc.Space("mixed")
    space.real("x", 0, 1)
    space.integer("n", 0, 5)
    return space


MEASURED = {"A": (0.1, 1.1, 1.2, 1.3), "B": (0.5, 0.5, 0.52, 0.48), "C": (0.8, 0.9, 0.7), "D": (1.4, 1.5, 1.3)}


@pytest.mark.parametrize("optimizer", ["hybrid", "random", "mutation", "mivabo", "admm"])
def test_the_recommendation_has_the_lowest_mean(optimizer: str) -> None:
    study = mc.Study(recipes(), optimizer)
    for name, losses in MEASURED.items():
        for loss in losses:
            study.add({"recipe": name}, loss)
    assert study.result.config == {"recipe": "B"}
    assert study.finalists(3)[1].config == {"recipe": "C"}
    assert 0.5 < study.result.value < 0.65
    assert "best 0.5" in repr(study)


def test_a_lucky_incumbent_that_is_measured_again_gives_way() -> None:
    study = mc.Study(mixed())
    trials = study.ask(8)
    study.tell(trials[0], 0.2)
    for k, trial in enumerate(trials[1:]):
        study.tell(trial, 1.0 + 0.1 * k)
    for k in (1, 2, 3):
        study.repeat(trials[0], k)
        study.tell(study.ask(), 3.0)
    assert study.result.best is not None
    assert study.result.best.number != 0
    assert study.result.value >= 1.0


@pytest.mark.parametrize("figures", [17, 15])
def test_a_configuration_that_a_spreadsheet_rounded_is_the_same(figures: int, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with mc.Study(mixed(), storage=path) as study:
        for trial, loss in zip(study.ask(6), (0.1, 0.5, 0.6, 0.7, 0.8, 0.9 / 7), strict=True):
            study.tell(trial, loss)
        rounded = [
            ({n: float(f"{v:.{figures}g}") if n == "x" else v for n, v in t.config.items()}, t) for t in study.trials
        ]
        study.add_missing([(config, float(f"{t.loss:.{figures}g}")) for config, t in rounded])
        assert len(study.trials) == 6
        for loss in (1.1, 1.2, 1.3):
            assert study.add(rounded[0][0], loss).config == study.trials[0].config
        assert study.result.best is not None
        assert study.result.best.number != 0


@pytest.mark.parametrize("how", ["add", "repeat"])
def test_a_pareto_front_is_of_means(how: str) -> None:
    study = mc.Study(recipes(), direction={"yield": "maximize", "cost": "minimize"})
    first = {
        name: study.add({"recipe": name}, {"yield": y, "cost": c})
        for name, y, c in (("B", 81.0, 5.0), ("C", 95.0, 4.0))
    }
    for k in (1, 2):
        if how == "add":
            study.add({"recipe": "C"}, {"yield": 40.0, "cost": 4.0})
        else:
            study.repeat(first["C"], k)
            study.tell(study.ask(), {"yield": 40.0, "cost": 4.0})
    assert {t.config["recipe"] for t in study.result.front} == {"B", "C"}
    assert "58.3333" in str(study.result)
    assert "95" not in str(study.result).split("finalists")[0]


def test_a_constraint_is_judged_by_the_mean_in_every_table() -> None:
    study = mc.Study(recipes(), limits={"visc": 1.0})
    for visc in (1.2, 0.9, 1.05):
        study.add({"recipe": "A"}, {"loss": 0.1, "visc": visc})
    study.add({"recipe": "B"}, {"loss": 0.5, "visc": 0.5})
    result = study.result
    assert result.config == {"recipe": "B"}
    assert [row["feasible"] for row in result.to_rows()] == [False, False, False, True]
    assert [row["trial"] for row in result.limits if row["feasible"]] == [3]


def test_the_outcome_of_a_copied_journal_is_refused(tmp_path: Path) -> None:
    mc.Study(mixed(), storage=tmp_path / "a.db").close()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with mc.Study(mixed(), storage=tmp_path / "a.db") as a, mc.Study(mixed(), storage=tmp_path / "b.db") as b:
        trial, _ = a.ask(fixed={"n": 1}), b.ask(fixed={"n": 4})
        with pytest.raises(TellError, match="another study"):
            b.tell(trial, 0.0)


def test_a_changed_space_takes_no_evaluations(tmp_path: Path) -> None:
    space = mixed()
    with mc.Study(space, storage=tmp_path / "run.db") as study:
        study.tell(study.ask(), 1.0)
        space.categorical("solvent", ["water", "ethanol"])
        config = {"x": 0.1, "n": 3, "solvent": "water"}
        for call in (
            lambda: study.add(config, 0.2),
            lambda: study.enqueue(config),
            lambda: study.add_missing([(config, 0.2)]),
        ):
            with pytest.raises(SpaceError, match="was changed"):
                call()
    with mc.Study(mixed(), storage=tmp_path / "run.db") as study:
        assert len(study.trials) == 1


def test_a_corrected_value_of_known_data_is_told_of(tmp_path: Path) -> None:
    def opened(loss: float) -> mc.Study:
        return mc.Study(recipes(), storage=tmp_path / "run.db", known=[({"recipe": "A"}, loss), ({"recipe": "B"}, 0.5)])

    opened(0.01).close()
    opened(0.01).close()
    with pytest.warns(UserWarning, match=r"loss=0.01.*both count as measurements"):
        opened(1.01).close()


@pytest.mark.parametrize("outcome", [{}, {"purity": 0.9}])
def test_an_incomplete_last_part_is_refused(outcome: dict[str, Any]) -> None:
    study = mc.Study(mixed(), direction={"yield": "maximize", "cost": "minimize"})
    trial = study.ask()
    study.tell(trial, {"yield": 50.0}, partial=True)
    with pytest.raises(TellError, match="still pending"):
        study.tell(trial, outcome)
    assert study.tell(trial, {"cost": 3.0}).done


def test_an_illegal_trial_is_not_repeated() -> None:
    space = mixed()
    space.rule("r", space["n"] <= 3)
    study = mc.Study(space)
    trial = study.add({"x": 0.5, "n": 5}, 1.0, illegal="learn")
    with pytest.raises(TellError, match="violates rules"):
        study.repeat(trial)


def digits() -> mc.Space:
    space = mc.Space("digits")
    space.integer("a", 0, 9)
    return space


def told(
    study: mc.Study, rows: Sequence[tuple[int, Any]], repeats: Sequence[tuple[int, Sequence[Any]]] = ()
) -> mc.Study:
    """Evaluate configurations, then repeat trials by number."""
    for a, outcome in rows:
        study.enqueue({"a": a})
        study.tell(study.ask(), outcome)
    for number, outcomes in repeats:
        for k, outcome in enumerate(outcomes, 1):
            study.repeat(study.trials[number], k)
            study.tell(study.ask(), outcome)
    return study


REPEATED = [(0, (15.0, 14.0, 16.0)), (1, (1.1, 0.9, 1.0)), (2, (2.0, 2.1, 1.9))]


def test_a_journal_that_has_not_ended_recommends_what_its_study_does(tmp_path: Path) -> None:
    with mc.Study(digits(), "random", storage=tmp_path / "run.db") as study:
        result = told(study, [(1, -5.0), (2, 1.0), (3, 2.0)], REPEATED).result
    read = Run.of(tmp_path / "run.db").result
    assert (result.config, result.value) == (read.config, read.value)
    assert result.config == {"a": 2}


def test_a_configuration_that_its_repeats_rule_out_is_feasible_nowhere() -> None:
    study = mc.Study(digits(), limits={"ms": 3.0})
    rows = [(1, 1.0, 2.9), (2, 2.0, 2.5), (3, 3.0, 1.0), (4, 9.0, 1.0)]
    again = [(0, (1.0, 8.0)), (1, (2.0, 2.4)), (2, (3.0, 1.0))]
    result = told(
        study,
        [(a, {"loss": loss, "ms": ms}) for a, loss, ms in rows],
        [(n, [{"loss": loss, "ms": ms}] * 2) for n, (loss, ms) in again],
    ).result
    assert result.best is not None
    assert (result.best.number, result.feasibility.feasible(0), result.to_rows()[0]["feasible"]) == (1, False, False)
    safe, nearest = result.safe(0.5), result.nearest
    assert safe is not None
    assert nearest is not None
    assert {safe.number, nearest.trial.number} == {1}
    assert np.nanmin(result.convergence().incumbent) == 2.0
    assert [row["trial"] for row in result.limits if row["feasible"]] == [2, 1]


def test_incumbents_and_values_are_means() -> None:
    study = mc.Study(digits(), "random", limits={"ms": 3.0})
    for a, loss, ms in ((1, -5.0, 4.0), (1, 15.0, 1.0), (2, 2.0, 1.0), (3, 4.0, 1.0)):
        study.add({"a": a}, {"loss": loss, "ms": ms})
    result = study.result
    assert result.convergence().incumbent.tolist() == [-5.0, 5.0, 2.0, 2.0]
    study.add({"a": 2}, {"loss": 2.2, "ms": 2.0})
    assert study.result.values == {"ms": 1.5}


def test_the_value_is_shrunk_also_if_finalists_have_unequal_repeats() -> None:
    repeats = [(0, (0.0, 1.0)), (1, (2.0,)), (2, (3.0,))]
    result = told(mc.Study(digits(), "random"), [(1, 0.0), (2, 1.0), (3, 2.0)], repeats).result
    assert result.fresh == 0.5
    assert 0.5 < result.value < (0.5 + 2 + 3) / 3
