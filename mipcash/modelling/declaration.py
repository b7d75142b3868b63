"""The declared space: parameters and rules on one live Pyomo model.

Notation
    z[l]    one binary per level of a discrete parameter; a row says that one of them is 1 (or ``on``, if conditional)
    x       the natural value of a real, of an integer that is not expanded (more than ``expand_limit`` values), or of an auxiliary
            variable
    on      affine 0/1 expression: the parameter is active

``model.parameters[label]`` holds a parameter's variables, ``model.rules[name]`` a rule's constraint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any

import pyomo.environ as pyo

from mipcash.errors import RuleError, SpaceError
from mipcash.modelling.composed import Composer, at_levels, is_composed, mutable_params
from mipcash.modelling.conditions import (
    activity,
    check_indicators,
    conditions_of,
    conjunction,
    expression_of,
    row_of,
)
from mipcash.modelling.declared import Link, Number, OneHot
from mipcash.modelling.domains import (
    Categorical,
    Integer,
    Ordinal,
    ParameterDomain,
    Permutation,
    Real,
    Value,
    is_number,
)
from mipcash.modelling.expectations import NOTHING, Expectation
from mipcash.modelling.fidelity import Fidelity
from mipcash.modelling.formulas import ALWAYS, all_of, implies
from mipcash.modelling.indicators import Indicators
from mipcash.modelling.live.parts import LiveParts
from mipcash.modelling.names import selectors_of, user_name
from mipcash.modelling.numbers import warn_of_end, whole
from mipcash.modelling.parameters import (
    ChoiceParameter,
    Expression,
    ModuleParameter,
    NumericParameter,
    OrderingParameter,
    Parameter,
)
from mipcash.modelling.quadratic import Condition, Quadratic, Variable, interval, parse_quadratic
from mipcash.modelling.refusals import is_indicator, refuse_many_values
from mipcash.modelling.rules import Rule, make_rule
from mipcash.modelling.wording import shortened, written
from mipcash.text import did_you_mean

EXPAND_LIMIT = 64
"""Integers and stepped reals with more values than this are not expanded into one-hot binaries (docs/decisions/archive.md, 028)."""


class Declaration:
    """The declarations of a space, from which everything else is made; users call ``mipcash.Space``.

    Args:
        name: a title for messages and reports.
        expand_limit: largest number of values for which an integer, or a real with a step, is expanded into one-hot binaries; at
            least 2.
    """

    def __init__(self, name: str = "space", *, expand_limit: int = EXPAND_LIMIT) -> None:
        self.name = name
        self.expand_limit = max(2, whole("expand_limit", expand_limit))
        self.model = pyo.ConcreteModel(name=name)
        self.parameters: dict[str, Parameter] = {}
        self.auxiliaries: dict[str, NumericParameter] = {}
        self.rules: dict[str, Rule] = {}
        self.params: dict[str, list[tuple[Any, Any]]] = {}
        """Name of a rule -> the mutable Params in it, with the values that it was declared with."""
        self.groups: list[OneHot] = []
        self.numbers: list[Number] = []
        self.links: list[Link] = []
        self.parts = LiveParts()
        self.conditions: dict[str, tuple[Condition, ...]] = {}
        """Label of a conditional parameter -> the conditions that must all hold for it to be active."""
        self.expectations: dict[str, Expectation] = {}
        """Label -> default value and prior. Copies share them: they are not part of what is legal."""
        self.fidelity: Fidelity | None = None
        self.install_components()

    def copied(self) -> Declaration:
        """Return a copy of the declarations on the same model, which later declarations do not change."""
        other = copy(self)
        for name in ("parameters", "auxiliaries", "rules", "params", "groups", "numbers", "links", "conditions"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    def install_components(self) -> None:
        """Add the components ``parameters`` and ``rules`` to the live model.

        Raises:
            SpaceError: the model already has a component of that name.
        """
        for reserved in ("parameters", "rules"):
            if self.model.component(reserved) is not None:
                cure = "rename it; if a space added it, go on with that space, or build the model anew"
                raise SpaceError(f"the Pyomo model already has a component {reserved!r}, a name mipcash needs: {cure}")
        self.model.parameters = pyo.Block(pyo.Any)
        self.model.rules = pyo.Constraint(pyo.Any)

    # -- parameters ---------------------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        kind: type,
        arguments: Sequence[Any],
        when: Any = None,
        default: Value | None = None,
        prior: Any = None,
        handle: type[ChoiceParameter] = ChoiceParameter,
    ) -> Any:
        """Declare a parameter with the domain ``kind(*arguments)``; see ``mipcash.Space.real``, ``ordinal`` ..."""
        domain = self._domain(name, kind, *arguments)
        expected = Expectation.of(name, domain, default, prior)  # refused before anything is declared
        made = self.declare(name, domain, when, handle)
        if default is not None or prior is not None:
            self.expectations[name] = expected
        return made

    def set_fidelity(self, name: str, low: float, high: float, log: bool, power: float) -> NumericParameter:
        """Declare the fidelity; see ``mipcash.Space.fidelity``."""
        if self.fidelity is not None:
            raise SpaceError(
                f"space {self.name!r} has the fidelity {self.fidelity.label!r} already; there is one in a space"
            )
        if not is_number(power) or power <= 0:
            raise SpaceError(f"fidelity {name!r}: power={power!r} must be a number above 0")
        if not is_number(low) or low <= 0:
            raise SpaceError(
                f"fidelity {name!r}: its lowest value, {low!r}, must be above 0, as costs are relative to the highest"
            )
        whole = isinstance(low, Integral) and isinstance(high, Integral)
        kind, arguments = (Integer, (low, high, 1, log)) if whole else (Real, (low, high, log))
        made: NumericParameter = self.add(name, kind, arguments)
        self.fidelity = Fidelity(name, float(high), float(power))
        return made

    def module(
        self,
        name: str,
        algorithms: Mapping[str, Mapping[str, ParameterDomain]] | Sequence[str],
        *,
        when: Any = None,
        default: Any = None,
        prior: Any = None,
    ) -> ModuleParameter:
        """Declare a choice of algorithm; see ``mipcash.Space.module``."""
        algorithms, labels = self._algorithms(name, algorithms), set[str]()
        for algorithm, domains in algorithms.items():
            for hyper, domain in domains.items():
                self._free_name(label := f"{name}.{algorithm}.{hyper}")
                if label in labels:
                    raise SpaceError(f"two hyperparameters of module {name!r} are named {label!r}; rename one of them")
                labels.add(label)
                if not isinstance(domain, (Real, Integer, Ordinal, Categorical)):
                    raise SpaceError(
                        f"hyperparameter {name}.{algorithm}.{hyper} must be mc.Real, mc.Integer, mc.Ordinal or "
                        f"mc.Categorical, got {domain!r}"
                    )
        module: ModuleParameter = self.add(name, Categorical, (algorithms,), when, default, prior, ModuleParameter)
        for algorithm, domains in algorithms.items():
            module.hyperparameters[algorithm] = {
                hyper: self.declare(f"{name}.{algorithm}.{hyper}", domain, module[algorithm])
                for hyper, domain in domains.items()
            }
        return module

    def _algorithms(self, name: str, algorithms: Any) -> dict[str, Mapping[str, ParameterDomain]]:
        """Return algorithm -> hyperparameters; a list names algorithms without hyperparameters."""
        shape = "{'forest': {'depth': mc.Integer(1, 9)}, 'linear': {}}"
        if isinstance(algorithms, (list, tuple)):
            algorithms = {a: {} for a in algorithms} if len(set(map(str, algorithms))) == len(algorithms) else None
        if not isinstance(algorithms, Mapping) or not algorithms:
            raise SpaceError(
                f"module {name!r} takes a dict, algorithm -> hyperparameters, {shape}, or a list of different names of algorithms "
                "without any"
            )
        for algorithm, domains in algorithms.items():
            if not isinstance(algorithm, str) or not algorithm:
                raise SpaceError(
                    f"module {name!r}: the name of an algorithm must be a non-empty string, got {algorithm!r}"
                )
            if not isinstance(domains, Mapping):
                raise SpaceError(
                    f"module {name!r}: the hyperparameters of {algorithm!r} must be a dict, {shape}, got {domains!r}; {{}} for none"
                )
        return dict(algorithms)

    def ordering(self, name: str, modules: Sequence[Any]) -> OrderingParameter:
        """Declare an order of modules; see ``mipcash.Space.ordering``."""
        self._free_name(name)
        if isinstance(modules, str) or not isinstance(modules, Iterable):
            raise SpaceError(f"ordering {name!r} takes a list of modules or their names, got {modules!r}")
        members = tuple(m.label if isinstance(m, Parameter) else str(m) for m in modules)
        if len(set(members)) != len(members):
            raise SpaceError(f"ordering {name!r} lists a module twice: {list(members)}")
        if len(members) < 2:
            raise SpaceError(f"ordering {name!r} needs at least two modules, got {list(members)}")
        for member in members:
            if member not in self.parameters:
                raise SpaceError(
                    f"ordering {name!r}: {member!r} is not a parameter of space {self.name!r}; declare it first"
                )
        for module in modules:
            if isinstance(module, Parameter) and module is not self.parameters[module.label]:
                raise SpaceError(
                    f"ordering {name!r}: {module.label!r} belongs to another space; use this space's own modules"
                )
        block = self.block(name)
        places = range(len(members))
        block.on_expression = ALWAYS
        block.z = Indicators(places, places, domain=pyo.Binary)
        block.one_position, block.one_module = (
            pyo.Constraint(places),
            pyo.Constraint(places),
        )  # no rule= argument, because such constraints do not pickle
        for place in places:
            block.one_position[place] = sum(block.z[place, t] for t in places) == 1
            block.one_module[place] = sum(block.z[m, place] for m in places) == 1
        parameter = block.z.handle = OrderingParameter(name, Permutation(members), block)
        for m, member in enumerate(members):
            variables = tuple(block.z[m, t] for t in places)
            positions = tuple(t + 1 for t in places)
            self.groups.append(OneHot(f"{name}:{member}", name, variables, positions, None, "ordering"))
        self.parameters[name] = parameter
        return parameter

    def auxiliary(self, name: str, low: int, high: int) -> NumericParameter:
        """Declare an integer auxiliary variable; see ``mipcash.Space.auxiliary``."""
        domain = self._domain(name, Integer, low, high)
        block = self.block(name)
        block.x = pyo.Var(domain=pyo.Integers, bounds=(domain.low, domain.high))
        block.on_expression = ALWAYS
        parameter = NumericParameter(name, domain, False, block.x, block)
        self.numbers.append(Number(name, block.x, domain, None, tuned=False))
        self.auxiliaries[name] = parameter
        return parameter

    def __getitem__(self, name: str) -> Any:
        """Return a parameter or auxiliary variable by its name."""
        found = self.parameters.get(name, self.auxiliaries.get(name))
        if found is None:
            names = [*self.parameters, *self.auxiliaries]
            raise SpaceError(f"space {self.name!r} has no parameter {name!r}; {did_you_mean(name, names)}")
        return found

    def expect(self, name: str, default: Value | None, prior: Any) -> None:
        """Set the default value or the prior of a parameter; see ``mipcash.Space.expect``."""
        if name in self.auxiliaries:
            raise SpaceError(
                f"{name!r} is an auxiliary variable and no part of a configuration; it has no default and no prior"
            )
        new, old = Expectation.of(name, self[name].domain, default, prior), self.expectations.get(name, NOTHING)
        self.expectations[name] = Expectation(new.default or old.default, old.table if new.table is None else new.table)

    # -- rules --------------------------------------------------------------------------------------------------

    def rule(self, name: str, relation: Any = None, *, when: Any = None) -> Rule:
        """Declare a rule; see ``mipcash.Space.rule``."""
        if not isinstance(name, str) or not name:
            given = shortened(written(name) if hasattr(name, "is_expression_type") else repr(name), 60)
            raise RuleError(
                f"a rule needs a name, a string that messages can quote, before its relation; got {given}. Write "
                "space.rule('short name', a <= 3)"
            )
        if name in self.rules:
            raise RuleError(f"a rule named {name!r} exists already; choose another name")
        relation = relation == 1 if is_indicator(relation) else relation
        joined, conditions = conjunction(when)
        indicators, used = check_indicators(self, f"rule {name!r}", joined), relation
        if conditions:
            used = implies(at_levels(self, f"rule {name!r}", all_of(conditions)), relation)
            relation = implies(all_of(conditions), relation)
        if is_composed(relation):
            rule = self._composed(name, relation, used, indicators)
        else:
            rule = make_rule(name, relation, indicators)
            self.refuse_foreign(f"rule {name!r}", rule.body)
            self.write(rule)
        self.rules[name] = rule
        self.params[name] = [(p, p.value) for each in (relation, *joined) for p in mutable_params(each)]
        return rule

    def _composed(self, name: str, relation: Any, used: Any, indicators: Sequence[Quadratic]) -> Rule:
        """Write a rule that contains functions or logic, in the form ``used``; see ``mipcash.modelling.composed``."""
        shown = written(relation)
        try:
            parts = Composer(self, name, shown, partial(self.selector, name)).parts(used, indicators)
            for k, part in enumerate(parts):
                self.write(part, k)
        except RuleError:
            for key in [k for k in self.model.rules if isinstance(k, tuple) and k[0] == name]:
                del self.model.rules[key]
            if selectors_of(name) in self.model.parameters:
                del self.model.parameters[selectors_of(name)]
            raise
        return Rule(name, Quadratic(0.0, {}, {}, {}), -math.inf, math.inf, tuple(indicators), 0.0, shown, tuple(parts))

    def selector(self, name: str) -> Variable:
        """Add an auxiliary binary for a rule that contains functions or logic."""
        block = self.block(selectors_of(name))
        if block.component("selectors") is None:
            block.selectors = pyo.VarList(domain=pyo.Binary)
        return block.selectors.add()

    def write(self, rule: Rule, *part: int) -> None:
        """Write a rule, or a part of one, on the live model."""
        name, rules, body = rule.name, self.model.rules, row_of(rule.body)
        if math.isinf(rule.lower) and math.isinf(rule.upper):
            return  # it always holds
        if not rule.when:
            equal, interval = rule.lower == rule.upper, (_open(rule.lower), body, _open(rule.upper))
            rules[(name, "==", *part) if part else name] = body == rule.lower if equal else pyo.inequality(*interval)
            return
        low, high = self.interval(rule.body)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuleError(f"rule {name!r} is conditional on unbounded terms; give every variable in it bounds")
        refuse_many_values(name, rule.body.ids, self.numbers)
        missing = sum(1 - expression_of(w) for w in rule.when)
        if rule.upper < high:
            rules[name, "<=", *part] = body <= rule.upper + (high - rule.upper) * missing
        if rule.lower > low:
            rules[name, ">=", *part] = body >= rule.lower - (rule.lower - low) * missing

    def place_of(self, number: Number) -> Any:
        """Return the integer variable k of a number ``low + k * step``; None if the model has no such variable."""
        return self.model.parameters[number.label].component("k")

    @property
    def discrete(self) -> set[int]:
        """Ids of numbers with a step and of linked integers, which are discrete whatever their Pyomo domain."""
        steps = {id(n.variable) for n in self.numbers if n.domain.step is not None}
        return steps | {id(link.variable) for link in self.links}

    def interval(self, body: Quadratic) -> tuple[float, float]:
        """Return bounds of a polynomial over the declared domains, without rules."""
        return interval(body, {id(v): k for k, g in enumerate(self.groups) for v in g.variables})

    # -- internals ----------------------------------------------------------------------------------------------

    def _domain(self, name: str, kind: type, *arguments: Any) -> Any:
        self._free_name(name)
        try:
            return kind(*arguments)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from None
        except TypeError as error:
            raise SpaceError(f"parameter {name!r}: {error}; check the arguments") from error

    def _free_name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"a parameter needs a name (a non-empty string), got {name!r}")
        if name in self.parameters or name in self.auxiliaries:
            raise SpaceError(f"a parameter named {name!r} exists already in space {self.name!r}; choose another name")
        if name.endswith(selectors_of("")):
            raise SpaceError(
                f"{name!r} is a name of a rule's own variables; choose one that does not end in {selectors_of('')!r}"
            )

    def block(self, name: str) -> Any:
        """Return the model's block for a parameter's variables."""
        return self.model.parameters[name]

    def declare(self, name: str, domain: Any, when: Any, kind: type[ChoiceParameter] = ChoiceParameter) -> Any:
        """Declare a parameter of any domain.

        Args:
            kind: class of the parameter if it has no numeric value.
        """
        self._free_name(name)
        conditions = conditions_of(self, name, when)
        warn_of_end(name, domain)
        block = self.block(name)
        range_ = isinstance(domain, (Real, Integer))
        number = range_ and (domain.step is None or len(domain.values) > self.expand_limit)
        if not number:
            block.z = Indicators(range(len(domain.values)), domain=pyo.Binary)
        on = activity(block, conditions)
        if conditions:
            self.conditions[name] = conditions
            block.when_text = " and ".join(c.condition_text() for c in conditions)
        block.on_expression = ALWAYS if on is None else on
        polynomial = None if on is None else parse_quadratic(on, f"the condition of {name!r}")
        parameter: Parameter
        if number:
            parameter = self._declare_number(block, name, domain, on, polynomial)
        else:
            if block.component("on_rows") is None:
                block.one_hot = pyo.Constraint(expr=sum(block.z.values()) == (1 if on is None else on))
            if range_ or (isinstance(domain, Ordinal) and domain.numeric):
                worth = sum(float(v) * block.z[l] if v else 0.0 for l, v in enumerate(domain.values))
                parameter = NumericParameter(name, domain, True, worth, block)
            else:
                parameter = kind(name, domain, block)
            block.z.handle = parameter
            variables = tuple(block.z.values())
            group_kind = "ordinal" if domain.kind == "real" else domain.kind
            self.groups.append(OneHot(name, name, variables, tuple(domain.values), polynomial, group_kind))
        self.parameters[name] = parameter
        return parameter

    def _declare_number(
        self, block: Any, name: str, domain: Real | Integer, on: Expression, polynomial: Quadratic | None
    ) -> NumericParameter:
        low, high = domain.low, domain.high
        if on is not None:
            low, high = min(0, low), max(0, high)
        stepped = domain.step is not None and not (isinstance(domain, Integer) and domain.step == 1)
        if stepped:
            block.k = pyo.Var(domain=pyo.Integers, bounds=(0, len(domain.values) - 1))
        block.x = pyo.Var(domain=pyo.Reals if isinstance(domain, Real) else pyo.Integers, bounds=(low, high))
        if on is not None:
            block.on_low = pyo.Constraint(expr=block.x >= domain.low * on)
            block.on_high = pyo.Constraint(expr=block.x <= domain.high * on)
        if stepped:
            block.on_grid = pyo.Constraint(
                expr=block.x == domain.low * (1 if on is None else on) + domain.step * block.k
            )
        self.numbers.append(Number(name, block.x, domain, polynomial, tuned=True))
        return NumericParameter(name, domain, True, block.x, block)

    def refuse_foreign(self, what: str, polynomial: Quadratic) -> None:
        """Refuse variables that belong to another space or to none.

        Raises:
            RuleError: the polynomial contains such a variable.
        """
        for variable in polynomial.variables.values():
            owner = variable.model() if variable.parent_block() is not None else None
            if owner is None:
                raise RuleError(f"{what} uses {variable.name!r}, which is on no model any more; take it out")
            if owner is not self.model:
                raise RuleError(
                    f"{what} uses {_label(variable)!r} of another space ({owner.name!r}); a rule relates parameters of "
                    f"one space only (this one is {self.name!r}); take those of this one, space['name']"
                )


def _label(variable: Any) -> str:
    """Return the label of the parameter that a variable belongs to."""
    handle = getattr(variable.parent_component(), "handle", None)
    return str(user_name(variable) if handle is None else handle.label)


def _open(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
