"""Data classes of drawn spaces, and the Python source that declares a space with the library's public API.

The meaning of rules is defined in :mod:`tests.fuzz.table` and :mod:`tests.fuzz.truth`, in exact fractions.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mipcash as mc
from mipcash.errors import StepWarning
from tests.fuzz.terms import (
    Active,
    At,
    Choice,
    Clause,
    Condition,
    Factor,
    Is,
    Join,
    Part,
    Position,
    Relation,
    Rule,
    Term,
    Value,
)


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        kind: ``integer``, ``real``, ``stepped`` (a real with a step), ``ordinal``, ``categorical``, ``module`` or
            ``ordering``.
        values: all values in order (orderings: all permutations; real: empty).
        low, high, step, log: bounds, step and scale of an integer or a real.
        when: conditions that must all hold.
        owner: (module, algorithm) that declares a hyperparameter, which is active with the algorithm.
    """

    name: str
    kind: str
    values: Sequence[Any] = ()
    low: float = 0
    high: float = 0
    step: float = 1
    log: bool = False
    when: tuple[Condition, ...] = ()
    owner: tuple[str, str] | None = None

    @property
    def numeric(self) -> bool:
        """True if the parameter has a natural value that rules may use."""
        if self.kind == "ordinal":
            return all(type(v) in (int, float) for v in self.values)
        return self.kind in ("integer", "stepped", "real")


@dataclass(frozen=True)
class Helper:
    """Auxiliary variable: an integer in ``[low, high]`` that rules use and configurations omit.

    In a Pyomo model an auxiliary variable with a single value is a fixed variable.
    """

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Drawn:
    """A space as plain data.

    Attributes:
        origin: ``pyomo``, ``configspace`` or ``optuna`` if the space is declared in that library and imported.
    """

    parameters: tuple[Parameter, ...]
    auxiliaries: tuple[Helper, ...] = ()
    parts: tuple[Part, ...] = ()
    expand_limit: int = 64
    origin: str = ""

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(p for p in self.parts if isinstance(p, Rule))

    @property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(p for p in self.parts if isinstance(p, Clause))

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(p for p in self.parts if isinstance(p, Choice))

    @property
    def reals(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "real")

    def conditions(self, p: Parameter) -> tuple[Condition, ...]:
        """Return the conditions that must all hold for a parameter to be active."""
        if p.owner is None:
            return p.when
        module, algorithm = p.owner
        return (Is(module, (self[module].values.index(algorithm),)),)

    def wide(self, p: Parameter) -> bool:
        """Return True if an integer or a real with a step has more than ``expand_limit`` levels."""
        return p.kind in ("integer", "stepped") and len(p.values) > max(2, self.expand_limit)

    def without_levels(self, p: Parameter) -> bool:
        """Return True if a parameter is a number with a column of its own: a real, or a wide range with steps."""
        return p.kind == "real" or self.wide(p)

    def has_indicators(self, p: Parameter) -> bool:
        """Return True if a parameter supports ``is_``."""
        return self.origin != "pyomo" and p.kind != "ordering" and not self.without_levels(p)


# -- Python source --------------------------------------------------------------------------------------------------

HEADERS = {
    "": "from pyomo.gdp import Disjunction\n",
    "pyomo": "from pyomo.gdp import Disjunct, Disjunction\n",
    "configspace": "import ConfigSpace as CS\n",
    "optuna": "from optuna import distributions as od\n",
}
OPENINGS = {
    "": 'space = mc.Space("drawn", expand_limit={})',
    "pyomo": 'model = pyo.ConcreteModel("drawn")',
    "configspace": 'theirs = CS.ConfigurationSpace(name="drawn", seed=0)',
    "optuna": "theirs = {{}}",
}
IMPORTS = {
    "pyomo": "space = mc.Space.from_pyomo(model, auxiliary={}, expand_limit={})",
    "configspace": "space = mc.Space.from_configspace(theirs)",
    "optuna": "space = mc.Space.from_optuna(theirs)",
}


def source(drawn: Drawn) -> str:
    """Return a program that declares ``space``."""
    origin = drawn.origin
    lines = [f"import pyomo.environ as pyo\n{HEADERS[origin]}\nimport mipcash as mc\n"]
    lines.append(OPENINGS[origin].format(drawn.expand_limit))
    lines += [_declaration(drawn, p) for p in drawn.parameters]
    lines += [_helper(drawn, h) for h in drawn.auxiliaries]
    theirs = [p for p in drawn.parts if origin == "pyomo" or (origin == "configspace" and isinstance(p, Clause))]
    lines += [_part(drawn, p) for p in theirs]
    if origin:
        names = [h.name for h in drawn.auxiliaries if h.low < h.high]
        lines.append(IMPORTS[origin].format(names, drawn.expand_limit))
    if origin in ("configspace", "optuna"):
        lines += [f"{identifier(p.name)} = space[{p.name!r}]" for p in drawn.parameters]
    lines += [_part(drawn, p) for p in drawn.parts if p not in theirs]
    return "\n".join(lines) + "\n"


def build(drawn: Drawn, names: dict[str, Any] | None = None) -> mc.Space:
    """Return the space that :func:`source` declares, so that a printed program is the program that was run.

    Args:
        names: receives the variables of the program, such as the space of another library.
    """
    names = {} if names is None else names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)  # some bounds are between two steps on purpose
        exec(compile(source(drawn), "<drawn space>", "exec"), names)
    space: mc.Space = names["space"]
    return space


def expression(drawn: Drawn, terms: Sequence[Term], space: mc.Space) -> Any:
    """Return a sum of terms over the parameters of a built space, without auxiliary variables."""
    names = {identifier(p.name): space[p.name] for p in drawn.parameters}
    return eval(_sum(drawn, terms), {"__builtins__": {}}, names)


def identifier(name: str) -> str:
    """Return the name of the variable that holds a parameter in the source."""
    return re.sub(r"\W", "_", name)


def _declaration(drawn: Drawn, p: Parameter) -> str:
    handle, name = f"{identifier(p.name)} = ", repr(p.name)
    if drawn.origin == "pyomo":
        domain = "Integers" if p.kind == "integer" and p.step == 1 else "Reals"
        if p.kind != "real" and p.step != 1:
            return f"model.{p.name} = {handle}pyo.Var(domain=pyo.RangeSet({p.low}, {p.high}, {p.step}))"
        return f"model.{p.name} = {handle}pyo.Var(domain=pyo.{domain}, bounds=({p.low!r}, {p.high!r}))"
    if drawn.origin:
        return _foreign(drawn, p)
    if p.owner is not None:
        return f'{handle}{p.owner[0]}.parameter("{p.owner[1]}", "{p.name.rsplit(".", 1)[1]}")'
    when = f", {_when(drawn, p.when)}" if p.when else ""
    log = ", log=True" if p.log else ""
    if p.kind == "integer":
        step = f", step={p.step}" if p.step != 1 else ""
        return f"{handle}space.integer({name}, {p.low}, {p.high}{step}{log}{when})"
    if p.kind == "stepped":
        return f"{handle}space.real({name}, {p.low!r}, {p.high!r}, step={p.step!r}{when})"
    if p.kind == "real":
        return f"{handle}space.real({name}, {p.low!r}, {p.high!r}{log}{when})"
    if p.kind == "ordering":
        return f"{handle}space.ordering({name}, [{', '.join(sorted(p.values[0]))}])"
    if p.kind == "module":
        return f"{handle}space.module({name}, {_hyperparameters(drawn, p)}{when})"
    return f"{handle}space.{p.kind}({name}, {list(p.values)!r}{when})"


def _foreign(drawn: Drawn, p: Parameter) -> str:
    """Return the declaration of a parameter in ConfigSpace (with its conditions) or Optuna."""
    log = ", log=True" if p.log else ""
    listed, ends = list(p.values), f"{p.low!r}, {p.high!r}"
    if drawn.origin == "optuna":
        step = f", step={p.step}" if p.step != 1 else ""
        made = {
            "integer": f"IntDistribution({ends}{step}{log})",
            "real": f"FloatDistribution({ends}{log})",
        }.get(p.kind, f"CategoricalDistribution({listed!r})")
        return f"theirs[{p.name!r}] = od.{made}"
    made = {
        "integer": f"Integer({p.name!r}, ({ends}){log}, default={p.low!r})",
        "real": f"Float({p.name!r}, ({ends}){log})",
        "ordinal": f"OrdinalHyperparameter({p.name!r}, {listed!r})",
    }.get(p.kind, f"Categorical({p.name!r}, {listed!r})")
    conditions = "".join(f"\ntheirs.add({_theirs(drawn, p.name, w)})" for w in p.when)
    return f"theirs.add(CS.{made}){conditions}"


def _theirs(drawn: Drawn, child: str, condition: Condition) -> str:
    """Return the declaration of a condition in ConfigSpace."""
    if isinstance(condition, Join):
        kind = {"&": "And", "|": "Or"}[condition.kind]
        return f"CS.{kind}Conjunction({', '.join(_theirs(drawn, child, part) for part in condition.parts)})"
    assert isinstance(condition, Is)
    values = [drawn[condition.name].values[l] for l in condition.levels]
    kind = "NotEquals" if condition.negated else "Equals" if len(values) == 1 else "In"
    return (
        f"CS.{kind}Condition(theirs[{child!r}], theirs[{condition.name!r}], {values if kind == 'In' else values[0]!r})"
    )


def _helper(drawn: Drawn, h: Helper) -> str:
    if drawn.origin != "pyomo":
        return f'{h.name} = space.auxiliary("{h.name}", {h.low}, {h.high})'
    more = h.low == h.high
    made = f"model.{h.name} = {h.name} = pyo.Var(domain=pyo.Integers, bounds=({h.low}, {h.high + more}))"
    return f"{made}\n{h.name}.fix({h.low})" if more else made


def _hyperparameters(drawn: Drawn, module: Parameter) -> str:
    listed = []
    for algorithm in module.values:
        owned = [p for p in drawn.parameters if p.owner == (module.name, algorithm)]
        inside = ", ".join(f'"{p.name.rsplit(".", 1)[1]}": {_domain(p)}' for p in owned)
        listed.append(f'"{algorithm}": {{{inside}}}')
    return "{" + ", ".join(listed) + "}"


def _domain(p: Parameter) -> str:
    if p.kind == "integer":
        return f"mc.Integer({p.low}, {p.high}, {p.step}, {p.log})"
    if p.kind == "stepped":
        return f"mc.Real({p.low!r}, {p.high!r}, step={p.step!r})"
    return f"mc.{p.kind.capitalize()}({list(p.values)!r})"


def _when(drawn: Drawn, when: Sequence[Condition]) -> str:
    listed = [_condition(drawn, w) for w in when]
    return "when=" + (listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]")


def _condition(drawn: Drawn, condition: Condition) -> str:
    if not isinstance(condition, Join):
        return _factor(drawn, condition)
    listed = [f"({_condition(drawn, part)})" for part in condition.parts]
    return f"~{listed[0]}" if condition.kind == "~" else f" {condition.kind} ".join(listed)


def _factor(drawn: Drawn, factor: Factor) -> str:
    handle = identifier(factor.name)
    if isinstance(factor, Value):
        return handle
    if isinstance(factor, Position):
        return f'{handle}.position("{factor.member}")'
    if isinstance(factor, At):
        return f'{handle}.at("{factor.member}", {factor.position})'
    if isinstance(factor, Active):
        return f"{handle}.is_active()"
    indicator = f"{handle}.is_({', '.join(repr(drawn[factor.name].values[l]) for l in factor.levels)})"
    return f"1 - {indicator}" if factor.negated else indicator


def _sum(drawn: Drawn, terms: Sequence[Term]) -> str:
    listed = []
    for term in terms:
        factors = [_factor(drawn, f) for f in term.factors]
        factors = [f"({f})" if f.startswith("1 - ") else f for f in factors]
        listed.append(" * ".join([repr(term.coefficient), *factors]))
    return " + ".join(listed)


def _relation(drawn: Drawn, relation: Relation) -> str:
    return f"{_sum(drawn, relation.terms)} {relation.sense} {relation.bound!r}"


def _part(drawn: Drawn, part: Part) -> str:
    model = "model" if drawn.origin == "pyomo" else "space.model"
    if isinstance(part, Rule) and part.direct:
        return f"{model}.{part.name} = pyo.Constraint(expr={_relation(drawn, part.relation)})"
    if isinstance(part, Rule):
        when = f", {_when(drawn, part.when)}" if part.when else ""
        return f'space.rule("{part.name}", {_relation(drawn, part.relation)}{when})'
    if isinstance(part, Choice):
        return _choice(drawn, part, model)
    if drawn.origin == "configspace":
        literals = [f"CS.ForbiddenEqualsClause(theirs[{n!r}], {drawn[n].values[l]!r})" for n, l, _ in part.literals]
        return f"theirs.add(CS.ForbiddenAndConjunction({', '.join(literals)}))"
    literals = []
    for name, level, wanted in part.literals:
        boolean = f"{identifier(name)}.boolean({drawn[name].values[level]!r})"
        literals.append(boolean if wanted else f"pyo.lnot({boolean})")
    if part.kind == "any":
        logic = f"pyo.lor({', '.join(literals)})"
    elif part.kind == "xor":
        logic = f"pyo.xor({', '.join(literals)})"
    else:
        logic = f"pyo.land({', '.join(literals[:-1])}).implies({literals[-1]})"
    return f"{model}.{part.name} = pyo.LogicalConstraint(expr={logic})"


def _choice(drawn: Drawn, part: Choice, model: str) -> str:
    listed = [[_relation(drawn, r) for r in relations] for relations in part.disjuncts]
    if not part.fixed:
        inner = ", ".join(f"[{', '.join(relations)}]" for relations in listed)
        return f"{model}.{part.name} = Disjunction(expr=[{inner}])"
    names = [f"{model}.{part.name}_{d}" for d in range(len(listed))]
    lines = []
    for name, relations, fixed in zip(names, listed, part.fixed, strict=True):
        lines.append(f"{name} = Disjunct()")
        lines += [f"{name}.c{r} = pyo.Constraint(expr={relation})" for r, relation in enumerate(relations)]
        lines += [f"{name}.indicator_var.fix({fixed})"] if fixed is not None else []
    lines.append(f"{model}.{part.name} = Disjunction(expr=[{', '.join(names)}], xor={part.exactly})")
    for i, j in part.implied:
        implication = f"{names[i]}.indicator_var.implies({names[j]}.indicator_var)"
        lines.append(f"{model}.{part.name}_{i}_{j} = pyo.LogicalConstraint(expr={implication})")
    return "\n".join(lines)
