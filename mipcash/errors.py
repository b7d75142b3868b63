"""Exceptions. Every message names the thing (parameter, rule, file), the cause and the cure."""

from __future__ import annotations

import sys
from pathlib import Path


class MipcashError(Exception):
    """Base class of everything that mipcash raises on purpose."""


class SpaceError(MipcashError, ValueError):
    """A declaration that cannot be part of a space (refused when it is declared)."""


class RuleError(SpaceError):
    """A rule that cannot be part of a space: not a relation, degree above two, foreign parameters ..."""


class RuleWarning(UserWarning):
    """A rule that holds, and that most likely says more than was meant."""


class StepWarning(UserWarning):
    """A range that ends below its upper bound, because no step ends there."""


class ConfigurationError(MipcashError, ValueError):
    """A configuration that the space does not admit; the message lists every problem."""


class InfeasibleSpaceError(MipcashError, ValueError):
    """No legal configuration exists; the message names the rules in conflict."""


class SpaceExhaustedError(MipcashError):
    """Every legal configuration has been proposed: nothing is left to ask for."""


class SolverError(MipcashError, RuntimeError):
    """A solver is missing, does not accept the program, or failed."""


class UndecidedError(SolverError):
    """A limit came before a solver could tell; nothing is proven, and with more time there may be an answer."""


class StorageError(MipcashError, RuntimeError):
    """A journal cannot be read, belongs to another study, or is in use."""


class ExecutorError(MipcashError, RuntimeError):
    """An executor is broken; trials in it keep, and the run can be resumed with another one."""


class ObjectiveError(MipcashError, TypeError):
    """An objective that cannot run where it is to run; nothing was evaluated."""


class DefectError(MipcashError, RuntimeError):
    """An objective that fails for a reason of its own; what it was given is evaluated again once it is mended."""


class DataError(MipcashError, ValueError):
    """Data, a scoring or folds that do not fit together, or that nothing can be learned from."""


class ModelError(MipcashError, ValueError):
    """A model file (``models/*.py`` or a path) does not exist or does not declare what it must."""


def stack_level() -> int:
    """Return the ``stacklevel`` with which a caller warns of the first code that is not of this package."""
    inside, level = str(Path(__file__).parent), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    return level


def at_least(settings: object, **least: float) -> None:
    """Check settings against their least values, by name.

    Raises:
        SpaceError: one is below it, or nan.
    """
    for name, low in least.items():
        value = getattr(settings, name)
        if not value >= low:
            raise SpaceError(f"{type(settings).__name__}: {name} must be at least {low}, got {value}")
