"""A drawn space as plain data, and the Python source that declares it in the library's public language.

Nothing here says what a rule means: :mod:`tests.fuzz.table` and :mod:`tests.fuzz.truth` do, in exact fractions, and
``tests/strategies/meaning.py`` does, in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mipcash as mc


@dataclass(frozen=True)
class Is:
    """Indicator: the parameter takes one of the values at ``levels``; ``negated`` is one minus that."""

    name: str
    levels: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True)
class Active:
    """Indicator: the (conditional) parameter is active."""

    name: str


@dataclass(frozen=True)
class At:
    """Indicator: member ``member`` of the ordering stands at ``position`` (1..T)."""

    name: str
    member: str
    position: int


@dataclass(frozen=True)
class Value:
    """The natural value of a numeric parameter, a real or a helper; 0 where it is inactive."""

    name: str


@dataclass(frozen=True)
class Position:
    """The position (1..T) of a member of the ordering."""

    name: str
    member: str


Indicator = Is | Active | At
Factor = Indicator | Value | Position


@dataclass(frozen=True)
class Term:
    """``coefficient * factor * ...``; at most two factors."""

    coefficient: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Relation:
    """``sum of terms  sense  bound``, the terms in this order; ``sense`` is ``<=``, ``>=`` or ``==``."""

    terms: tuple[Term, ...]
    sense: str
    bound: float


@dataclass(frozen=True)
class Rule:
    """A named rule; ``direct``: a Pyomo Constraint on the live model instead of ``space.rule``."""

    name: str
    relation: Relation
    when: tuple[Indicator, ...] = ()
    direct: bool = False


@dataclass(frozen=True)
class Clause:
    """A LogicalConstraint over literals (parameter, level, wanted): ``any``, ``xor`` or ``implies`` (the last follows)."""

    name: str
    kind: str
    literals: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True)
class Choice:
    """A Disjunction: one list of relations per disjunct; some disjunct's relations hold."""

    name: str
    disjuncts: tuple[tuple[Relation, ...], ...]


Part = Rule | Clause | Choice


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        kind: ``integer``, ``ordinal``, ``categorical``, ``module``, ``ordering`` or ``real``.
        values: all values in order (orderings: all permutations; real: empty).
        low, high, step, log: of an integer or a real.
        when: indicators that must all hold.
        owner: (module, algorithm) of a hyperparameter that its module declares; it is active with the algorithm.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: int = 1
    log: bool = False
    when: tuple[Indicator, ...] = ()
    owner: tuple[str, str] | None = None

    @property
    def numeric(self) -> bool:
        """Whether it has a natural value that rules may use."""
        plain = all(type(v) in (int, float) for v in self.values)
        return self.kind in ("integer", "real") or (self.kind == "ordinal" and plain)


@dataclass(frozen=True)
class Helper:
    """An auxiliary: an integer in ``[low, high]`` that rules use and configurations leave out."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Drawn:
    """A space as plain data."""

    parameters: tuple[Parameter, ...]
    helpers: tuple[Helper, ...] = ()
    parts: tuple[Part, ...] = ()
    expand_limit: int = 64

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

    def conditions(self, p: Parameter) -> tuple[Indicator, ...]:
        """Indicators that must all hold for a parameter to be active: its own, or that of the module that declares it."""
        if p.owner is None:
            return p.when
        module, algorithm = p.owner
        return (Is(module, (self[module].values.index(algorithm),)),)

    def wide(self, p: Parameter) -> bool:
        """Whether an integer has more levels than are expanded."""
        return p.kind == "integer" and len(p.values) > self.expand_limit

    def has_indicators(self, p: Parameter) -> bool:
        """Whether ``is_`` may be asked of a parameter."""
        return p.kind not in ("ordering", "real") and not self.wide(p)


# -- Python source --------------------------------------------------------------------------------------------------

HEADER = """import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import mipcash as mc
"""


def source(drawn: Drawn) -> str:
    """A program that declares ``space``."""
    lines = [HEADER, f'space = mc.Space("drawn", expand_limit={drawn.expand_limit})']
    for p in drawn.parameters:
        lines.append(_declaration(drawn, p))
    lines += [f'{h.name} = space.auxiliary("{h.name}", {h.low}, {h.high})' for h in drawn.helpers]
    lines += [_part(drawn, p) for p in drawn.parts]
    return "\n".join(lines) + "\n"


def build(drawn: Drawn) -> mc.Space:
    """The space that :func:`source` declares: what is printed for a disagreement is what was run."""
    names: dict[str, Any] = {}
    exec(compile(source(drawn), "<drawn space>", "exec"), names)
    space: mc.Space = names["space"]
    return space


def expression(drawn: Drawn, terms: Sequence[Term], space: mc.Space) -> Any:
    """A sum of terms over the parameters of a built space."""
    listed = [p.name for p in drawn.parameters] + [h.name for h in drawn.helpers]
    names = {identifier(name): space[name] for name in listed}
    return eval(_sum(drawn, terms), {"__builtins__": {}}, names)


def identifier(name: str) -> str:
    """The variable that holds a parameter in the source."""
    return name.replace(".", "_")


def _declaration(drawn: Drawn, p: Parameter) -> str:
    handle = f"{identifier(p.name)} = "
    if p.owner is not None:
        return f'{handle}{p.owner[0]}.parameter("{p.owner[1]}", "{p.name.rsplit(".", 1)[1]}")'
    when = f", {_when(drawn, p.when)}" if p.when else ""
    log = ", log=True" if p.log else ""
    if p.kind == "integer":
        step = f", step={p.step}" if p.step != 1 else ""
        return f'{handle}space.integer("{p.name}", {p.low}, {p.high}{step}{log}{when})'
    if p.kind == "real":
        return f'{handle}space.real("{p.name}", {p.low!r}, {p.high!r}{log}{when})'
    if p.kind == "ordering":
        return f'{handle}space.ordering("{p.name}", [{", ".join(sorted(p.values[0]))}])'
    if p.kind == "module":
        return f'{handle}space.module("{p.name}", {_hyperparameters(drawn, p)}{when})'
    return f'{handle}space.{p.kind}("{p.name}", {list(p.values)!r}{when})'


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
    return f"mc.{p.kind.capitalize()}({list(p.values)!r})"


def _when(drawn: Drawn, when: Sequence[Indicator]) -> str:
    listed = [_factor(drawn, w) for w in when]
    return "when=" + (listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]")


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
    if isinstance(part, Rule) and part.direct:
        return f"space.model.{part.name} = pyo.Constraint(expr={_relation(drawn, part.relation)})"
    if isinstance(part, Rule):
        when = f", {_when(drawn, part.when)}" if part.when else ""
        return f'space.rule("{part.name}", {_relation(drawn, part.relation)}{when})'
    if isinstance(part, Choice):
        inner = ", ".join(f"[{', '.join(_relation(drawn, r) for r in relations)}]" for relations in part.disjuncts)
        return f"space.model.{part.name} = Disjunction(expr=[{inner}])"
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
    return f"space.model.{part.name} = pyo.LogicalConstraint(expr={logic})"
