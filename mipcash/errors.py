"""Exceptions. Every message names the thing that is wrong (parameter, rule, file), the cause and the remedy."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path


class MipcashError(Exception):
    """Base class of everything that mipcash raises on purpose.

    Examples:
        >>> import mipcash as mc
        >>> try:
        ...     mc.Space("box").real("a", 1.0, 0.0)
        ... except mc.errors.MipcashError as error:
        ...     print(error)
        parameter 'a': low > high (1.0 > 0.0); swap them
    """


class SpaceError(MipcashError, ValueError):
    """A declaration that is not valid in a space (refused when it is declared).

    Examples:
        >>> import mipcash as mc
        >>> mc.Space("box").real("a", 0.0, 1.0, log=True)
        Traceback (most recent call last):
            ...
        mipcash.errors.SpaceError: parameter 'a': log=True needs low > 0, got low=0.0; raise low or drop log
    """


class RuleError(SpaceError):
    """A rule that is not valid in a space, such as a relation of degree above two, or parameters of another space.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> space.rule("cubic", a**3 <= 20)
        Traceback (most recent call last):
            ...
        mipcash.errors.RuleError: ...
    """


class RuleWarning(UserWarning):
    """A rule that is valid but probably stricter than intended, because it forces a conditional parameter to be active.

    Examples:
        >>> import warnings
        >>> import mipcash as mc
        >>> space = mc.Space("network")
        >>> layers = space.integer("layers", 1, 3)
        >>> dropout = space.real("dropout", 0.0, 0.5, when=layers.is_(2, 3))
        >>> rule = space.rule("regularised", dropout >= 0.1)  # an inactive dropout counts as 0
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = space.sample(1)
        >>> [each.category.__name__ for each in caught]
        ['RuleWarning']
    """


class StepWarning(UserWarning):
    """A range whose steps do not reach its upper bound, so that its largest value is below the bound.

    Examples:
        >>> import warnings
        >>> import mipcash as mc
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = mc.Space("box").integer("a", 0, 10, step=4)
        >>> [each.category.__name__ for each in caught]
        ['StepWarning']
    """


class ConfigurationError(MipcashError, ValueError):
    """A configuration that the space does not allow; the message lists every problem.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> mc.Study(space, "random").enqueue({"a": 12})
        Traceback (most recent call last):
            ...
        mipcash.errors.ConfigurationError: ...12 is outside [0, 9]...
    """


class InfeasibleSpaceError(MipcashError, ValueError):
    """No legal configuration exists; the message names the rules in conflict.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rules = space.rule("large", a + b >= 10), space.rule("small", a + b <= 5)
        >>> space.sample(1)
        Traceback (most recent call last):
            ...
        mipcash.errors.InfeasibleSpaceError: ...
    """


class SpaceExhaustedError(MipcashError):
    """Every legal configuration has been proposed, so that no new one is left.

    Attributes:
        proven: False if legal configurations may be left whose numerical values are too close to proposed ones for the solver's
            tolerance.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 1)
        >>> study = mc.Study(space, "random")
        >>> trials = study.ask(2)
        >>> study.ask()
        Traceback (most recent call last):
            ...
        mipcash.errors.SpaceExhaustedError: ...
    """

    proven: bool = True


class SolverError(MipcashError, RuntimeError):
    """A solver is missing, does not accept the program, or failed.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> space.optimum(a, solver="simplex")
        Traceback (most recent call last):
            ...
        mipcash.errors.SolverError: ...
    """


class UndecidedError(SolverError):
    """A solver reached a limit before it could decide. Nothing is proven; with more time there may be an answer.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> space.conflict(time_limit=0)
        Traceback (most recent call last):
            ...
        mipcash.errors.UndecidedError: ...
    """


class StorageError(MipcashError, RuntimeError):
    """A journal cannot be read, belongs to another study, or is in use.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> mc.Study(space, "random", storage="run.db", seed=0).close()
        >>> mc.Study(space, "random", storage="run.db", seed=1)
        Traceback (most recent call last):
            ...
        mipcash.errors.StorageError: ...
    """


class ExecutorError(MipcashError, RuntimeError):
    """An executor is broken. Its trials are kept, and the run can be resumed with another executor.

    Examples:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> pool = ThreadPoolExecutor(1)
        >>> pool.shutdown()
        >>> execution = mc.Execution(executor=pool)
        >>> mc.minimize(lambda c: c["a"], space, 3, optimizer="random", execution=execution, progress=False)
        Traceback (most recent call last):
            ...
        mipcash.errors.ExecutorError: ...
    """


class ObjectiveError(MipcashError, TypeError):
    """An objective that cannot run in the chosen executor; nothing was evaluated.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(lambda c: c["a"], space, 3, optimizer="random", progress=False)
        >>> mc.ensemble(run)  # the objective is not cross-validated
        Traceback (most recent call last):
            ...
        mipcash.errors.ObjectiveError: ...
    """


class DefectError(MipcashError, RuntimeError):
    """An objective that fails because of a defect in its own code. Its configuration is evaluated again once that is fixed.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> mc.minimize(lambda c: c["a"] + undefined, space, 3, optimizer="random", progress=False)
        Traceback (most recent call last):
            ...
        mipcash.errors.DefectError: ...
    """


class DataError(MipcashError, ValueError):
    """Data, a scoring or folds that do not fit together, or from which no model can be fitted.

    Examples:
        >>> import mipcash as mc
        >>> mc.CrossValidated(dict, [[0.0], [1.0]], [0, 1, 1], scoring="accuracy")
        Traceback (most recent call last):
            ...
        mipcash.errors.DataError: ...
    """


class ModelError(MipcashError, ValueError):
    """A model file (``models/*.py`` or a path) that does not exist or lacks a required declaration.

    Examples:
        >>> from mipcash.cli.modelfile import load
        >>> load("missing.py")
        Traceback (most recent call last):
            ...
        mipcash.errors.ModelError: ...
    """


class TellError(MipcashError, ValueError):
    """An outcome for a trial of another study, or a second outcome for a trial.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> study = mc.Study(space, "random")
        >>> trial = study.tell(study.ask(), 1.0)
        >>> try:
        ...     study.tell(trial, 2.0)
        ... except mc.errors.TellError as error:
        ...     print(type(error).__name__)
        TellError
    """


class LateError(TellError):
    """An outcome that is reported too late: its worker counted as dead, and another worker has recorded an outcome of the trial.

    Examples:
        >>> import mipcash as mc
        >>> issubclass(mc.errors.LateError, mc.errors.TellError)
        True
    """


class BudgetError(MipcashError, ValueError):
    """A budget in steps that is smaller than the number of steps of one evaluation.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> def folds(config):
        ...     for fold in range(3):
        ...         yield float(config["a"])
        >>> try:
        ...     mc.minimize(folds, space, mc.Steps(2), optimizer="random", progress=False)
        ... except mc.errors.BudgetError as error:
        ...     print(type(error).__name__)
        BudgetError
    """


class IllegalProposalError(MipcashError, AssertionError):
    """A proposal that violates the rules of the space: a bug of the optimizer that made it, never a mistake of the user.

    Examples:
        >>> import mipcash as mc
        >>> issubclass(mc.errors.IllegalProposalError, mc.errors.MipcashError)
        True
    """


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the first caller outside this package."""
    inside, level = str(Path(__file__).parent), 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


PLAIN: dict[str, tuple[type, str]] = {
    "bool": (bool, "True or False"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "a text"),
}
"""Classes of the values of settings by type, and their names in messages."""


def check_settings(
    settings: object,
    *,
    above_0: Sequence[str] = (),
    inside_0_1: Sequence[str] = (),
    choices: Mapping[str, Iterable[object]] | None = None,
    **least: float,
) -> None:
    """Check the types and values of settings. A setting whose type has ``None`` may be None.

    Args:
        settings: a dataclass of settings.
        above_0: settings that are above 0 and finite.
        inside_0_1: settings that are above 0 and below 1.
        choices: setting -> its values.
        least: setting -> its least value.

    Raises:
        SpaceError: a setting is of another type, nan, or has a value that is not allowed.
    """
    types = {each.name: str(each.type) for each in fields(settings)}  # type: ignore[arg-type]
    for name, declared in types.items():
        kind, value = declared.removesuffix(" | None"), getattr(settings, name)
        if value is None and kind != declared:
            continue
        if kind in PLAIN and (not isinstance(value, PLAIN[kind][0]) or (kind != "bool" and isinstance(value, bool))):
            raise SpaceError(f"{type(settings).__name__}: {name} must be {PLAIN[kind][1]}, got {value!r}")
        if not kind.endswith(("Settings", "Sizes")):
            continue
        if kind not in (c.__name__ for c in type(value).__mro__):
            raise SpaceError(f"{type(settings).__name__}: {name} takes {kind}(...), got {value!r}")
    for name, known in (choices or {}).items():
        if (value := getattr(settings, name)) not in (names := list(known)):
            raise SpaceError(
                f"{type(settings).__name__}: {name} must be {' or '.join(map(repr, names))}, got {value!r}"
            )
    for name, high in {**dict.fromkeys(above_0, math.inf), **dict.fromkeys(inside_0_1, 1.0)}.items():
        value = getattr(settings, name)
        if value is not None and not 0.0 < value < high:
            raise SpaceError(f"{type(settings).__name__}: {name} must be above 0 and below {high:g}, got {value}")
    for name, low in least.items():
        value = getattr(settings, name)
        if value is not None and not value >= low:
            raise SpaceError(f"{type(settings).__name__}: {name} must be at least {low}, got {value}")
