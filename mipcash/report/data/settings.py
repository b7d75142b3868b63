"""Settings of one parameter that pictures vary while the other parameters stay fixed, and points with these settings.

Notation
    latent points   a level of every group and a value of every numerical parameter, also of inactive ones
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from mipcash.display import value_text
from mipcash.modelling.domains import Integer, Permutation, Real, Value, same_value
from mipcash.program.points import Points
from mipcash.report.data.box import orders
from mipcash.space.bounds import Extent
from mipcash.space.domain import Domain

LISTED = 12
"""Number of integer values up to which they are shown one by one."""
ORDERS = 8
"""Largest number of orders of an ordering that are tried."""


@dataclass(frozen=True, eq=False)
class Setting:
    """One value of one parameter.

    Attributes:
        value: as a configuration has it.
        levels: level of each group of the parameter.
        unit: index and unit-scaled value of a numerical parameter; None for other parameters.
    """

    value: Value
    levels: tuple[tuple[int, int], ...] = ()
    unit: tuple[int, float] | None = None

    def at(self, points: Points) -> Points:
        """Return latent points with this value."""
        levels, units = points.levels.copy(), points.units.copy()
        for g, level in self.levels:
            levels[:, g] = level
        if self.unit is not None:
            units[:, self.unit[0]] = self.unit[1]
        return Points(levels, units)


@dataclass(frozen=True, eq=False)
class Variable:
    """One parameter, with some of its values.

    Attributes:
        label: its name.
        settings: in their order.
        number: True if its values are on a scale, False if they are a list.
        log: True if that scale is logarithmic.
    """

    label: str
    settings: tuple[Setting, ...]
    number: bool
    log: bool

    @classmethod
    def of(
        cls,
        domain: Domain,
        label: str,
        count: int,
        extent: Extent | None,
        rng: np.random.Generator,
        whole: bool = False,
        also: Value | None = None,
    ) -> Variable | None:
        """Return the settings of a parameter; None if it has none.

        Args:
            count: largest number of values.
            extent: its legal range; None: unknown.
            whole: True to use the whole declared range with its ends. Otherwise the legal range is used; the values of a numerical
                parameter are then the midpoints of equal parts.
            also: a value that is always included; None: none.
        """
        declared = domain.declaration.parameters[label].domain
        groups = tuple(g for g, group in enumerate(domain.program.groups) if group.parameter == label)
        place = domain.scale.place.get(label, -1)
        if isinstance(declared, Permutation):
            return cls(label, _orders(domain, declared, groups, count, rng, also), False, False)
        if groups:
            group = domain.program.groups[groups[0]]
            left = None if extent is None or whole else extent.values
            levels = [l for l, v in enumerate(group.values) if left is None or any(same_value(v, w) for w in left)]
            chosen = _spread(levels, count)
            own = [l for l, v in enumerate(group.values) if also is not None and same_value(v, also)]
            chosen = sorted({*chosen, *own})
            settings = tuple(Setting(group.values[l], ((groups[0], l),)) for l in chosen)
            number = group.kind == "integer" and len(settings) > LISTED
            return cls(label, settings, number, False) if settings else None
        if place < 0 or not isinstance(declared, (Real, Integer)):
            return None
        low, high = (declared.low, declared.high) if extent is None or whole else (extent.low, extent.high)
        share = np.linspace(0.0, 1.0, count) if whole else (np.arange(count) + 0.5) / count
        units = declared.to_unit(low) + share * (declared.to_unit(high) - declared.to_unit(low))
        values = list(dict.fromkeys(declared.from_unit(float(u)) for u in units))
        values = values if also is None else sorted({*values, also})
        made = tuple(Setting(v, unit=(place, declared.to_unit(v))) for v in values)
        few = declared.step is not None and len(made) <= LISTED
        return cls(label, made, not few, declared.log)

    @property
    def texts(self) -> list[str]:
        """The settings in words."""
        return [setting_text(s.value) for s in self.settings]


def setting_text(value: Value) -> str:
    """Return a value as pictures write it: strings without quotes, orders with arrows."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(v, str) for v in value):
        return " → ".join(value)
    return value_text(value)


def _spread(values: Sequence[int], count: int) -> list[int]:
    if len(values) <= count:
        return list(values)
    return [values[int(k)] for k in np.unique(np.round(np.linspace(0, len(values) - 1, count)).astype(int))]


def _orders(
    domain: Domain,
    declared: Permutation,
    groups: Sequence[int],
    count: int,
    rng: np.random.Generator,
    also: Value | None,
) -> tuple[Setting, ...]:
    """Return some orders: all orders of at most three modules, else random ones."""
    members, most = len(declared.members), min(count, ORDERS)
    names = [domain.program.groups[g].label[len(domain.program.groups[g].parameter) + 1 :] for g in groups]
    if members <= 3:
        places = [tuple(order) for order in permutations(range(members))][:most]
    else:
        places = [tuple(row) for row in orders(members, most, rng).tolist()]
    if also is not None:
        places.append(tuple(list(also).index(name) for name in names))
    return tuple(
        Setting(tuple(names[k] for k in np.argsort(row)), tuple(zip(groups, row, strict=True)))
        for row in dict.fromkeys(places)
    )
