"""Checks of numerical values, and evenly spaced reals."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mipcash.errors import SpaceError, StepWarning, warn

WIDEST = 2**53
"""The largest whole number up to which floats represent every whole number."""
FINEST = 2**48
"""The largest number of steps between zero and a bound of a range of reals; floats distinguish such values with a margin."""
ON_STEP = 1e-8
"""Fraction of a step within which a number counts as one of the values of a range with a step."""


def flag(what: str, value: object) -> bool:
    """Return True, False, 1 or 0, of numpy too, as a bool; None is False. Raise SpaceError for anything else."""
    if not (value is None or is_bool(value) or (is_number(value) and value in (0, 1))):
        raise SpaceError(f"{what} must be True or False, got {value!r}")
    return bool(value)


def finite(what: str, value: object) -> float:
    if isinstance(value, (str, bytes)):
        raise SpaceError(f"{what} must be a number, got the text {value!r}; write it without quotes")
    if is_bool(value):
        raise SpaceError(
            f"{what} must be a number, got the bool {value!r}; write 0 or 1, or a categorical [False, True]"
        )
    try:
        if _is_complex(value):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise SpaceError(f"{what} must be a number, got {value!r}; for a list of values use an ordinal") from None
    if not math.isfinite(number):
        raise SpaceError(f"{what} must be finite, got {value!r}; give the range that makes sense for the objective")
    return number


def whole(what: str, value: object) -> int:
    number = finite(what, value)
    if number != int(number):
        raise SpaceError(
            f"{what} must be a whole number, got {value!r}; for fractions use a real, with step= for equidistant values"
        )
    return int(number)


def is_bool(value: object) -> bool:
    """Return True if ``value`` is a Python or numpy bool (``numpy.bool_`` is called ``bool`` since numpy 2)."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def _is_complex(value: object) -> bool:
    """Return True for a complex number, also of numpy: ``float`` would drop its imaginary part."""
    return isinstance(value, complex) or (
        type(value).__module__ == "numpy" and type(value).__name__.startswith("complex")
    )


def is_number(value: object) -> bool:
    """Return True if ``value`` is a plain finite number (a bool is a category, not a number)."""
    if is_bool(value) or isinstance(value, (str, bytes)) or _is_complex(value):
        return False
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


@dataclass(frozen=True)
class Grid(Sequence[float]):
    """The reals ``i / scale`` for the integers i of ``at``, computed on access, each rounded once.

    Bounds and step are taken as the decimals that they are written as, so that three steps of 0.1 from 0 are 0.3.
    """

    at: range
    scale: int

    @classmethod
    def of(cls, low: float, high: float, step: float) -> tuple[Grid, bool]:
        """Return the values from ``low`` in steps up to ``high``, and True if ``high`` is one of them up to rounding.

        Raises:
            SpaceError: a step that is not positive, or is too small or too large for the range.
        """
        if step <= 0:
            raise SpaceError(f"step must be positive, got {step!r}; leave it out for all reals between the bounds")
        if max(abs(low), abs(high)) / step > FINEST:
            raise SpaceError(
                f"step={step!r} is too small for floats between {low!r} and {high!r}; give a wider step, or none for all reals"
            )
        first, last, width = (Fraction(repr(v)) for v in (low, high, step))
        steps = (last - first) / width
        near = max(ON_STEP, 4 * sys.float_info.epsilon * max(abs(low), abs(high)) / step)
        exact = abs(steps - round(steps)) <= near
        size = (round(steps) if exact else math.floor(steps)) + 1
        if size < 2:
            raise SpaceError(
                f"step={step!r} is wider than the range from {low!r} to {high!r}, which leaves {low!r} alone, a constant; give a "
                "smaller step, or leave the parameter out"
            )
        scale = math.lcm(first.denominator, width.denominator)
        start, by = int(first * scale), int(width * scale)
        return cls(range(start, start + size * by, by), scale), exact

    @property
    def slack(self) -> float:
        """Largest distance from a value at which a number counts as that value."""
        rounding = 4 * sys.float_info.epsilon * float(max(abs(self[0]), abs(self[-1])))
        return max(ON_STEP * self.at.step / self.scale, rounding)

    @property
    def unit(self) -> float:
        """The largest number of which every value is a whole multiple."""
        return math.gcd(self.at.start, self.at.step) / self.scale

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, k: Any) -> Any:
        return [i / self.scale for i in self.at[k]] if isinstance(k, slice) else self.at[k] / self.scale


def warn_of_end(name: str, domain: Any) -> None:
    """Warn if the upper bound of a parameter's domain is not one of its values."""
    unreached = getattr(domain, "unreached", None)
    if unreached is not None:
        first, last = domain.values[0], domain.values[-1]
        warn(
            f"parameter {name!r} ends at {last!r} and not at {unreached!r}, which no step from {first!r} reaches; give the upper "
            f"bound {last!r}, or another step",
            StepWarning,
        )
