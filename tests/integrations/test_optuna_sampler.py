"""MipcashSampler: Optuna studies whose proposals satisfy the rules of a space."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import MipcashError

pytest.importorskip("optuna", minversion="5")

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from mipcash.integrations.optuna import MipcashSampler, known_from
from mipcash.integrations.optuna.history import Reader, limits_from, objectives_of, outcome_of
from mipcash.integrations.optuna.ranges import same_values

optuna.logging.set_verbosity(optuna.logging.ERROR)
LOWER, HIGHER = (objectives_of([d]) for d in (StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE))


def network() -> mc.Space:
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    width = space.ordinal("width", [16, 32, 64, 128])
    act = space.categorical("act", ["relu", "tanh", None])
    space.real("lr", 1e-4, 1e-1, log=True)
    space.real("dropout", 0.0, 0.5, when=layers.is_(2, 3))
    space.rule("memory", layers * width <= 200)
    space.rule("none only when deep", act[None] <= layers / 3)
    return space


def suggested(trial: Any) -> dict[str, Any]:
    """Suggest the active parameters of a trial in define-by-run style, with conditions as if statements."""
    config = {
        "layers": trial.suggest_int("layers", 1, 3),
        "width": trial.suggest_categorical("width", [16, 32, 64, 128]),
        "act": trial.suggest_categorical("act", ["relu", "tanh", None]),
        "lr": trial.suggest_float("lr", 1e-4, 1e-1, log=True),
    }
    if config["layers"] > 1:
        config["dropout"] = trial.suggest_float("dropout", 0.0, 0.5)
    return config


def loss(config: dict[str, Any]) -> float:
    size = config["layers"] * config["width"]
    return (
        100 * (config["lr"] - 0.01) ** 2 + 1 / size + abs(config.get("dropout", 0.0) - 0.2) + (config["act"] != "tanh")
    )


def objective(trial: Any) -> float:
    return loss(suggested(trial))


def unhurried(space: mc.Space | None) -> MipcashSampler:
    """Return a sampler without a time limit, whose proposals do not depend on the clock."""
    return MipcashSampler(space, seed=0, seconds_per_proposal=None)


def study_of(sampler: Any = None, **given: Any) -> Any:
    return optuna.create_study(sampler=sampler or unhurried(network()), **given)


def sqlite(folder: Path) -> Any:
    return f"sqlite:///{folder / 'study.db'}"


def journal(folder: Path) -> Any:
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "study.log")))


@pytest.mark.parametrize("storage", [lambda folder: None, sqlite, journal])
def test_proposals_are_those_of_minimize_on_every_storage(storage: Callable[[Path], Any], tmp_path: Path) -> None:
    """Assert this also if another process loads the study half way, since the storage holds the complete state."""
    n, space = 10, network()
    method = mc.Method(seconds_per_proposal=None)
    expected = mc.minimize(loss, space, n, optimizer=method, seed=0, progress=False).history
    study = study_of(storage=storage(tmp_path), study_name="s")
    study.optimize(objective, n_trials=n // 2)
    if storage(tmp_path) is not None:
        study = optuna.load_study(study_name="s", storage=storage(tmp_path), sampler=unhurried(network()))
    else:
        study.sampler = pickle.loads(pickle.dumps(copy.deepcopy(study.sampler)))
    study.optimize(objective, n_trials=n - n // 2)
    assert [t.params for t in study.trials] == [t.config for t in expected]
    assert all(space.is_legal(t.params) for t in study.trials)


def test_maximize_equals_minimize_of_the_negated_loss() -> None:
    down, up = study_of(), study_of(direction="maximize")
    down.optimize(objective, n_trials=8)
    up.optimize(lambda t: -objective(t), n_trials=8)
    assert [t.params for t in up.trials] == [t.params for t in down.trials]
    assert up.best_value == -down.best_value


def test_threads_propose_different_configurations() -> None:
    study = study_of()
    study.optimize(objective, n_trials=8, n_jobs=2)
    assert all(network().is_legal(t.params) for t in study.trials)
    assert len({str(t.params) for t in study.trials}) == 8


def test_a_proposal_of_another_process_is_pending_before_its_parameters_are_suggested(tmp_path: Path) -> None:
    space = mc.Space()
    space.categorical("a", ["x", "y"])
    study = study_of(MipcashSampler(space, seed=0), storage=sqlite(tmp_path), study_name="s")
    other = optuna.load_study(study_name="s", storage=sqlite(tmp_path), sampler=MipcashSampler(space, seed=1))
    first = study.ask()
    assert first.relative_params == {}  # the proposal exists, but no parameter has been suggested
    assert {first.suggest_categorical("a", ["x", "y"]), other.ask().suggest_categorical("a", ["x", "y"])} == {"x", "y"}


def test_a_study_stops_when_all_free_configurations_are_proposed() -> None:
    space = mc.Space.from_optuna({"a": IntDistribution(1, 3), "b": IntDistribution(0, 1)}, "six")

    def asked(trial: Any) -> float:
        value = trial.suggest_int("a", 1, 3) + trial.suggest_int("b", 0, 1)
        if trial.number == 2:
            raise RuntimeError("failures count too")
        return value

    free, twice, held = (study_of(MipcashSampler(space, seed=0)) for _ in range(3))
    for _ in range(2):
        twice.enqueue_trial({"a": 1, "b": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        held.sampler = optuna.samplers.PartialFixedSampler({"a": 1}, held.sampler)
    for study, evaluated in ((free, 7), (twice, 8), (held, 3)):  # the last trial repeats the best one
        with pytest.warns(
            UserWarning, match="every legal configuration of space 'six' has been proposed; the study stops"
        ):
            study.optimize(asked, n_trials=10, catch=RuntimeError)
        assert len(study.trials) == evaluated
    assert [t.params for t in twice.trials[:2]] == [{"a": 1, "b": 0}] * 2


# -- fixed parameters ----------------------------------------------------------------------------------------------


def test_partly_fixed_proposals_are_legal() -> None:
    study = study_of()
    study.optimize(objective, n_trials=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler({"layers": 3, "act": None}, study.sampler)
    study.optimize(objective, n_trials=4)
    held = [t.params for t in study.trials[4:]]
    assert all(p["layers"] == 3 and p["act"] is None for p in held)
    assert all(network().is_legal(p) for p in held)


def test_enqueued_trials() -> None:
    study = study_of()
    study.enqueue_trial({"layers": 3})  # the other parameters are proposed; the rule then bounds width by 64
    study.enqueue_trial({"layers": 1, "width": 128, "act": "relu", "lr": 0.01})
    study.enqueue_trial({"layers": 3, "width": 128})  # violates a rule, but the user asked for it
    with pytest.warns(
        UserWarning, match="violate the rules: no legal configuration .* rule 'memory' cannot hold there"
    ):
        study.optimize(objective, n_trials=8)
    first, second, third, *rest = [t.params for t in study.trials]
    assert first["layers"] == 3
    assert second == {"layers": 1, "width": 128, "act": "relu", "lr": 0.01}
    assert (third["layers"], third["width"]) == (3, 128)
    space = network()
    assert [space.is_legal(p) for p in (first, second, third, *rest)] == [True, True, False, *[True] * 5]


# -- observations --------------------------------------------------------------------------------------------------


def test_constraints_of_optuna_are_outcome_constraints() -> None:
    """Assert this for a loss that falls towards x = 1 under a constraint x <= 0.4."""
    space = mc.Space()
    space.real("x", 0.0, 1.0)
    study = study_of(unhurried(space))

    def cut(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("edge", x - 0.4)
        return -x

    study.optimize(cut, n_trials=16)
    assert 0.37 <= study.best_params["x"] <= 0.4
    assert [str(limit) for limit in limits_from(study.trials, ())] == ["constraint edge <= 0"]
    late = [t.params["x"] for t in study.trials[8:]]
    assert sum(x <= 0.45 for x in late) >= 6


def test_limits_on_user_attributes_are_reported_to_optuna() -> None:
    study = study_of(MipcashSampler(network(), limits={"size": (40, 100)}, seed=0))

    def sized(trial: Any) -> float:
        config = suggested(trial)
        trial.set_user_attr("size", config["layers"] * config["width"])
        return loss(config)

    study.enqueue_trial({"layers": 1, "width": 16})
    study.optimize(sized, n_trials=10)
    # the sampler also stores the violation as a constraint of the same name, which must not replace the value
    known = known_from(study, network())
    assert [outcome["size"] for _, outcome in known] == [t.user_attrs["size"] for t in study.trials]
    assert 40 <= study.best_trial.user_attrs["size"] <= 100
    for trial in study.trials:
        assert trial.constraints == {"size": max(40 - trial.user_attrs["size"], trial.user_attrs["size"] - 100)}
    assert limits_from(study.trials, study.sampler._limits) == study.sampler._limits
    outcome = outcome_of(create_trial(value=1.0), LOWER, ("size",), ())
    assert outcome["size"].status == "failed"
    assert "the user attribute 'size' is None" in outcome["size"].message


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, r"trial 0 has no value for the limit on 'ms' and .*it has none. Call trial.set_user_attr\('ms', value\)"),
        ({"mss": 3.0, "size": 1}, r"trial 0 .*did you mean 'mss'"),
        ({"ms": "fast"}, r"trial 0 .*the user attribute 'ms' is 'fast', which is no number"),
    ],
)
def test_a_limit_on_a_missing_user_attribute_warns_once(told: dict[str, Any], said: str) -> None:
    def untold(trial: Any) -> float:
        for name, value in told.items():
            trial.set_user_attr(name, value)
        return objective(trial)

    with pytest.warns(UserWarning, match="limit on 'ms'") as caught:
        study_of(MipcashSampler(network(), limits={"ms": 5.0}, seed=0)).optimize(untold, n_trials=2)
    (found,) = [str(w.message) for w in caught if "limit on 'ms'" in str(w.message)]
    assert re.match(said, found), found


def test_constraints_func_of_other_samplers() -> None:
    study = study_of(MipcashSampler(network(), constraints_func=lambda t: (t.params["lr"] - 0.01,), seed=0))
    study.optimize(objective, n_trials=2)
    assert [t.constraints for t in study.trials] == [{"0": t.params["lr"] - 0.01} for t in study.trials]


def test_pruned_trials_are_noisier_observations_and_failed_ones_failures() -> None:
    complete = [
        create_trial(value=v, intermediate_values={2: w, 9: v}) for v, w in ((1.0, 1.4), (2.0, 2.6), (3.0, 3.5))
    ]
    pruned = create_trial(state=TrialState.PRUNED, value=5.0, intermediate_values={2: 5.0})
    outcome = outcome_of(pruned, LOWER, (), complete)
    assert outcome.loss == pytest.approx(4.5)  # complete trials had a final value 0.5 below their value at this step
    assert outcome.variance == pytest.approx(0.01)
    assert outcome.pruned  # a pruned trial is never the best trial
    few = outcome_of(pruned, HIGHER, (), complete[:2])
    assert (few.loss, few.variance) == (-5.0, 0.5)
    for failed in ({"state": TrialState.PRUNED}, {"state": TrialState.FAIL}, {"value": float("inf")}):
        assert outcome_of(create_trial(**failed), LOWER, (), complete).status() == "failed"


def test_pruners_and_failures_in_a_run() -> None:
    study = study_of(pruner=optuna.pruners.HyperbandPruner(1, 4))

    def epochs(trial: Any) -> float:
        config = suggested(trial)
        if config["act"] == "relu":
            raise RuntimeError("diverged")
        for step in range(4):
            trial.report(loss(config) + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss(config)

    study.optimize(epochs, n_trials=16, catch=RuntimeError)
    states = [t.state for t in study.trials]
    assert {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL} == set(states)
    assert states[10:].count(TrialState.FAIL) <= 3  # the search avoids failing configurations
    assert all(network().is_legal(t.params) for t in study.trials)


def test_trials_of_other_samplers_are_learned_from() -> None:
    study = study_of(optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=8)
    study.add_trial(create_trial(params={"lr": 5.0}, distributions={"lr": FloatDistribution(0, 9)}, value=1.0))
    study.sampler = MipcashSampler(network(), seed=0)
    with pytest.warns(
        UserWarning, match=r"no place in space 'network' and are not learned from: trial 8: 'lr': 5.0 is out"
    ):
        study.optimize(objective, n_trials=1)
    reader = Reader(network())
    history = reader.history(study.trials, objectives_of(study.directions))
    assert [o.known for o in history] == [*[True] * 8, False]
    assert [o.legal for o in history] == [network().is_legal(t.params) for t in (*study.trials[:8], study.trials[9])]
    assert not all(o.legal for o in history)
    assert reader.history(study.trials, objectives_of(study.directions))[0] is history[0]


def test_known_from_a_study() -> None:
    space = network()
    study = study_of(optuna.samplers.RandomSampler(seed=0), direction="maximize")

    def failing(trial: Any) -> float:
        config = suggested(trial)
        trial.set_user_attr("size", config["layers"] * config["width"])
        if config["act"] is None:
            raise RuntimeError("diverged")
        return -loss(config)

    study.optimize(failing, n_trials=12, catch=RuntimeError)
    with pytest.warns(UserWarning, match="of 12 trials are left out, as they do not fit space 'network'"):
        known = known_from(study, space, direction="maximize")
    assert len(known) == sum(space.is_legal(t.params) for t in study.trials) < 12
    result = mc.minimize(lambda c: -loss(c), space, 2, known=known, direction="maximize", progress=False)
    assert [t.config for t in result.history[:-2]] == [config for config, _ in known]
    best = max((t for t in study.trials if t.value is not None and space.is_legal(t.params)), key=lambda t: t.value)
    assert result.value >= best.value
    with pytest.raises(ValueError, match=r"the study has direction 'maximize'.*give direction='maximize' here and to"):
        known_from(study, space)
    with pytest.raises(TypeError, match=r"study must be an optuna.Study, got 'x.db'.*optuna.load_study"):
        known_from("x.db", space)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"space must be a mipcash.Space, got \{\}.*Space.from_optuna"):
        known_from(study, {})  # type: ignore[arg-type]
    journal = mc.Study(space, direction="maximize")
    for config, outcome in known_from(study, space, direction="maximize", illegal=True):
        journal.add(config, outcome, illegal="learn")
    assert len(journal.trials) == 12
    assert journal.trials[0].values == {"size": study.trials[0].user_attrs["size"]}


# -- bad input ------------------------------------------------------------------------------------------------------

MISTAKES = [
    (
        lambda t: t.suggest_float("lrate", 0, 1),
        r"suggests 'lrate' \(FloatDistribution.*\), which space 'network' does not have; it has \['layers', 'width'",
    ),
    (
        lambda t: t.suggest_float("lr", 1e-4, 1.0, log=True),
        r"suggests 'lr' from FloatDistribution\(high=1.0.*has it as real in \[0.0001, 0.1\], log scale. Make them the same: "
        r"trial.suggest_float\('lr', 0.0001, 0.1, log=True\)",
    ),
    (
        lambda t: t.suggest_int("width", 16, 128),
        r"from IntDistribution.*has it as ordinal \[16, 32, 64, 128\].*trial.suggest_categorical\('width', \[16, 32, 64, 128\]\)",
    ),
    (
        lambda t: t.suggest_float("dropout", 0.0, 0.5),
        r"'dropout', which is not active in the proposal .*real in \[0.0, 0.5\], when layers is 2 or 3. Suggest it under the same",
    ),
]


@pytest.mark.parametrize(("wrong", "said"), MISTAKES)
def test_an_objective_that_suggests_another_space_is_refused(wrong: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        study_of().optimize(wrong, n_trials=20)


@pytest.mark.parametrize(
    ("domain", "given", "same"),
    [
        (mc.Real(0, 1, step=0.1), FloatDistribution(0, 1, step=0.1), True),
        (mc.Real(0, 1, step=0.1), FloatDistribution(0, 1), False),
        (mc.Real(0, 1), FloatDistribution(0, 1, step=0.1), False),
        (mc.Ordinal([0.0, 0.25, 0.5]), FloatDistribution(0, 0.5, step=0.25), True),
        (mc.Integer(0, 10**12), FloatDistribution(0, 10**12, step=1), True),
        (mc.Integer(0, 10**12), IntDistribution(0, 10**12, step=10), False),
        (mc.Integer(0, 10**12), FloatDistribution(0, 10**12), False),
    ],
)
def test_ranges_with_steps_are_compared(domain: Any, given: Any, same: bool) -> None:
    assert same_values("p", domain, given) == same


def test_values_that_python_takes_for_equal_are_told_apart() -> None:
    space = mc.Space("truth")
    flag, n = space.categorical("flag", [True, 1, False, 0]), space.integer("n", 1, 2)
    space.rule("r", mc.implies(flag.is_(1), n >= 2))
    study = study_of(MipcashSampler(space, seed=0))

    with pytest.warns(UserWarning, match="'truth' has been proposed; the study stops"):
        study.optimize(lambda t: t.suggest_categorical("flag", [True, 1, False, 0]) + t.suggest_int("n", 1, 2), 12)
    assert len(study.trials) == 8  # seven, and the best one again


def test_equivalent_distributions_are_accepted() -> None:
    space = mc.Space()
    grid = space.ordinal("grid", [0.1, 0.2, 0.3, 0.4])
    fine = space.real("fine", 0, 1, step=1e-4)
    space.integer("k", 0, 4, step=2)
    space.categorical("flag", [True, False, 1])
    space.rule("sum", grid + fine == 0.7)
    study = study_of(MipcashSampler(space, seed=0))

    def otherwise(trial: Any) -> float:
        flag = trial.suggest_categorical("flag", [1, False, True])
        assert flag is True or flag is False or type(flag) is int
        trial.suggest_float("fine", 0, 1, step=1e-4)
        return trial.suggest_float("grid", 0.1, 0.4, step=0.1) + trial.suggest_categorical("k", [4, 2, 0])

    study.optimize(otherwise, n_trials=20)
    assert study.best_value == pytest.approx(0.1)
    assert all(space.is_legal(t.params) for t in study.trials)


def test_wrong_arguments() -> None:
    with pytest.warns(UserWarning, match=r"never suggested .*which space .network. has as active"):
        study_of().optimize(lambda t: t.suggest_int("layers", 1, 3), n_trials=4)

    ordered = mc.Space()
    ordered.ordering("order", [ordered.module("a", ["p", "q"]), ordered.module("b", ["r", "s"])])
    for make, error, said in (
        (lambda: MipcashSampler(ordered), ValueError, "Optuna cannot suggest the order 'order'"),
        (lambda: MipcashSampler({"x": 1}), TypeError, "space must be a mipcash.Space or None"),
        (lambda: MipcashSampler(network(), optimizer="hybird"), MipcashError, "did you mean 'hybrid'"),
        (lambda: MipcashSampler(optimizer=mc.settings.HybridSettings()), TypeError, "optimizer is a name"),
        (lambda: MipcashSampler(seed=-1), ValueError, "seed must be a whole number"),
        (lambda: MipcashSampler(network(), limits={"ms": True}), ValueError, "does not say in which direction"),
    ):
        with pytest.raises(error, match=said):
            make()
    several = study_of(directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="the study has 2 objectives"):
        known_from(several, network())


def test_without_a_space_common_parameters_are_searched_together() -> None:
    """Assert this for constant ranges. A parameter with a changing range is sampled independently, as in Optuna."""
    study = study_of(unhurried(None))

    def changing(trial: Any) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        trial.suggest_int("n", 0, 1 + trial.number)
        return x**2

    study.optimize(changing, n_trials=14)
    assert {n: p.distribution for n, p in study.sampler._search.inferred.items()} == {"x": FloatDistribution(-1.0, 1.0)}
    assert study.best_value < 1e-3
    again = study_of(unhurried(None))
    again.optimize(changing, n_trials=14)
    assert [t.params["x"] for t in again.trials] == [t.params["x"] for t in study.trials]
    assert study.trials[3].distributions["n"] == IntDistribution(0, 4)
