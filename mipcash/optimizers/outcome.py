"""What is known of a trial: named outputs, each present, missing or failed, or a text that is kept, with what it cost.

The loss is the output of that name. What was never told is missing, and no entry is made for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

DONE = "done"
FAILED = "failed"
"""Of a trial or an output: evaluated, and there is no number that counts."""
PENDING = "pending"
"""Proposed, and not all that was asked for is known."""
PRESENT = "present"
MISSING = "missing"
TEXT = "text"
"""Of an output beside the numbers, for people: nothing computes with it."""

LOSS = "loss"
"""The output that is minimised."""


@dataclass(frozen=True)
class Output:
    """One output of a trial.

    Attributes:
        status: ``present`` (a finite number), ``failed``, ``text``, or ``missing`` (not told yet, or never asked for).
        value: the number; of a failed one what was told, where that was a number at all (nan, inf).
        message: why it failed, or the text; empty otherwise.
        cost: what its evaluation cost, in seconds or as it was told; None: nobody said. Outputs of one call bear the cost of
            that call each.
        folds: the partial results of an evaluation that gave several, one per fit, in their order; empty: it gave the value alone.
        variance: None: the value is what the whole evaluation gave. A number: the evaluation was stopped after the fits of
            ``folds``, and the value estimates what the whole one would have given, with this variance.
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
        """A number that was told: nan and inf are failures."""
        if math.isfinite(value):
            return cls(PRESENT, value, cost=cost)
        return cls(FAILED, value, f"{value}, which is no finite number", cost)


UNKNOWN = Output()
"""What is known of an output that was never told."""


@dataclass(frozen=True)
class Outcome:
    """What is known of a trial.

    Attributes:
        outputs: by name, the loss among them.
    """

    outputs: Mapping[str, Output] = field(default_factory=dict)

    @classmethod
    def of(cls, loss: float | None = None, values: Mapping[str, float] | None = None) -> Outcome:
        """Of a loss (None: missing) and further values."""
        told = {name: Output.of(value) for name, value in (values or {}).items()}
        return cls(told if loss is None else {LOSS: Output.of(loss), **told})

    @classmethod
    def failure(cls, message: str, values: Mapping[str, float] | None = None) -> Outcome:
        """Of an evaluation without a loss."""
        told = {name: Output.of(value) for name, value in (values or {}).items()}
        return cls({LOSS: Output(FAILED, message=message), **told})

    def __repr__(self) -> str:
        said = (f"{name}={o.status if o.value is None else format(o.value, 'g')}" for name, o in self.outputs.items())
        return f"Outcome({', '.join(said)})"

    def __getitem__(self, name: str) -> Output:
        return self.outputs.get(name, UNKNOWN)

    @cached_property
    def loss(self) -> float | None:
        """None unless it is present."""
        return self[LOSS].value if self[LOSS].status == PRESENT else None

    @property
    def values(self) -> dict[str, float]:
        """The other outputs that are numbers, nan and inf included."""
        return {n: o.value for n, o in self.outputs.items() if n != LOSS and o.value is not None}

    @property
    def texts(self) -> dict[str, str]:
        """What was told beside the numbers, by name."""
        return {n: o.message for n, o in self.outputs.items() if o.status == TEXT}

    @property
    def some(self) -> bool:
        """Whether an output is present."""
        return any(o.status == PRESENT for o in self.outputs.values())

    @property
    def folds(self) -> tuple[float, ...]:
        """The partial results of the loss, one per fit; empty where the evaluation gave none."""
        return self[LOSS].folds

    @property
    def fits(self) -> int:
        """How many fits the evaluation took: as many as partial results came, and 1 where it gave none."""
        return max((len(o.folds) for o in self.outputs.values()), default=0) or 1

    @property
    def stopped(self) -> bool:
        """Whether the evaluation was stopped before its last fit, so that the loss is an estimate."""
        return self[LOSS].variance is not None

    @property
    def variance(self) -> float:
        """Of the loss as an estimate of what the whole evaluation would have given; 0 where it is what that gave."""
        return self[LOSS].variance or 0.0

    @property
    def message(self) -> str:
        """Why the loss failed, or what was told in its stead; empty otherwise."""
        if LOSS in self.outputs:
            return self[LOSS].message
        return next((o.message for o in self.outputs.values() if o.message and o.status != TEXT), "")

    def turned(self) -> Outcome:
        """With the loss, and what each fit gave of it, negated: what is to be maximised as what is to be minimised, and back."""
        loss = self.outputs.get(LOSS)
        if loss is None or loss.value is None:
            return self
        return Outcome(
            {**self.outputs, LOSS: replace(loss, value=-loss.value, folds=tuple(-fold for fold in loss.folds))}
        )

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of some names that are missing."""
        return tuple(name for name in names if self[name].status == MISSING)

    def with_part(self, part: Outcome) -> Outcome:
        """With what was told later, which counts where both know an output."""
        return Outcome({**self.outputs, **part.outputs})

    def status(self, asked: Iterable[str] = ()) -> str:
        """``done`` or ``failed``: as the loss is; where others were asked for alone, failed if none of them is a number.

        Args:
            asked: the outputs that were asked for; empty: all that the objective gives.
        """
        names = tuple(asked) or (LOSS,)
        decides = (LOSS,) if LOSS in names else names
        return FAILED if all(self[name].status in (FAILED, TEXT) for name in decides) else DONE


@dataclass(frozen=True)
class Limit:
    """A limit on an output that only an evaluation tells: ``low <= output <= high``.

    Raises:
        ValueError: neither end is finite, an end is nan, or low lies above high.
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
        """How far a value lies outside: 0 where the limit is kept, inf where the value is missing or not finite."""
        if value is None or not math.isfinite(value):
            return math.inf
        return max(0.0, self.low - value, value - self.high)

    def __str__(self) -> str:
        low = f"{self.low:g} <= " if math.isfinite(self.low) else ""
        return f"{low}{self.output}" + (f" <= {self.high:g}" if math.isfinite(self.high) else "")
