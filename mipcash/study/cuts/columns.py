"""Parameters as the search for cuts sees them, from a space or from the listing in a journal.

Notation
    n configurations;   position (n,) of a column's values in their order: of a number itself, of a listed value its level; nan
    where the parameter is inactive
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, Integer, Ordinal, ParameterDomain, Permutation, Real, same_value
from mipcash.program.forms import Vector
from mipcash.space.cuts.setting import ABOVE, IS, Setting

VALUES, NUMBER, LEVELS, ORDER = "values", "number", "levels", "order"
"""Kinds of columns: values without an order, numbers, listed values in an order, orders of modules."""
PARAMETER = "parameter "
"""What the entry of a parameter begins with in a listing; its name follows as Python writes it."""
_CONDITION = re.compile(r" when .*parameters\[")
_STEP = re.compile(r"step=(\d+)")


@dataclass(frozen=True)
class Column:
    """One parameter.

    Attributes:
        label: its name.
        kind: ``values``, ``number``, ``levels`` or ``order``.
        levels: of ``levels`` all values in order, of ``order`` the modules.
        step: of whole numbers; 0: reals.
        conditional: whether it may be inactive.
    """

    label: str
    kind: str
    levels: tuple[Any, ...] = ()
    step: int = 0
    conditional: bool = False

    @property
    def ordered(self) -> bool:
        return self.kind in (NUMBER, LEVELS)

    def positions(self, configs: Sequence[Configuration]) -> Vector:
        """Where values stand in their order, nan where the parameter is inactive: shape (n,)."""
        return np.array([self._position(c[self.label]) if self.label in c else math.nan for c in configs], dtype=float)

    def _position(self, value: Any) -> float:
        if self.kind == NUMBER:
            return float(value)
        return float(next(l for l, v in enumerate(self.levels) if same_value(v, value)))

    def beyond(self, sign: str, edge: float, first: float) -> Setting:
        """The setting on whose legal side all is up to a position that works, and on whose other the first that fails."""
        if self.kind == NUMBER and not self.step:
            return Setting(self.label, sign, short_between(edge, first), self.conditional)
        if self.kind == NUMBER:
            last = int(first) - self.step if sign == ABOVE else int(first) + self.step
            return Setting(self.label, sign, last, self.conditional)
        level = int(first)
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.levels)
        if numbers and all(a < b for a, b in pairwise(self.levels)):
            return Setting(self.label, sign, self.levels[level - 1 if sign == ABOVE else level + 1], self.conditional)
        chosen = self.levels[level:] if sign == ABOVE else self.levels[: level + 1]
        return Setting(self.label, IS, tuple(chosen), self.conditional)


def short_between(edge: float, first: float) -> float:
    """The number of the fewest digits in the last quarter of the way from one to the other, apart from the other.

    A rule forbids what is known to fail and a little more, up to the next short number.
    """
    near, far = sorted((edge + 0.75 * (first - edge), edge + 0.97 * (first - edge)))
    for digits in range(1, 17):
        exponent = digits - 1 - math.floor(math.log10(max(abs(near), abs(far))))
        unit = 10.0**-exponent
        for number in (math.ceil(near / unit), math.floor(far / unit)):
            short = round(number * unit, max(0, exponent)) + 0.0
            if near <= short <= far:
                return float(short)
    return float(edge + 0.9 * (first - edge))


def columns_of(declaration: Declaration) -> list[Column]:
    """The parameters of a space."""
    return [
        _column(label, parameter.domain, label in declaration.conditions)
        for label, parameter in declaration.parameters.items()
    ]


def _column(label: str, domain: ParameterDomain, conditional: bool) -> Column:
    if isinstance(domain, Real):
        return Column(label, NUMBER, conditional=conditional)
    if isinstance(domain, Integer):
        return Column(label, NUMBER, step=domain.step, conditional=conditional)
    if isinstance(domain, Permutation):
        return Column(label, ORDER, tuple(domain.members))
    kind = LEVELS if isinstance(domain, Ordinal) else VALUES
    return Column(label, kind, tuple(domain.values), conditional=conditional)


def listed_columns(listing: Mapping[str, str], configs: Sequence[Configuration]) -> list[Column]:
    """The parameters of a journal, whose space is not at hand: by their listing, and by the values that occur.

    Ordinals of other things than numbers count as values without an order: what a journal says of them is for people.
    """
    found = []
    for entry, text in listing.items():
        if not entry.startswith(PARAMETER):
            continue
        label = ast.literal_eval(entry.removeprefix(PARAMETER))
        values = [c[label] for c in configs if label in c]
        column = _listed(label, text, values)
        absent = len(values) < len(configs)
        found.append(replace(column, conditional=absent or _CONDITION.search(text) is not None))
    return [c for c in found if any(c.label in config for config in configs)]


def _listed(label: str, text: str, values: Sequence[Any]) -> Column:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if text.startswith("Permutation("):
        return Column(label, ORDER, tuple(values[0]) if values else ())
    if numbers and text.startswith("Real("):
        return Column(label, NUMBER)
    if numbers and text.startswith("Integer("):
        step = _STEP.search(text)
        return Column(label, NUMBER, step=int(step.group(1)) if step else 1)
    if numbers and text.startswith("ordinal ["):
        return Column(label, LEVELS, tuple(sorted(set(values))))
    return Column(label, VALUES)
