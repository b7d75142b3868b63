"""MipcashSampler without a space: conditions of a define-by-run objective are inferred from its trials."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from mipcash.integrations.optuna import MipcashSampler, notes
from mipcash.integrations.optuna.sampler import Inference, inferred, space_of

optuna.logging.set_verbosity(optuna.logging.ERROR)


def pipeline(trial: Any) -> float:
    """Suggest parameters under two levels of conditions, one of them with a range that changes."""
    kind = trial.suggest_categorical("kind", ["svm", "forest", "linear"])
    scale = trial.suggest_float("scale", 0.1, 10.0, log=True)
    loss = abs(scale - 1.0) / 10
    if kind == "svm":
        if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "rbf":
            loss += (trial.suggest_float("gamma", 1e-3, 1.0, log=True) - 0.05) ** 2
        else:
            loss += 0.1 * trial.suggest_int("degree", 2, 5)
        return loss + abs(trial.suggest_float("c", 0.0, 1.0) - 0.3)
    if kind == "forest":
        depth = trial.suggest_int("depth", 1, 20)
        trial.suggest_int("leaves", 2, 2 + depth)
        return loss + 0.2 + abs(depth - 12) / 20
    return loss + 0.5


def test_conditions_are_inferred_and_their_parameters_sampled_jointly() -> None:
    study = optuna.create_study(sampler=MipcashSampler(seed=0))
    study.optimize(pipeline, n_trials=30)
    found = inferred(study.trials)
    assert {n: (p.parent, p.values) for n, p in found.items()} == {
        "kind": ("", ()),
        "scale": ("", ()),
        "kernel": ("kind", ("svm",)),
        "c": ("kind", ("svm",)),
        "gamma": ("kernel", ("rbf",)),
        "degree": ("kernel", ("poly",)),
        "depth": ("kind", ("forest",)),
    }
    space = space_of(found)
    for late in study.trials[-10:]:
        own = {k: v for k, v in late.params.items() if k in space.parameters}
        note = notes.read(late.system_attrs, space)
        assert note is not None
        assert note.config == own  # the proposal has exactly the parameters that the objective suggested
        assert space.is_legal(own)
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    random.optimize(pipeline, n_trials=30)
    assert study.best_value < min(0.05, random.best_value)


@pytest.mark.parametrize("seed", range(4))
def test_an_inference_that_grows_equals_one_from_all_trials(seed: int) -> None:
    study, growing = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)), Inference()
    study.optimize(pipeline, n_trials=40)
    without = [t for t in study.trials if t.params["kind"] != "forest"]  # no parameter of these changes its range
    for trials in (study.trials, without):
        for count in (*range(1, len(trials)), 5):
            found = growing.of(trials[:count])
            assert list(found.items()) == list(inferred(trials[:count]).items())


def trial(params: dict[str, Any], **ranges: Any) -> Any:
    known = {
        "a": CategoricalDistribution(["x", "y"]),
        "b": IntDistribution(1, 3),
        "f": FloatDistribution(0.0, 1.0),
        **ranges,
    }
    return create_trial(params=params, distributions={n: known[n] for n in params}, value=1.0)


def test_parameters_without_a_deciding_parent_or_with_several_ranges_are_left_out() -> None:
    assert inferred([]) == {}
    mixed = [trial({"a": "x", "f": 0.5}), trial({"a": "x"}), trial({"a": "y"})]
    assert list(inferred(mixed)) == ["a"]
    two = [trial({"a": "x", "b": 1}), trial({"a": "x", "b": 2}, b=IntDistribution(1, 4)), trial({"a": "y"})]
    assert list(inferred(two)) == ["a"]
    decided = inferred([trial({"a": "x", "b": 1}), trial({"a": "y"})])
    assert (decided["b"].parent, decided["b"].values) == ("a", ("x",))


def test_samplers_around_it_may_fix_a_parent_and_search_spaces_of_others_are_sampled() -> None:
    study = optuna.create_study(sampler=MipcashSampler(seed=0))
    study.optimize(pipeline, n_trials=12)
    study.sampler = optuna.samplers.PartialFixedSampler({"kind": "svm"}, study.sampler)
    study.optimize(pipeline, n_trials=6)
    held = study.trials[12:]
    assert {t.params["kind"] for t in held} == {"svm"}
    space = space_of(inferred(study.trials))
    for late in held:  # the other parameters of the branch are proposed, not sampled independently
        note = notes.read(late.system_attrs, space)
        assert note is not None
        assert note.config == late.params
    alone = optuna.create_study(sampler=MipcashSampler(seed=0))
    wanted = {"x": FloatDistribution(-1.0, 1.0)}
    alone.ask()
    drawn = alone.sampler.sample_relative(alone, alone.trials[0], wanted)
    assert drawn.keys() == {"x"}
    assert -1.0 <= drawn["x"] <= 1.0


def test_values_of_a_parent_count_as_those_of_its_domain() -> None:
    """Optuna computes 0.1 + 2 * 0.1, and random samplers of steps return such numbers too."""

    def objective(trial: Any) -> float:
        a = trial.suggest_float("a", 0, 1, step=0.1)
        return float(a + (trial.suggest_float("b", 0, 1) if 0.25 < a < 0.65 else 1))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=60)
    assert inferred(study.trials)["b"].values == (0.3, 0.4, 0.5, 0.6)
    study = optuna.create_study(sampler=MipcashSampler(seed=0))
    for a in (0.1, 3 * 0.1, 0.9):
        study.enqueue_trial({"a": a})
    study.optimize(objective, n_trials=6)
    assert len(study.trials) == 6


def test_a_huge_value_is_no_measure_of_a_pruned_one() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            return sys.float_info.max
        trial.report(x, 0)
        if trial.should_prune():
            raise optuna.TrialPruned
        return x

    pruner = optuna.pruners.MedianPruner(n_startup_trials=2)
    study = optuna.create_study(sampler=MipcashSampler(seed=0), pruner=pruner)
    study.optimize(objective, n_trials=12)
    assert {t.state.name for t in study.trials} == {"COMPLETE", "PRUNED"}
