"""Invalid calls: errors that name the argument, the cause and the remedy before files are opened or evaluations run."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import DefectError, MipcashError, RuleError, SolverError, SpaceError


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


def solved(solver: Any) -> Callable[[mc.Space], object]:
    return lambda space: minimize(loss, space, 2, optimizer=mc.Method(solver=solver))


WORDS = {
    "n_iter": "it is called budget=",
    "random_state": "it is called seed=",
    "n_jobs": "give execution=4, or mc.Execution(workers=4)",
    "max_time": "give budget=mc.Budget(50, timeout=...)",
    "solver": "give optimizer=mc.Method('hybrid', solver=...)",
    "noisy": "give confirm='replicate'",
    "maximize": "it is called direction=",
    "pruner": "it is called pruning=",
    "progres": "did you mean 'progress'?",
    "qqq": "there are objective, space, budget, direction, limits, known, seed",
}


def test_argument_names_of_other_libraries_are_explained() -> None:
    for word, cure in WORDS.items():
        with pytest.raises(TypeError, match=re.escape(f"minimize() has no argument {word!r}; {cure}")):
            mc.minimize(loss, small(), **{word: 20})
    assert minimize(loss, small(), n_trials=3).n_done == 3
    with pytest.raises(TypeError, match=r"minimize\(\) has no argument 'n_trials'; it is called budget="):
        mc.minimize(loss, small(), budget=3, n_trials=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Study\(\) has no argument 'random_state'; it is called seed="):
        mc.Study(small(), random_state=3, other=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Study\(\) has no argument 'n_trials'; there are space, optimizer"):
        mc.Study(small(), n_trials=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Study\(\) takes space, optimizer by their place and all else by name"):
        mc.Study(small(), "random", 3)  # type: ignore[misc]


def test_positional_arguments_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    said = r"in this order: minimize\(objective, space, 20\); got .*the space 'small'"
    for arguments in ((small(), loss, 5), (loss, 5, small()), (5, loss, small())):
        with pytest.raises(TypeError, match=said):
            minimize(*arguments, storage=tmp_path / "run.db")
    with pytest.raises(TypeError, match=r"takes objective, space, budget by their place and all else by name.*got 4"):
        minimize(loss, small(), 5, "random")
    assert not (tmp_path / "run.db").exists()


CALLS: list[tuple[Callable[[mc.Space], object], type[Exception], str]] = [
    *(
        (lambda s, b=b: minimize(loss, s, b), ValueError, "number of evaluations, at least 1, got ")
        for b in (0, None, 2.5)
    ),
    *(
        (lambda s, b=b: minimize(loss, s, b), ValueError, "number of evaluations, at least 1, got ")
        for b in ("9", True)
    ),
    *(
        (lambda s, n=n: minimize(loss, s, 2, seed=n), ValueError, "seed must be a whole number, at le")
        for n in (-1, None)
    ),
    (lambda s: minimize(None, s, 5), TypeError, "objective must be callable, got None"),
    (
        lambda s: minimize(s, loss, 5),
        TypeError,
        "takes the objective, the space and the budget in this order.*the space",
    ),
    (lambda s: minimize(loss, "network", 3), TypeError, r"space must be a mipcash\.Space, got .*'network'"),
    (lambda s: minimize(loss, s, 3, execution=0), ValueError, "workers"),
    *((lambda s, t=t: mc.Budget(3, timeout=t), ValueError, "timeout") for t in (-1, math.nan)),
    (lambda s: minimize(loss, s, 2, optimizer="tpe"), MipcashError, r"no optimizer 'tpe'; there are hybrid, mutation"),
    (
        lambda s: minimize(loss, s, 2, optimizer="hibrid"),
        MipcashError,
        r"no optimizer 'hibrid'; did you mean 'hybrid'\?",
    ),
    (solved("glpk"), SolverError, r"no solver 'glpk'; there are auto, .*highs"),
    (solved("gurobbi"), SolverError, r"no solver 'gurobbi'; did you mean 'gurobi'\?"),
    (solved(None), TypeError, "solver must be a name such as 'auto'"),
    (lambda s: s.optimum("a", solver=5), TypeError, "or a Backend; got 5"),
    (lambda s: minimize(loss, s, 2, limits=5), ValueError, "limits are given by the name of their output"),
    (lambda s: mc.Space("bare").sample(1), MipcashError, "no parameters"),
    (lambda s: s.sample(-1), SpaceError, "-1"),
    (lambda s: s.sample(2.5), SpaceError, r"must be a whole number and not negative, got 2\.5"),
    (lambda s: s.sample(1, seed="a"), SpaceError, "seed must be a whole number, at least 0"),
    (lambda s: s.optimum("a", time_limit="5"), MipcashError, "a number of seconds, at least 0.*got '5'"),
    (lambda s: s.optimum("a", "maximise"), SpaceError, r"'minimize' or 'maximize', got 'maximise'; did you mean 'maxi"),
    (lambda s: s.optimum("b"), SpaceError, r"space 'small' has no parameter 'b'; it has a, c, m"),
    (lambda s: s.optimum("aa"), SpaceError, r"space 'small' has no parameter 'aa'; did you mean 'a'\?"),
    (
        lambda s: s.optimum("c"),
        SpaceError,
        r"parameter 'c' \(categorical .*\) has no numeric value; .* space\['c'\]\['x'\]",
    ),
    (lambda s: s.optimum(s["m"]), SpaceError, r"parameter 'm' .*has no numeric value; .* space\['m'\]\['rf'\]"),
    (lambda s: s.optimum(s["a"] <= 2), SpaceError, r"not the relation a <= 2; a relation belongs into space\.rule"),
    (lambda s: s.optimum(None), SpaceError, r"an expression such as layers \* width or a parameter's name, got None"),
    (lambda s: mc.Study(s).ask("3"), ValueError, "needs whole numbers, n >= 1"),
    (lambda s: mc.Space(5), SpaceError, "a space's name is a text"),
    (
        lambda s: minimize(loss, s, 2, direction=["minimize", "maximize"]),
        ValueError,
        r"are no names: .*give their directions by name, such as direction=\{",
    ),
    (lambda s: s.rule("a <= 3"), RuleError, "is None: give its name, then its relation, which is no text"),
    (lambda s: minimize(lambda c: c["a"] > 1, s, 4), DefectError, "returned a bool, the result of a comparison"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_invalid_calls_are_refused(call: Callable[[mc.Space], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(small())


def test_numpy_numbers_are_accepted() -> None:
    ours = minimize(loss, small(), 2, seed=3)
    theirs = minimize(loss, small(), np.int64(2), seed=np.int64(3), execution=mc.Execution(workers=np.int32(1)))
    assert [t.config for t in ours.history] == [t.config for t in theirs.history]
    assert small().optimum("a", "max").value == 3


def test_callbacks_may_be_a_function_or_a_list() -> None:
    seen: list[int] = []

    def note(study: mc.Study, trial: mc.Trial) -> None:
        seen.append(trial.number)

    minimize(loss, small(), 2, callbacks=note)
    minimize(loss, small(), 2, callbacks=[note, note])
    assert seen == [0, 1, 0, 0, 1, 1]
    assert minimize(loss, small(), 3, callbacks=lambda study, trial: np.True_).stopped == "callback"
    for given, said in (
        ("note", r"callbacks must be a function callback\(study, trial\), or a list of them"),
        ({"on_trial": note}, r"callbacks must be a function callback\(study, trial\), or a list of them"),
        (lambda study: None, r"the callback <lambda>\(study\) cannot be called with the study and the trial"),
        ([note, 5], r"callbacks must be functions callback\(study, trial\), and int 5 is none"),
    ):
        with pytest.raises(TypeError, match=said):
            minimize(loss, small(), 2, callbacks=given)


def by_name(a: int, c: str, m: str) -> float:
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
def test_objectives_with_another_signature_are_refused(
    objective: Callable[..., float], cure: str, tmp_path: Path
) -> None:
    said = rf"the objective {objective.__name__}\(.*\) -> .*cannot be called with one configuration.*{re.escape(cure)}"
    with pytest.raises(TypeError, match=said):
        minimize(objective, small(), 3, storage=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_a_repeat_without_a_default_is_passed_in_the_search_too() -> None:
    def noisy(config: dict[str, Any], repeat: int) -> float:
        seen.append(repeat)
        return float(config["a"]) + repeat / 10

    seen: list[int] = []
    minimize(noisy, small(), 8, confirm=2)
    assert seen[0] == 0
    assert max(seen) > 0


def test_objectives_that_take_one_configuration_are_accepted() -> None:
    class Model:
        def train(self, config: dict[str, Any], epochs: int = 3) -> float:
            return float(config["a"])

        __call__ = train

    def catch_all(*args: Any, **kwargs: Any) -> float:
        return float(args[0]["a"])

    one_left = functools.partial(of_two, second=3)
    for objective in (Model().train, Model(), catch_all, one_left, lambda config: by_name(**config), len):
        assert minimize(objective, small(), 2).n_done == 2
    (trial,) = minimize(lambda config: None, small(), 1).history
    assert "the objective returned None, which is not a loss; return a finite number" in trial.message
