"""How many legal discrete configurations there are.

The groups fall into components that no row and no condition relates; their counts multiply. A component whose product
domain is small enough is enumerated in numpy; where legality needs the solver, or a component is too large, legal
configurations are enumerated one by one with no-good cuts, up to the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipcash.backends.base import INFEASIBLE, SolverSettings
from mipcash.program.affine_rows import columns_of
from mipcash.program.forms import Indices, QuadraticForm
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import without_margins
from mipcash.space.conflict import emptiness
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import Minimiser

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


def count(minimiser: Minimiser, limit: int, settings: SolverSettings) -> Count:
    """Count legal levels, up to ``limit`` where they must be enumerated one by one.

    What the margins of products of reals leave out is not counted; where that could be levels, the count is no longer exact.
    """
    found = _counted(minimiser, limit, settings)
    if not minimiser.program.margin or not found.exact:
        return found
    wide = _counted(Minimiser(without_margins(minimiser.program), minimiser.backend), limit, settings)
    return Count(found.number, wide == found)


def _counted(minimiser: Minimiser, limit: int, settings: SolverSettings) -> Count:
    program, legality = minimiser.program, minimiser.free_legality
    components = _components(program)
    sizes = [_domain(program, component) for component in components]
    if legality.complete and max(sizes, default=1) <= ENUMERABLE:
        base = minimiser.anchors(settings)
        if not base:
            return Count(0, emptiness(program, minimiser.backend, settings).status == INFEASIBLE)
        total = 1
        for component in components:
            total *= _enumerate(program, legality, component, base[0])
        return Count(total, True)
    return _one_by_one(minimiser, limit, settings)


def _components(program: BinaryProgram) -> list[list[int]]:
    """Groups connected by rows, by helpers that rows share, or by conditions; each component in column order."""
    group = [int(program.group_of[c]) if c < program.n_z else len(program.groups) + c for c in range(program.n)]
    links = [sorted({group[c] for c in columns_of(row.form)}) for row in program.base_rows]
    for g, conditional in enumerate(program.groups):
        links += [[g, *(int(program.group_of[c]) for c in condition.columns)] for condition in conditional.conditions]
    pairs = np.array([(nodes[0], node) for nodes in links for node in nodes], dtype=np.int64).reshape(-1, 2)
    size = len(program.groups) + program.n
    graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    found: dict[int, list[int]] = {}
    for g in range(len(program.groups)):
        found.setdefault(int(label[g]), []).append(g)
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


def _one_by_one(minimiser: Minimiser, limit: int, settings: SolverSettings) -> Count:
    found: list[Exclusion] = []
    form = QuadraticForm.zero(minimiser.program.n)
    while len(found) < limit:
        answer = minimiser.minimise(form, settings, excluded=found)
        if answer.columns is None:
            return Count(len(found), answer.status == INFEASIBLE)
        if not minimiser.program.groups:
            return Count(1, True)
        found.append(Exclusion(minimiser.program.levels_of(answer.columns)))
    return Count(len(found), False)
