"""Domains: the values of a parameter, and how they map to the unit scale.

Notation
    L    number of levels of a discrete domain
    k    index of a value in a range with a step, from 0
    u    unit value in [0, 1]; the scale on which surrogates see real, integer and ordinal values.
         With ``log=True`` it is linear in log(value). Rules always see the natural value.

A domain is a frozen value object, independent of Pyomo and of the space that uses it.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from numbers import Integral
from numbers import Real as AnyReal
from typing import Any, ClassVar

from mipcash.errors import SpaceError
from mipcash.modelling.numbers import WIDEST, Grid, finite, flag, whole
from mipcash.modelling.numbers import is_bool as is_bool
from mipcash.modelling.numbers import is_number as is_number

Value = Any
"""Value of one parameter as the user's objective receives it: a float, an int, a category, a tuple of names."""

Configuration = dict[str, Value]
"""Parameter name -> value, active parameters only."""


LISTED = 1_000
"""Largest number of values of an ordinal that is given by its ends and a step."""
SNAP = 1e-9
"""Fraction of a range (of the lower bound, on a log scale) within which a number counts as a bound or as zero."""


def short_list(values: Sequence[object], limit: int = 12) -> str:
    """Return the values as a list; for many, some of them and their number."""
    if len(values) <= limit:
        return str(list(values))
    return f"[{', '.join(map(repr, values[: limit // 2]))}, ..., {values[-1]!r}] ({len(values):,} values)"


def same_value(a: object, b: object) -> bool:
    """Return True if two values are equal. ``True`` differs from ``1``; numpy scalars equal Python numbers."""
    if a is b:
        return True
    if is_bool(a) != is_bool(b):
        return False
    if is_number(a) != is_number(b):
        return False
    try:
        return bool(a == b)
    except Exception:
        return False


def is_hashable(value: object) -> bool:
    """Return True if a value can be hashed; a tuple of lists cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def own(value: Any) -> Any:
    """Return a value with its own lists, dicts and sets, so that whoever changes them changes nothing else."""
    if type(value) in (list, tuple, set) and not is_hashable(value):
        return type(value)(map(own, value))
    return {k: own(v) for k, v in value.items()} if type(value) is dict else value


def level_among(values: Sequence[Value], value: Value) -> int:
    """Return the index of a canonical value in ``values``. Types must match, since True == 1."""
    if type(value) in (int, str):  # most values, and a search in C
        first = values.index(value)
        if type(values[first]) is type(value):
            return first
    return next(l for l, v in enumerate(values) if type(v) is type(value) and same_value(v, value))


@dataclass(frozen=True)
class Real:
    """All real numbers in ``[low, high]``, or with a step ``low, low + step, ..., <= high``.

    Args:
        low: the lower bound.
        high: the upper bound.
        log: search on the log scale, which needs ``low > 0`` and no step.
        step: distance between successive values; None: all reals in the range.

    Attributes:
        values: those of a range with a step; a range without a step has no such attribute.
        unreached: the given upper bound, if the steps end below it; else None.

    Raises:
        SpaceError: bounds not finite, ``low >= high``, ``log`` with ``low <= 0`` or with a step, or a step that is not positive,
            or too small or too large for the range.

    Examples:
        >>> import mipcash as mc
        >>> list(mc.Real(0.0, 0.3, step=0.1).values)
        [0.0, 0.1, 0.2, 0.3]
        >>> print(mc.Real(1e-4, 0.1, log=True))
        real in [0.0001, 0.1], log scale
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    values: Grid = field(init=False, repr=False, compare=False)
    unreached: float | None = field(init=False, repr=False, compare=False, default=None)
    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        low, high = finite("low", self.low), finite("high", self.high)
        if low > high:
            raise SpaceError(f"low > high ({low} > {high}); swap them")
        if low == high:
            raise SpaceError(f"low == high ({low}): a constant is not a parameter; leave it out or widen the range")
        object.__setattr__(self, "log", flag("log", self.log))
        if self.log and low <= 0:
            raise SpaceError(f"log=True needs low > 0, got low={low}; raise low or drop log")
        if self.step is not None:
            if self.log:
                raise SpaceError(
                    f"log=True and step={self.step!r} do not go together: steps are of equal length; drop one of them, or list the "
                    "values as an ordinal"
                )
            object.__setattr__(self, "step", finite("step", self.step))
            values, exact = Grid.of(low, high, self.step)
            object.__setattr__(self, "values", values)
            if not exact:
                object.__setattr__(self, "unreached", high)
            high = values[-1]
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def to_unit(self, value: Value) -> float:
        if self.step is not None:
            return self._place(value) / (len(self.values) - 1)
        return _share(self, value)

    def from_unit(self, u: float) -> float:
        u = min(1.0, max(0.0, float(u)))
        if self.step is not None:
            return float(self.values[round(u * (len(self.values) - 1))])
        if u in (0.0, 1.0):  # exp(log(low)) may differ from low
            return self.high if u else self.low
        return min(self.high, max(self.low, _between(self, u)))

    def snapped(self, value: float) -> float:
        """Return the bound or zero if a value is within rounding of it, else the value.

        Args:
            value: a number.

        Returns:
            The bound, zero or the value.
        """
        near = SNAP * (self.high - self.low)
        if value <= self.low + (SNAP * self.low if self.log else near):
            return self.low
        if value >= self.high - near:
            return self.high
        return 0.0 if abs(value) <= near and self.low <= 0.0 <= self.high else value

    def nearest(self, value: float) -> float:
        """Return the value of the domain nearest to a number.

        Args:
            value: a number.

        Returns:
            The nearest value.
        """
        if self.step is not None:
            return float(self.values[self._place(value)])
        return min(self.high, max(self.low, float(value)))

    def _place(self, value: float) -> int:
        """Return the index of the nearest value of a range with a step."""
        assert self.step is not None
        return min(len(self.values) - 1, max(0, round((float(value) - self.low) / self.step)))

    def level(self, value: Value) -> int | None:
        """Return the index of a value of a range with a step; None if it is not a value of the range.

        Args:
            value: any value.

        Returns:
            The index, from 0, or None.
        """
        return None if self.problem(value) else self._place(value)

    def problem(self, value: Value) -> str | None:
        if not is_number(value):
            return f"{value!r} is not a number; expected a real in [{self.low!r}, {self.high!r}]{self._steps}"
        reach = max(abs(self.low), abs(self.high))
        rounding = 4.0 * sys.float_info.epsilon * reach
        slack = max(1e-9 * (self.high - self.low), rounding) if self.step is None else self.values.slack
        below = 1e-9 * self.low if self.log else slack  # a value on a log scale is above 0
        if not self.low - below <= float(value) <= self.high + slack:
            return f"{value!r} is outside [{self.low!r}, {self.high!r}]"
        if self.step is not None and abs(float(value) - (nearest := self.nearest(value))) > slack:
            return f"{value!r} is not reached from {self.low!r}{self._steps}; nearest is {nearest!r}"
        return None

    @property
    def _steps(self) -> str:
        return "" if self.step is None else f" in steps of {self.step!r}"

    def canonical(self, value: Value) -> float:
        return self.nearest(value)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step!r}"  # journals contain texts of reals without a step
        return f"Real(low={self.low!r}, high={self.high!r}, log={self.log!r}{step})"

    def __str__(self) -> str:
        step = "" if self.step is None else f", step {self.step!r}"
        return f"real in [{self.low!r}, {self.high!r}]{step}" + (", log scale" if self.log else "")


@dataclass(frozen=True)
class Integer:
    """The integers ``low, low + step, ..., <= high``.

    Args:
        low: the lower bound.
        high: the upper bound.
        step: distance between successive values.
        log: search on the log scale, which needs ``low > 0``.

    Attributes:
        unreached: the given upper bound, if the steps end below it; else None.

    Raises:
        SpaceError: bounds missing, infinite or fractional, ``low > high``, ``step < 1``, or ``log`` with ``low <= 0``.

    Examples:
        >>> import mipcash as mc
        >>> list(mc.Integer(8, 32, step=8).values)
        [8, 16, 24, 32]
    """

    low: int
    high: int
    step: int = 1
    log: bool = False
    unreached: int | None = field(init=False, repr=False, compare=False, default=None)
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        if self.low is None or self.high is None:
            raise SpaceError("an integer needs both bounds; give low and high")
        low, high, step = whole("low", self.low), whole("high", self.high), whole("step", self.step)
        if low > high:
            raise SpaceError(f"low > high ({low} > {high}); swap them")
        if step < 1:
            raise SpaceError(f"step must be at least 1, got {step}; leave it out for every integer between the bounds")
        if max(abs(low), abs(high)) > WIDEST:
            raise SpaceError(
                f"bounds beyond 2**53 ({low}, {high}) are not exact in a solver; narrow them, or use a real with log=True"
            )
        object.__setattr__(self, "log", flag("log", self.log))
        if self.log and low <= 0:
            raise SpaceError(f"log=True needs low > 0, got low={low}; raise low or drop log")
        if (high - low) % step:
            object.__setattr__(self, "unreached", high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", low + (high - low) // step * step)
        object.__setattr__(self, "step", step)

    def __len__(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def values(self) -> range:
        """All values, computed on access."""
        return range(self.low, self.high + 1, self.step)

    def level(self, value: Value) -> int | None:
        """Return the index of a value; None if it is not a value of the domain.

        Args:
            value: any value.

        Returns:
            The index, from 0, or None.
        """
        return None if self.problem(value) else (int(value) - self.low) // self.step

    def to_unit(self, value: Value) -> float:
        if self.low == self.high:
            return 0.5
        return _share(self, value)

    def from_unit(self, u: float) -> int:
        return self.nearest(_between(self, min(1.0, max(0.0, float(u)))))

    def nearest(self, value: float) -> int:
        """Return the value of the domain nearest to a number.

        Args:
            value: a number.

        Returns:
            The nearest value.
        """
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


def _share(range_: Real | Integer, value: float) -> float:
    """Return the place of a value between the bounds, from 0 to 1."""
    low, high, at = map(math.log, (range_.low, range_.high, value)) if range_.log else (range_.low, range_.high, value)
    return min(1.0, max(0.0, (at - low) / (high - low)))


def _between(range_: Real | Integer, u: float) -> float:
    """Return the number at a place between the bounds."""
    if range_.log:
        return math.exp(math.log(range_.low) + u * (math.log(range_.high) - math.log(range_.low)))
    return range_.low + u * (range_.high - range_.low)


class _Listed:
    """Base class of ordinal and categorical domains: a tuple of distinct values."""

    values: Sequence[Value]
    kind: ClassVar[str]

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return f"{self.kind} {short_list(self.values)}"

    def level(self, value: Value) -> int | None:
        """Return the index of the value, whatever its numeric type; None if it is not listed."""
        return next((l for l in self._alike(value) if same_value(self.values[l], value)), None)

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
        """Return the levels that may equal a value, in ascending order; found by hash if the value is hashable."""
        if not is_hashable(value):
            return range(len(self.values))
        hashed, others = self._places
        found = hashed.get(value, ())
        return sorted([*found, *others]) if others else found

    @cached_property
    def _places(self) -> tuple[Mapping[Value, Sequence[int]], Sequence[int]]:
        """Value -> levels of the values that equal it, True and 1 among them; and the levels of unhashable values."""
        hashed, others = dict[Value, list[int]](), list[int]()
        for l, value in enumerate(self.values):
            (hashed.setdefault(value, []) if is_hashable(value) else others).append(l)
        return hashed, others


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
    listed = tuple(map(own, values))
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
        if isinstance(a, AnyReal) and not isinstance(a, Integral) and not math.isfinite(a):
            raise SpaceError(
                f"the {domain.kind} domain lists {a!r}; a value must be finite: list a text such as 'inf', and replace it"
            )


def _stepped(ends: Any, step: float) -> Real | Integer:
    """Return the domain of numbers from the first of a pair to the second, in steps; integers if all three are."""
    if not isinstance(ends, (tuple, list)) or len(ends) != 2 or not all(map(is_number, ends)):
        raise SpaceError(
            f"step={step!r} needs the lowest and the highest number, such as (16, 128), and not {ends!r}; give these two, or list "
            "the values without step="
        )
    integers = all(isinstance(v, Integral) for v in (*ends, step))
    low, high = ends
    domain: Integer | Real = (Integer if integers else Real)(low, high, step=step)  # type: ignore[arg-type]
    if len(domain.values) > LISTED:
        raise SpaceError(
            f"an ordinal lists its values, and step={step!r} makes {len(domain.values):,} of them (at most {LISTED:,}); declare "
            f"{'an integer' if integers else 'a real'} with step={step!r} instead"
        )
    return domain


@dataclass(frozen=True, repr=False)
class Ordinal(_Listed):
    """Values in an order that matters, e.g. ``[1, 2, 4, 8]``; numbers may be used in rules by their value.

    Args:
        values: all of them; with a step the lowest and the highest number, ``Ordinal((16, 128), step=16)``.
        step: distance between successive numbers; None: ``values`` lists all of them.

    Attributes:
        unreached: the given upper bound, if the steps end below it; else None.

    Raises:
        SpaceError: the list is empty or lists a value twice; with a step no pair of numbers, or more than 1,000 values.

    Examples:
        >>> import mipcash as mc
        >>> mc.Ordinal((16, 64), step=16).values
        (16, 32, 48, 64)
        >>> mc.Ordinal(["small", "medium", "large"]).numeric
        False
    """

    values: Sequence[Value]
    step: InitVar[float | None] = None
    unreached: float | None = field(init=False, compare=False, default=None)
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self, step: float | None) -> None:
        if step is not None:
            domain = _stepped(self.values, step)
            object.__setattr__(self, "unreached", domain.unreached)
            object.__setattr__(self, "values", domain.values)
        object.__setattr__(self, "values", _listed(self.kind, self.values))
        _check_distinct(self)

    @property
    def numeric(self) -> bool:
        return all(is_number(v) for v in self.values)


@dataclass(frozen=True, repr=False)
class Categorical(_Listed):
    """Values without an order. Rules use the indicators ``parameter[value]``.

    Args:
        values: all of them, each once.

    Raises:
        SpaceError: the list is empty or lists a value twice.

    Examples:
        >>> import mipcash as mc
        >>> print(mc.Categorical(["relu", "tanh"]))
        categorical ['relu', 'tanh']
    """

    values: Sequence[Value]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed(self.kind, self.values))
        _check_distinct(self)


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
        return tuple(map(str, value))

    def __str__(self) -> str:
        return f"ordering of {', '.join(self.members)}"


ParameterDomain = Real | Integer | Ordinal | Categorical | Permutation


def level_of(domain: ParameterDomain, value: Value) -> int | None:
    """Return the level of a value, whatever its numeric type; None if it is not in the domain or the domain has no levels."""
    if isinstance(domain, Permutation) or not hasattr(domain, "values"):
        return None
    return domain.level(value)
