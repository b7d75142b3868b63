"""Display of a run: lines in a log and a bar on a terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import tiny
from rich.console import Console

import mipcash as mc
from mipcash.study.feasibility import Feasibility
from mipcash.study.minimize import minimize
from mipcash.study.progress import Bar, Lines, _Best, make_progress, spent_text


def sometimes(config: dict[str, Any]) -> float:
    print("objective speaks")
    if config["layers"] % 2:
        raise ValueError("odd [layers]\nsecond line")
    return tiny.loss(config)


def test_a_log_has_one_line_per_evaluation(space: mc.Space, journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for budget in (5, 8):
        result = minimize(sometimes, space, budget, optimizer=tiny.Sampler(space), storage=journal)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out.splitlines() == ["objective speaks"] * 8
    assert len(lines) == 9
    assert lines[5].startswith("tiny: resumed after 5 of 8 evaluations")
    for told, (line, trial) in enumerate(zip(lines[:5] + lines[6:], result.history, strict=True), 1):
        assert line.startswith(f"[{told}/{5 if told <= 5 else 8}] #{trial.number} ")
        expected = "failed: ValueError: odd [layers] second line" if trial.failed else f"loss {trial.loss:.6g}"
        assert expected in line
    assert f"best {result.value:.6g}" in lines[-1]


def test_a_resumed_run_tells_what_it_has_spent_in_the_unit_of_its_budget(space: mc.Space, journal: Path) -> None:
    def folds(config: dict[str, Any]) -> Any:
        yield from (tiny.loss(config) + k for k in range(3))

    stream = io.StringIO()
    for steps in (6, 9):
        mc.minimize(folds, space, mc.Steps(steps), optimizer="random", storage=journal, progress=Lines(stream))
    assert "tiny: resumed after 6 of 9 steps, best" in stream.getvalue()


def test_an_objective_that_always_fails_is_noted_once(space: mc.Space, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    for progress in (Lines(stream), False):
        minimize(lambda config: mc.Failed("no data"), space, 15, optimizer=tiny.Sampler(space), progress=progress)
    notes = [line for line in stream.getvalue().splitlines() if line.startswith("note:")]
    assert len(notes) == 1
    assert "each of the first 5 evaluations failed" in notes[0]
    assert capsys.readouterr() == ("", "")  # nothing is printed


def test_the_bar_shows_best_failures_and_times(space: mc.Space) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    result = minimize(sometimes, space, 8, optimizer=tiny.Sampler(space), progress=Bar(console))
    shown = stream.getvalue()
    lines = shown.splitlines()
    last = lines[max(k for k, line in enumerate(lines) if "8/8" in line) + 1]
    assert f"best {result.value:.6g} (#{result.best.number})" in last  # type: ignore[union-attr]
    assert f"{result.n_failed} failed" in last
    assert all(part in last for part in ("ask ", "eval ", "left "))
    assert "objective speaks" in shown  # printed above the bar, not into it
    assert "odd [layers] second line" in shown  # square brackets are not read as markup


def test_the_display_depends_on_the_argument_and_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(make_progress(None)) is Lines
    assert type(make_progress(True)) is Bar
    mine = Lines()
    assert make_progress(mine) is mine
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert type(make_progress(None)) is Bar


def test_the_displayed_best_trial_is_feasible(space: mc.Space) -> None:
    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": -config["layers"], "deep": float(config["layers"])}

    stream = io.StringIO()
    result = mc.minimize(objective, space, 12, optimizer="random", limits={"deep": 1.5}, progress=Lines(stream))
    lines = stream.getvalue().splitlines()
    for line, trial in zip(lines, result.history, strict=True):
        assert (f"violates deep {trial.config['layers']} > 1.5" in line) == (trial.config["layers"] > 1.5)
    assert f"best {result.value:.6g} (#{result.best.number})" in lines[-1]  # type: ignore[union-attr]
    first = next(k for k, t in enumerate(result.history) if t.config["layers"] <= 1)
    assert all("best none satisfies all constraints yet" in line for line in lines[:first])
    bar = io.StringIO()
    console = Console(file=bar, force_terminal=True, width=80, color_system=None)
    mc.minimize(
        lambda config: {"loss": 0.0, "deep [/m]": 1.0},
        *(space, 4),
        optimizer="random",
        limits={"deep [/m]": -1.0},
        progress=Bar(console),
    )
    assert "none satisfies all constraints yet" in bar.getvalue()
    assert "violates deep [/m] 1 > -1" in bar.getvalue()


def test_the_displayed_front_is_that_of_the_trials_so_far(space: mc.Space) -> None:
    """Of several objectives, judged again when 2 % more trials are there, with limits and without."""

    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": tiny.loss(config), "deep": float(config["layers"])}

    for limits in ({}, {"loss": 1.0}):
        study = mc.Study(space, "random", direction=["loss", "deep"], limits=limits)
        best = _Best()
        for k in range(60):
            trial = study.ask()
            best.add(study.tell(trial, objective(trial.config)), study.limits)
            wanted = len(study.result.front)
            assert best.of(study.limits).front == wanted or (k > 50 and best.of(study.limits).front <= wanted + 1)


def test_the_displayed_best_of_evaluations_in_parts_is_the_best_of_the_run() -> None:
    space = mc.Space("parts")
    space.integer("x", 0, 9)
    parts = {"loss": lambda config: float((config["x"] - 7) ** 2), "ms": lambda config: float(config["x"])}
    result = mc.minimize(parts, space, mc.Budget(mc.Cost(24)), limits={"ms": 5.0}, progress=False)
    best = _Best()
    for k, trial in enumerate(result.history):
        best.add(trial, result.under)
        assert best.of(result.under).feasible == len(Feasibility.of(result.history[: k + 1], result.under).kept)
        so_far = Feasibility.of(result.history[: k + 1], result.under).best
        assert (best.of(result.under).trial is None) == (so_far is None)
        assert so_far is None or best.of(result.under).trial.loss == so_far.loss  # type: ignore[union-attr]
    shown = best.of(result.under)
    assert shown.trial is not None
    assert shown.trial.loss == result.value
    assert shown.feasible == len(result.feasibility.kept)
    assert best.of(result.under).feasible == shown.feasible, "asked again, the same"


def test_a_spent_budget_has_two_decimals_unless_it_is_whole() -> None:
    assert [spent_text(x) for x in (3.0, 2e7, 1.5555555, 2.9999999)] == ["3", "20000000", "1.56", "3.00"]
