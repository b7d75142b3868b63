# mypy: disable-error-code="empty-body"
"""What users hold and write rules with, as a type checker sees it.

The objects themselves are Pyomo's, which carries no types; these classes say what may be done with them: ``a <= 3`` is a
:class:`Relation`, ``a + b`` an :class:`Expression`, ``act["relu"]`` an :class:`Indicator`. Nothing is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat

from mipcash.modelling.domains import ParameterDomain, Value


class Relation:
    """What a rule demands: a comparison, or several joined by ``&``, ``|``, ``^`` and ``~``."""

    def __and__(self, other: Relation | Indicator) -> Relation: ...
    def __or__(self, other: Relation | Indicator) -> Relation: ...
    def __xor__(self, other: Relation | Indicator) -> Relation: ...
    def __invert__(self) -> Relation: ...


class Expression:
    """A number that depends on the configuration."""

    def __add__(self, other: Operand) -> Expression: ...
    def __radd__(self, other: SupportsFloat) -> Expression: ...
    def __sub__(self, other: Operand) -> Expression: ...
    def __rsub__(self, other: SupportsFloat) -> Expression: ...
    def __mul__(self, other: Operand) -> Expression: ...
    def __rmul__(self, other: SupportsFloat) -> Expression: ...
    def __truediv__(self, other: SupportsFloat) -> Expression: ...
    def __pow__(self, other: int) -> Expression: ...
    def __neg__(self) -> Expression: ...
    def __abs__(self) -> Expression: ...
    def __le__(self, other: Operand) -> Relation: ...
    def __ge__(self, other: Operand) -> Relation: ...
    def __lt__(self, other: Operand) -> Relation: ...
    def __gt__(self, other: Operand) -> Relation: ...
    def __eq__(self, other: Operand) -> Relation: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Relation: ...  # type: ignore[override]


Operand = Expression | SupportsFloat
"""What an expression is added to or compared with."""


class Indicator(Expression):
    """1 where a condition holds, else 0. That of a module's algorithm leads to its hyperparameters."""

    def __and__(self, other: Relation | Indicator) -> Relation: ...
    def __or__(self, other: Relation | Indicator) -> Relation: ...
    def __xor__(self, other: Relation | Indicator) -> Relation: ...
    def __invert__(self) -> Relation: ...
    def __getitem__(self, hyperparameter: str) -> Any: ...


When = Indicator | Relation | Sequence[Indicator | Relation] | None
"""Where a parameter exists."""
RuleWhen = Indicator | Relation | Sequence[Indicator | Relation] | None
"""Where a rule holds."""


class Numeric(Expression):
    """A real, integer, numeric ordinal or auxiliary parameter: its natural value, 0 where it is inactive."""

    label: str
    domain: ParameterDomain
    tuned: bool

    def is_(self, *values: Value) -> Indicator: ...
    def map(self, function: Callable[[Any], float] | Mapping[Any, float]) -> Expression: ...
    def is_active(self) -> Indicator: ...
    def boolean(self, value: Value) -> Any: ...
    def __getitem__(self, value: Value) -> Indicator: ...


class Choice(Protocol):
    """A categorical parameter, or an ordinal whose values are not numbers: used through its indicators."""

    label: str
    domain: ParameterDomain
    tuned: bool

    def is_(self, *values: Value) -> Indicator:
        """1 where the parameter takes one of ``values``."""

    def map(self, function: Callable[[Any], float] | Mapping[Any, float]) -> Expression:
        """A number for each of its values."""

    def is_active(self) -> Indicator:
        """1 where the parameter is active."""

    def boolean(self, value: Value) -> Any:
        """The indicator as a Pyomo ``BooleanVar``."""

    def __getitem__(self, value: Value) -> Indicator: ...


class Module(Choice, Protocol):
    """A choice of algorithm: ``module[algorithm][hyperparameter]``."""

    def parameter(self, algorithm: str, name: str) -> Any:
        """The hyperparameter ``name`` of ``algorithm``."""


class Ordering(Protocol):
    """The order of modules."""

    label: str

    def position(self, module: Any) -> Expression:
        """Position of a module, 1 (first) to T (last)."""

    def at(self, module: Any, position: int) -> Indicator:
        """1 where ``module`` stands at ``position``."""

    def levels(self) -> Mapping[str, tuple[int, ...]]:
        """Module name -> its possible positions."""
