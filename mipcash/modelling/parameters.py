"""Parameters: the objects that ``Space.real``, ``Space.categorical`` ... return, for use in rules.

A numeric parameter *is* a Pyomo named expression (its value in terms of the model's variables), so ``a * b <= c + 1``
builds a Pyomo relation. A parameter without a numeric value (categorical, module, ordering) offers 0/1 indicators.

Notation
    z_l     binary of level l, one Var ``z[l]`` per level in the parameter's block of ``space.model``
    on      1 if the parameter is active. An inactive parameter counts as 0 in a rule: all its z are 0.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import pyomo.environ as pyo
from pyomo.core.base.expression import ExpressionData

from mipcash.display import table
from mipcash.errors import RuleError, SpaceError
from mipcash.modelling.domains import ParameterDomain, Permutation, Value, is_number, level_of
from mipcash.modelling.operators import Operators
from mipcash.modelling.refusals import no_attribute, no_numeric_value
from mipcash.modelling.wording import shortened

Expression = Any
"""A Pyomo expression; Pyomo carries no types."""


class Parameter:
    """Base class of all parameters: indicators and functions of their values, for use in rules.

    ``parameter[value]`` is short for ``parameter.is_(value)``.

    Attributes:
        label: the name in a configuration.
        domain: the values it can take.
        tuned: False for an auxiliary variable, which occurs in rules but never in a configuration.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("network")
        >>> width = space.ordinal("width", [16, 32, 64])
        >>> act = space.categorical("act", ["relu", "tanh", "gelu"])
        >>> rule = space.rule("narrow", width <= 32, when=act.is_("tanh", "gelu"))
        >>> rule = space.rule("cost", width.map({16: 1.0, 32: 1.5, 64: 4.0}) + 3 * act["relu"] <= 5)
        >>> int(space.count())
        6
    """

    label: str
    domain: ParameterDomain
    tuned: bool

    @property
    def name(self) -> str:
        """The same as ``label``."""
        return self.label

    def _columns(self) -> Any:
        """Return the Pyomo block that holds this parameter's variables."""
        raise NotImplementedError

    def is_(self, *values: Value) -> Expression:
        """Return a 0/1 expression that is 1 if the parameter takes one of ``values`` (0 if it is inactive).

        Args:
            values: one or more, or a list of them.

        Returns:
            The expression.

        Raises:
            SpaceError: a value outside the domain, or a domain that is not expanded into levels.
        """
        levels, z = self._levels()
        if len(values) == 1 and level_of(self.domain, values[0]) is None:
            values = _listed(values[0])
        if not values:
            raise SpaceError(f"{self.label}.is_() needs at least one value of {shortened(str(list(levels)))}")
        chosen: list[Any] = []
        for value in values:
            level = level_of(self.domain, value)
            if level is None:
                raise SpaceError(self.no_value(value))
            if all(z[level] is not other for other in chosen):
                chosen.append(z[level])
        return chosen[0] if len(chosen) == 1 else sum(chosen)

    def map(self, function: Callable[[Value], float] | Mapping[Value, float]) -> Expression:
        """Return an exact function of the parameter's value: ``width.map(math.log)``, ``layers.map(lambda v: v % 2)``.

        If the parameter is inactive, the result is 0, whatever ``function(0)`` is.

        Args:
            function: function of a value, or a dict with a number for every value.

        Returns:
            The expression.

        Raises:
            SpaceError: a domain that is not expanded into levels.
            RuleError: the function fails at a value, or returns no finite number.
        """
        levels, z = self._levels()
        if not callable(function) and not isinstance(function, Mapping):
            raise RuleError(
                f"{self.label}.map() takes a function of a value, or a dict with a number for each, got {function!r}"
            )
        terms = []
        for level, value in enumerate(levels):
            try:
                number = function[value] if isinstance(function, Mapping) else function(value)
            except Exception as error:  # the user's function
                raise RuleError(
                    f"{self.label}.map() fails for the value {value!r} of {self.label!r} ({type(error).__name__}: {error}); it "
                    "needs a number for every value"
                ) from error
            if not is_number(number):
                raise RuleError(
                    f"{self.label}.map() returned {number!r} for the value {value!r}; it must return finite numbers"
                )
            terms.append(float(number) * z[level])
        return sum(terms)

    def _levels(self) -> tuple[Any, Any]:
        """Return the values of the levels and their binaries."""
        block = self._columns()
        levels = getattr(self.domain, "values", None)
        if not getattr(self, "tuned", True):
            raise SpaceError(
                f"auxiliary variable {self.label!r} has no indicators: it is not expanded into levels. Compare it in a rule "
                "instead, or declare a categorical parameter for the cases"
            )
        if levels is None or block.component("z") is None:
            many = f" (up to Space(expand_limit={len(levels)}))" if levels is not None else ""
            raise SpaceError(
                f"parameter {self.label!r} ({self.domain}) has no indicators and no map(): it is not expanded into levels. "
                f"Compare it in a rule instead, make its range smaller{many}, or declare it as an ordinal"
            )
        return levels, block.z

    def __getitem__(self, value: Value) -> Expression:
        return self.is_(value)

    def no_value(self, value: Value) -> str:
        """Return the error message for a value outside the domain.

        Args:
            value: the value.

        Returns:
            The message.
        """
        return f"parameter {self.label!r} has no value {value!r}; it is {self.domain}"

    def level_of(self, indicator: Any) -> Value:
        """Return the value that an indicator of this parameter stands for.

        Args:
            indicator: a binary variable of the parameter.

        Returns:
            The value.
        """
        return self.domain.values[indicator.index()]  # type: ignore[union-attr]

    def level_text(self, indicator: Any) -> str:
        """Return the code that users write for an indicator of this parameter.

        Args:
            indicator: a binary variable of the parameter.

        Returns:
            The code, such as ``act['relu']``.
        """
        return f"{self.label}[{self.level_of(indicator)!r}]"

    def is_active(self) -> Expression:
        """Return a 0/1 expression that is 1 if the parameter is active (the number 1 if it always is).

        Returns:
            The expression.
        """
        return self._columns().on_expression

    def boolean(self, value: Value) -> Expression:
        """Return the indicator ``is_(value)`` as a Pyomo ``BooleanVar``, for ``LogicalConstraint`` and ``Disjunct``.

        Args:
            value: one value of the domain.

        Returns:
            The ``BooleanVar``.

        Raises:
            SpaceError: a value outside the domain, or a domain that is not expanded into levels.
        """
        block, binary = self._columns(), self.is_(value)
        if not hasattr(binary, "index"):
            raise SpaceError(f"{self.label}.boolean() takes one value, got {value!r}; use is_() for several")
        if block.component("Y") is None:
            block.Y = pyo.BooleanVar(list(block.z))
            for l in block.z:
                block.Y[l].associate_binary_var(block.z[l])
        return block.Y[binary.index()]

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute(self, name)

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"<{'parameter' if self.tuned else 'auxiliary'} {self.label!r}: {self.described()}>"

    def _repr_html_(self) -> str:
        what = "parameter" if self.tuned else "auxiliary"
        return table("", (what, "values"), [(self.label, self.described())])

    def described(self) -> str:
        """Return its values and condition as a text: ``real in [0.1, 0.5], when layers is 2 or 3``.

        Returns:
            The text.
        """
        block = self._columns()
        if isinstance(block.on_expression, int):
            return str(self.domain)
        return f"{self.domain}, when {shortened(block.when_text)}"


def _listed(value: Any) -> tuple[Any, ...]:
    """Return the values of a list, or a tuple of the value itself."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) else (value,)


class NumericParameter(Operators, Parameter, ExpressionData):  # type: ignore[misc]
    """A real, integer, numeric ordinal or auxiliary parameter: a Pyomo expression of its natural value.

    ``Space.real``, ``Space.integer``, ``Space.ordinal`` and ``Space.auxiliary`` return it.
    ``space.model.parameters[label].value[0]`` is this object, so it is cloned and transformed along with the model.

    Args:
        label: the name in a configuration.
        domain: the values that it can take.
        tuned: False for an auxiliary variable.
        expression: its value in terms of the model's variables.
        block: its block of ``space.model``.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> rule = space.rule("budget", a * b + 2 * b <= 3)
        >>> space.is_legal({"a": 9, "b": 0.5})
        False
    """

    def __init__(self, label: str, domain: ParameterDomain, tuned: bool, expression: Expression, block: Any) -> None:
        ExpressionData.__init__(self, expr=expression)
        self.label, self.domain, self.tuned = label, domain, tuned
        block.value = container = pyo.Expression([0], initialize={})
        container._data[0], self._component, self._index = self, weakref.ref(container), 0

    def _columns(self) -> Any:
        return self.parent_block()


class ChoiceParameter(Parameter):
    """A categorical parameter (or an ordinal whose values are not numbers), used through its indicators.

    ``Space.categorical`` returns it. It has no numeric value, so arithmetic and comparisons with it raise an error.

    Args:
        label: the name in a configuration.
        domain: the values that it can take.
        block: its block of ``space.model``.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("solver")
        >>> penalty = space.categorical("penalty", ["l1", "l2"])
        >>> loss = space.categorical("loss", ["hinge", "squared"])
        >>> rule = space.rule("no l1 with hinge", penalty["l1"] + loss["hinge"] <= 1)
        >>> [violation.name for violation in space.validate({"penalty": "l1", "loss": "hinge"})]
        ['no l1 with hinge']
    """

    def __init__(self, label: str, domain: ParameterDomain, block: Any) -> None:
        self.label, self.domain, self.tuned, self._block = label, domain, True, block

    def _columns(self) -> Any:
        return self._block

    def _refuse(self, *others: object) -> NoReturn:
        raise SpaceError(no_numeric_value(self, *others))

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __invert__ = __bool__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __int__ = __float__ = __round__ = __len__ = __iter__ = __contains__ = __array__ = _refuse
    __hash__ = Parameter.__hash__


class ModuleParameter(ChoiceParameter):
    """A choice of algorithm (module), with one block of hyperparameters per algorithm.

    ``Space.module`` returns it. In rules ``module[algorithm]`` is 1 if the algorithm is chosen, and
    ``module[algorithm][name]`` is its hyperparameter.

    Args:
        label: the name in a configuration.
        domain: the algorithms.
        block: its block of ``space.model``.

    Attributes:
        hyperparameters: algorithm -> name -> parameter, each active only if its algorithm is chosen.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("pipeline")
        >>> model = space.module("model", {"svm": {"C": mc.Real(0.1, 10.0, log=True)}, "tree": {"depth": mc.Integer(1, 8)}})
        >>> rule = space.rule("shallow", model["tree"]["depth"] <= 4)
        >>> space.is_legal({"model": "tree", "model.tree.depth": 3})
        True
    """

    def __init__(self, label: str, domain: ParameterDomain, block: Any) -> None:
        super().__init__(label, domain, block)
        self.hyperparameters: dict[str, dict[str, Parameter]] = {}

    def no_value(self, value: Value) -> str:
        return f"module {self.label!r} has no algorithm {value!r}; it has {list(self.hyperparameters)}"

    def parameter(self, algorithm: str, name: str) -> Any:
        """Return the hyperparameter ``name`` of ``algorithm``.

        Args:
            algorithm: an algorithm of the module.
            name: name of its hyperparameter.

        Returns:
            The parameter.

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
    """An order of modules. In a configuration its value is a tuple of their names.

    ``Space.ordering`` returns it. T modules have T x T binaries ``z[m, t]``: module m stands at position t.

    Args:
        label: the name in a configuration.
        domain: the modules that are ordered.
        block: its block of ``space.model``.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("pipeline")
        >>> scale = space.module("scale", ["standard", "minmax"])
        >>> reduce = space.module("reduce", ["pca", "select"])
        >>> order = space.ordering("order", [scale, reduce])
        >>> rule = space.rule("scale first", order.position(scale) <= order.position(reduce))
        >>> space.sample(1)[0]["order"]
        ('scale', 'reduce')
    """

    domain: Permutation

    def _member(self, module: ModuleParameter | str) -> int:
        name = getattr(module, "label", module)
        if name not in self.domain.members:
            raise SpaceError(f"ordering {self.label!r} has no member {name!r}; it orders {list(self.domain.members)}")
        return self.domain.members.index(name)

    def position(self, module: ModuleParameter | str) -> Expression:
        """Return the position of a module, 1 (first) to T (last), as a linear expression.

        Args:
            module: a member of the ordering, or its name.

        Returns:
            The expression.

        Raises:
            SpaceError: the ordering has no such member.
        """
        m = self._member(module)
        return sum((t + 1) * self._block.z[m, t] for t in range(len(self.domain.members)))

    def at(self, module: ModuleParameter | str, position: int) -> Expression:
        """Return the 0/1 variable that is 1 if ``module`` stands at ``position`` (1 to T).

        Args:
            module: a member of the ordering, or its name.
            position: 1 (first) to T (last).

        Returns:
            The binary variable.

        Raises:
            SpaceError: the ordering has no such member or position.
        """
        if position not in range(1, len(self.domain.members) + 1):
            raise SpaceError(f"ordering {self.label!r} has positions 1 to {len(self.domain.members)}, not {position!r}")
        return self._block.z[self._member(module), int(position) - 1]

    def level_of(self, indicator: Any) -> Value:
        return indicator.index()[1] + 1

    def level_text(self, indicator: Any) -> str:
        return f"{self.label}.at({self.domain.members[indicator.index()[0]]!r}, {self.level_of(indicator)})"

    def is_(self, *values: Value) -> Expression:
        raise SpaceError(
            f"an ordering has no indicator for a whole order; use {self.label}.position(module) or .at(module, t)"
        )
