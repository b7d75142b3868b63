"""Calls that go wrong are answered before anything is opened or evaluated: with the argument, the cause and the cure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import MipcashError, SolverError, SpaceError


def small() -> mc.Space:
    space = mc.Space("small")
    space.integer("a", 1, 3)
    space.categorical("c", ["x", "y"])
    space.module("m", {"rf": {}, "svm": {}})
    return space


def loss(config: dict[str, Any]) -> float:
    return float(config["a"])


def minimize(*args: Any, **kwargs: Any) -> mc.Result:
    return mc.minimize(*args, **{"progress": False, "optimizer": "random", **kwargs})


WORDS = {
    "n_trials": "it is called budget=",
    "n_calls": "it is called budget=",
    "max_evals": "it is called budget=",
    "random_state": "it is called seed=",
    "n_jobs": "give execution=4, or mc.Execution(workers=4)",
    "max_time": "give budget=mc.Budget(50, timeout=...)",
    "solver": "give optimizer=mc.Method('hybrid', solver=...)",
    "noisy": "give confirm='replicate'",
    "sampler": "it is called optimizer=",
    "callback": "it is called callbacks=",
    "verbose": "it is called progress=",
    "maximize": "it is called direction=",
    "directions": "it is called direction=",
    "objectives": "it is called direction=",
    "pruner": "it is called pruning=",
    "progres": "did you mean 'progress'?",
    "sed": "did you mean 'seed'?",
    "qqq": "there are objective, space, budget, direction, limits, known, seed",
}


@pytest.mark.parametrize(("word", "cure"), WORDS.items())
def test_words_of_other_libraries(word: str, cure: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"minimize() has no argument {word!r}; {cure}")):
        mc.minimize(loss, small(), **{word: 20})


def test_words_for_a_study() -> None:
    with pytest.raises(TypeError, match=r"Study\(\) has no argument 'random_state'; it is called seed="):
        mc.Study(small(), random_state=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Study\(\) has no argument 'n_trials'; there are space, optimizer"):
        mc.Study(small(), n_trials=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Study\(\) takes space, optimizer by their place and all else by name"):
        mc.Study(small(), "random", 3)  # type: ignore[misc]


def test_arguments_in_anothers_place(tmp_path: Path) -> None:
    for arguments in ((small(), loss, 5), (loss, 5, small()), (5, loss, small()), (small(), 5, loss)):
        with pytest.raises(
            TypeError, match=r"in this order: minimize\(objective, space, 20\); got .*the space 'small'"
        ):
            minimize(*arguments, storage=tmp_path / "run.db")
    with pytest.raises(TypeError, match=r"takes objective, space, budget by their place and all else by name.*got 4"):
        minimize(loss, small(), 5, "random")
    with pytest.raises(
        TypeError, match=r"objective must be callable, got NoneType|objective must be callable, got None"
    ):
        minimize(None, small(), 5)
    assert not (tmp_path / "run.db").exists()


@pytest.mark.parametrize("budget", [0, -1, None, 2.5, "20", True, 3.0])
def test_budgets(budget: object) -> None:
    with pytest.raises(ValueError, match=r"budget must be a whole number of evaluations, at least 1, got "):
        minimize(loss, small(), budget)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_seeds(seed: object) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number, at least 0"):
        minimize(loss, small(), 2, seed=seed)


def test_numbers_of_numpy_are_numbers() -> None:
    ours = minimize(loss, small(), 2, seed=3)
    theirs = minimize(loss, small(), np.int64(2), seed=np.int64(3), execution=mc.Execution(workers=np.int32(1)))
    assert [t.config for t in ours.history] == [t.config for t in theirs.history]


def test_names_that_there_are_not() -> None:
    with pytest.raises(MipcashError, match=r"no optimizer 'tpe' \(there are hybrid, mutation, random"):
        minimize(loss, small(), 2, optimizer="tpe")
    with pytest.raises(MipcashError, match=r"no optimizer 'hibrid'; did you mean 'hybrid'\?"):
        minimize(loss, small(), 2, optimizer="hibrid")
    with pytest.raises(SolverError, match=r"no solver 'glpk'; there are auto, .*highs"):
        minimize(loss, small(), 2, optimizer=mc.Method(solver="glpk"))
    with pytest.raises(SolverError, match=r"no solver 'gurobbi'; did you mean 'gurobi'\?"):
        minimize(loss, small(), 2, optimizer=mc.Method(solver="gurobbi"))


def test_one_callback_or_several() -> None:
    seen: list[int] = []

    def note(study: mc.Study, trial: mc.Trial) -> None:
        seen.append(trial.number)

    minimize(loss, small(), 2, callbacks=note)
    minimize(loss, small(), 2, callbacks=[note, note])
    assert seen == [0, 1, 0, 0, 1, 1]
    for given in ("note", 5, {"on_trial": note}):
        with pytest.raises(
            TypeError, match=r"callbacks must be a function callback\(study, trial\), or a list of them"
        ):
            minimize(loss, small(), 2, callbacks=given)
    with pytest.raises(
        TypeError, match=r"the callback <lambda>\(study\) cannot be called with the study and the trial"
    ):
        minimize(loss, small(), 2, callbacks=lambda study: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"callbacks must be functions callback\(study, trial\), and int 5 is none"):
        minimize(loss, small(), 2, callbacks=[note, 5])


def by_name(a: int, c: str, m: str) -> float:
    return float(a)


def with_others(a: int, **others: str) -> float:
    return float(a)


def of_two(first: dict[str, Any], second: int) -> float:
    return 0.0


def of_none() -> float:
    return 0.0


def of_keywords(**config: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("objective", "cure"),
    [
        (by_name, "write lambda config: by_name(**config)"),
        (of_two, "write lambda config: of_two(config['a'], ...)"),
        (of_none, "let it take one: def of_none(config)"),
        (of_keywords, "write lambda config: of_keywords(**config)"),
    ],
)
def test_objectives_of_another_kind(objective: Callable[..., float], cure: str, tmp_path: Path) -> None:
    message = (
        rf"the objective {objective.__name__}\(.*\) -> .*cannot be called with one configuration.*{re.escape(cure)}"
    )
    with pytest.raises(TypeError, match=message):
        minimize(objective, small(), 3, storage=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_objectives_that_take_one() -> None:
    class Model:
        def train(self, config: dict[str, Any], epochs: int = 3) -> float:
            return float(config["a"])

        def __call__(self, config: dict[str, Any]) -> float:
            return float(config["a"])

    def catch_all(*args: Any, **kwargs: Any) -> float:
        return float(args[0]["a"])

    one_left = functools.partial(of_two, second=3)
    for objective in (Model().train, Model(), catch_all, one_left, lambda config: by_name(**config), len):
        assert minimize(objective, small(), 2).n_done == 2


def test_an_objective_that_returns_nothing_is_told_what_to_return() -> None:
    result = minimize(lambda config: None, small(), 1)
    assert "the objective returned None, which is not a loss; return a finite number" in result.history[0].message


def test_optimum_takes_a_name() -> None:
    space = small()
    assert space.optimum("a", "max").value == space.optimum(space["a"], "max").value == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("b", r"space 'small' has no parameter 'b'; it has \['a', 'c', 'm'\]"),
        ("aa", r"space 'small' has no parameter 'aa'; did you mean 'a'\?"),
        ("c", r"parameter 'c' \(categorical \['x', 'y'\]\) has no numeric value; .* space\['c'\]\['x'\]"),
        (lambda s: s["m"], r"parameter 'm' .*has no numeric value; .* space\['m'\]\['rf'\]"),
        (lambda s: s["a"] <= 2, r"not the relation a <= 2; a relation belongs into space\.rule"),
        (lambda s: {"a": 1}, r"takes an expression such as layers \* width or a parameter's name, got \{'a': 1\}"),
        (lambda s: None, r"takes an expression such as layers \* width or a parameter's name, got None"),
    ],
)
def test_optimum_of_what_is_no_number(given: Any, message: str) -> None:
    space = small()
    with pytest.raises(SpaceError, match=message):
        space.optimum(given(space) if callable(given) else given)


def test_directions_of_an_optimum() -> None:
    with pytest.raises(
        SpaceError, match=r"direction must be 'minimize' or 'maximize', got 'maximise'; did you mean 'maximize'\?"
    ):
        small().optimum("a", "maximise")


ELSEWHERE: dict[str, tuple[Callable[[mc.Space], object], type[Exception], str]] = {
    "solver": (
        lambda s: minimize(loss, s, 2, optimizer=mc.Method(solver=None)),
        TypeError,
        "solver must be a name such as 'auto'",
    ),
    "solver of optimum": (lambda s: s.optimum("a", solver=5), TypeError, "or a Backend; got 5"),
    "limits": (lambda s: minimize(loss, s, 2, limits=5), ValueError, "limits are given by the name of their output"),
    "samples": (lambda s: s.sample("5"), SpaceError, "must be a whole number and not negative, got '5'"),
    "half a sample": (lambda s: s.sample(2.5), SpaceError, "must be a whole number and not negative, got 2.5"),
    "seed of samples": (lambda s: s.sample(1, seed="a"), SpaceError, "seed must be a whole number, at least 0"),
    "time limit": (lambda s: s.optimum("a", time_limit="5"), MipcashError, "a number of seconds, at least 0.*got '5'"),
    "asks": (lambda s: mc.Study(s).ask("3"), ValueError, "needs whole numbers, n >= 1"),
    "name": (lambda s: mc.Space(5), SpaceError, "a space's name is a text"),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_other_calls(what: str) -> None:
    call, kind, message = ELSEWHERE[what]
    with pytest.raises(kind, match=message):
        call(small())
