"""What a declaration consists of, and what the modules that write parts of it may count on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mipcash.modelling.domains import Integer, Real, Value, level_among
from mipcash.modelling.quadratic import Condition, Quadratic, Variable


@dataclass(frozen=True)
class OneHot:
    """A one-hot group of the model.

    Attributes:
        label: the parameter's label, or ``ordering:module`` for the position of a module.
        parameter: label of the parameter it belongs to.
        variables: L binaries.
        values: L values (positions 1..T for an ordering).
        on: when the group is active, as an affine polynomial; None: always.
        kind: ``categorical``, ``ordinal`` (also of reals with a step), ``integer`` or ``ordering``.
    """

    label: str
    parameter: str
    variables: tuple[Variable, ...]
    values: tuple[Value, ...]
    on: Quadratic | None
    kind: str

    def level(self, value: Value) -> int:
        """The level at which the parameter has a canonical value: of an ordering, the position of the group's module."""
        if self.kind == "ordering":
            return list(value).index(self.label[len(self.parameter) + 1 :])
        return level_among(self.values, value)


@dataclass(frozen=True)
class Number:
    """A parameter that is a number in the model and not a group: real, wide integer or wide real with a step, auxiliary.

    Attributes:
        variable: its Pyomo variable, in natural units.
        on: when it is active; None: always. Where it is inactive the variable is 0.
    """

    label: str
    variable: Variable
    domain: Real | Integer
    on: Quadratic | None
    tuned: bool

    def columns(self) -> tuple[Variable, ...]:
        """The variable, and the binary of its activity where it has one of its own."""
        block = self.variable.parent_block()
        return (self.variable, block.on) if block.component("activity") is not None else (self.variable,)

    def restriction(self) -> tuple[float, float] | None:
        """Bounds of the variable where the live model fixes it or narrows its domain, else None."""
        low, high = float(self.domain.low), float(self.domain.high)
        if self.on is not None:
            low, high = min(0.0, low), max(0.0, high)
        now_low, now_high = self.variable.bounds
        if self.variable.fixed:
            now_low = now_high = self.variable.value
        now_low, now_high = (
            (low if now_low is None else float(now_low)),
            (high if now_high is None else float(now_high)),
        )
        return (now_low, now_high) if now_low > low or now_high < high or self.variable.fixed else None


@dataclass(frozen=True)
class Link:
    """An integer variable of an adopted Pyomo model and its value in terms of one-hot binaries."""

    variable: Variable
    value: Quadratic


class Declared(Protocol):
    """A declaration under way (:class:`mipcash.modelling.declaration.Declaration`), for what it is made with.

    Attributes:
        model: the live Pyomo model.
        groups, numbers, conditions: as in the declaration.
    """

    model: Any
    groups: list[OneHot]
    numbers: list[Number]
    conditions: dict[str, tuple[Condition, ...]]

    def interval(self, body: Quadratic) -> tuple[float, float]:
        """Bounds of a polynomial over the declared domains, rules aside."""

    def refuse_foreign(self, what: str, polynomial: Quadratic) -> None:
        """Refuse variables of another space."""
