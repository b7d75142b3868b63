"""Objectives that yield partial results, one per step: the outcome, the journal, and errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import DefectError
from mipcash.optimizers.outcome import Output
from mipcash.study.folds import MOST_STEPS
from mipcash.study.pruning import FinalLossEstimator, expected
from mipcash.study.reading import read_outcome

FOLDS = (0.5, 0.25, 0.75, 0.0)


def yielding(config: dict[str, Any]) -> Iterator[Any]:
    for fold in FOLDS:
        yield config["x"] + fold


def outputs(config: dict[str, Any]) -> Iterator[Any]:
    for fold in FOLDS:
        yield {"loss": config["x"] + fold, "ms": 8.0 * fold, "note": f"fold {fold}"}


def one(objective: Any, **given: Any) -> mc.Trial:
    """Return the only trial of a run."""
    return mc.minimize(objective, tiny.line(), 1, optimizer="random", progress=False, **given).history[0]


def test_the_outcome_is_the_mean_of_the_yielded_values() -> None:
    trial = one(outputs)
    x = trial.config["x"]
    assert trial.folds == tuple(x + fold for fold in FOLDS)
    assert trial.loss == math.fsum(trial.folds) / 4
    assert (trial.values, trial.texts) == ({"ms": 3.0}, {"note": "fold 0.0"})
    assert trial.outcome["ms"].folds == (4.0, 2.0, 6.0, 0.0)
    assert (trial.steps, trial.outcome.pruned, trial.outcome.variance) == (4, False, 0.0)


def test_a_returned_outcome_replaces_the_mean() -> None:
    def epochs(config: dict[str, Any]) -> Any:
        yield from (3.0, 2.0)
        return {"loss": 1.5, "size": 7}

    trial = one(epochs)
    assert (trial.loss, trial.values, trial.folds, trial.steps) == (1.5, {"size": 7.0}, (3.0, 2.0), 2)
    trial = one(lambda config: config["x"])
    assert (trial.steps, trial.folds) == (1, ())


def test_values_of_each_step_are_in_the_journal_and_a_resumed_run_is_the_same(journal: Path) -> None:
    space = tiny.tiny_space()

    def objective(config: dict[str, Any]) -> Iterator[Any]:
        yield {"loss": tiny.loss(config), "odd": math.nan}
        yield {"loss": 0.1, "odd": 1.0}

    def record(trials: Any) -> list[Any]:
        return [(t.config, t.folds, t.outcome["odd"].message, str(t.outcome["odd"].folds)) for t in trials]

    def run(budget: int, storage: Any) -> mc.Result:
        given = {"optimizer": tiny.Sampler(space), "progress": False, "storage": storage}
        return mc.minimize(objective, space, budget, **given)

    run(3, journal)
    resumed = run(8, journal)
    assert record(resumed.history) == record(run(8, None).history)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        assert record(study.trials) == record(resumed.history)
    assert study.trials[0].folds == (tiny.loss(study.trials[0].config), 0.1)
    assert str(study.trials[0].outcome["odd"].folds) == "(nan, 1.0)"


def odd(*values: Any, error: Exception | None = None) -> Any:
    def objective(config: dict[str, Any]) -> Iterator[Any]:
        yield from values
        if error is not None:
            raise error

    return objective


CAUSES = [
    (odd(), "the objective yielded nothing and returned nothing; yield the loss of each step", 0),
    (odd(0.5, math.nan, 0.5), "the objective yielded nan; a loss must be finite (step 2)", 1),
    (odd(0.5, "low"), "the objective yielded str 'low', which is not a loss; ", 1),
    (odd(0.5, {"ms": 1.0}), "the objective yielded a dict without 'loss', only ['ms'] (step 2)", 1),
    (odd(0.5, None), "the objective yielded None, which is not a loss; ", 1),
    (odd(0.5, 0.5, error=ValueError("diverged")), "ValueError: diverged (", 2),
    (odd(0.5, mc.Failed("too deep"), 0.5), "too deep (step 2)", 1),
    (odd(*[0.5] * (MOST_STEPS + 1)), "EndlessError: the objective yielded 10,000 partial results and did not end", 0),
]


@pytest.mark.parametrize(("objective", "cause", "fits"), CAUSES, ids=[c for _, c, _ in CAUSES])
def test_an_invalid_yielded_loss_is_a_failure_with_its_cause(objective: Any, cause: str, fits: int) -> None:
    trial = one(objective)
    assert trial.failed
    assert trial.message.startswith(cause)
    assert trial.folds == (0.5,) * fits


def test_a_generator_is_closed_after_its_evaluation_has_failed() -> None:
    seen: list[str] = []

    def objective(config: dict[str, Any]) -> Iterator[Any]:
        try:
            yield math.inf
            seen.append("went on")
        finally:
            seen.append("tidied up")
            raise RuntimeError("and failed at it")

    trial = one(objective)
    assert (seen, trial.message) == (["tidied up"], "the objective yielded inf; a loss must be finite (step 1)")


def test_an_objective_that_yields_no_loss_is_a_defect() -> None:
    for objective, said in ((odd(), "yielded nothing"), (odd(0.5, "low"), "str 'low'")):
        with pytest.raises(DefectError, match=said):
            mc.minimize(objective, tiny.line(), 9, optimizer="random", progress=False)
    found = mc.minimize(odd(0.5, math.nan), tiny.line(), 9, optimizer="random", progress=False)
    assert found.n_failed == 9  # nan may depend on the configuration, so it is no defect


def test_folds_may_be_told_and_added_as_known() -> None:
    study = mc.Study(tiny.line(), "random")
    trial = study.tell(study.ask(), mc.Folds([0.25, {"loss": 0.5, "ms": 3}]))
    assert (trial.loss, trial.folds, trial.values) == (0.375, (0.25, 0.5), {"ms": 3.0})
    known = study.add({"x": 0.5}, mc.Folds([0.25, 0.75]))
    assert (known.loss, known.folds, known.steps) == (0.5, (0.25, 0.75), 0)
    with pytest.raises(ValueError, match="which is not a loss"):
        study.add({"x": 0.5}, mc.Folds([0.25, "low"]))
    assert [o.folds for o in (t.outcome for t in study.trials)] == [(0.25, 0.5), (0.25, 0.75)]


def test_a_mean_that_overflows_is_no_error() -> None:
    assert read_outcome(mc.Folds([{"loss": 1.0, "big": 1.7e308}] * 2))["big"].value == 1.7e308
    assert read_outcome(mc.Folds([{"loss": 1.0, "big": s * math.inf} for s in (-1, 1)]))["big"].status == "failed"
    assert read_outcome(mc.Folds([1e100, 1e100])).loss == 1e100
    with pytest.raises(ValueError, match="the variance of an estimate"):
        Output("present", 0.5, variance=-1.0)


# -- pruned learning curves: their final loss is predicted from complete curves ---------------------------------------


def test_predicted_final_losses_are_exact_for_a_line_and_monotone_otherwise() -> None:
    pairs = [(v, 3.0 * v - 1.0) for v in (0.1, 0.4, 0.5, 0.9)]
    assert [expected(v, pairs) for v in (0.1, 0.3, 0.9, 1.2, 2.5)] == pytest.approx([-0.7, -0.1, 1.7, 2.6, 6.5])
    # only the lowest pair is not predicted exactly by the other pairs
    assert FinalLossEstimator.of(pairs).variance == pytest.approx(0.9**2 / 4)
    outlook = FinalLossEstimator.of([(0.1, 5.0), (0.4, -2.0), (0.5, 3.0), (0.9, -4.0)])
    told = [outlook(v / 10) for v in range(-3, 13)]
    assert all(b >= a for a, b in itertools.pairwise(told))


def test_successive_halving_predicts_the_final_loss_of_bad_curves() -> None:
    """Assert that the final losses of bad curves are predicted accurately.

    A prediction by the difference to the incumbent ranked the worst curves above average curves.
    """
    space = mc.Space("rates")
    space.real("rate", 1e-4, 1e-1, log=True)

    def train(config: dict[str, Any]) -> Any:
        for epoch in range(1, 21):
            yield (1.0 - config["rate"]) ** epoch
        return (1.0 - config["rate"]) ** 20

    result = mc.minimize(train, space, 20, optimizer="random", pruning="halving", progress=False)
    stopped = [t for t in result.history if not t.complete]
    assert stopped
    for trial in stopped:
        assert trial.loss == pytest.approx((1.0 - trial.config["rate"]) ** 20, abs=0.12)
