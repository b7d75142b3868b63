"""The outcome of a trial: named outputs, each present, missing, failed or a text, with their cost.

The loss is the output of that name. An output that was never reported is missing and has no entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

DONE = "done"
FAILED = "failed"
"""Status of a trial or an output: evaluated, without a usable number."""
PENDING = "pending"
"""Status of a trial: proposed, with outputs still to be evaluated."""
PRESENT = "present"
MISSING = "missing"
TEXT = "text"
"""Status of an output that is a text for the user; it is not used in computations."""

LOSS = "loss"
"""The output that is minimised."""
VARIANCE = "variance"
"""The output that is the noise variance of the loss, if the objective returns it."""


@dataclass(frozen=True)
class Output:
    """One output of a trial.

    Attributes:
        status: ``present`` (a finite number), ``failed``, ``text``, or ``missing`` (not reported yet, or never requested).
        value: the number; for a failed output the reported number, if any (nan, inf).
        message: reason of the failure, or the text; else empty.
        cost: cost of the evaluation, in seconds or as reported; None if unknown. Each output of one call has the cost of that call.
        folds: partial results, one per fit, in their order; empty if the evaluation returned the value alone.
        variance: None for a complete evaluation. For a pruned one, the variance of ``value`` as an estimate of the complete result,
            made from the fits in ``folds``.
    """

    status: str = MISSING
    value: float | None = None
    message: str = ""
    cost: float | None = None
    folds: tuple[float, ...] = ()
    variance: float | None = None

    def __post_init__(self) -> None:
        if self.status not in (PRESENT, FAILED, MISSING, TEXT):
            raise ValueError(f"an output is {PRESENT!r}, {FAILED!r}, {TEXT!r} or {MISSING!r}, and not {self.status!r}")
        if self.status == PRESENT and (self.value is None or not math.isfinite(self.value)):
            raise ValueError(f"a present output needs a finite value, got {self.value!r}")
        if self.status == TEXT and self.value is not None:
            raise ValueError(f"a text has no value, got {self.value!r}")
        if self.variance is not None and not 0.0 <= self.variance < math.inf:
            raise ValueError(f"the variance of an estimate is a finite number, at least 0, got {self.variance!r}")

    @classmethod
    def of(cls, value: float, cost: float | None = None) -> Output:
        """Return the output of a reported number; nan and inf are failures."""
        if math.isfinite(value):
            return cls(PRESENT, value, cost=cost)
        return cls(FAILED, value, f"{value}, which is no finite number", cost)


UNKNOWN = Output()
"""An output that was never reported."""


@dataclass(frozen=True)
class Outcome:
    """All outputs of a trial.

    Attributes:
        outputs: outputs by name, with the loss.
    """

    outputs: Mapping[str, Output] = field(default_factory=dict)

    @classmethod
    def of(cls, loss: float | None = None, values: Mapping[str, float] | None = None) -> Outcome:
        """Return the outcome with a loss (None: missing) and further values."""
        reported = {name: Output.of(value) for name, value in (values or {}).items()}
        return cls(reported if loss is None else {LOSS: Output.of(loss), **reported})

    @classmethod
    def failure(cls, message: str, values: Mapping[str, float] | None = None) -> Outcome:
        """Return the outcome of an evaluation without a loss, with the reason."""
        reported = {name: Output.of(value) for name, value in (values or {}).items()}
        return cls({LOSS: Output(FAILED, message=message), **reported})

    def __repr__(self) -> str:
        wording = (
            f"{name}={o.status if o.value is None else format(o.value, 'g')}" for name, o in self.outputs.items()
        )
        return f"Outcome({', '.join(wording)})"

    def __getitem__(self, name: str) -> Output:
        return self.outputs.get(name, UNKNOWN)

    @cached_property
    def loss(self) -> float | None:
        """The loss; None unless it is present."""
        return self[LOSS].value if self[LOSS].status == PRESENT else None

    @property
    def values(self) -> dict[str, float]:
        """The outputs other than the loss that are numbers, nan and inf included."""
        return {n: o.value for n, o in self.outputs.items() if n != LOSS and o.value is not None}

    @property
    def texts(self) -> dict[str, str]:
        """The text outputs, by name."""
        return {n: o.message for n, o in self.outputs.items() if o.status == TEXT}

    @property
    def some(self) -> bool:
        """True if an output is present."""
        return any(o.status == PRESENT for o in self.outputs.values())

    @property
    def folds(self) -> tuple[float, ...]:
        """The partial results of the loss, one per fit; empty if the evaluation reported none."""
        return self[LOSS].folds

    @property
    def steps(self) -> int:
        """Number of fits of the evaluation: the number of partial results, or 1 if there are none."""
        return max((len(o.folds) for o in self.outputs.values()), default=0) or 1

    @property
    def pruned(self) -> bool:
        """True if the evaluation was pruned before its last fit, so that the loss is an estimate."""
        return self[LOSS].variance is not None

    @property
    def variance(self) -> float:
        """Variance of the loss as an estimate of the complete evaluation; 0 for a complete evaluation."""
        return self[LOSS].variance or 0.0

    @property
    def message(self) -> str:
        """Reason for which the loss failed, or the message of another output if there is no loss; else empty."""
        if LOSS in self.outputs:
            return self[LOSS].message
        return next((o.message for o in self.outputs.values() if o.message and o.status != TEXT), "")

    def negated(self) -> Outcome:
        """Return the outcome with the loss and its partial results negated, for a loss to be maximised and back."""
        loss = self.outputs.get(LOSS)
        if loss is None or loss.value is None:
            return self
        return Outcome(
            {**self.outputs, LOSS: replace(loss, value=-loss.value, folds=tuple(-fold for fold in loss.folds))}
        )

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the given names whose output is missing."""
        return tuple(name for name in names if self[name].status == MISSING)

    def with_part(self, part: Outcome) -> Outcome:
        """Return the outcome updated with a later one, whose outputs take precedence."""
        return Outcome({**self.outputs, **part.outputs})

    def status(self, asked: Iterable[str] = ()) -> str:
        """Return ``failed`` if the loss failed or is a text, else ``done``.

        If the loss was not to be evaluated, return ``failed`` if every output of ``asked`` failed or is a text.

        Args:
            asked: the outputs that were to be evaluated; empty for all.
        """
        names = tuple(asked) or (LOSS,)
        decides = (LOSS,) if LOSS in names else names
        return FAILED if all(self[name].status in (FAILED, TEXT) for name in decides) else DONE


@dataclass(frozen=True)
class Limit:
    """An outcome constraint, ``low <= output <= high``, on an output that is known only after an evaluation.

    Raises:
        ValueError: neither bound is finite, a bound is nan, or low exceeds high.
    """

    output: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high or (math.isinf(self.low) and math.isinf(self.high)):
            raise ValueError(
                f"the limit on {self.output!r} needs a finite low or high, and low <= high; got {self.low} and {self.high}"
            )

    def violation(self, value: float | None) -> float:
        """Return the violation of the constraint by a value: 0 if feasible, inf if the value is missing or not finite."""
        if value is None or not math.isfinite(value):
            return math.inf
        return max(0.0, self.low - value, value - self.high)

    def __str__(self) -> str:
        low = f"{self.low:g} <= " if math.isfinite(self.low) else ""
        return f"{low}{self.output}" + (f" <= {self.high:g}" if math.isfinite(self.high) else "")
