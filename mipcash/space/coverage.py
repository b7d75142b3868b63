"""Which algorithms a design has shown, and how many points it takes to show them all.

Notation
    module      a group of categories on whose level other parameters depend
    shown (t, G)    levels of the points so far

Where algorithms are free of each other a design can be a Latin one: each point shows another algorithm of every module that has one
left, and as many points as the largest module has algorithms show all of them. Rules may forbid that; then each point shows the
most that it can, algorithms of the module with the most left first, as that one decides how many points it takes.
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram


def modules_of(program: BinaryProgram) -> dict[int, list[int]]:
    """Modules, each with those that depend on it."""
    above = {g: program.parents(group.conditions) for g, group in enumerate(program.groups)}
    switching = set().union(*(program.parents(conditions) for conditions in program.conditions.values()))
    found = [g for g, group in enumerate(program.groups) if group.kind == "categorical" and g in switching]
    return {g: [h for h in found if g in above[h]] for g in found}


def points_needed(program: BinaryProgram) -> int:
    """Points that show every algorithm of every module where no rule is in the way; 0 where there is no module."""
    modules = modules_of(program)

    def needed(g: int) -> int:
        return int(program.n_levels[g]) + sum(needed(h) - 1 for h in modules[g])

    return max(map(needed, modules), default=0)


def left(program: BinaryProgram, shown: Indices) -> dict[int, Indices]:
    """Algorithms that no point shows, of every module that has one: of (t, G) levels, group -> levels."""
    unseen = {g: np.setdiff1d(np.arange(program.n_levels[g]), shown[:, g]) for g in modules_of(program)}
    return {g: levels for g, levels in unseen.items() if len(levels)}


def shows(program: BinaryProgram, shown: Indices, levels: Indices) -> bool:
    """Whether levels, (G,), have an algorithm that no point, (t, G), shows."""
    return any(levels[g] in unseen for g, unseen in left(program, shown).items())


def rewards(program: BinaryProgram, shown: Indices, others: float) -> Vector:
    """What each algorithm that is not shown earns, on its column, shape (n_z,), 0 elsewhere.

    More of them earn more than fewer, whatever they are; of as many, those of the module with the most left, behind it included:
    a module comes before those that depend on it.

    Args:
        others: what all other levels of a point earn together, at most.
    """
    earned, unseen, modules = np.zeros(program.n_z), left(program, shown), modules_of(program)

    def behind(g: int) -> int:
        return len(unseen.get(g, ())) + sum(map(behind, modules[g]))

    longest = max(map(behind, unseen), default=0)
    for g, levels in unseen.items():
        earned[program.starts[g] + levels] = (1.0 + others) * (len(unseen) + behind(g) / longest)
    return earned
