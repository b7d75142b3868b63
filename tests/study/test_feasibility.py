"""Results under outcome constraints: the best and the nearest trial, trade-offs, and probabilities of feasibility."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import Outcome, Output
from mipcash.study.result import Result
from mipcash.study.trial import Trial

SLOW = Limit("ms", high=5.0)
FINE = Limit("share", low=0.5)


def trial(number: int, loss: float | None = None, **values: float | Output) -> Trial:
    """Return a trial with the given loss and outputs."""
    told = {n: v if isinstance(v, Output) else Output.of(v) for n, v in values.items()}
    outputs = told if loss is None else {"loss": Output.of(loss), **told}
    return Trial(number, {"x": number / 10}, "done", Outcome(outputs), evaluate=() if loss is not None else tuple(told))


def of(*trials: Trial, limits: tuple[Limit, ...] = (SLOW, FINE)) -> Result:
    return Result(trials, under=limits)


CASES = of(
    trial(0, 1.0, ms=9.0, share=0.9),
    trial(1, 3.0, ms=4.0, share=0.6),
    trial(2, 2.0, ms=4.5, share=0.7),
    trial(3, 0.5, ms=2.0, share=0.1),
    trial(4, 0.1, ms=Output.of(math.nan), share=0.9),
    trial(5, 4.0, ms=1.0, share=0.9),
    trial(6, 0.2, ms=1.0),
)


def test_the_best_trial_is_feasible() -> None:
    assert CASES.best is CASES.history[2]
    assert CASES.nearest is not None
    assert (CASES.nearest.trial.number, CASES.nearest.violations, CASES.nearest.violation) == (2, (), 0.0)
    assert CASES.n_feasible == 3
    assert of(*CASES.history, limits=()).value == 0.1
    assert pickle.loads(pickle.dumps(CASES)).value == 2.0
    curve = CASES.convergence()
    np.testing.assert_equal(curve.incumbent, [math.nan, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    assert curve.loss[3] == 0.5
    assert curve.feasible.tolist() == [False, True, True, False, False, True, False]


def test_violations_are_reported() -> None:
    failed, lacks = "ms failed: nan, which is no finite number", "share is not known"
    said = [", ".join(map(str, CASES.violations(t))) for t in CASES.history]
    assert said == ["ms 9 > 5", "", "", "share 0.1 < 0.5", failed, "", lacks]
    assert [row["feasible"] for row in CASES.to_rows()] == [False, True, True, False, False, True, None]
    assert [row["violation.ms"] for row in CASES.to_rows()] == [4.0, 0.0, 0.0, 0.0, None, 0.0, 0.0]
    assert [row["violation.share"] for row in CASES.to_rows()] == [0.0, 0.0, 0.0, 0.4, 0.0, 0.0, None]
    assert "feasible" not in of(*CASES.history, limits=()).to_rows()[0]
    assert str(of(trial(0, 1.0, ms=5.0 + 1e-12)).violations(0)[0]) == "ms 5.000000000001 > 5"
    with pytest.raises(ValueError, match="there is no trial 1; the last is 0"):
        of(trial(0, 1.0)).violations(1)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_nearest_trial_does_not_depend_on_units(unit: float) -> None:
    """Assert that violations are compared with their usual size.

    A violates a constraint by a tenth of the usual violation. B violates another constraint by the usual violation.
    """
    limits = (Limit("ms", high=0.0), Limit("share", high=0.0))
    far = [trial(k, 1.0, ms=unit * (3.0 + k), share=2.0 + k) for k in range(5)]
    a, b = trial(5, 2.0, ms=unit * 0.3, share=-1.0), trial(6, 0.0, ms=-unit, share=4.0)
    result = of(*far, a, b, limits=limits)
    assert result.config is None
    assert math.isnan(result.value)
    assert result.nearest is not None
    assert result.nearest.trial is a
    assert [violation.limit.output for violation in result.nearest.violations] == ["ms"]
    assert "nothing satisfies all constraints yet; trial 5 comes nearest: ms" in str(result)
    assert np.isnan(result.convergence().incumbent).all()


def test_a_trial_with_all_constrained_outputs_is_nearer_than_one_without() -> None:
    lacking, whole = trial(0, 0.0, share=0.6), trial(1, 1.0, ms=400.0, share=0.1)
    assert of(lacking).nearest.trial is lacking  # type: ignore[union-attr]
    assert of(lacking, whole).nearest.trial is whole  # type: ignore[union-attr]
    assert of().nearest is None
    assert of(Trial(0, {}, "failed", Outcome.failure("oom", {"ms": 1.0, "share": 1.0}))).nearest is None


def test_outputs_of_decoupled_evaluations_count_together() -> None:
    """Assert that a trial becomes the best when its constrained output is reported after its loss."""
    config: dict[str, Any] = {"x": 0.0}
    loss, late = trial(0, 1.0), trial(2, ms=1.0)
    apart = [Trial(t.number, config, "done", t.outcome, evaluate=tuple(t.outcome.outputs)) for t in (loss, late)]
    result = of(apart[0], trial(1, 2.0, ms=1.0), apart[1], limits=(SLOW,))
    assert result.best is apart[0]
    np.testing.assert_equal(result.convergence().incumbent, [math.nan, 2.0, 1.0])
    assert result.violations(0) == result.violations(2) == ()


# -- trade-offs of limits -------------------------------------------------------------------------------------------


def test_the_table_of_limits_shows_their_trade_offs() -> None:
    ms, share = CASES.limits.trade_offs
    steps = [(s.bound, s.loss, s.trial, s.feasible) for s in ms.steps]
    assert steps == [(1.0, 4.0, 5, True), (4.0, 3.0, 1, True), (4.5, 2.0, 2, True), (9.0, 1.0, 0, False)]
    assert (ms.binds, ms.violated, ms.known, ms.failed) == (True, 1, 6, 1)
    assert [(s.bound, s.trial, s.feasible) for s in share.steps] == [(0.9, 5, True), (0.7, 2, True), (0.1, 3, False)]
    assert share.share == pytest.approx(1 / 6)
    text = str(CASES.limits)
    assert "ms <= 5: violated by 1 of 6 evaluations, failed in 1; binds: a lower loss was seen beyond it" in text
    assert [line.split() for line in text.splitlines()][5] == ["4.5", "2", "2", "best", "within", "the", "limit"]
    assert "share &gt;= 0.5" in CASES.limits._repr_html_()
    assert str(of(limits=()).limits) == "no limits were given"
    assert "its output is not known yet" in str(of(limits=(SLOW,)).limits)
    (ms,) = of(trial(0, 1.0, ms=1.0), trial(1, 2.0, ms=9.0), limits=(SLOW,)).limits.trade_offs
    assert not ms.binds
    assert "does not bind" in ms.text()
    (ms,) = of(trial(0, 1.0, ms=6.0), limits=(SLOW,)).limits.trade_offs
    assert "nothing satisfies it together with the other limits yet" in ms.text()
    frame = pytest.importorskip("pandas").DataFrame(CASES.limits)
    assert len(frame) == len(CASES.limits) == 7
    assert frame["loss"].min() == 0.5
    assert CASES.limits[0]["limit"] == "ms <= 5"


def test_each_step_is_the_best_loss_at_its_bound() -> None:
    """Compare each step with its definition: the best trial after one end of the limit is moved to the bound."""
    rng = np.random.default_rng(0)
    trials = [trial(k, float(a), ms=float(b), share=float(c)) for k, (a, b, c) in enumerate(rng.normal(size=(60, 3)))]
    limits = (Limit("ms", -0.5, 0.5), Limit("share", high=0.3))
    steps = [(t.limit, t.end, s) for t in of(*trials, limits=limits).limits.trade_offs for s in t.steps]
    assert len(steps) > 8
    for limit, end, step in steps:
        ends = {"low": limit.low, "high": limit.high, end: step.bound}
        moved = tuple(Limit(limit.output, **ends) if l is limit else l for l in limits)
        assert of(*trials, limits=moved).best is trials[step.trial]


# -- probability of feasibility -------------------------------------------------------------------------------------


def noisy(seed: int, sd: float, storage: Path | None = None) -> Result:
    """Run 25 evaluations of loss -x and heat x + noise under heat <= 0.5, by random search."""
    rng = np.random.default_rng(seed)

    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": -config["x"], "heat": config["x"] + sd * float(rng.normal())}

    limits = {"heat": 0.5}
    return mc.minimize(
        objective, tiny.line(), 25, optimizer="random", seed=seed, limits=limits, storage=storage, progress=False
    )


def test_the_safe_trial_is_the_best_without_noise_and_more_cautious_with_noise() -> None:
    """Assert that trials that are feasible by luck are not safe, more strictly at a higher probability."""
    result = noisy(1, 0.0)
    assert result.best is not None
    assert result.safe(0.95) is result.best
    assert result.probability() > 0.95
    worst = max(result.history, key=lambda t: t.values["heat"])
    assert result.probability(worst) < 0.01
    found = [noisy(seed, 0.1) for seed in range(3)]
    safe = [r.safe(0.95) for r in found]
    assert all(t is not None and t.config["x"] <= 0.5 for t in safe)
    assert any(r.best.config["x"] > 0.5 for r in found if r.best is not None)
    for r in found:
        at = [r.safe(p) for p in (0.5, 0.9, 0.99)]
        losses = [math.inf if t is None or t.loss is None else t.loss for t in at]
        assert losses == sorted(losses)
        assert all(not r.violations(t) for t in at if t is not None)


def test_repeats_do_not_change_the_safe_trial() -> None:
    def objective(config: dict[str, Any], repeat: int = 0) -> dict[str, float]:
        return {"loss": -config["x"] + 1e-9 * repeat, "heat": config["x"]}

    given = {"optimizer": "random", "limits": {"heat": 0.5}, "progress": False}
    result = mc.minimize(objective, tiny.line(), 12, confirm=2, **given)
    assert any(t.repeat for t in result.history)
    assert result.safe(0.5) is result.best


def test_failures_lower_the_probability_and_without_data_no_trial_is_safe() -> None:
    study = mc.Study(tiny.line(), "random", limits={"heat": 0.5})
    assert study.result.safe() is None
    assert math.isnan(study.result.probability())
    study.tell(study.ask(), 1.0)
    assert study.result.safe() is None

    def objective(config: dict[str, Any]) -> float:
        if config["x"] > 0.5:
            raise mc.Failed("too hot")
        return -float(config["x"])

    result = mc.minimize(objective, tiny.line(), 20, optimizer="random", progress=False)
    failed = [t for t in result.history if t.failed]
    assert max(result.probability(t) for t in failed) < 0.1
    assert result.safe(0.5) is not None


def test_probabilities_survive_resuming_and_pickling_and_need_the_space(tmp_path: Path) -> None:
    result = noisy(1, 0.1, tmp_path / "run.db")
    expected = [result.probability(t) for t in result.history]
    with mc.Study(tiny.line(), "random", seed=1, limits={"heat": 0.5}, storage=tmp_path / "run.db") as study:
        assert [study.result.probability(t) for t in study.trials] == expected
    again = pickle.loads(pickle.dumps(study.result))
    assert [again.probability(t) for t in again.history] == expected
    read = Result(result.history, under=result.under)
    with pytest.raises(MipcashError, match=r"needs the space.*mc\.Study\(space, storage="):
        read.safe()
    with pytest.raises(ValueError, match="between 0 and 1"):
        result.safe(95)


def test_an_output_that_is_never_returned_is_a_problem_from_the_second_evaluation_on() -> None:
    space = mc.Space("one")
    space.integer("x", 0, 9)
    study = mc.Study(space, "random", limits={"ms": 1.0})
    said = []
    for k in range(4):
        study.tell(study.ask(), {"loss": float(k)})
        said.append(study.result.problem().partition(",")[0])
    assert said == ["", *(f"none of {k} evaluations gave 'ms'" for k in (2, 3, 4))]
