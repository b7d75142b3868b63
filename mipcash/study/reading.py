"""Read what an objective returned or raised: a loss, named values, texts beside them, or the reason why there is none.

Nothing that an objective does may end a run or leave a trial without an outcome: objects whose methods raise, texts that
no file can hold and numbers that no surrogate can square all become failures that can be read.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mipcash.optimizers.outcome import FAILED, LOSS, PRESENT, TEXT, Outcome, Output
from mipcash.study.folds import Folds
from mipcash.study.text import MESSAGE_LIMIT, kind, listed, readable, shown, storable
from mipcash.study.trial import Failed

ADVICE = "return a finite number, a dict with 'loss', or mc.Failed('why')"

Cost = float | Mapping[str, float] | None
"""Of a call, or of outputs by name."""

LOSS_LIMIT = 1e100
"""Largest magnitude of a loss. Surrogates take differences, squares and cubes of losses, which overflow beyond it; a loss
of that size is a penalty for a failure in all but name."""

RETURNED, YIELDED = "the objective returned ", "the objective yielded "
"""How messages begin that tell of what was returned, or yielded, in the place of a number."""

STOPPING = ("asyncio", "trio", "anyio", "gevent", "greenlet", "_pytest")
"""Packages whose exceptions beyond ``Exception`` are orders to whoever runs (cancelled, timed out, test over)."""


def read_outcome(
    returned: Any, wanted: Sequence[str] = (LOSS,), required: Sequence[str] | None = None, cost: Cost = None
) -> Outcome:
    """Read what an evaluation returned. Whatever is no finite loss is a failed one, whose message says why.

    Args:
        returned: a number, a mapping of outputs by name, :class:`~mipcash.Failed`, or :class:`~mipcash.Folds`.
        wanted: outputs that are wanted of it: what is returned in the place of all of them counts for each.
        required: those that have failed where they are not in it; None: all that are wanted.
        cost: of this call, or of outputs by name.
    """
    try:
        outputs = _read(returned, wanted, wanted if required is None else required)
    except BaseException as error:
        if stops(error):
            raise
        said = f"the objective returned {kind(returned)}, which cannot be read: {describe_error(error)}; {ADVICE}"
        outputs = _all_failed(wanted, said)
    costs = cost if isinstance(cost, Mapping) else dict.fromkeys(outputs, cost)
    return Outcome(
        {
            name: replace(output, message=storable(output.message, MESSAGE_LIMIT), cost=costs.get(name))
            for name, output in sorted(outputs.items(), key=lambda o: o[0] != LOSS)
        }
    )


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


def unread(output: Output) -> bool:
    """Whether an output failed because it was not there or could not be read: a mistake of whoever returned the others."""
    return output.status == FAILED and output.value is None and output.message.startswith((RETURNED, YIELDED))


def statement(returned: Any, wanted: Sequence[str] = (LOSS,)) -> bool:
    """Whether an outcome says something of its configuration: a number, nan and inf included, or :class:`~mipcash.Failed`.

    Anything else (nothing, a text, a dict without what is wanted) is a mistake of whoever returned it.

    Args:
        wanted: outputs, of which one must say something.
    """
    try:
        if isinstance(returned, Folds):  # the last of them, if any, is what is wrong
            told = returned.outcome if returned.outcome is not None else next(reversed(returned.values), None)
            return told is not None and statement(told, wanted)
        given = [returned[name] for name in wanted if name in returned] if isinstance(returned, Mapping) else [returned]
        return any(isinstance(v, Failed) or (not _is_boolean(v) and _number(v) is not None) for v in given)
    except BaseException as error:
        if stops(error):
            raise
        return False


def loss_problem(loss: float) -> str:
    """Why a number is no loss; empty if it is one."""
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
    if len(wanted) == 1 and wanted[0] != LOSS:  # the only one that was asked for needs no name
        return _read_mapping({wanted[0]: returned}, wanted, required)
    loss, problem = _loss("the objective returned", returned)
    found = {LOSS: Output(FAILED, message=problem) if loss is None else Output.of(loss)}
    return {**_left_out(required, found, returned), **found}


def _read_folds(told: Folds, wanted: Sequence[str], required: Sequence[str]) -> dict[str, Output]:
    """The mean of each output over the fits that gave it, or what was returned in the end; and what each fit gave."""
    owed = [LOSS] if LOSS in wanted else list(wanted)
    fits = [_read(value, wanted, owed) for value in told.values]
    by_name = {name: [(k, fit[name]) for k, fit in enumerate(fits) if name in fit] for name in _names(fits)}
    means = {name: _mean(rows) for name, rows in by_name.items()}
    if told.outcome is not None:
        found = _read(told.outcome, wanted, owed if told.stopped else required)  # the rest might have told it
    elif fits:
        left_out = {} if told.stopped else _left_out(required, means, means)
        found = {**left_out, **means}
    else:
        found = _all_failed(wanted, f"{YIELDED}nothing and returned nothing; yield the loss of each fit")
    return {name: _with_folds(output, means.get(name), told.stopped.get(name)) for name, output in found.items()}


def _names(fits: Sequence[Mapping[str, Output]]) -> list[str]:
    return list(dict.fromkeys(name for fit in fits for name in fit))


def _mean(rows: Sequence[tuple[int, Output]]) -> Output:
    """Of one output, by fit: failed where a fit failed without a number; of texts the last."""
    values = tuple(o.value for _, o in rows if o.value is not None)
    for k, output in rows:
        if output.status == FAILED and output.value is None:
            said = YIELDED + output.message.removeprefix(RETURNED) if unread(output) else output.message
            return Output(FAILED, message=f"{said} (fit {k + 1})", folds=values)
    if not values:
        return rows[-1][1]
    try:
        mean = math.fsum(values) / len(values)
    except (OverflowError, ValueError):  # beyond what a float holds; inf - inf
        mean = sum(value / len(values) for value in values)
    return replace(Output.of(mean), folds=values)


def _with_folds(output: Output, mean: Output | None, estimate: tuple[float, float] | None) -> Output:
    """An output with what each fit gave; of an evaluation that was stopped, with what it would have given."""
    folds = () if mean is None else mean.folds
    if estimate is not None and output.status == PRESENT:
        return replace(output, value=estimate[0], folds=folds, variance=estimate[1])
    return replace(output, folds=folds)


def _read_mapping(returned: Mapping[Any, Any], wanted: Sequence[str], required: Sequence[str]) -> dict[str, Output]:
    """Outputs by name. One that cannot be read has failed alone: it does not cost the others, nor the loss."""
    found: dict[str, Output] = {}
    for name, value in returned.items():
        label = str.__str__(name) if isinstance(name, str) else readable(name, repr)
        if isinstance(value, Folds):  # of a function of its own
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
    """An output beside the loss: a number; a text where nobody asked for a number; else failed, and why.

    Args:
        text: whether it may be a text.
    """
    if isinstance(value, Failed):
        return Output(FAILED, message=_why(value))
    if text and isinstance(value, str):
        return Output(TEXT, message=str.__str__(value))
    try:
        number, cause = _number(value), "a further value is a number" + (" or a text" if text else "")
    except BaseException as error:
        if stops(error):
            raise
        number, cause = None, f"it cannot be read: {describe_error(error)}"
    if number is not None and (text or not math.isfinite(number) or abs(number) <= LOSS_LIMIT):
        return Output.of(number)
    if number is not None:
        cause = f"what is wanted must lie within {LOSS_LIMIT:g} of 0"
    return Output(FAILED, message=f"{RETURNED}{readable(name, repr)}: {shown(value)}; {cause}")


def _left_out(required: Sequence[str], found: Mapping[str, Output], returned: Any) -> dict[str, Output]:
    """Outputs that were asked for and that the last part of an outcome does not give."""

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
