"""Domains: which values a parameter can take, and how they map to the unit scale.

Notation
    L    number of levels of a discrete domain
    u    unit value in [0, 1]; the scale on which surrogates see real, integer and ordinal values.
         With ``log=True`` it is linear in log(value). Rules always see the natural value.

A domain is a frozen value object: it knows nothing of Pyomo or of the space it is used in.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from mipcash.errors import SpaceError

Value = Any
"""What the user's objective receives for one parameter: a float, an int, a category, a tuple of names."""

Configuration = dict[str, Value]
"""Parameter name -> value, active parameters only."""


WIDEST = 2**53
"""The largest whole number up to which floats tell all from one another."""
SNAP = 1e-9
"""Share of a range (of the lower bound, on a log scale) within which a number is taken to be a bound or zero."""


def _finite(what: str, value: object) -> float:
    if is_bool(value) or isinstance(value, (str, bytes)):
        what_it_is = "the text" if isinstance(value, (str, bytes)) else "the bool"
        cure = (
            "write it without quotes"
            if isinstance(value, (str, bytes))
            else "write 0 or 1, or a categorical [False, True]"
        )
        raise SpaceError(f"{what} must be a number, got {what_it_is} {value!r}; {cure}")
    if not isinstance(value, (int, float)):
        try:
            value = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise SpaceError(f"{what} must be a number, got {value!r}; for a list of values use an ordinal") from None
    if not math.isfinite(value):
        raise SpaceError(f"{what} must be finite, got {value!r}; give the range that makes sense for the objective")
    return float(value)


def _whole(what: str, value: object) -> int:
    number = _finite(what, value)
    if number != int(number):
        raise SpaceError(
            f"{what} must be a whole number, got {value!r}; for other steps use an ordinal, for all numbers a real"
        )
    return int(number)


def is_bool(value: object) -> bool:
    """Whether ``value`` is a Python or numpy bool (``numpy.bool_`` is called ``bool`` since numpy 2)."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def is_number(value: object) -> bool:
    """Whether ``value`` is a plain finite number (bool is a category, not a number)."""
    if is_bool(value) or isinstance(value, (str, bytes)):
        return False
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def short_list(values: Sequence[object], limit: int = 12) -> str:
    """The values as a list; of many, the first and the last, and how many there are."""
    if len(values) <= limit:
        return str(list(values))
    return f"[{', '.join(map(repr, values[: limit // 2]))}, ..., {values[-1]!r}] ({len(values):,} values)"


def same_value(a: object, b: object) -> bool:
    """Equality that keeps ``True`` apart from ``1`` and admits numpy scalars for numbers."""
    if is_bool(a) != is_bool(b):
        return False
    if is_number(a) != is_number(b):
        return False
    try:
        return bool(a == b)
    except Exception:
        return False


def level_among(values: Sequence[Value], value: Value) -> int:
    """The level of a canonical value of a domain, one of ``values``: of the same type, as True == 1."""
    return next(l for l, v in enumerate(values) if v is value or (v == value and type(v) is type(value)))


@dataclass(frozen=True)
class Real:
    """All real numbers in ``[low, high]``; ``log=True`` searches on the log scale.

    Raises:
        SpaceError: bounds not finite, ``low >= high``, or ``log`` with ``low <= 0``.
    """

    low: float
    high: float
    log: bool = False
    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        low, high = _finite("low", self.low), _finite("high", self.high)
        if low > high:
            raise SpaceError(f"low > high ({low} > {high}); swap them")
        if low == high:
            raise SpaceError(f"low == high ({low}): a constant is not a parameter; leave it out or widen the range")
        if self.log and low <= 0:
            raise SpaceError(f"log=True needs low > 0, got low={low}; raise low or drop log")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def to_unit(self, value: Value) -> float:
        if self.log:
            u = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            u = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, u))

    def from_unit(self, u: float) -> float:
        u = min(1.0, max(0.0, float(u)))
        if u in (0.0, 1.0):  # exp(log(low)) is not always low
            return self.high if u else self.low
        if self.log:
            value = math.exp(math.log(self.low) + u * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + u * (self.high - self.low)
        return min(self.high, max(self.low, value))

    def snapped(self, value: float) -> float:
        """The bound or the zero that a value is within a rounding of, else the value."""
        near = SNAP * (self.high - self.low)
        if value <= self.low + (SNAP * self.low if self.log else near):
            return self.low
        if value >= self.high - near:
            return self.high
        return 0.0 if abs(value) <= near and self.low <= 0.0 <= self.high else value

    def problem(self, value: Value) -> str | None:
        if not is_number(value):
            return f"{value!r} is not a number; expected a real in [{self.low!r}, {self.high!r}]"
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= float(value) <= self.high + slack:
            return f"{value!r} is outside [{self.low!r}, {self.high!r}]"
        return None

    def canonical(self, value: Value) -> float:
        return min(self.high, max(self.low, float(value)))

    def __str__(self) -> str:
        return f"real in [{self.low!r}, {self.high!r}]" + (", log scale" if self.log else "")


@dataclass(frozen=True)
class Integer:
    """The integers ``low, low + step, ..., <= high``; ``log=True`` searches on the log scale.

    Raises:
        SpaceError: bounds missing, infinite or fractional, ``low > high``, ``step < 1``, or ``log`` with ``low <= 0``.
    """

    low: int
    high: int
    step: int = 1
    log: bool = False
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        if self.low is None or self.high is None:
            raise SpaceError("an integer needs both bounds; give low and high")
        low, high, step = _whole("low", self.low), _whole("high", self.high), _whole("step", self.step)
        if low > high:
            raise SpaceError(f"low > high ({low} > {high}); swap them")
        if step < 1:
            raise SpaceError(f"step must be at least 1, got {step}")
        if max(abs(low), abs(high)) > WIDEST:
            raise SpaceError(
                f"bounds beyond 2**53 ({low}, {high}) are no exact numbers for a solver; narrow them, or use a real with log=True"
            )
        if self.log and low <= 0:
            raise SpaceError(f"log=True needs low > 0, got low={low}; raise low or drop log")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", low + (high - low) // step * step)
        object.__setattr__(self, "step", step)

    def __len__(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1, self.step))

    def to_unit(self, value: Value) -> float:
        if self.low == self.high:
            return 0.5
        if self.log:
            u = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            u = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, u))

    def from_unit(self, u: float) -> int:
        u = min(1.0, max(0.0, float(u)))
        if self.log:
            value = math.exp(math.log(self.low) + u * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + u * (self.high - self.low)
        return self.nearest(value)

    def nearest(self, value: float) -> int:
        """The member of the domain nearest to a natural value."""
        k = round((value - self.low) / self.step)
        return self.low + min(len(self) - 1, max(0, k)) * self.step

    def problem(self, value: Value) -> str | None:
        step = f" in steps of {self.step}" if self.step > 1 else ""
        if not is_number(value) or float(value) != int(value):
            return f"{value!r} is not an integer; expected one in [{self.low}, {self.high}]{step}"
        if not self.low <= int(value) <= self.high:
            return f"{value!r} is outside [{self.low}, {self.high}]"
        if (int(value) - self.low) % self.step:
            return f"{value!r} is not reached from {self.low}{step}; nearest is {self.nearest(float(value))}"
        return None

    def canonical(self, value: Value) -> int:
        return operator.index(int(value))

    def __str__(self) -> str:
        step = f", step {self.step}" if self.step > 1 else ""
        return f"integer in [{self.low}, {self.high}]{step}" + (", log scale" if self.log else "")


class _Listed:
    """What ordinal and categorical share: a tuple of distinct values."""

    values: Sequence[Value]
    kind: ClassVar[str]

    def __len__(self) -> int:
        return len(self.values)

    def level(self, value: Value) -> int | None:
        """Which of the values this is, however it is spelt; None: none of them."""
        return next(
            (l for l in self._alike(value) if self.values[l] is value or same_value(self.values[l], value)), None
        )

    def problem(self, value: Value) -> str | None:
        if self.level(value) is not None:
            return None
        return f"{value!r} is not one of {', '.join(map(repr, self.values))}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({short_list(self.values)})"

    def canonical(self, value: Value) -> Value:
        level = self.level(value)
        assert level is not None, value
        return self.values[level]

    def _alike(self, value: Value) -> Sequence[int]:
        """Levels that may be this value, in order: what is equal has the same hash, if it has any."""
        try:
            return sorted([*self._by_hash.get(hash(value), ()), *self._by_hash.get(None, ())])
        except TypeError:
            return range(len(self.values))

    @cached_property
    def _by_hash(self) -> Mapping[int | None, Sequence[int]]:
        """Levels by the hash of their value; None: it has none."""
        found: dict[int | None, list[int]] = {}
        for l, value in enumerate(self.values):
            try:
                found.setdefault(hash(value), []).append(l)
            except TypeError:
                found.setdefault(None, []).append(l)
        return found


def _listed(kind: str, values: Iterable[Value]) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes)):
        raise SpaceError(f"{kind} values must be a list, got the string {values!r}; write [{values!r}, ...]")
    if isinstance(values, (set, frozenset)):
        raise SpaceError(
            f"{kind} values must be a list, got a set, whose order differs from run to run; write sorted(...)"
        )
    if isinstance(values, Mapping) and kind == "ordinal":
        raise SpaceError("ordinal values must be a list, got a dict; write list(...)")
    if not isinstance(values, Iterable):
        raise SpaceError(f"{kind} values must be a list, got {values!r}; write [{values!r}, ...]")
    listed = tuple(values)
    if not listed:
        raise SpaceError(f"the {kind} domain is empty; list at least one value")
    return listed


def _check_distinct(domain: _Listed) -> None:
    for i, a in enumerate(domain.values):
        same = [l for l in domain._alike(a) if l < i and same_value(a, domain.values[l])]
        if same:
            first = domain.values[same[0]]
            also = f" (as {first!r}, which is equal to it)" if repr(first) != repr(a) else ""
            raise SpaceError(f"the {domain.kind} domain lists {a!r} twice{also}; list each value once")
        if isinstance(a, float) and not math.isfinite(a):
            raise SpaceError(
                f"the {domain.kind} domain lists {a!r}; a value must be finite (use a string such as 'inf')"
            )


@dataclass(frozen=True, repr=False)
class Ordinal(_Listed):
    """Values in an order that matters, e.g. ``[1, 2, 4, 8]``; numbers may be used in rules by their value.

    Raises:
        SpaceError: the list is empty or lists a value twice.
    """

    values: Sequence[Value]
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed(self.kind, self.values))
        _check_distinct(self)

    @property
    def numeric(self) -> bool:
        return all(is_number(v) for v in self.values)

    def __str__(self) -> str:
        return f"ordinal {short_list(self.values)}"


@dataclass(frozen=True, repr=False)
class Categorical(_Listed):
    """Values without an order. Rules use the indicators ``parameter[value]``.

    Raises:
        SpaceError: the list is empty or lists a value twice.
    """

    values: Sequence[Value]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed(self.kind, self.values))
        _check_distinct(self)

    def __str__(self) -> str:
        return f"categorical {short_list(self.values)}"


@dataclass(frozen=True)
class Permutation:
    """The orders of ``members`` (names of modules); a value is a tuple of all of them, first to last."""

    members: tuple[str, ...]
    kind: ClassVar[str] = "ordering"

    def problem(self, value: Value) -> str | None:
        if not isinstance(value, (tuple, list)) or sorted(map(str, value)) != sorted(self.members):
            return f"{value!r} is not an order of {', '.join(self.members)}"
        return None

    def canonical(self, value: Value) -> tuple[str, ...]:
        return tuple(value)

    def __str__(self) -> str:
        return f"ordering of {', '.join(self.members)}"


ParameterDomain = Real | Integer | Ordinal | Categorical | Permutation


def level_of(domain: ParameterDomain, value: Value) -> int | None:
    """Which level of a domain a value is, however it is spelt; None: none, or the domain has no levels."""
    if isinstance(domain, _Listed):
        return domain.level(value)
    return next((l for l, v in enumerate(getattr(domain, "values", ())) if same_value(v, value)), None)
