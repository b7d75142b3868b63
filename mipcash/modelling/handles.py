# mypy: disable-error-code="empty-body"
"""The objects that users write rules with, as types for a type checker.

The objects themselves belong to Pyomo, which carries no types. These classes declare their operations: ``a <= 3`` is a
``Relation``, ``a + b`` an ``Expression``, ``act["relu"]`` an ``Indicator``. They are never instantiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat

from mipcash.modelling.domains import ParameterDomain, Value


class Relation:
    """A rule's relation: a comparison, or several joined by ``&``, ``|``, ``^`` and ``~``."""

    def __and__(self, other: Relation | Indicator) -> Relation: ...
    def __or__(self, other: Relation | Indicator) -> Relation: ...
    def __xor__(self, other: Relation | Indicator) -> Relation: ...
    def __invert__(self) -> Relation: ...


class Expression:
    """A numeric expression, whose value depends on the configuration."""

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
"""A value that can be added to or compared with an expression."""


class Indicator(Expression):
    """1 if a condition holds, else 0. The indicator of a module's algorithm gives access to its hyperparameters."""

    def __and__(self, other: Relation | Indicator) -> Relation: ...
    def __or__(self, other: Relation | Indicator) -> Relation: ...
    def __xor__(self, other: Relation | Indicator) -> Relation: ...
    def __invert__(self) -> Relation: ...
    def __getitem__(self, hyperparameter: str) -> Any: ...


When = Indicator | Relation | Sequence[Indicator | Relation] | None
"""Condition under which a parameter is active or a rule applies; None: always."""


class Choice(Protocol):
    """A categorical parameter, or an ordinal whose values are not numbers, used through its indicators."""

    label: str
    domain: ParameterDomain
    tuned: bool

    def is_(self, *values: Value) -> Indicator:
        """Return an expression that is 1 if the parameter takes one of ``values``, else 0."""

    def map(self, function: Callable[[Any], float] | Mapping[Any, float]) -> Expression:
        """Return an expression with a number for each value."""

    def is_active(self) -> Indicator:
        """Return an expression that is 1 if the parameter is active, else 0."""

    def boolean(self, value: Value) -> Any:
        """Return the indicator as a Pyomo ``BooleanVar``."""

    def __getitem__(self, value: Value) -> Indicator: ...


class Numeric(Expression, Choice):
    """A real, integer, numeric ordinal or auxiliary parameter: its natural value, 0 if it is inactive."""


class Module(Choice, Protocol):
    """A choice of algorithm: ``module[algorithm][hyperparameter]``."""

    def parameter(self, algorithm: str, name: str) -> Any:
        """Return the hyperparameter ``name`` of ``algorithm``."""


class Ordering(Protocol):
    """The order of modules."""

    label: str

    def position(self, module: Any) -> Expression:
        """Return the position of a module, 1 (first) to T (last)."""

    def at(self, module: Any, position: int) -> Indicator:
        """Return an indicator that is 1 if ``module`` stands at ``position``."""
