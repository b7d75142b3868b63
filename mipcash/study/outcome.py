"""Read what an objective returned or raised: a loss, named values, or the reason why there is none.

Nothing that an objective does may end a run or leave a trial without an outcome: objects whose methods raise, texts that
no file can hold and numbers that no surrogate can square all become failures that can be read.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipcash.optimizers.base import DONE, FAILED
from mipcash.study.text import MESSAGE_LIMIT, kind, listed, readable, shown, storable
from mipcash.study.trial import Failed

ADVICE = "return a finite number, a dict with 'loss', or mc.Failed('why')"

LOSS_LIMIT = 1e100
"""Largest magnitude of a loss. Surrogates take differences, squares and cubes of losses, which overflow beyond it; a loss
of that size is a penalty for a failure in all but name."""

STOPPING = ("asyncio", "trio", "anyio", "gevent", "greenlet", "_pytest")
"""Packages whose exceptions beyond ``Exception`` are orders to whoever runs (cancelled, timed out, test over)."""


@dataclass(frozen=True)
class Outcome:
    """What is recorded of an evaluation.

    Attributes:
        status: ``done`` or ``failed``.
        loss: finite and at most ``LOSS_LIMIT`` in magnitude where done, else None.
        values: the other entries of a dict, as floats; nan and inf are kept as they are.
        message: why it failed; fit for the journal.
    """

    status: str
    loss: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


def read_outcome(returned: Any) -> Outcome:
    """Read what an objective returned. Whatever is not a finite loss becomes a failure whose message says so."""
    try:
        outcome = _read(returned)
    except BaseException as error:
        if stops(error):
            raise
        said = f"the objective returned {kind(returned)}, which cannot be read: {describe_error(error)}; {ADVICE}"
        outcome = Outcome(FAILED, message=said)
    if outcome.status == DONE:
        return outcome
    return Outcome(FAILED, None, outcome.values, storable(outcome.message, MESSAGE_LIMIT))


def describe_error(error: BaseException) -> str:
    """``Type: message (file:line)``, where the line is the innermost one of the traceback."""
    text = readable(error).strip()
    text = storable(text, MESSAGE_LIMIT - 500)  # so that the place below is not cut off
    named = f"{kind(error)}: {text}" if text else kind(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return named if trace is None else f"{named} ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


def stops(error: BaseException) -> bool:
    """Whether an exception is an order to stop and no statement about an evaluation.

    What derives from ``BaseException`` alone is one or the other: Ctrl-C and a cancelled task must get through, while a
    panic of a Rust extension, which comes up again at every attempt, would let no run get past its trial.
    """
    if isinstance(error, Exception):
        return False
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return True
    return any(str(c.__module__).split(".")[0] in STOPPING for c in type(error).__mro__)


def loss_problem(loss: float) -> str:
    """Why a number is no loss; empty if it is one."""
    if not math.isfinite(loss):
        return f"{loss}; a loss must be finite"
    if abs(loss) > LOSS_LIMIT:
        return f"{loss:g}; a loss must lie within {LOSS_LIMIT:g} of 0: rescale it, or return mc.Failed('why')"
    return ""


def _read(returned: Any) -> Outcome:
    if isinstance(returned, Failed):
        return Outcome(FAILED, message=readable(getattr(returned, "message", returned)).strip() or "failed")
    if isinstance(returned, Mapping):
        return _read_mapping(returned)
    loss, problem = _loss("the objective returned", returned)
    return Outcome(DONE, loss) if not problem else Outcome(FAILED, message=problem)


def _read_mapping(returned: Mapping[Any, Any]) -> Outcome:
    values: dict[str, float] = {}
    problems = []
    for name, value in returned.items():
        if name == "loss":
            continue
        number = _number(value)
        if number is None or not isinstance(name, str):
            quoted = readable(name, repr)
            problems.append(f"the objective returned {quoted}: {shown(value)}; named values must be numbers")
        else:
            values[str.__str__(name)] = number
    if "loss" not in returned:
        without = f"the objective returned a dict without 'loss', only {listed(returned)}"
        return Outcome(FAILED, values=values, message=without)
    loss, problem = _loss("the objective returned 'loss':", returned["loss"])
    problems = [problem, *problems] if problem else problems
    return Outcome(FAILED, values=values, message="; ".join(problems)) if problems else Outcome(DONE, loss, values)


def _loss(what: str, value: Any) -> tuple[float | None, str]:
    """The loss, or the reason why it is none. A truth value is refused: it is a forgotten comparison, not a loss."""
    number = None if _is_boolean(value) else _number(value)
    if number is None:
        return None, f"{what} {shown(value)}, which is not a loss; {ADVICE}"
    problem = loss_problem(number)
    return (None, f"{what} {problem}") if problem else (number, "")


def _number(value: Any) -> float | None:
    """A real scalar as a float (numpy, torch and Decimal scalars too), None for anything else."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0:
        return None
    if _is_complex(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_complex(value: Any) -> bool:
    """A complex number is no loss, not even with the imaginary part 0, which ``float()`` would drop with a warning."""
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return True
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") == "c" or getattr(dtype, "is_complex", False) is True


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_" or str(getattr(value, "dtype", "")) == "bool"
