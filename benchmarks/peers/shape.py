"""Space in the terms of other libraries: flat dimensions with their conditions, and the parts of each rule.

``Shape.of(space)`` reads the declaration once. All information for peers comes from here, so all of them get the same.
It has the kind and scale of a dimension, the values of its parents that activate it, the linear rules, and the rules on
two discrete dimensions that can be listed as forbidden pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.modelling.domains import Permutation, same_value
from mipcash.modelling.rules import Rule
from mipcash.modelling.validation import check
from mipcash.space.compiled import compiled, declaration_of

FORBIDDEN_LIMIT = 3000
"""Maximum number of value combinations of a rule that is listed as forbidden combinations."""


@dataclass(frozen=True)
class Dimension:
    """Parameter in the form of other libraries.

    Attributes:
        name: as in configurations.
        kind: ``real``, ``integer``, ``ordinal`` or ``categorical`` (orderings count as categories).
        values: of a listed kind, in order.
        low, high, log, step: of a number.
        parents: it exists only where each of these dimensions exists and takes one of the values.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    step: int = 1
    parents: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def listed(self) -> bool:
        return self.kind in ("ordinal", "categorical")

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """Return the values of a discrete dimension."""
        return tuple(range(int(self.low), int(self.high) + 1, self.step)) if self.kind == "integer" else self.values

    def index(self, value: Any) -> int:
        """Return the index of a value among the choices."""
        return next(k for k, v in enumerate(self.choices) if same_value(v, value) or v == value)

    def code(self, value: Any) -> float:
        """Return a value on the unit scale; levels of an ordinal are equidistant, categories are numbered 0, 1, ..."""
        if self.kind == "categorical":
            return float(self.index(value))
        if self.kind == "ordinal":
            return self.index(value) / max(1, len(self.values) - 1)
        a, b, v = (np.log((self.low, self.high, value)) if self.log else (self.low, self.high, value)).__iter__()
        return float((v - a) / (b - a)) if b > a else 0.0

    def decode(self, code: float) -> Any:
        """Return the value nearest to a code."""
        if self.kind == "categorical":
            return self.values[min(len(self.values) - 1, max(0, round(code)))]
        u = min(1.0, max(0.0, float(code)))
        if self.kind == "ordinal":
            return self.values[round(u * (len(self.values) - 1))]
        if self.kind == "integer":
            return self.choices[int(np.argmin(np.abs(self.codes - u)))]
        if self.log:
            value = float(np.exp(np.log(self.low) + u * (np.log(self.high) - np.log(self.low))))
        else:
            value = self.low + u * (self.high - self.low)
        return min(self.high, max(self.low, value))

    @cached_property
    def codes(self) -> np.ndarray:
        """Return the codes of all choices."""
        return np.array([self.code(v) for v in self.choices])

    def middle(self) -> Any:
        """Return the substitute for the value if the dimension does not exist."""
        return self.values[0] if self.kind == "categorical" else self.decode(0.5)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a uniform value (on the log scale if the dimension has one)."""
        if self.kind == "real" or self.log:
            return self.decode(float(rng.uniform()))
        return self.choices[int(rng.integers(len(self.choices)))]


@dataclass(frozen=True)
class LinearRule:
    """Rule ``lower <= sum_d slope[d] code(d) + constant <= upper`` over dimensions that always exist."""

    name: str
    slopes: Mapping[str, float]
    constant: float
    lower: float
    upper: float


class Shape:
    """Dimensions of a space in the order of their declaration, and its rules in parts."""

    def __init__(self, space: mc.Space) -> None:
        self.space = space
        self.rules: tuple[Rule, ...] = compiled(space).rules
        self.declaration = declaration_of(space)
        groups = self.declaration.groups
        self._owner = {id(v): (g.parameter, g.values[l]) for g in groups for l, v in enumerate(g.variables)}
        self._number = {id(n.variable): n.label for n in self.declaration.numbers}
        self.dimensions = tuple(self._dimension(name) for name in space.parameters)
        self.by_name = {d.name: d for d in self.dimensions}

    def _dimension(self, name: str) -> Dimension:
        domain = self.space.parameters[name].domain
        parents = tuple(self._parent(w) for w in self.declaration.conditions.get(name, ()))
        if isinstance(domain, Permutation):
            return Dimension(name, "categorical", tuple(permutations(domain.members)), parents=parents)
        if domain.kind in ("ordinal", "categorical"):
            return Dimension(name, domain.kind, tuple(domain.values), parents=parents)
        step = domain.step if domain.kind == "integer" else 1
        return Dimension(name, domain.kind, (), domain.low, domain.high, domain.log, step, parents)

    def _parent(self, indicator: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the dimension of an indicator, and the values at which the indicator is 1."""
        names = {self._owner[i][0] for i in indicator.ids}
        if len(names) != 1:
            raise ValueError(f"a condition over {sorted(names)} cannot be told to other libraries; make it two conditions")
        (name,) = names
        values = [
            value
            for i, (owner, value) in self._owner.items()
            if owner == name and indicator.constant + indicator.linear.get(i, 0.0) > 0.5
        ]
        return name, tuple(values)

    # -- configurations -----------------------------------------------------------------------------------------

    def exists(self, dimension: Dimension, config: Mapping[str, Any]) -> bool:
        """Return True if a dimension exists given the values in ``config``."""
        return all(parent in config and any(same_value(v, config[parent]) for v in values) for parent, values in dimension.parents)

    def active(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return only the values of the dimensions that exist. Parents come before children."""
        config: dict[str, Any] = {}
        for d in self.dimensions:
            if d.name in values and self.exists(d, config):
                config[d.name] = values[d.name]
        return config

    def full(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value for every dimension, the middle if it does not exist."""
        return {d.name: config.get(d.name, d.middle()) for d in self.dimensions}

    def codes(self, config: Mapping[str, Any]) -> np.ndarray:
        """Return the codes of all dimensions, shape (D,)."""
        full = self.full(config)
        return np.array([d.code(full[d.name]) for d in self.dimensions])

    def decode(self, codes: np.ndarray) -> dict[str, Any]:
        """Return the configuration nearest to codes, shape (D,)."""
        return self.active({d.name: d.decode(c) for d, c in zip(self.dimensions, codes, strict=True)})

    # -- rules --------------------------------------------------------------------------------------------------

    def violations(self, config: Mapping[str, Any]) -> dict[str, float]:
        """Return the violation of each rule, relative to the range of its body (1 if no number can be given)."""
        found: dict[str, float] = {}
        broken = self.space.validate(dict(config))
        if not broken:
            return found
        assignment = check(self.declaration, dict(config), self.rules).assignment
        rules = {r.name: r for r in self.rules}
        for violation in broken:
            amount, rule = 1.0, rules.get(violation.name)
            if rule is not None and rule.body.ids <= assignment.keys():
                value = rule.body.value(assignment)
                low, high = self.declaration.interval(rule.body)
                excess = max(rule.lower - value, value - rule.upper, 0.0)
                amount = excess / max(1e-12, high - low) if np.isfinite(high - low) else excess
            found[violation.name] = max(1e-6, amount)
        return found

    def linear_rules(self) -> list[LinearRule]:
        """Return the rules that are linear in the codes and hold unconditionally."""
        found = [self._linear(rule) for rule in self.rules]
        return [f for f in found if f is not None]

    def _linear(self, rule: Rule) -> LinearRule | None:
        if rule.when or rule.body.products:
            return None
        slopes: dict[str, float] = {}
        constant, of_values = rule.body.constant, dict[str, dict[int, float]]()
        for i, c in rule.body.linear.items():
            if i in self._owner:
                of_values.setdefault(self._owner[i][0], {})[i] = c
            elif self._number.get(i) in self.by_name:
                d = self.by_name[self._number[i]]
                if d.log or d.parents:
                    return None
                slopes[d.name] = c * (d.high - d.low)
                constant += c * d.low
            else:
                return None  # an auxiliary variable
        for name, coefficients in of_values.items():
            d = self.by_name[name]
            if d.parents or (d.kind == "categorical" and len(d.values) > 2) or d.name in slopes:
                return None
            worth = np.array(
                [next((c for i, c in coefficients.items() if same_value(self._owner[i][1], v)), 0.0) for v in d.choices]
            )
            line = np.polyfit(d.codes, worth, 1) if len(worth) > 1 else np.array([0.0, worth[0]])
            if np.abs(np.polyval(line, d.codes) - worth).max() > 1e-9 * max(1.0, np.abs(worth).max()):
                return None
            slopes[name] = float(line[0])
            constant += float(line[1])
        return LinearRule(rule.name, slopes, constant, rule.lower, rule.upper)

    def forbidden(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield the rules over up to four discrete dimensions, each with the value combinations that violate it.

        Yields:
            name of the rule, list of {dimension: value}.
        """
        for rule in self.rules:
            ids = rule.body.ids.union(*(w.ids for w in rule.when))
            if not all(i in self._owner for i in ids):
                continue
            names = sorted({self._owner[i][0] for i in ids})
            sizes = [len(self.by_name[n].choices) for n in names]
            ordering = any(isinstance(self.space.parameters[n].domain, Permutation) for n in names)
            if len(names) > 4 or np.prod(sizes) > FORBIDDEN_LIMIT or ordering:
                continue
            bad = []
            for values in product(*(self.by_name[n].choices for n in names)):
                chosen = dict(zip(names, values, strict=True))
                assignment = {i: float(same_value(chosen[self._owner[i][0]], self._owner[i][1])) for i in ids}
                if rule.applies(assignment) and rule.violated(rule.body.value(assignment)):
                    bad.append(chosen)
            yield rule.name, bad
