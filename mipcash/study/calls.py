"""Checks of calls: argument names of other libraries, arguments in the wrong order, objectives that cannot be called.

All of them run before anything is opened or evaluated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.outcome import LOSS
from mipcash.space.direction import DIRECTIONS
from mipcash.space.space import Space
from mipcash.study.signatures import takes
from mipcash.text import did_you_mean, listed, shown

P = ParamSpec("P")
R = TypeVar("R")

OURS = {
    "budget": "n_trials n_calls max_evals n_iter n_iters n_iterations max_iter maxiter max_iterations iterations trials evals "
    "n_evals n_evaluations num_evals num_trials total_trials evaluations maxfun max_fevals",
    "seed": "random_state random_seed rng rstate np_random",
    "optimizer": "sampler algorithm algo method strategy acq_func base_estimator suggest",
    "callbacks": "callback",
    "progress": "show_progress_bar verbose show_progressbar progressbar disp",
    "storage": "journal db database checkpoint path file study_name load_if_exists",
    "objective": "func fn fun function f target loss",
    "space": "search_space dimensions bounds domain params param_space config_space configspace",
    "known": "x0 y0 points_to_evaluate initial_points",
    "limits": "constraints constraints_func",
    "pruning": "racing pruner early_stopping",
    "direction": "objectives directions sense maximize maximise minimize minimise mode greater_is_better",
}
"""Argument of this library -> names that other libraries use for it."""

SPELLED = {"n_trials": "budget"}
"""Name of another library that is accepted -> argument of this library."""

WITHIN = {
    "execution=4, or mc.Execution(workers=4)": "workers n_jobs n_workers num_workers n_parallel n_threads threads processes jobs "
    "parallel",
    "execution=mc.Execution(executor=...)": "executor pool map backend",
    "execution=mc.Execution(retries=...)": "retries",
    "execution=mc.Execution(evaluation_timeout=...)": "evaluation_timeout",
    "execution=mc.Execution(evaluation_memory=...)": "evaluation_memory",
    "budget=mc.Budget(50, timeout=...)": "timeout max_time time_limit max_seconds walltime walltime_limit time_budget",
    "budget=mc.Budget(50, costs=...)": "costs cost cost_per_eval evaluation_cost",
    "optimizer=mc.Method('hybrid', settings=...)": "settings config options optimizer_settings",
    "optimizer=mc.Method('hybrid', solver=...)": "solver",
    "optimizer=mc.Method('hybrid', seconds_per_proposal=...)": "seconds_per_proposal",
    "storage=mc.Journal('run.db', fresh=True)": "fresh",
    "confirm='replicate'": "noisy noise",
    "settings={'acquisition': ...}": "acquisition acq",
    "settings={'n_initial': ...}": "n_initial n_init n_startup_trials",
}
"""Argument that holds a setting -> names under which users pass that setting on its own."""


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that an unknown keyword or a surplus positional argument raises a TypeError that names the cure."""
    signature = inspect.signature(function)
    ours = [p.name for p in signature.parameters.values() if p.name != "self"]
    by_place = [n for n in ours if signature.parameters[n].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in SPELLED.keys() & kwargs.keys():
            if SPELLED[name] in ours and SPELLED[name] not in kwargs:
                kwargs[SPELLED[name]] = kwargs.pop(name)
        unknown = [name for name in kwargs if name not in ours]
        if unknown:
            raise TypeError(f"{title}() has no argument {unknown[0]!r}; {_cure(unknown[0], ours)}")
        given = len(args) - ("self" in signature.parameters)
        if given > len(by_place):
            raise TypeError(
                f"{title}() takes {', '.join(by_place)} by their place and all else by name, such as seed=1; got {given} arguments"
            )
        return function(*args, **kwargs)

    return called


def _cure(name: str, ours: Collection[str]) -> str:
    for our, others in OURS.items():
        if our in ours and name.lower() in others.split():
            return f"it is called {our}="
    for held, others in WITHIN.items():
        if held.split("=")[0] in ours and name.lower() in others.split():
            return f"give {held}"
    return did_you_mean(name, ours, "there are")


def check_order(objective: Any, space: Any, budget: Any) -> None:
    """Check that the first three arguments of ``minimize`` are in order: objective, space, budget.

    Raises:
        TypeError: the space is in another argument's place, or the objective cannot be called.
    """
    if isinstance(objective, Space) or isinstance(budget, Space):
        raise TypeError(
            f"minimize() takes the objective, the space and the budget in this order: minimize(objective, space, 20); got "
            f"{', '.join(_role(a) for a in (objective, space, budget))}"
        )
    if not callable(objective) and not isinstance(objective, Mapping):
        raise TypeError(f"the objective must be callable, got {shown(objective)}; the space comes after it")


def _role(argument: Any) -> str:
    if isinstance(argument, Space):
        return f"the space {argument.name!r}"
    return f"the function {_name(argument)}" if callable(argument) else shown(argument)


def check_direction(objective: Any, objectives: Objectives) -> None:
    """Check that the direction agrees with the one that an objective declares in its attribute ``direction``, if any.

    Raises:
        ValueError: the two directions differ, or there are several objectives and one function per output.
    """
    if objectives.several and isinstance(objective, Mapping):
        raise ValueError(
            f"there are several objectives, {listed(objectives.names)}, and one function per output is for decoupled evaluation "
            "of one loss: let one function return a dict with all of them"
        )
    own, direction = getattr(objective, "direction", None), objectives.each[0].direction
    if not objectives.several and direction != own and own in DIRECTIONS:
        raise ValueError(
            f"the objective {shown(objective)} gives a loss to {own}, and direction is {direction!r}; leave direction out"
        )


def check_objective(objective: Callable[..., Any] | Mapping[str, Any], names: Collection[str]) -> None:
    """Check that an objective, or each of its functions, can be called with one configuration.

    Args:
        names: of the space's parameters.

    Raises:
        TypeError: a function takes no argument, several arguments, or only keyword arguments.
        ValueError: the functions are not keyed by output name, or the loss has none.
    """
    if isinstance(objective, Mapping):
        if LOSS not in objective or not all(isinstance(n, str) and n for n in objective):
            raise ValueError(
                f'an objective of several functions has one per output, by its name, and one for the loss: {{"loss": f, '
                f'"latency_ms": g}}; got {listed(objective)}'
            )
        for name, function in objective.items():
            if not callable(function):
                raise TypeError(
                    f"the objective's {name!r} must be a function of a configuration, got {shown(function)}"
                )
            check_objective(function, names)
        return
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind({}, **{name: None for name in ("trial", "repeat") if takes(objective, name)})
    except TypeError:
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        called = _name(objective)
        raise TypeError(
            f"the objective {called}{signature} cannot be called with one configuration, the dict of parameter values that "
            f"mipcash gives it; {_wrapped(called, parameters, names)}"
        ) from None


def _wrapped(called: str, parameters: Collection[inspect.Parameter], names: Collection[str]) -> str:
    wanted = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.default is p.empty]
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not parameters:
        return f"let it take one: def {called}(config)"
    if set(wanted) <= set(names) and (keywords or len(wanted) == len(names)):
        return f"write lambda config: {called}(**config)"
    first = wanted[0] if wanted and wanted[0] in names else next(iter(names), "name")
    return f"write lambda config: {called}(config[{first!r}], ...)"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def callbacks_of(callbacks: Any) -> tuple[Any, ...]:
    """Return one callback or several as a tuple; an empty tuple for None.

    Raises:
        TypeError: a callback cannot be called with a study and a trial.
    """
    if callbacks is None:
        return ()
    found = (callbacks,) if callable(callbacks) else callbacks
    if isinstance(found, (str, Mapping)) or not hasattr(found, "__iter__"):
        raise TypeError(
            f"callbacks must be a function callback(study, trial), or a list of them; got {shown(callbacks)}"
        )
    found = tuple(found)
    for callback in found:
        if not callable(callback):
            raise TypeError(
                f"callbacks must be functions callback(study, trial), and {shown(callback)} is none; got {listed(found)}"
            )
        _check_callback(callback)
    return found


def _check_callback(callback: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind(None, None)
    except TypeError:
        called = _name(callback)
        raise TypeError(
            f"the callback {called}{signature} cannot be called with the study and the trial that was evaluated; let it take "
            f"both: callback(study, trial)"
        ) from None
