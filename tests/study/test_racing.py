"""Racing and halving: when an evaluation is stopped, what is told of it, and that it is never the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.optimizers.optimizer import Optimizer
from mipcash.study.pruning import judge_of
from mipcash.study.storage.sqlite import read_journal

FITS = 6


def square() -> mc.Space:
    space = mc.Space("square")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.categorical("kind", ["a", "b", "c"])
    return space


def fold(config: dict[str, Any], k: int, noise: float = 0.03) -> float:
    """The loss of a fold: of the configuration, of the fold, and a little of both."""
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
    """Epochs: the loss falls toward what is returned in the end."""
    final = fold(config, 0, 0.0)
    for k in range(9):
        yield final + (1.0 + config["y"]) / (k + 1)
    return final


def run(objective: Any, budget: Any = 30, optimizer: Any = "random", **given: Any) -> mc.Result:
    return mc.minimize(objective, square(), budget, optimizer=optimizer, progress=False, **given)


def told(trials: list[mc.Trial]) -> list[tuple[Any, ...]]:
    return [(t.number, t.config, t.status, t.loss, t.folds, t.outcome.variance) for t in trials]


def by_formula(history: tuple[mc.Trial, ...], number: int, c: float = 1.5) -> tuple[int, float | None, float]:
    """Fits, estimate and variance of a trial, by the rule as it is written in docs/model.md."""
    earlier = [t for t in history[:number] if t.whole]
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


def test_it_stops_by_the_formula_and_tells_the_incumbent_and_the_difference() -> None:
    found = run(folds, 40, pruning=True)
    assert 10 < found.n_pruned < 36
    for trial in found.history:
        fits, estimate, variance = by_formula(found.history, trial.number)
        assert (trial.steps, trial.whole) == (fits, estimate is None)
        assert trial.folds == tuple(fold(trial.config, k) for k in range(fits))
        if estimate is not None:
            assert trial.loss == pytest.approx(estimate, rel=1e-9)
            assert trial.outcome.variance == pytest.approx(variance, rel=1e-9)
    assert found.n_steps == sum(len(t.folds) for t in found.history)
    assert found.n_steps_saved == 40 * FITS - found.n_steps > 40


def test_estimates_are_as_far_out_as_their_variance_says() -> None:
    found = run(folds, 200, pruning=mc.Racing(c=0.5))
    stopped = [t for t in found.history if not t.whole and t.outcome.variance > 0.0]
    true = np.array([np.mean([fold(t.config, k) for k in range(FITS)]) for t in stopped])
    out = (true - [t.loss for t in stopped]) / np.sqrt([t.outcome.variance for t in stopped])
    assert len(out) > 100
    assert 0.7 < np.mean(out**2) < 1.5


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.3), st.booleans())
def test_an_infinite_c_is_no_racing(seed: int, noise: float, limited: bool) -> None:
    def objective(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        for k in range(3):
            yield {"loss": fold(config, k, noise), "ms": config["x"] + 0.1 * k}

    limits = {"ms": 0.7} if limited else None
    plain = run(objective, 12, seed=seed, limits=limits)
    raced = run(objective, 12, seed=seed, limits=limits, pruning=mc.Racing(c=math.inf))
    assert told(list(raced.history)) == told(list(plain.history))
    assert raced.n_pruned == 0


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([True, "halving", mc.Racing(c=0.01, least=2)]))
def test_what_was_stopped_is_never_the_answer(seed: int, racing: Any) -> None:
    found = run(folds, 25, seed=seed, pruning=racing)
    assert found.best is not None
    assert found.best.whole
    assert found.best.loss == min(t.loss for t in found.history if t.whole)
    kept = found.convergence().incumbent
    assert np.nanmin(kept) == found.best.loss
    assert found.feasibility.best == found.best


@pytest.mark.parametrize("racing", [True, "halving"])
def test_the_same_seed_gives_the_same_run_and_a_resumed_one_goes_on(racing: Any, tmp_path: Path) -> None:
    whole = run(folds, 12, "hybrid", pruning=racing)
    again = run(folds, 12, "hybrid", pruning=racing)
    journal = tmp_path / "run.db"
    run(folds, 8, "hybrid", pruning=racing, storage=journal)
    resumed = run(folds, 12, "hybrid", pruning=racing, storage=journal)
    assert whole.n_pruned
    assert told(list(again.history)) == told(list(whole.history)) == told(list(resumed.history))
    rows = read_journal(journal)[1]
    assert [r.outcome.stopped for r in rows] == [not t.whole for t in whole.history]
    assert [r.outcome.variance for r in rows] == [t.outcome.variance for t in whole.history]


@pytest.mark.parametrize("kind", ["timeout", "executor", "thread"])
def test_processes_and_threads_stop_the_same(kind: str) -> None:
    where: dict[str, Any] = {
        "timeout": {"execution": mc.Execution(evaluation_timeout=60.0)},
        "executor": {"execution": mc.Execution(executor=lambda: ProcessPoolExecutor(1))},
        "thread": {"execution": mc.Execution(workers=1)},
    }[kind]
    assert told(list(run(folds, 15, pruning=True, **where).history)) == told(list(run(folds, 15, pruning=True).history))


def test_workers_race_by_what_was_told_when_they_began() -> None:
    found = run(folds, 40, pruning=True, execution=mc.Execution(workers=3))
    assert found.n_pruned > 10
    assert found.best is not None
    assert found.best.whole


@pytest.mark.parametrize("racing", [True, "halving"])
def test_a_generator_is_closed_when_it_is_stopped(racing: Any) -> None:
    closed: list[int] = []

    def objective(config: dict[str, Any]) -> Iterator[float]:
        k = 0
        try:
            for k in range(FITS):
                yield fold(config, k)
        finally:
            closed.append(k + 1)

    found = run(objective, 30, pruning=racing)
    assert closed == [t.steps for t in found.history]


def test_an_incumbent_that_breaks_limits_is_not_raced_against() -> None:
    found = run(beside, 40, pruning=True, limits={"ms": (5.0, None)})
    assert found.best is not None
    for trial in (t for t in found.history if not t.whole):
        before = [t for t in found.history[: trial.number] if t.whole]
        best = min((t for t in before if t.values["ms"] >= 5.0), key=lambda t: t.loss)
        k = trial.steps
        paired = np.subtract(trial.folds, best.folds[:k]).mean()
        assert trial.loss == pytest.approx(best.loss + paired)
        other = np.subtract(trial.outcome["ms"].folds, best.outcome["ms"].folds[:k]).mean()
        assert trial.values["ms"] == pytest.approx(best.values["ms"] + other)
        assert trial.outcome["ms"].variance > 0.0
    assert found.n_pruned > 5
    assert run(beside, 12, pruning=True, limits={"ms": (99.0, None)}).n_pruned == 0


def test_a_limited_output_of_the_whole_is_not_known_of_what_was_stopped() -> None:
    def objective(config: dict[str, Any]) -> Any:
        losses = [fold(config, k) for k in range(FITS)]
        yield from losses
        return {"loss": float(np.mean(losses)), "size": 1.0}

    found = run(objective, 14, "hybrid", pruning=True, limits={"size": 2.0})
    stopped = [t for t in found.history if not t.whole]
    assert stopped
    assert {t.outcome["size"].status for t in stopped} == {"missing"}
    assert found.n_failed == 0


def test_losses_of_functions_of_their_own_are_raced() -> None:
    found = run({"loss": folds, "ms": lambda config: config["x"]}, 40, pruning=True)
    stopped = [t for t in found.history if not t.whole]
    assert stopped
    assert all("ms" in t.values for t in stopped)


def test_racing_leaves_curves_and_what_returns_alone() -> None:
    assert run(lambda config: fold(config, 0), 20, pruning=True).n_pruned == 0
    with pytest.warns(UserWarning, match='Learning curves are stopped by pruning="halving"') as warned:
        assert run(curve, 20, pruning=True).n_pruned == 0
    assert len(warned) == 1


def test_one_fit_and_fits_of_other_numbers_are_no_error() -> None:
    def odd(config: dict[str, Any]) -> Iterator[float]:
        for k in range(1 + int(4.0 * config["y"])):
            yield fold(config, k)

    found = run(odd, 40, pruning=True)
    assert found.n_done == 40
    assert found.best is not None
    assert found.best.whole


@pytest.mark.parametrize("objective", [folds, curve])
def test_halving_keeps_the_best_third_of_each_rung(objective: Callable[..., Any]) -> None:
    found = run(objective, 60, pruning="halving")
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
        assert trial.whole == (expected == length)
        for rung, there in rungs.items():
            if rung <= trial.steps:
                there.append(float(np.mean(trial.folds[:rung])) if averaged else trial.folds[rung - 1])
        whole += trial.whole
    assert found.n_steps_saved > 0.4 * 60 * length
    assert found.best is not None
    assert found.best.whole


def test_known_evaluations_are_not_raced_against() -> None:
    known = [({"x": 0.3, "y": 0.6, "kind": "a"}, mc.Folds([-9.0] * FITS))]
    found = run(folds, 30, pruning=True, known=known)
    assert found.best is not None
    assert found.best.loss == -9.0
    assert all(t.loss > -1.0 for t in found.history if not t.known)


class Recording(Optimizer):
    """Keeps what it was asked with."""

    name = "recording"

    def __init__(self, space: mc.Space) -> None:
        from mipcash.optimizers.registry import make_optimizer

        self.inner, self.histories = make_optimizer("random", space), []  # type: ignore[var-annotated]

    def propose(self, request: Any) -> Any:
        self.histories.append(request.history)
        return self.inner.propose(request)


def test_optimizers_see_fits_folds_and_the_variance() -> None:
    space = square()
    optimizer = Recording(space)
    found = mc.minimize(folds, space, 30, optimizer=optimizer, pruning=True, progress=False)
    for o, t in zip(optimizer.histories[-1], found.history, strict=False):
        assert (o.steps, o.folds, o.variance, o.outcome.stopped) == (
            t.steps,
            t.folds,
            t.outcome.variance,
            not t.whole,
        )


# -- the budget, what is shown, bad input ---------------------------------------------------------------------------


def test_a_budget_of_fits_is_kept_and_racing_makes_more_evaluations_of_it() -> None:
    plain = run(folds, mc.Steps(100))
    raced = run(folds, mc.Steps(100), pruning=True)
    assert (plain.n_steps, plain.n_evaluations, plain.stopped) == (96, 16, "budget")
    assert 100 - FITS < raced.n_steps <= 100
    assert raced.n_evaluations > 24
    assert run(lambda config: config["x"], mc.Steps(7)).n_evaluations == 7
    assert run(folds, mc.Steps(100), pruning=True, execution=mc.Execution(workers=3)).n_steps <= 100


@pytest.mark.parametrize("workers", [1, 3])
def test_a_budget_of_fewer_fits_than_one_evaluation_takes_is_refused_when_that_shows(
    workers: int, tmp_path: Path
) -> None:
    journal = tmp_path / "run.db"
    with pytest.raises(
        mc.errors.MipcashError, match=r"budget is 4 steps, and one evaluation took 6 steps: .* mc\.Steps\(60\)"
    ):
        run(folds, mc.Steps(4), execution=mc.Execution(workers=workers), storage=journal)
    assert run(folds, mc.Steps(6), storage=journal).n_evaluations == 1  # what was evaluated is kept


def test_fits_beyond_the_budget_are_told() -> None:
    lengths = iter([2, 2, 9])

    def growing(config: dict[str, Any]) -> Iterator[float]:
        for k in range(next(lengths)):
            yield fold(config, k)

    with pytest.warns(
        UserWarning, match="13 steps were spent of a budget of 6 steps: an evaluation took 9 steps, more than any"
    ):
        found = run(growing, mc.Steps(6))
    assert (found.n_steps, found.stopped) == (13, "budget")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pruning": "fast"}, "pruning must be True, False"),
        ({"pruning": 1.5}, "pruning must be True, False"),
        ({"budget": mc.Steps(9), "objective": {"loss": folds}}, "which are evaluated apart"),
    ],
)
def test_what_is_no_racing_is_refused_before_anything_is_made(arguments: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        run(**{"objective": folds, "storage": tmp_path / "run.db", **arguments})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "make",
    [
        lambda: mc.Racing(c=0.0),
        lambda: mc.Racing(c=math.nan),
        lambda: mc.Racing(c="much"),  # type: ignore[arg-type]
        lambda: mc.Racing(least=1),
        lambda: mc.Halving(factor=1),
        lambda: mc.Halving(first=0),
        lambda: mc.Halving(factor=2.5),  # type: ignore[arg-type]
        lambda: mc.Steps(0),
        lambda: mc.Steps(2.5),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"must be a (number|whole number)|takes a whole number"):
        make()


def test_a_failure_in_the_middle_of_a_race_is_one() -> None:
    def objective(config: dict[str, Any]) -> Iterator[float]:
        for k in range(FITS):
            if k == 1 and config["kind"] == "c":
                raise ValueError(f"no {config['x']}")
            yield fold(config, k)

    found = run(objective, 40, pruning=True)
    assert found.n_failed > 0
    assert found.n_pruned > 5
    assert all(t.steps == 1 for t in found.history if t.failed)


def test_the_command_line_races_and_counts_what_it_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    saved = int(shown.output.split(" saved by pruning ")[0].rsplit(" ", 1)[1])
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


def test_the_lines_of_a_run_mark_what_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    found = mc.minimize(folds, square(), 20, optimizer="random", pruning=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if "pruned at step" in line]
    assert len(lines) == found.n_pruned > 0
    assert f"steps: {found.n_steps}, {found.n_steps_saved} saved by pruning" in str(found)


def test_nothing_is_judged_without_a_race() -> None:
    assert judge_of(None, (), ()) is None
    assert judge_of(mc.Racing(), (), ()) is None


@pytest.mark.parametrize("racing", [mc.Racing(), mc.Halving()])
def test_a_part_of_the_trials_is_judged_by_itself(racing: Any) -> None:
    trials = run(folds, 20).history
    part = trials[7:]
    moved = [mc.Trial(k, t.config, t.status, t.outcome) for k, t in enumerate(part)]
    assert judge_of(racing, part, ()) == judge_of(racing, moved, ()) != judge_of(racing, trials, ())
