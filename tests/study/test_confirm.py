"""``confirm=``: fresh repeats of the finalists within the budget, and the best trial that is chosen by them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import TellError
from mipcash.study.finalists import Difference, Finalist


def line() -> mc.Space:
    space = mc.Space("line")
    space.integer("x", 0, 40)
    return space


def noise(config: Mapping[str, Any], repeat: int) -> float:
    return random.Random(f"{sorted(config.items())} {repeat}").gauss(0.0, 1.0)


def lucky(config: Mapping[str, Any], repeat: int = 0) -> float:
    """Return 0.1 |x - 20| and noise that differs in each repeat. The lowest loss of the search is luck."""
    return 0.1 * abs(config["x"] - 20) + noise(config, repeat)


def told(config: Mapping[str, Any]) -> float:
    """Return a loss without noise. The function has no parameter ``repeat``."""
    return float(config["x"])


def folds(config: Mapping[str, Any], repeat: int = 0) -> Any:
    for k in range(4):
        yield 0.1 * abs(config["x"] - 20) + noise(config, 10 * repeat + k)


def limited(config: Mapping[str, Any], repeat: int = 0) -> dict[str, float]:
    """Return a loss and a latency. Below x = 5 the latency is feasible in the search and infeasible in repeats."""
    x = config["x"]
    return {"loss": float(x), "ms": 9.0 if x > 30 or (repeat and x < 5) else 1.0}


def minimize(objective: Any, budget: Any = 14, **options: Any) -> mc.Result:
    options = {"optimizer": "random", "progress": False, "confirm": 3, **options}
    return mc.minimize(objective, line(), budget, **options)


def repeats(result: mc.Result) -> list[mc.Trial]:
    return [t for t in result.history if t.repeat]


def record(result: mc.Result) -> list[tuple[Any, ...]]:
    return [(repr(t.config), t.repeat, t.loss) for t in result.history]


# -- the best trial -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [lucky, folds])
def test_the_best_trial_is_the_finalist_with_the_lowest_mean_of_fresh_repeats(objective: Any) -> None:
    result = minimize(objective, 16, confirm=mc.Confirm(finalists=4, repeats=2))
    searched = [t for t in result.history if not t.repeat]
    assert (result.n_evaluations, len(searched)) == (16, 8)
    lowest = sorted(searched, key=lambda t: (t.loss, t.number))[:4]
    assert [f.number for f in result.finalists] == sorted(t.number for t in lowest)
    fresh = {}
    for t in lowest:
        again = [r for r in repeats(result) if r.config == t.config]
        assert sorted(r.repeat for r in again) == [1, 2]
        fresh[t.number] = sum(r.loss for r in again) / 2
    assert result.best.number == min(fresh, key=fresh.__getitem__)
    assert result.fresh == pytest.approx(min(fresh.values()))
    assert result.best.loss >= lowest[0].loss == result.feasibility.best.loss
    assert result.fresh <= result.value <= sum(fresh.values()) / 4  # the lowest of several means is biased downwards
    assert f"{result.best.number:>5}" in str(result)
    assert "recommended" in str(result)


def test_identical_losses_of_an_objective_without_a_parameter_repeat_are_warned_of(
    recwarn: pytest.WarningsRecorder,
) -> None:
    minimize(lucky)
    minimize(limited, limits={"ms": 5.0})
    assert not [w for w in recwarn if "confirm=" in str(w.message)]
    with pytest.warns(UserWarning, match=r"exactly the losses of the search.*give it a parameter repeat"):
        result = minimize(told)
    assert {r.repeat for r in repeats(result)} == {1}
    assert all(f.fresh == (f.searched,) for f in result.finalists)
    assert result.value == result.fresh == min(t.loss for t in result.history)


def test_the_search_is_the_same_with_and_without_confirmation() -> None:
    without = minimize(lucky, 8, optimizer="hybrid", confirm=None)
    assert record(minimize(lucky, 11, optimizer="hybrid"))[:8] == record(without)
    assert without.finalists == ()
    assert math.isnan(without.fresh)


def test_a_finalist_must_be_feasible_on_fresh_repeats_too() -> None:
    hybrid = {"optimizer": mc.Method("hybrid", mc.settings.HybridSettings(n_initial=50))}
    result = minimize(limited, 49, **hybrid, limits={"ms": 5.0}, confirm=8)
    out = [f for f in result.finalists if f.problem]
    assert {result.history[f.number].config["x"] for f in out} == {0, 1, 2, 3, 4}
    assert "repeat 1 violates ms 9 > 5" in str(result)
    assert result.config == {"x": 5}
    every = minimize(limited, 45, **hybrid, limits={"ms": 5.0}, confirm=4)
    assert all(f.problem for f in every.finalists)
    assert every.config == {"x": 4}  # the best configuration that was not evaluated again
    dies = minimize(
        lambda config, repeat=0: mc.Failed("died") if repeat and config["x"] < 3 else float(config["x"]), 30
    )
    assert dies.config["x"] >= 3


def test_a_repeat_is_never_the_best_trial_or_an_incumbent() -> None:
    result = minimize(lambda config, repeat=0: float(config["x"]) - 100 * repeat, 12)
    assert not result.best.repeat
    assert result.best.loss >= 0
    curve = result.convergence()
    assert math.isnan(curve.loss[-1])
    assert curve.incumbent[-1] == min(t.loss for t in result.history if not t.repeat)


def test_differences_of_finalists_are_paired() -> None:
    """Assert that the effects of folds cancel, and that the standard error is that of Nadeau and Bengio."""
    hard = (0.0, 5.0, 1.0, 3.0)
    one = Finalist(0, 1.0, (2.25,), (hard,))
    other = Finalist(1, 1.0, (2.5,), (tuple(h + d for h, d in zip(hard, (0.1, 0.4, 0.2, 0.3), strict=True)),))
    worse = Difference.of(other, one)
    assert worse.mean == pytest.approx(0.25)
    sample = sum((d - 0.25) ** 2 for d in (0.1, 0.4, 0.2, 0.3)) / 3
    assert worse.error == pytest.approx(math.sqrt(sample * (1 / 4 + 1 / 3)))
    plain = Difference.of(Finalist(0, 0.0, (1.0, 2.0), ((), ())), Finalist(1, 0.0, (0.0, 3.0), ((), ())))
    assert (plain.mean, plain.error) == (0.0, pytest.approx(math.sqrt(2.0 / 2)))


# -- executors and resumed runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("execution", [mc.Execution(2, lambda: ProcessPoolExecutor(2)), 3])
def test_workers_processes_and_one_thread_agree(execution: Any) -> None:
    alone, found = minimize(folds, 12, seed=3), minimize(folds, 12, seed=3, execution=execution)
    assert sorted(record(found)) == sorted(record(alone))
    assert found.config == alone.config


@pytest.mark.parametrize("at", [3, 10])
def test_an_interrupted_run_resumes_with_the_same_repeats(at: int, tmp_path: Path) -> None:
    whole = minimize(lucky, 12, seed=5)
    path, count = tmp_path / "run.db", [0]

    def breaks(config: Mapping[str, Any], repeat: int = 0) -> float:
        count[0] += 1
        if count[0] == at:
            raise KeyboardInterrupt
        return lucky(config, repeat)

    with pytest.raises(KeyboardInterrupt):
        minimize(breaks, 12, seed=5, storage=path)
    resumed = minimize(lucky, 12, seed=5, storage=path)
    assert record(resumed) == record(whole)
    assert resumed.config == whole.config
    with mc.Study(line(), "random", seed=5, storage=path) as study:
        assert (study.result.config, study.result.finalists) == (whole.config, whole.finalists)
    more = minimize(
        lucky, 20, seed=5, storage=path
    )  # with more budget, the run continues the search and confirms again
    assert record(more)[:12] == record(whole)
    searched = sorted((t for t in more.history if not t.repeat), key=lambda t: t.loss)
    assert len(searched) >= 14
    assert more.n_evaluations <= 20
    assert {t.number for t in searched[:3]} <= {f.number for f in more.finalists if f.fresh}


def test_repeats_work_with_ask_and_tell() -> None:
    study = mc.Study(line(), "random")
    first = study.tell(study.ask(), 1.0)
    waiting = study.repeat(first, 2)
    assert study.repeat(first, 2).number == waiting.number
    handed = study.ask()
    assert (handed.number, handed.repeat, handed.config) == (waiting.number, 2, first.config)
    study.tell(handed, 3.0)
    assert (study.result.best.loss, study.result.value) == (1.0, 3.0)
    assert study.result.finalists == (Finalist(0, 1.0, (3.0,), ((),)),)
    second = study.tell(study.ask(), 2.0)
    for repeat, loss, best in ((2, 4.0, first), (1, -9.0, second)):  # a mean of half as many repeats counts too
        study.repeat(second, repeat)
        study.tell(study.ask(), loss)
        assert study.result.best.number == best.number
    with pytest.raises(ValueError, match="the number of a repeat must be a whole number, at least 1"):
        study.repeat(first, 0)
    with pytest.raises(TellError, match="another study"):
        mc.Study(line(), "random").repeat(first)
    with pytest.raises(TellError, match=r"a trial that ask\(\) returned is needed"):
        study.repeat(3)  # type: ignore[arg-type]


# -- settings that are refused --------------------------------------------------------------------------------------


def test_a_step_budget_too_small_for_repeats_is_warned_of_with_the_remedy() -> None:
    said = "12 steps where an evaluation takes 4, and the budget is 19 steps in all: nothing is confirmed"
    with pytest.warns(UserWarning, match=rf"{said}.*Give mc.Steps\(20\)"):
        result = minimize(folds, mc.Steps(19))
    assert (result.n_steps, result.finalists) == (16, ())
    result = minimize(folds, mc.Steps(20))
    assert (len(result.finalists), result.n_steps) == (2, 16)


RAISE = "evaluates 3 finalists once more, and the budget.* raise it, or confirm fewer"


@pytest.mark.parametrize(
    ("objective", "budget", "confirm", "said"),
    [
        (told, 14, 1, "at least 2"),
        (told, 14, "3", "at least 2"),
        (told, 14, 14, "14 finalists once more"),
        (lucky, mc.Steps(4), 3, RAISE),
        ({"loss": told, "ms": told}, mc.Budget(mc.Cost(21.0), costs={"loss": 3.0, "ms": 2.0}), 3, RAISE),
    ],
)
def test_invalid_confirm_settings_are_refused(
    objective: Any, budget: Any, confirm: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        minimize(objective, budget, confirm=confirm, storage=tmp_path / "run.db")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        mc.Confirm(repeats=0)


def test_evaluations_that_are_left_and_repeats_that_are_not_paid_for_are_warned_of(journal: Path) -> None:
    minimize(told, 10, confirm=None, storage=journal)
    with pytest.warns(UserWarning, match="does not pay for 3 repeats of the finalists; raise it"):
        minimize(told, 10, storage=journal)
    with pytest.warns(UserWarning, match="exactly the losses"):
        assert minimize(told, 13, storage=journal).n_evaluations == 13
    with pytest.warns(
        UserWarning, match="of the budget 2 evaluations were not needed: the search leaves 3 for repeats"
    ):
        assert minimize(told, 15, storage=journal).n_evaluations == 13
    with pytest.warns(UserWarning, match="the search found none to confirm: nothing is confirmed; raise the budget"):
        minimize(limited, limits={"ms": 0.5})


def test_a_repeat_that_fails_for_certain_is_a_failure_and_no_defect() -> None:
    def broken(config: Mapping[str, Any], repeat: int = 0) -> float:
        return undefined_name if repeat else float(config["x"])  # type: ignore[name-defined]  # noqa: F821

    with pytest.warns(UserWarning, match="no finalist passed its repeats"):
        assert minimize(broken).n_failed == 3


def test_a_run_again_ends_for_the_same_reason(journal: Path) -> None:
    space = mc.Space("three")
    space.integer("a", 0, 2)
    for _ in range(2):
        result = mc.minimize(
            lambda config, repeat=0: config["a"] + 0.1 * repeat,
            space,
            8,
            optimizer="random",
            storage=journal,
            progress=False,
        )
        assert result.stopped == "space exhausted"


def test_finalists_that_all_fail_are_warned_of() -> None:
    def failing(config: Mapping[str, Any], repeat: int = 0) -> float:
        if repeat == 2:
            raise ValueError("no data")
        return lucky(config, repeat)

    with pytest.warns(UserWarning, match=r"no finalist passed its repeats \(repeat 2 failed: .*no data"):
        mc.minimize(failing, line(), 20, optimizer="random", progress=False, confirm=mc.Confirm(2, repeats=3))
