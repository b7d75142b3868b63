"""Pruning by paired racing and successive halving: stopping rules, estimated losses, and step budgets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.study.result import SUSPICIOUS
from mipcash.study.storage.sqlite import read_journal

FITS = 6


def square() -> mc.Space:
    space = mc.Space("square")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.categorical("kind", ["a", "b", "c"])
    return space


def fold(config: dict[str, Any], k: int, noise: float = 0.03) -> float:
    """Return the loss of a fold: an effect of the configuration, an effect of the fold, and noise."""
    value = (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + {"a": 0.0, "b": 0.1, "c": 0.3}[config["kind"]]
    shared = 0.2 * math.cos(3.0 * k)
    rng = np.random.default_rng([k, int(1e9 * config["x"]), int(1e9 * config["y"])])
    return float(value + shared + noise * rng.normal())


def folds(config: dict[str, Any]) -> Iterator[float]:
    for k in range(FITS):
        yield fold(config, k)


def beside(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    for k in range(FITS):
        yield {"loss": fold(config, k), "ms": 10.0 * config["x"] + fold(config, k)}


def curve(config: dict[str, Any]) -> Any:
    """Yield a learning curve that falls towards the returned loss."""
    final = fold(config, 0, 0.0)
    for k in range(9):
        yield final + (1.0 + config["y"]) / (k + 1)
    return final


def run(objective: Any, budget: Any = 30, optimizer: Any = "random", **given: Any) -> mc.Result:
    return mc.minimize(objective, square(), budget, optimizer=optimizer, **{"progress": False, **given})


def told(found: mc.Result) -> list[tuple[Any, ...]]:
    return [(t.number, t.config, t.status, t.loss, t.folds, t.outcome.variance) for t in found.history]


def by_formula(history: tuple[mc.Trial, ...], number: int, c: float = 1.5) -> tuple[int, float | None, float]:
    """Return steps, estimate and variance of a trial, by the rule in docs/model.md."""
    earlier = [t for t in history[:number] if t.complete]
    rows = np.array([t.folds for t in earlier])
    if len(rows) < 5:
        return FITS, None, 0.0
    best = int(np.argmin(rows.mean(axis=1)))
    d = np.delete(rows, best, axis=0) - rows[best]
    s2 = ((d - d.mean(axis=1, keepdims=True)) ** 2).sum() / (len(d) * (FITS - 1))
    losses = np.array([fold(history[number].config, k) for k in range(FITS)])
    for k in range(1, FITS):
        difference = (losses[:k] - rows[best, :k]).mean()
        variance = s2 * (1.0 / k - 1.0 / FITS)
        if difference > c * math.sqrt(variance):
            return k, earlier[best].loss + difference, variance
    return FITS, None, 0.0


def test_racing_prunes_by_the_formula_and_estimates_from_the_incumbent() -> None:
    found = run(folds, 40, pruning=True)
    assert 10 < found.n_pruned < 36
    for trial in found.history:
        fits, estimate, variance = by_formula(found.history, trial.number)
        assert (trial.steps, trial.complete) == (fits, estimate is None)
        assert trial.folds == tuple(fold(trial.config, k) for k in range(fits))
        if estimate is not None:
            assert trial.loss == pytest.approx(estimate, rel=1e-9)
            assert trial.outcome.variance == pytest.approx(variance, rel=1e-9)
    assert found.n_steps == sum(len(t.folds) for t in found.history)
    assert found.n_steps_saved == 40 * FITS - found.n_steps > 40


def test_errors_of_estimates_agree_with_their_variance() -> None:
    found = run(folds, 120, pruning=mc.Racing(c=0.5))
    stopped = [t for t in found.history if not t.complete and t.outcome.variance > 0.0]
    true = np.array([np.mean([fold(t.config, k) for k in range(FITS)]) for t in stopped])
    out = (true - [t.loss for t in stopped]) / np.sqrt([t.outcome.variance for t in stopped])
    assert len(out) > 60
    assert 0.7 < np.mean(out**2) < 1.5


@pytest.mark.parametrize(("racing", "optimizer"), [(True, "hybrid"), ("halving", "random")])
def test_a_resumed_run_prunes_like_an_uninterrupted_run(racing: Any, optimizer: str, tmp_path: Path) -> None:
    whole = run(folds, 11, optimizer, pruning=racing)
    journal = tmp_path / "run.db"
    run(folds, 8, optimizer, pruning=racing, storage=journal)
    assert whole.n_pruned
    assert told(run(folds, 11, optimizer, pruning=racing, storage=journal)) == told(whole)
    rows = read_journal(journal)[1]
    assert [r.outcome.pruned for r in rows] == [not t.complete for t in whole.history]
    assert [r.outcome.variance for r in rows] == [t.outcome.variance for t in whole.history]


def test_racing_works_with_several_workers() -> None:
    found = run(folds, 40, pruning=True, execution=mc.Execution(workers=3))
    assert found.n_pruned > 10
    assert found.best is not None
    assert found.best.complete


@pytest.mark.parametrize(("racing", "seed"), [(True, 0), ("halving", 1), (mc.Racing(c=0.01, least=2), 2)])
def test_a_pruned_trial_is_closed_marked_and_never_the_best(
    racing: Any, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    closed: list[int] = []

    def objective(config: dict[str, Any]) -> Iterator[float]:
        k = 0
        try:
            for k in range(FITS):
                yield fold(config, k)
        finally:
            closed.append(k + 1)

    found = run(objective, 25, seed=seed, pruning=racing, progress=None)
    assert closed == [t.steps for t in found.history]
    assert found.best is not None
    assert found.best.complete
    assert found.best.loss == min(t.loss for t in found.history if t.complete)
    assert np.nanmin(found.convergence().incumbent) == found.best.loss
    assert found.feasibility.best == found.best
    said = capsys.readouterr().err
    assert said.count("pruned at step") == found.n_pruned > 0
    assert f"steps: {found.n_steps}, {found.n_steps_saved} saved by pruning" in str(found)


def test_racing_compares_with_feasible_incumbents_only() -> None:
    found = run(beside, 40, pruning=True, limits={"ms": (5.0, None)})
    assert found.best is not None
    for trial in (t for t in found.history if not t.complete):
        before = [t for t in found.history[: trial.number] if t.complete]
        best = min((t for t in before if t.values["ms"] >= 5.0), key=lambda t: t.loss)
        k = trial.steps
        paired = np.subtract(trial.folds, best.folds[:k]).mean()
        assert trial.loss == pytest.approx(best.loss + paired)
        other = np.subtract(trial.outcome["ms"].folds, best.outcome["ms"].folds[:k]).mean()
        assert trial.values["ms"] == pytest.approx(best.values["ms"] + other)
        assert trial.outcome["ms"].variance > 0.0
    assert found.n_pruned > 5
    assert run(beside, 12, pruning=True, limits={"ms": (99.0, None)}).n_pruned == 0


def test_racing_does_not_prune_learning_curves_and_single_losses() -> None:
    assert run(lambda config: fold(config, 0), 20, pruning=True).n_pruned == 0
    with pytest.warns(UserWarning, match='Learning curves are stopped by pruning="halving"') as warned:
        assert run(curve, 20, pruning=True).n_pruned == 0
    assert len(warned) == 1


def test_the_number_of_steps_may_vary_and_a_failing_step_fails_the_trial() -> None:
    def odd(config: dict[str, Any]) -> Iterator[float]:
        for k in range(1 + int(4.0 * config["y"])):
            if k == 1 and config["kind"] == "c":
                raise ValueError(f"no {config['x']}")
            yield fold(config, k)

    found = run(odd, 40, pruning=True)
    assert found.n_failed > 0
    assert all(t.steps == 1 for t in found.history if t.failed)
    assert found.n_done + found.n_failed == 40
    assert found.best is not None
    assert found.best.complete


@pytest.mark.parametrize("objective", [folds, curve])
def test_successive_halving_keeps_the_best_third_of_each_rung(objective: Callable[..., Any]) -> None:
    found = run(objective, 45, pruning="halving")
    length, averaged = (FITS, True) if objective is folds else (9, False)
    rungs = {1: [], 3: []}  # type: ignore[var-annotated]
    whole = 0
    for trial in found.history:
        expected = length
        for rung, there in rungs.items():
            values = list(objective(trial.config))
            value = float(np.mean(values[:rung])) if averaged else values[rung - 1]
            rank = 1 + sum(v < value for v in there)
            if whole >= 3 and len(there) >= 2 and rank > max(0, (len(there) + 1) // 3):
                expected = rung
                break
        assert trial.steps == expected
        assert trial.complete == (expected == length)
        for rung, there in rungs.items():
            if rung <= trial.steps:
                there.append(float(np.mean(trial.folds[:rung])) if averaged else trial.folds[rung - 1])
        whole += trial.complete
    assert found.n_steps_saved > 0.35 * 45 * length
    assert found.best is not None
    assert found.best.complete


def test_racing_does_not_compare_with_known_evaluations() -> None:
    known = [({"x": 0.3, "y": 0.6, "kind": "a"}, mc.Folds([-9.0] * FITS))]
    found = run(folds, 30, pruning=True, known=known)
    assert found.best is not None
    assert found.best.loss == -9.0
    assert all(t.loss > -1.0 for t in found.history if not t.known)


def test_optimizers_see_steps_folds_and_variance() -> None:
    space = tiny.tiny_space()
    optimizer = tiny.Sampler(space)

    def objective(config: dict[str, Any]) -> Iterator[float]:
        for k in range(FITS):
            yield tiny.loss(config) + 0.3 * math.cos(k * config["rounds"])

    found = mc.minimize(objective, space, 30, optimizer=optimizer, pruning=True, progress=False)
    assert found.n_pruned
    for o, t in zip(optimizer.histories[-1], found.history, strict=False):
        assert (o.steps, o.folds, o.variance, o.outcome.pruned) == (
            t.steps,
            t.folds,
            t.outcome.variance,
            not t.complete,
        )


# -- budget, display and invalid settings ---------------------------------------------------------------------------


def test_a_step_budget_is_not_exceeded_and_racing_allows_more_evaluations() -> None:
    plain = run(folds, mc.Steps(100))
    raced = run(folds, mc.Steps(100), pruning=True)
    assert (plain.n_steps, plain.n_evaluations, plain.stopped) == (96, 16, "budget")
    assert 100 - FITS < raced.n_steps <= 100
    assert raced.n_evaluations > 24
    assert run(lambda config: config["x"], mc.Steps(7)).n_evaluations == 7
    for workers in (2, 3):
        beside = run(folds, mc.Steps(100), pruning=True, execution=workers)
        assert 100 - FITS < beside.n_steps <= 100
        assert beside.n_evaluations > 24


@pytest.mark.parametrize("workers", [1, 3])
def test_a_step_budget_below_one_evaluation_is_refused_after_the_first_evaluation(workers: int, tmp_path: Path) -> None:
    journal, said = tmp_path / "run.db", r"budget is 4 steps, and one evaluation took 6 steps: .* mc\.Steps\(60\)"
    with pytest.raises(mc.errors.MipcashError, match=said):
        run(folds, mc.Steps(4), execution=mc.Execution(workers=workers), storage=journal)
    assert run(folds, mc.Steps(6), storage=journal).n_evaluations == 1  # the finished evaluation is kept


def test_steps_beyond_the_budget_are_warned_of() -> None:
    lengths = iter([2, 2, 9])

    def growing(config: dict[str, Any]) -> Iterator[float]:
        for k in range(next(lengths)):
            yield fold(config, k)

    said = "13 steps were spent of a budget of 6 steps: an evaluation took 9 steps, more than any"
    with pytest.warns(UserWarning, match=said):
        found = run(growing, mc.Steps(6))
    assert (found.n_steps, found.stopped) == (13, "budget")


def test_invalid_pruning_settings_are_refused_before_the_journal_is_created(tmp_path: Path) -> None:
    given = {"objective": folds, "storage": tmp_path / "run.db"}
    for pruning in ("fast", 1.5):
        with pytest.raises(ValueError, match="pruning must be True, False"):
            run(**given, pruning=pruning)
        with pytest.raises(ValueError, match="pruning must be True, False"):
            mc.Study(square(), pruning=pruning, storage=tmp_path / "run.db")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="which are evaluated separately"):
        run({"loss": folds}, mc.Steps(9), storage=tmp_path / "run.db")
    with pytest.raises(TypeError, match="it is called pruning="):
        mc.Study(square(), pruner="halving")  # type: ignore[call-arg]
    assert not list(tmp_path.iterdir())


def test_settings_out_of_range_are_refused() -> None:
    for made, given in (
        *((mc.Racing, {"c": c}) for c in (0.0, math.nan, "much")),
        (mc.Racing, {"least": 1}),
        *((mc.Halving, {name: value}) for name, value in (("factor", 1), ("first", 0), ("factor", 2.5))),
        *((mc.Steps, {"number": number}) for number in (0, 2.5)),
    ):
        with pytest.raises(ValueError, match=r"must be a (number|whole number)|takes a whole number"):
            made(*given.values()) if made is mc.Steps else made(**given)  # type: ignore[operator]


def test_the_command_line_prunes_and_counts_the_saved_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folded.py").write_text(
        "import math, mipcash as mc\n"
        "space = mc.Space('folded')\n"
        "space.real('x', 0.0, 1.0)\n"
        "def objective(config):\n"
        "    for k in range(5):\n"
        "        yield config['x'] + math.cos(k) + 0.01 * math.cos(k * 99.0 * config['x'])\n"
    )
    runner = CliRunner()
    command = ["run", "folded.py", "--budget", "30", "--optimizer", "random", "--storage", "run.db"]
    raced = runner.invoke(app, [*command, "--pruning", "on"])
    assert raced.exit_code == 0, raced.output
    shown = runner.invoke(app, ["show", "run.db"])
    assert shown.exit_code == 0, shown.output
    saved = int(shown.output.split(" saved by pruning")[0].rsplit(" ", 1)[1])
    assert saved > 30
    assert f"steps: {150 - saved}, {saved} saved" in shown.output
    assert "pruned at step" in shown.output
    spent = runner.invoke(app, ["resume", "run.db", "--steps", str(150 - saved + 9), "--model", "folded.py"])
    assert spent.exit_code == 0, spent.output
    assert f"steps: {150 - saved + 5}, " in spent.output
    refused = runner.invoke(app, [*command, "--steps", "9", "--cost", "9"])
    assert "one budget" in refused.output
    refused = runner.invoke(app, [*command, "--pruning", "sometimes"])
    assert refused.exit_code == 2
    assert "on, off or halving" in refused.output


@pytest.mark.parametrize("budget", [SUSPICIOUS - 1, SUSPICIOUS, SUSPICIOUS + 3])
def test_pruning_without_steps_is_warned_of_once_after_the_first_evaluations(budget: int) -> None:
    space = mc.Space("plain")
    space.integer("a", 0, 99)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mc.minimize(lambda config: config["a"], space, budget, optimizer="random", pruning=True, progress=False)
    said = [str(w.message) for w in caught if "pruning= has no effect" in str(w.message)]
    assert len(said) == (budget >= SUSPICIOUS)
