"""Parameters: what ``Space.real``, ``Space.categorical`` ... return, to be used in rules.

A numeric parameter *is* a Pyomo named expression (its value in terms of the model's variables), so ``a * b <= c + 1``
builds a Pyomo relation. A parameter without a number behind it (categorical, module, ordering) offers 0/1 indicators.

Notation
    z_l     binary of level l, one Var ``z[l]`` per level in the parameter's block of ``space.model``
    on      1 where the parameter is active. An inactive parameter reads as 0 in a rule: all its z are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pyomo.core.base.expression import ScalarExpression
from pyomo.environ import BooleanVar

from mipcash.errors import SpaceError
from mipcash.modelling.domains import ParameterDomain, Permutation, Value, same_value
from mipcash.modelling.quadratic import take_apart
from mipcash.modelling.wording import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

Expression = Any
"""A Pyomo expression; Pyomo carries no types."""


class Parameter:
    """What all parameters share.

    Attributes:
        label: the name in a configuration.
        domain: the values it can take.
        tuned: False for an auxiliary: it occurs in rules and never in a configuration.
    """

    label: str
    domain: ParameterDomain
    tuned: bool

    def _columns(self) -> Any:
        """The Pyomo block that holds this parameter's variables."""
        raise NotImplementedError

    def is_(self, *values: Value) -> Expression:
        """A 0/1 expression: 1 where the parameter takes one of ``values`` (0 where it is inactive).

        Raises:
            SpaceError: a value outside the domain, or a domain that is not expanded into levels.
        """
        block = self._columns()
        levels = getattr(self.domain, "values", None)
        if levels is None or block.component("z") is None:
            raise SpaceError(
                f"parameter {self.label!r} ({self.domain}) has no indicators: it is not expanded into levels. "
                "Compare it in a rule instead, make its range smaller, or declare it as an ordinal"
            )
        if not values:
            raise SpaceError(f"{self.label}.is_() needs at least one value of {list(levels)}")
        chosen = []
        for value in values:
            level = next((l for l, v in enumerate(levels) if same_value(v, value)), None)
            if level is None:
                raise SpaceError(self.no_value(value))
            chosen.append(block.z[level])
        return chosen[0] if len(chosen) == 1 else sum(chosen)

    def __getitem__(self, value: Value) -> Expression:
        return self.is_(value)

    def no_value(self, value: Value) -> str:
        """What is said of a value outside the domain."""
        return f"parameter {self.label!r} has no value {value!r}; it takes {self.domain}"

    def level_of(self, indicator: Any) -> Value:
        """The value that an indicator of this parameter stands for."""
        return self.domain.values[indicator.index()]  # type: ignore[union-attr]

    def level_text(self, indicator: Any) -> str:
        """What users write for an indicator of this parameter."""
        return f"{self.label}[{self.level_of(indicator)!r}]"

    def is_active(self) -> Expression:
        """A 0/1 expression: 1 where the parameter is active (the number 1 where it always is)."""
        return self._columns().on_expression

    def boolean(self, value: Value) -> Expression:
        """The indicator ``is_(value)`` as a Pyomo ``BooleanVar``, for ``LogicalConstraint`` and ``Disjunct``."""
        block, binary = self._columns(), self.is_(value)
        if block.component("Y") is None:
            block.Y = BooleanVar(list(block.z))
            for l in block.z:
                block.Y[l].associate_binary_var(block.z[l])
        return block.Y[binary.index()]

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"<{'parameter' if self.tuned else 'auxiliary'} {self.label!r}: {self.described()}>"

    def described(self) -> str:
        """Its values, and where it is active: ``real in [0.1, 0.5], when layers is 2 or 3``."""
        block = self._columns()
        if isinstance(block.on_expression, int):
            return str(self.domain)
        rows = block.component("on_only_if")
        conditions = [block.on_expression] if rows is None else [row.expr.arg(1) for row in rows.values()]
        when = " and ".join(take_apart(c, self.label).condition_text() for c in conditions)
        return f"{self.domain}, when {shortened(when)}"


class NumericParameter(Parameter, ScalarExpression):  # type: ignore[misc]
    """A real, integer, numeric ordinal or auxiliary parameter: a Pyomo expression of its natural value.

    ``space.model.parameters[label].value`` is this object, so it is cloned and transformed along with the model.
    """

    def __init__(self, label: str, domain: ParameterDomain, tuned: bool, expression: Expression) -> None:
        ScalarExpression.__init__(self, expr=expression)
        self.label, self.domain, self.tuned = label, domain, tuned

    def _columns(self) -> Any:
        return self.parent_block()

    def __getitem__(self, value: Value) -> Expression:
        if value is None or isinstance(value, slice):  # Pyomo's own look-up of a scalar component
            return ScalarExpression.__getitem__(self, value)
        return self.is_(value)

    __hash__, __str__, __repr__ = Parameter.__hash__, Parameter.__str__, Parameter.__repr__


class ChoiceParameter(Parameter):
    """A categorical parameter (or an ordinal whose values are not numbers): used through its indicators."""

    def __init__(self, label: str, domain: ParameterDomain, block: Any) -> None:
        self.label, self.domain, self.tuned, self._block = label, domain, True, block

    def _columns(self) -> Any:
        return self._block

    def _refuse(self, *_: object) -> NoReturn:
        raise SpaceError(
            f"parameter {self.label!r} has no numeric value, so it cannot be compared or calculated with; "
            f"use its indicators, e.g. {self.label}[value] (1 where the value is taken, else 0)"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = _refuse
    __hash__ = Parameter.__hash__


class ModuleParameter(ChoiceParameter):
    """A module (algorithm choice): z_ij of the CASH program, with one block of hyperparameters per algorithm.

    In rules ``module[algorithm]`` is 1 where the algorithm is chosen, and ``module[algorithm][name]`` its hyperparameter.

    Attributes:
        hyperparameters: algorithm -> name -> parameter, each active only where its algorithm is chosen.
    """

    def __init__(self, label: str, domain: ParameterDomain, block: Any) -> None:
        super().__init__(label, domain, block)
        self.hyperparameters: dict[str, dict[str, Parameter]] = {}

    def no_value(self, value: Value) -> str:
        return f"module {self.label!r} has no algorithm {value!r}; it has {list(self.hyperparameters)}"

    def parameter(self, algorithm: str, name: str) -> Any:
        """The hyperparameter ``name`` of ``algorithm``.

        Raises:
            SpaceError: there is no such algorithm or hyperparameter.
        """
        of_algorithm = self.hyperparameters.get(algorithm)
        if of_algorithm is None:
            raise SpaceError(self.no_value(algorithm))
        if name not in of_algorithm:
            has = f"it has {list(of_algorithm)}" if of_algorithm else "it has none"
            raise SpaceError(f"algorithm {algorithm!r} of module {self.label!r} has no hyperparameter {name!r}; {has}")
        return of_algorithm[name]


class OrderingParameter(ChoiceParameter):
    """An order of modules: T x T permutation binaries ``z[m, t]`` (module m stands at position t)."""

    domain: Permutation

    def _member(self, module: ModuleParameter | str) -> int:
        name = module if isinstance(module, str) else module.label
        if name not in self.domain.members:
            raise SpaceError(f"ordering {self.label!r} has no member {name!r}; it orders {list(self.domain.members)}")
        return self.domain.members.index(name)

    def position(self, module: ModuleParameter | str) -> Expression:
        """Position of a module, 1 (first) to T (last), as a linear expression."""
        m = self._member(module)
        return sum((t + 1) * self._block.z[m, t] for t in range(len(self.domain.members)))

    def at(self, module: ModuleParameter | str, position: int) -> Expression:
        """The 0/1 variable that is 1 where ``module`` stands at ``position`` (1 to T)."""
        if not 1 <= position <= len(self.domain.members):
            raise SpaceError(f"ordering {self.label!r} has positions 1 to {len(self.domain.members)}, not {position!r}")
        return self._block.z[self._member(module), position - 1]

    def level_of(self, indicator: Any) -> Value:
        return indicator.index()[1] + 1

    def level_text(self, indicator: Any) -> str:
        return f"{self.label}.at({self.domain.members[indicator.index()[0]]!r}, {self.level_of(indicator)})"

    def is_(self, *values: Value) -> Expression:
        raise SpaceError(
            f"an ordering has no indicator for a whole order; use {self.label}.position(module) or .at(module, t)"
        )

    def levels(self) -> Mapping[str, tuple[int, ...]]:
        """Module name -> its possible positions (1 to T)."""
        return {m: tuple(range(1, len(self.domain.members) + 1)) for m in self.domain.members}
