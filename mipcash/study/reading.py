"""Parse what an objective returned or raised: a loss, named values and texts, or the reason why there is no loss.

No return value or exception of an objective may break the run or leave a trial without an outcome. Objects whose methods raise,
texts that no file can hold and numbers too large for a surrogate become failures with a readable message.
"""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mipcash.optimizers.outcome import FAILED, LOSS, PRESENT, TEXT, Outcome, Output
from mipcash.study.folds import Folds
from mipcash.study.trial import Failed
from mipcash.text import MESSAGE_LIMIT, kind, listed, readable, shown, storable

ADVICE = "return a finite number, a dict with 'loss', or mc.Failed('why')"

Cost = float | Mapping[str, float] | None
"""Cost of a call, or of outputs by name."""

LOSS_LIMIT = 1e100
"""Largest magnitude of a loss. Surrogates take differences, squares and cubes of losses, which overflow beyond it. A loss
of that size is usually a penalty for a failure."""

RETURNED, YIELDED = "the objective returned ", "the objective yielded "
"""Beginnings of messages about a returned, or yielded, value that is invalid."""

STOPPING = ("asyncio", "trio", "anyio", "gevent", "greenlet", "_pytest")
"""Packages whose exceptions outside ``Exception`` request a stop of the program (cancelled, timed out, test over)."""


def read_outcome(
    returned: Any, wanted: Sequence[str] = (LOSS,), required: Sequence[str] | None = None, cost: Cost = None
) -> Outcome:
    """Parse what an evaluation returned. Anything but a finite loss becomes a failed loss whose message says why.

    Args:
        returned: a number, a mapping of outputs by name, ``Failed``, or ``Folds``.
        wanted: requested outputs; a failure of the whole evaluation counts for each of them.
        required: outputs that count as failed if they are missing; None: all of ``wanted``.
        cost: of this call, or of outputs by name.
    """
    try:
        outputs = _read(returned, wanted, wanted if required is None else required)
    except BaseException as error:
        if stops(error):
            raise
        wording = f"the objective returned {kind(returned)}, which cannot be read: {describe_error(error)}; {ADVICE}"
        outputs = _all_failed(wanted, wording)
    costs = cost if isinstance(cost, Mapping) else dict.fromkeys(outputs, cost)
    return Outcome(
        {
            name: replace(output, message=storable(output.message, MESSAGE_LIMIT), cost=costs.get(name))
            for name, output in sorted(outputs.items(), key=lambda o: o[0] != LOSS)
        }
    )


def describe_error(error: BaseException) -> str:
    """Return ``Type: message (file:line)``, with the innermost line of the traceback."""
    text = readable(error).strip()
    text = storable(text, MESSAGE_LIMIT - 500)  # leave room for the file and line, added below
    named = f"{kind(error)}: {text}" if text else kind(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return named if trace is None else f"{named} ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


def stops(error: BaseException) -> bool:
    """Return True if an exception requests a stop of the program, rather than reporting a failed evaluation.

    Exceptions outside ``Exception`` can be either. Ctrl-C and a cancelled task must be passed on. A panic of a Rust extension would
    recur at every attempt, and no run could get past its trial, so it counts as a failure.
    """
    if isinstance(error, Exception):
        return False
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return True
    if isinstance(error, BaseExceptionGroup):  # such as Ctrl-C in a group of tasks
        return any(map(stops, error.exceptions))
    return any(str(c.__module__).split(".")[0] in STOPPING for c in type(error).__mro__)


def unread(output: Output) -> bool:
    """Return True if an output failed because it was missing or unreadable, i.e. by a mistake in the objective."""
    return output.status == FAILED and output.value is None and output.message.startswith((RETURNED, YIELDED))


def statement(returned: Any, wanted: Sequence[str] = (LOSS,), several: bool = False) -> bool:
    """Return True if an outcome is a statement about its configuration: a number (nan and inf included) or ``Failed``.

    Any other outcome (None, a text, a dict without a wanted output) is a mistake in the objective.

    Args:
        wanted: outputs, at least one of which must be such a value.
        several: of several objectives, so that a number alone does not say which one it is.
    """
    try:
        if isinstance(
            returned, Folds
        ):  # an invalid partial result ends the evaluation, so only the last can be invalid
            reported = returned.outcome if returned.outcome is not None else next(reversed(returned.values), None)
            return reported is not None and statement(reported, wanted, several)
        if several and not isinstance(returned, (Mapping, Failed)):
            return False
        given = [returned[name] for name in wanted if name in returned] if isinstance(returned, Mapping) else [returned]
        return any(isinstance(v, Failed) or (not _is_boolean(v) and _number(v) is not None) for v in given)
    except BaseException as error:
        if stops(error):
            raise
        return False


def loss_problem(loss: float) -> str:
    """Return why a number is no valid loss; empty if it is valid."""
    if not math.isfinite(loss):
        return f"{loss}; a loss must be finite"
    if abs(loss) > LOSS_LIMIT:
        return f"{loss:g}; a loss must lie within {LOSS_LIMIT:g} of 0: rescale it, or return mc.Failed('why')"
    return ""


def _read(returned: Any, wanted: Sequence[str], required: Sequence[str]) -> dict[str, Output]:
    if isinstance(returned, Failed):
        known = _read_mapping(getattr(returned, "values", {}), wanted, ())
        return {**_all_failed(wanted, _why(returned)), **known}
    if isinstance(returned, Folds):
        return _read_folds(returned, wanted, required)
    if isinstance(returned, Mapping):
        return _read_mapping(returned, wanted, required)
    if len(wanted) == 1 and wanted[0] != LOSS:  # a single requested output needs no name
        return _read_mapping({wanted[0]: returned}, wanted, required)
    loss, problem = _loss("the objective returned", returned)
    found = {LOSS: Output(FAILED, message=problem) if loss is None else Output.of(loss)}
    return {**_left_out(required, found, returned), **found}


def _read_folds(reported: Folds, wanted: Sequence[str], required: Sequence[str]) -> dict[str, Output]:
    """Return the mean of each output over the steps that gave it, or the returned outcome, together with the value of each step."""
    owed = [LOSS] if LOSS in wanted else list(wanted)
    fits = [_read(value, wanted, owed) for value in reported.values]
    by_name = {name: [(k, fit[name]) for k, fit in enumerate(fits) if name in fit] for name in _names(fits)}
    means = {name: _mean(rows) for name, rows in by_name.items()}
    if reported.outcome is not None:
        found = _read(
            reported.outcome, wanted, owed if reported.pruned else required
        )  # a pruned evaluation may lack outputs of later steps
    elif fits:
        left_out = {} if reported.pruned else _left_out(required, means, means)
        found = {**left_out, **means}
    else:
        found = _all_failed(wanted, f"{YIELDED}nothing and returned nothing; yield the loss of each step")
    return {name: _with_folds(output, means.get(name), reported.pruned.get(name)) for name, output in found.items()}


def _names(fits: Sequence[Mapping[str, Output]]) -> list[str]:
    return list(dict.fromkeys(name for fit in fits for name in fit))


def _mean(rows: Sequence[tuple[int, Output]]) -> Output:
    """Return the mean of one output over its steps: a failure if a step failed without a number, the last text if it is a text."""
    values = tuple(o.value for _, o in rows if o.value is not None)
    for k, output in rows:
        if output.status == FAILED and output.value is None:
            wording = YIELDED + output.message.removeprefix(RETURNED) if unread(output) else output.message
            return Output(FAILED, message=f"{wording} (step {k + 1})", folds=values)
    if not values:
        return rows[-1][1]
    try:
        mean = math.fsum(values) / len(values)
    except (OverflowError, ValueError):  # the sum overflows, or adds inf and -inf
        mean = sum(value / len(values) for value in values)
    return replace(Output.of(mean), folds=values)


def _with_folds(output: Output, mean: Output | None, estimate: tuple[float, float] | None) -> Output:
    """Add the values of the steps to an output; if the evaluation was pruned, replace the value by its estimate."""
    folds = () if mean is None else mean.folds
    if estimate is not None and output.status == PRESENT:
        return replace(output, value=estimate[0], folds=folds, variance=estimate[1])
    return replace(output, folds=folds)


def _read_mapping(returned: Mapping[Any, Any], wanted: Sequence[str], required: Sequence[str]) -> dict[str, Output]:
    """Parse outputs by name. An unreadable output fails; the other outputs, and the loss, are not affected."""
    found: dict[str, Output] = {}
    for name, value in returned.items():
        label = str.__str__(name) if isinstance(name, str) else readable(name, repr)
        if isinstance(value, Folds):  # the generator was the function of one output
            found[label] = _read_folds(value, (label,), (label,))[label]
        elif name != LOSS:
            found[label] = _further(label, value, text=label not in wanted)
    if LOSS in returned and LOSS not in found:
        given = returned[LOSS]
        loss, problem = (
            (None, _why(given)) if isinstance(given, Failed) else _loss("the objective returned 'loss':", given)
        )
        found[LOSS] = Output(FAILED, message=problem) if loss is None else Output.of(loss)
    return {**_left_out(required, found, returned), **found}


def _further(name: str, value: Any, text: bool) -> Output:
    """Parse an output other than the loss. The result is a number, a text if that is allowed, or a failure with its reason.

    Args:
        text: True if the output may be a text.
    """
    if isinstance(value, Failed):
        return Output(FAILED, message=_why(value))
    try:
        if text and (message := _text(value)) is not None:
            if len(message) <= MESSAGE_LIMIT or isinstance(value, str):
                return Output(TEXT, message=message)
            cause = f"it has {len(message):,} characters as JSON: write it to a file, and return its path"
            return Output(FAILED, message=f"{RETURNED}{readable(name, repr)}: {shown(value)}; {cause}")
        number, cause = _number(value), "a further value is a number" + (", a text, a path or a list" if text else "")
    except BaseException as error:
        if stops(error):
            raise
        number, cause = None, f"it cannot be read: {describe_error(error)}"
    if number is not None and (text or not math.isfinite(number) or abs(number) <= LOSS_LIMIT):
        return Output.of(number)
    if number is not None:
        cause = f"the value of a requested output must lie within {LOSS_LIMIT:g} of 0"
    return Output(FAILED, message=f"{RETURNED}{readable(name, repr)}: {shown(value)}; {cause}")


def _text(value: Any) -> str | None:
    """Return the text that is kept of a text, a path or a container (lists, dicts and arrays as JSON); None of anything else."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if not isinstance(value, (list, tuple, Mapping)) and not getattr(value, "ndim", 0):
        return None
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    except (TypeError, ValueError):
        return None


def _left_out(required: Sequence[str], found: Mapping[str, Output], returned: Any) -> dict[str, Output]:
    """Return a failure for each required output that is missing from an outcome."""

    def message(name: str) -> str:
        if isinstance(returned, Mapping):
            return f"{RETURNED}a dict without {name!r}, only {listed(returned)}"
        return f"{RETURNED}{shown(returned)} and no {name!r}"

    return {name: Output(FAILED, message=message(name)) for name in required if name not in found}


def _all_failed(names: Sequence[str], message: str) -> dict[str, Output]:
    return {name: Output(FAILED, message=message) for name in names}


def _why(failed: Failed) -> str:
    return readable(getattr(failed, "message", failed)).strip() or "failed"


def _loss(what: str, value: Any) -> tuple[float | None, str]:
    """Return the loss and an empty text, or None and the reason. A boolean is refused: it is most likely a stray comparison."""
    if _is_boolean(value):
        return None, f"{what} a bool, the result of a comparison, which is not a loss; {ADVICE}"
    number = _number(value)
    if number is None:
        return None, f"{what} {shown(value)}, which is not a loss; {ADVICE}"
    problem = loss_problem(number)
    return (None, f"{what} {problem}") if problem else (number, "")


def _number(value: Any) -> float | None:
    """Return a real scalar as a float (numpy, torch and Decimal scalars too); None for anything else."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0:
        return None
    if _is_complex(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_complex(value: Any) -> bool:
    """Return True for a complex number. It is no loss even with imaginary part 0, which ``float()`` would drop with a warning."""
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return True
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") == "c" or getattr(dtype, "is_complex", False) is True


def _is_boolean(value: Any) -> bool:
    return (
        isinstance(value, bool)
        or type(value).__name__ == "bool_"
        or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")
    )
