"""Noisy objectives: repeats of promising configurations, the choice by their means, and unbiased values."""

from __future__ import annotations

import math
import warnings
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.noise import evident_noise
from mipcash.optimizers.optimizer import Limit, Observation
from mipcash.study.finalists import Finalist, estimate_of, finalists_of
from mipcash.study.policies.policy import BEST_OF_ALL, EXHAUSTED
from mipcash.study.replication import next_repeat

TRUTH = [0.0, 0.3, 0.6, 1.0, 2.0]


def levels() -> mc.Space:
    space = mc.Space("levels")
    space.integer("k", 0, 4)
    return space


def measured(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda config: TRUTH[config["k"]] + rng.normal()


def minimize(objective: Any, budget: int = 30, **options: Any) -> mc.Result:
    return mc.minimize(objective, levels(), budget, optimizer="random", progress=False, **options)


def test_repeats_find_the_best_level_and_its_value() -> None:
    regrets: dict[bool, list[float]] = {False: [], True: []}
    errors = []
    for seed in range(12):
        for noisy in (False, True):
            result = minimize(measured(seed), seed=seed, confirm="replicate" if noisy else False)
            regrets[noisy].append(TRUTH[result.config["k"]])
            if noisy:
                assert (result.n_evaluations, result.stopped) == (30, EXHAUSTED)
                errors.append(result.value - TRUTH[result.config["k"]])
            else:
                assert (result.n_evaluations, result.stopped) == (5, BEST_OF_ALL)
    assert fmean(regrets[True]) < 0.5 * fmean(regrets[False])
    # the mean error is above minus three standard errors
    assert fmean(errors) > -3 * float(np.std(errors)) / math.sqrt(len(errors))


def test_a_quarter_of_the_budget_is_left_for_repeats() -> None:
    space = mc.Space("line")
    space.real("x", 0, 1)
    rng = np.random.default_rng(0)
    result = mc.minimize(
        lambda c: c["x"] + rng.normal(), space, 20, optimizer="random", confirm="replicate", progress=False
    )
    assert sum(t.repeat > 0 for t in result.history) == 5
    assert result.best is not None
    assert result.best.number in {f.number for f in result.finalists}
    assert result.stopped == "budget"


def repeating(config: dict[str, Any], repeat: int = 0) -> float:
    return float(TRUTH[config["k"]] + np.random.default_rng([repeat, config["k"]]).normal())


def with_variance(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": TRUTH[config["k"]], "variance": 0.1}


@pytest.mark.parametrize("objective", [repeating, with_variance])
def test_the_remaining_budget_is_spent_on_repeats_if_the_objective_is_noisy(objective: Any) -> None:
    result = minimize(objective, 12)
    spent = 12 if objective is repeating else 5 + 3  # three identical repeats show that the loss does not vary
    assert result.n_evaluations == spent
    assert not result.stopped.endswith("deterministic")
    assert minimize(objective, 12, confirm=False).n_evaluations == 5


def test_a_returned_variance_is_the_noise_of_the_model_and_shrinks_the_value() -> None:
    space = mc.Space("line")
    space.real("x", -5, 5)

    def run(variance: float) -> mc.Result:
        rng = np.random.default_rng(0)

        def objective(config: dict[str, Any]) -> dict[str, float]:
            return {"loss": (config["x"] - 1) ** 2 + float(rng.normal()) / 2, "variance": variance}

        return mc.minimize(objective, space, 16, progress=False)

    silent, told = run(0.0), run(0.25)
    assert [t.config for t in silent.history] != [t.config for t in told.history]
    assert told.best is not None
    assert told.best.loss is not None
    assert told.value > told.best.loss  # shrunk towards the mean
    data = [Observation({"x": 0.0}, "done", 1.0, {"variance": v}) for v in (0.25, -1.0, float("inf"), 0.0)]
    assert [o.variance for o in data] == [0.25, 0.0, 0.0, 0.0]
    assert evident_noise(data[:1]) == 0.25


def test_a_deterministic_objective_is_not_repeated() -> None:
    result = minimize(lambda config: TRUTH[config["k"]])
    assert (result.n_evaluations, result.value, result.stopped) == (5, 0.0, BEST_OF_ALL)


def test_a_resumed_run_goes_on_with_its_repeats(tmp_path: Any) -> None:
    whole = minimize(repeating, 14)
    minimize(repeating, 9, storage=tmp_path / "part.db")
    resumed = minimize(repeating, 14, storage=tmp_path / "part.db")
    found = [[(t.config, t.repeat, t.loss) for t in result.history] for result in (whole, resumed)]
    assert found[0] == found[1]
    assert resumed.value == whole.value


def interrupted(stop: int) -> tuple[Any, list[int]]:
    """Return a noisy objective whose call ``stop`` raises KeyboardInterrupt, and the repeats of its calls."""
    calls: list[int] = []

    def objective(config: dict[str, Any], repeat: int = 0) -> float:
        calls.append(repeat)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return float(config["k"] / 50 + np.random.default_rng([repeat, config["k"]]).normal())

    return objective, calls


@pytest.mark.parametrize("stop", [13, 14, 16])
def test_a_run_that_was_interrupted_in_a_repeat_equals_an_unbroken_one(stop: int, tmp_path: Any) -> None:
    def run(objective: Any, **options: Any) -> mc.Result:
        space = mc.Space("line")
        space.integer("k", 0, 99)
        return mc.minimize(objective, space, 16, optimizer="random", confirm="replicate", progress=False, **options)

    objective, calls = interrupted(stop)
    with pytest.raises(KeyboardInterrupt):
        run(objective, storage=tmp_path / "part.db")
    assert calls[-1] > 0
    results = run(interrupted(0)[0]), run(objective, storage=tmp_path / "part.db")
    found = [[(t.config, t.repeat, t.loss, t.status) for t in result.history] for result in results]
    assert found[0] == found[1]


def test_replication_needs_a_single_loss_from_one_function() -> None:
    with pytest.raises(ValueError, match=r"several objectives"):
        minimize(lambda c: {"a": 1.0, "b": 2.0}, direction=["a", "b"], confirm="replicate")
    with pytest.raises(ValueError, match=r"confirm=.replicate. repeats whole evaluations"):
        minimize({"loss": lambda c: 1.0}, confirm="replicate")


def test_the_next_repeat_is_chosen_by_lower_confidence_bounds() -> None:
    def history(*losses: tuple[str, int, float]) -> list[Observation]:
        return [Observation({"k": k}, "done", loss, repeat=repeat) for k, repeat, loss in losses]

    assert next_repeat(history(("a", 0, 1.0), ("b", 0, 0.5)), ()) == (1, 1)
    # v = 0.5: a has 1.05 - sqrt(2 v log 3 / 2), b 1.0 - sqrt(2 v log 3)
    assert next_repeat(history(("a", 0, 0.55), ("b", 0, 1.0), ("a", 1, 1.55)), ()) == (1, 1)
    assert next_repeat(history(("a", 0, 0.55), ("b", 0, 9.0), ("a", 1, 1.55)), ()) == (0, 2)
    alike = [("a", 0, 1.0), *(("a", r, 1.0) for r in (1, 2, 3))]
    assert next_repeat(history(*alike), ()) is None
    assert next_repeat([], ()) is None
    limit = Limit("ms", -math.inf, 1.0)
    assert next_repeat(history(("a", 0, 1.0)), (limit,)) is None  # the trial is not known to be feasible
    assert next_repeat(history(*[("a", 0, 1.0)] * 5), ()) == (0, 1)  # given five times, and not repeated yet


@pytest.mark.parametrize("seed", range(40))
def test_the_next_repeat_of_drawn_histories_follows_the_notation(seed: int) -> None:
    rng, limit = np.random.default_rng(seed), Limit("ms", high=1.0)
    history, measured = list[Observation](), dict[str, list[Observation]]()
    for k in range(4):
        of = [Observation({"k": k}, "done", float(rng.normal(k / 2)), {"ms": float(rng.uniform(0, 1))})]
        for repeat in range(1, int(rng.integers(1, 5))):
            values = {"ms": float(rng.normal(1.6 if k == 0 else 0.9, 0.3))}
            status = str(rng.choice(["done", "done", "done", "done", "done", "pending", "failed"]))
            of.append(Observation({"k": k}, status, float(rng.normal(k / 2)), values, repeat=repeat))
            if status != "done":
                of[-1] = Observation({"k": k}, status, repeat=repeat)
        measured[f"{k}"] = of
        history += of
    total = len(history)

    def pooled(groups: list[list[float]]) -> float:
        several = [g for g in groups if len(g) > 1]
        return float(sum(np.var(g) * len(g) for g in several) / max(1, sum(len(g) - 1 for g in several)))

    v = pooled([[o.loss for o in of if o.loss is not None] for of in measured.values()])
    w = pooled([[o.values["ms"] for o in of if o.values] for of in measured.values()])
    bounds = {}
    for key, of in measured.items():
        again = [o for o in of[1:] if o.status != "pending"]
        over = np.mean([o.values["ms"] for o in again if o.values]) - 1.0 if any(o.values for o in again) else -1.0
        if not any(o.status == "failed" for o in again) and over <= math.sqrt(
            2 * w * math.log(total) / max(1, len(again))
        ):
            losses = [o.loss for o in of if o.loss is not None]
            bounds[key] = float(np.mean(losses)) - math.sqrt(2 * v * math.log(total) / len(of))
    found = next_repeat(history, [limit])
    if not bounds:
        assert found is None
    else:
        best = measured[min(bounds, key=lambda key: bounds[key])]
        assert found == (history.index(best[0]), len(best))


def test_a_noisy_constraint_is_judged_by_the_mean_of_the_repeats() -> None:
    """Of four levels the third has the lowest loss whose mean keeps the limit; single measurements of it often violate it."""
    answers = []
    for seed in range(8):
        rng = np.random.default_rng(seed)

        def press(config: Any, rng: np.random.Generator = rng) -> dict[str, float]:
            return {"loss": 0.1 * rng.normal() - config["k"], "ms": config["k"] + 0.5 * rng.normal()}

        space = mc.Space("levels")
        space.integer("k", 0, 3)
        given = {"optimizer": "random", "confirm": "replicate", "limits": {"ms": 2.4}, "progress": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = mc.minimize(press, space, 60, seed=seed, **given)
        answers.append(result.config["k"])
        assert all(f.problem == "" or "the mean of" in f.problem for f in result.finalists if len(f.fresh) > 1)
    assert answers.count(2) >= 5
    assert 3 not in answers


def test_an_estimate_is_shrunk_by_the_share_of_noise() -> None:
    # means 0 and 2; an effect that a repeat has on both finalists is not noise
    quiet = [Finalist(0, 0.0, (-1.0, 1.0), ((), ())), Finalist(1, 0.0, (1.0, 3.0), ((), ()))]
    assert estimate_of(quiet, quiet[0]) == 0.0
    # unequal numbers of repeats: the pooled v is (2 + 8) / 3 = 10 / 3, for a mean of two repeats 5 / 3
    # the means 0 and 4 have the variance 8
    loud = [Finalist(0, 0.0, (-1.0, 1.0), ((), ())), Finalist(1, 0.0, (2.0, 4.0, 6.0), ((), (), ()))]
    assert estimate_of(loud, loud[0]) == pytest.approx((5 / 3) / 8 * 2.0)
    assert estimate_of(loud[:1], loud[0]) == 0.0
    # one repeat each: v is half the variance of the differences from the search's losses
    single = [
        Finalist(k, float(searched), (float(fresh),), ())
        for k, (searched, fresh) in enumerate([(0, 0), (2, 1), (1, 2)])
    ]
    assert estimate_of(single, single[0]) == pytest.approx(0.0 + 0.5 * 1.0)


def test_the_value_of_a_configuration_with_several_evaluations_is_not_optimistic() -> None:
    """Assert that the value is not below the mean of pooled known evaluations, of which the best is luck."""
    space, rng = mc.Space("pooled"), np.random.default_rng(0)
    space.categorical("c", ["a", "b", "c"])
    with mc.Study(space, "random") as study:
        for c, mean in (("a", 0.0), ("b", 0.3), ("c", 2.0)):
            for _ in range(6):
                study.add({"c": c}, mean + float(rng.normal()))
        result = study.result
    own = [t.loss for t in result.history if t.config == result.config and t.loss is not None]
    assert result.best is not None
    assert np.mean(own) <= result.value


def test_the_corrected_value_of_a_maximised_objective_is_that_of_the_mirrored_one() -> None:
    space = mc.Space("mirrored")
    space.real("x", -1.0, 1.0)

    def folds(config: Any, sign: float) -> Any:
        """Yield losses whose noise grows with the loss, as errors of poor models do."""
        loss = (config["x"] - 0.3) ** 2
        for k in range(5):
            yield sign * (loss + (0.01 + loss) * np.random.default_rng([int(1e6 * (config["x"] + 1.0)), k]).normal())

    common: dict[str, Any] = {"budget": 12, "optimizer": "random", "progress": False}
    least = mc.minimize(lambda config: folds(config, 1.0), space, **common)
    most = mc.minimize(lambda config: folds(config, -1.0), space, direction="maximize", **common)
    assert least.value != least.best.loss
    assert most.value == pytest.approx(-least.value, rel=1e-12)


def test_only_legal_complete_configurations_are_repeated_and_recommended() -> None:
    def at(config: dict[str, int], loss: float, legal: bool = True, repeat: int = 0, **values: float) -> Observation:
        return Observation(config, "done", loss, values, legal=legal, repeat=repeat)

    history = [at({"k": 0}, -9.0, legal=False), at({"k": 1}, 1.0), at({"k": 2}, 2.0)]
    assert next_repeat(history, ()) == (1, 1)
    assert [f.number for f in finalists_of([*history, at({"k": 0}, -9.0, False, 1), at({"k": 2}, 2.0, repeat=1)])] == [
        2
    ]
    for bad in (at({"k": 1}, 1.0, repeat=1, ms=6.0), Observation({"k": 1}, "failed", repeat=1)):
        assert next_repeat([*history, bad], [Limit("ms", high=2.0)] if bad.values else ()) in ((2, 1), None)


def test_the_correction_for_noise_leaves_illegal_losses_out() -> None:
    values = []
    for known in ([], [-3.0, 14.0, 14.0]):
        space = mc.Space("ruled")
        space.rule("at least three", space.integer("a", 0, 9) >= 3)
        study = mc.Study(space, "random", seed=0)
        for k, loss in enumerate(known):
            study.add({"a": k}, loss, illegal="learn")
        for a in range(3, 10):
            study.enqueue({"a": a})
            study.tell(study.ask(), {"loss": float(a), "variance": 4.0})
        values.append(study.result.value)
    assert values[0] == pytest.approx(values[1])
    assert values[0] > 3.0


@pytest.mark.parametrize(
    ("variance", "refused"), [(0.0, False), (0.3, False), (7, False), (-0.5, True), ("wide", True), (math.nan, True)]
)
def test_only_a_finite_number_of_at_least_zero_is_a_variance(variance: Any, refused: bool) -> None:
    space = mc.Space("noisy")
    space.integer("a", 0, 9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mc.minimize(
            lambda config: {"loss": config["a"], "variance": variance}, space, 4, optimizer="random", progress=False
        )
    said = [str(w.message) for w in caught if "no noise variance" in str(w.message)]
    assert len(said) == refused, "said once"
