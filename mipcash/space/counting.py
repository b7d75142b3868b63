"""How many legal discrete configurations there are.

The groups fall into components that no row and no condition relates; their counts multiply. A component is counted by a
decision diagram over its groups (:mod:`mipcash.program.level_count`); where legality needs the solver, or the diagram grows too
wide, legal configurations of the component are enumerated one by one with no-good cuts, up to the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.backends.base import INFEASIBLE, SolverSettings
from mipcash.backends.heuristics.repair import REPAIRING, legal_columns
from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import QuadraticForm
from mipcash.program.level_count import components_of, count_levels, never_kept
from mipcash.space.conflict import emptiness
from mipcash.space.exclusion import ANY, Exclusion
from mipcash.space.minimiser import Minimiser


class Count(int):
    """Number of legal discrete configurations (settings of everything but the numbers): an integer that says if it is exact.

    Attributes:
        exact: False where a limit stopped the count: there are at least so many.
    """

    exact: bool

    def __new__(cls, number: int, exact: bool = True) -> Count:
        made = super().__new__(cls, number)
        made.exact = exact
        return made

    def __reduce__(self) -> tuple[type[Count], tuple[int, bool]]:
        return Count, (int(self), self.exact)

    @property
    def number(self) -> int:
        """How many were counted."""
        return int(self)

    def __str__(self) -> str:
        return f"{int(self):,}" if self.exact else f"at least {int(self):,}"

    def __repr__(self) -> str:
        return f"<count: {self}>"


def count(minimiser: Minimiser, limit: int, settings: SolverSettings, deadline: Deadline = NEVER) -> Count:
    """Count legal levels, up to ``limit`` where they must be enumerated one by one; after the deadline, a lower bound."""
    # under very many rules nothing else may be known in the time
    known = legal_columns(minimiser.program, np.random.default_rng(0), deadline.share(REPAIRING))
    found = _counted(minimiser, limit, settings, deadline)
    if known is not None and not found:
        return Count(1, False)
    return found


def _counted(minimiser: Minimiser, limit: int, settings: SolverSettings, deadline: Deadline) -> Count:
    program, legality = minimiser.program, minimiser.free_legality
    if never_kept(legality):
        return Count(0, True)
    # what is decided by eliminating helpers is no table over levels alone
    undecided = [*legality.undecided, *(row for _, rows in legality.eliminations for row in rows)]
    if undecided:
        empty = emptiness(program, minimiser.backend, deadline.within(settings))
        if empty.columns is None:
            return Count(0, empty.status == INFEASIBLE)
        if not program.groups:
            return Count(1, True)
    total = Count(1, True)
    # what a solver must decide comes last, and is not asked for where another part is empty
    for component in sorted(components_of(program, undecided), key=lambda c: not c.decided):
        part = count_levels(program, legality, component, deadline) if component.decided else None
        found = Count(0, False) if part is None else Count(part.number, part.exact)
        if not found.exact and found < limit:
            one_by_one = _one_by_one(minimiser, component.groups, limit, settings, deadline)
            found = one_by_one if one_by_one.exact or one_by_one > found else found
        if found.exact and not found:
            return found
        total = Count(total * found, total.exact and found.exact)
    return total


def _one_by_one(
    minimiser: Minimiser, groups: Sequence[int], limit: int, settings: SolverSettings, deadline: Deadline
) -> Count:
    """Legal levels of some groups that no others depend on, found one after the other; at most ``limit`` of them."""
    found: list[Exclusion] = []
    form = QuadraticForm.zero(minimiser.program.n)
    while len(found) < limit and not (found and deadline.passed):
        answer = minimiser.minimise(form, deadline.within(settings), excluded=found)
        if answer.columns is None:
            return Count(len(found), answer.status == INFEASIBLE)
        levels = np.full(len(minimiser.program.groups), ANY)
        levels[list(groups)] = minimiser.program.levels_of(answer.columns)[list(groups)]
        found.append(Exclusion(levels))
    return Count(len(found), False)
