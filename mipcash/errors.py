"""Exceptions. Every message names the thing that is wrong (parameter, rule, file), the cause and the remedy."""

from __future__ import annotations

import sys
from pathlib import Path


class MipcashError(Exception):
    """Base class of everything that mipcash raises on purpose."""


class SpaceError(MipcashError, ValueError):
    """A declaration that is not valid in a space (refused when it is declared)."""


class RuleError(SpaceError):
    """A rule that is not valid in a space: not a relation, degree above two, parameters of another space ..."""


class RuleWarning(UserWarning):
    """A rule that is valid but most likely means more than intended."""


class StepWarning(UserWarning):
    """A range whose last value is below its upper bound, because no step ends there."""


class ConfigurationError(MipcashError, ValueError):
    """A configuration that the space does not allow; the message lists every problem."""


class InfeasibleSpaceError(MipcashError, ValueError):
    """No legal configuration exists; the message names the rules in conflict."""


class SpaceExhaustedError(MipcashError):
    """Every legal configuration has been proposed, so that no new one is left."""


class SolverError(MipcashError, RuntimeError):
    """A solver is missing, does not accept the program, or failed."""


class UndecidedError(SolverError):
    """A solver reached a limit before it could decide. Nothing is proven; with more time there may be an answer."""


class StorageError(MipcashError, RuntimeError):
    """A journal cannot be read, belongs to another study, or is in use."""


class ExecutorError(MipcashError, RuntimeError):
    """An executor is broken. Its trials are kept, and the run can be resumed with another executor."""


class ObjectiveError(MipcashError, TypeError):
    """An objective that cannot run in the chosen executor; nothing was evaluated."""


class DefectError(MipcashError, RuntimeError):
    """An objective that fails because of a defect in its own code; its configuration is evaluated again once that is fixed."""


class DataError(MipcashError, ValueError):
    """Data, a scoring or folds that do not fit together, or from which no model can be fitted."""


class ModelError(MipcashError, ValueError):
    """A model file (``models/*.py`` or a path) that does not exist or lacks a required declaration."""


def stack_level() -> int:
    """Return the ``stacklevel`` at which a warning points to the first caller outside this package."""
    inside, level = str(Path(__file__).parent), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    return level


def at_least(settings: object, **least: float) -> None:
    """Check settings against their least values, given by name.

    Raises:
        SpaceError: a setting is below its least value, or nan.
    """
    for name, low in least.items():
        value = getattr(settings, name)
        if not value >= low:
            raise SpaceError(f"{type(settings).__name__}: {name} must be at least {low}, got {value}")
