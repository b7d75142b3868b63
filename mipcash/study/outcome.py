"""Read what an objective returned: a loss, named values, or the reason why there is none."""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipcash.optimizers.base import DONE, FAILED
from mipcash.study.trial import Failed

ADVICE = "return a finite number, a dict with 'loss', or mc.Failed('why')"


@dataclass(frozen=True)
class Outcome:
    """What is recorded of an evaluation.

    Attributes:
        status: ``done`` or ``failed``.
        loss: finite where done, else None.
        values: the other entries of a dict, as floats; nan and inf are kept as they are.
        message: why it failed.
    """

    status: str
    loss: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


def read_outcome(returned: Any) -> Outcome:
    """Read what an objective returned. Whatever is not a finite loss becomes a failure whose message says so."""
    if isinstance(returned, Failed):
        return Outcome(FAILED, message=returned.message)
    if isinstance(returned, Mapping):
        return _read_mapping(returned)
    loss, problem = _loss("the objective returned", returned)
    return Outcome(DONE, loss) if not problem else Outcome(FAILED, message=problem)


def describe_error(error: BaseException) -> str:
    """``Type: message (file:line)``, where the line is the innermost one of the traceback."""
    text = str(error).strip()
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    return f"{named} ({frames[-1].filename}:{frames[-1].lineno})" if frames else named


def _read_mapping(returned: Mapping[Any, Any]) -> Outcome:
    values: dict[str, float] = {}
    problems = []
    for name, value in returned.items():
        if name == "loss":
            continue
        number = _number(value)
        if number is None or not isinstance(name, str):
            problems.append(f"the objective returned {name!r}: {_show(value)}; named values must be numbers")
        else:
            values[name] = number
    if "loss" not in returned:
        return Outcome(
            FAILED, values=values, message=f"the objective returned a dict without 'loss', only {list(returned)}"
        )
    loss, problem = _loss("the objective returned 'loss':", returned["loss"])
    problems = [problem, *problems] if problem else problems
    return Outcome(FAILED, values=values, message="; ".join(problems)) if problems else Outcome(DONE, loss, values)


def _loss(what: str, value: Any) -> tuple[float | None, str]:
    """The loss, or the reason why it is none. A truth value is refused: it is a forgotten comparison, not a loss."""
    number = None if _is_boolean(value) else _number(value)
    if number is None:
        return None, f"{what} {_show(value)}, which is not a loss; {ADVICE}"
    if not math.isfinite(number):
        return None, f"{what} {number}; a loss must be finite"
    return number, ""


def _number(value: Any) -> float | None:
    """A scalar as a float (numpy, torch and Decimal scalars too), None for anything else."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_" or str(getattr(value, "dtype", "")) == "bool"


def _show(value: Any) -> str:
    if value is None:
        return "None"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
