"""How many legal discrete configurations there are.

The groups fall into components that no row and no condition relates; their counts multiply. A component whose product
domain is small enough is enumerated in numpy; where legality needs the solver, or a component is too large, legal
configurations are enumerated one by one with no-good cuts, up to the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.backends.base import SolverSettings
from mipcash.oracle.oracle import Exclusion, Oracle
from mipcash.program.forms import Indices, QuadraticForm
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram

ENUMERABLE = 1 << 21
CHUNK = 1 << 15


@dataclass(frozen=True)
class Count:
    """Number of legal discrete configurations (settings of everything but the numbers).

    Attributes:
        number: how many were counted.
        exact: False where the limit stopped the count: there are at least ``number``.
    """

    number: int
    exact: bool

    def __int__(self) -> int:
        return self.number

    def __str__(self) -> str:
        return f"{self.number:,}" if self.exact else f"at least {self.number:,}"


def count(oracle: Oracle, limit: int, settings: SolverSettings) -> Count:
    """Count legal levels, up to ``limit`` where they must be enumerated one by one."""
    program, legality = oracle.program, oracle.free_legality
    components = _components(program)
    sizes = [_domain(program, component) for component in components]
    if legality.complete and max(sizes, default=1) <= ENUMERABLE:
        base = oracle.anchors(settings)
        if not base:
            return Count(0, True)
        total = 1
        for component in components:
            total *= _enumerate(program, legality, component, base[0])
        return Count(total, True)
    return _one_by_one(oracle, limit, settings)


def _components(program: BinaryProgram) -> list[list[int]]:
    """Groups connected by rows or conditions, each component in column order."""
    parent = list(range(len(program.groups)))

    def root(g: int) -> int:
        while parent[g] != g:
            parent[g] = parent[parent[g]]
            g = parent[g]
        return g

    helpers: dict[int, int] = {}
    for row in program.base_rows:
        used = set(np.flatnonzero(row.form.linear).tolist()) | set(row.form.rows.tolist()) | set(row.form.cols.tolist())
        groups = [int(program.group_of[c]) for c in used if c < program.n_z]
        for column in used:
            if column >= program.n_z and groups:
                # rows that share a helper are related through it
                groups.append(helpers.setdefault(column, groups[0]))
        for g in groups[1:]:
            parent[root(g)] = root(groups[0])
    for g, group in enumerate(program.groups):
        for condition in group.conditions:
            for h in {int(program.group_of[c]) for c in condition.columns}:
                parent[root(h)] = root(g)
    found: dict[int, list[int]] = {}
    for g in range(len(program.groups)):
        found.setdefault(root(g), []).append(g)
    return list(found.values())


def _domain(program: BinaryProgram, component: Sequence[int]) -> int:
    size = 1
    for g in component:
        size *= program.groups[g].size - int(program.groups[g].conditional)
    return size


def _enumerate(program: BinaryProgram, legality: Legality, component: Sequence[int], base: Indices) -> int:
    """Legal settings of one component, the others held at a legal point."""
    sizes = [program.groups[g].size - int(program.groups[g].conditional) for g in component]
    total, seen = int(np.prod(sizes)), set[bytes]()
    for begin in range(0, total, CHUNK):
        index = np.unravel_index(np.arange(begin, min(total, begin + CHUNK)), sizes)
        latent = np.repeat(base[None], len(index[0]), axis=0)
        for g, levels in zip(component, index, strict=True):
            latent[:, g] = levels
        effective = legality.effective(latent)
        legal = effective[legality.check(effective)]
        seen.update(row.tobytes() for row in np.unique(legal[:, list(component)], axis=0))
    return len(seen)


def _one_by_one(oracle: Oracle, limit: int, settings: SolverSettings) -> Count:
    found: list[Exclusion] = []
    form = QuadraticForm.zero(oracle.program.n)
    while len(found) < limit:
        point = oracle.minimise(form, settings, excluded=found)
        if point is None:
            return Count(len(found), oracle.last.status == "infeasible")
        if not oracle.program.groups:
            return Count(1, True)
        found.append(Exclusion(point.levels))
    return Count(len(found), False)
