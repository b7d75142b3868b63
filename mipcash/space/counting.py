"""Number of legal discrete configurations, and coverage of algorithms by a design.

Groups that share no row, no auxiliary variable and no condition fall into independent components, whose counts multiply. The
rules of a component become tables and linear rows over its groups, and ``mipcash.program.model_count`` counts them exactly
with a decision diagram. If legality needs the solver, or the diagram grows too wide, legal configurations of the component are
enumerated one by one with no-good cuts, up to the limit.

The second part finds which algorithms a design has shown, and how many points it takes to show them all.

Notation
    module      a group of categories on whose level other parameters depend
    shown (t, G)    levels of the points so far

If the algorithms of different modules combine freely, a Latin design is possible: each point shows a new algorithm of every module
that has unseen algorithms, and as many points are needed as the largest module has algorithms. If rules forbid this, each point
shows as many new algorithms as possible. Modules with more unseen algorithms take precedence, since they decide how many points are
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipcash.backends.heuristics.repair import REPAIRING, legal_columns
from mipcash.backends.task import INFEASIBLE
from mipcash.deadline import NEVER
from mipcash.program.affine_rows import columns_of
from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality
from mipcash.program.model_count import Diagram, LinearRow, count_states
from mipcash.program.program import BaseRow, BinaryProgram, Condition, Group, Indicator
from mipcash.program.rule_tables import RuleTable, States, entries
from mipcash.space.conflict import QUESTION, emptiness
from mipcash.space.exclusion import ANY, Exclusion
from mipcash.space.minimiser import Minimiser


def modules_of(program: BinaryProgram) -> dict[int, list[int]]:
    """Return the modules, each with the modules that depend on it."""
    above = {g: program.parents(group.conditions) for g, group in enumerate(program.groups)}
    switching = set().union(*(program.parents(conditions) for conditions in program.conditions.values()))
    found = [g for g, group in enumerate(program.groups) if group.kind == "categorical" and g in switching]
    return {g: [h for h in found if g in above[h]] for g in found}


def points_needed(program: BinaryProgram) -> int:
    """Return the number of points that show every algorithm of every module if no rule prevents it; 0 if there is no module."""
    modules = modules_of(program)

    def needed(g: int) -> int:
        return int(program.n_levels[g]) + sum(needed(h) - 1 for h in modules[g])

    return max(map(needed, modules), default=0)


def left(program: BinaryProgram, shown: Indices, times: int = 0) -> dict[int, Indices]:
    """Return module -> levels of the algorithms that at most ``times`` points, (t, G), show, for every module that has any."""
    rare = {g: np.flatnonzero(count <= times) for g, count in _counts(program, shown).items()}
    return {g: levels for g, levels in rare.items() if len(levels)}


def least_shown(program: BinaryProgram, shown: Indices) -> int:
    """Return how many points, (t, G), show the algorithm that is shown least, of those that are shown; there must be a module."""
    return min(int(count[count > 0].min(initial=len(shown))) for count in _counts(program, shown).values())


def shows(program: BinaryProgram, shown: Indices, levels: Indices, times: int = 0) -> bool:
    """Return True if levels, (G,), include an algorithm that at most ``times`` points, (t, G), show."""
    return any(levels[g] in rare for g, rare in left(program, shown, times).items())


def _counts(program: BinaryProgram, shown: Indices) -> dict[int, Indices]:
    """Return module -> number of points, (t, G), that show each of its algorithms."""
    n = program.n_levels
    return {g: np.bincount(shown[:, g], minlength=n[g])[: n[g]] for g in modules_of(program)}


def rewards(program: BinaryProgram, shown: Indices, others: float) -> Vector:
    """Return rewards of one-hot columns, shape (n_z,): positive for algorithms not yet shown, 0 for all other columns.

    A point with more new algorithms always earns more. Among points with equally many, new algorithms earn more the more unseen
    algorithms their module has, including those of the modules that depend on it. A module thus precedes its dependent modules.

    Args:
        others: the most that all other levels of a point can earn together.
    """
    earned, unseen, modules = np.zeros(program.n_z), left(program, shown), modules_of(program)

    def behind(g: int) -> int:
        return len(unseen.get(g, ())) + sum(map(behind, modules[g]))

    longest = max(map(behind, unseen), default=0)
    for g, levels in unseen.items():
        earned[program.starts[g] + levels] = (1.0 + others) * (len(unseen) + behind(g) / longest)
    return earned


TABULATED = 1 << 12
"""Largest number of joint levels for which a linear row is counted as a table, whose residues are the fewest possible."""
LARGEST = 1 << 21
"""The same limit for a row with products and for conditions, which can only be counted as tables."""
SMALL = 1 << 16
"""Largest number of edges of the decision diagrams from which samples are drawn unasked."""
FEW = 64
"""Largest number of groups of their components."""


@dataclass(frozen=True)
class Component:
    """A set of groups that is independent of all other groups.

    Attributes:
        groups: ascending.
        decided: True if the legality of their levels can be decided without a solver.
    """

    groups: tuple[int, ...]
    decided: bool


def components_of(program: BinaryProgram, undecided: Sequence[BaseRow]) -> list[Component]:
    """Return the independent components of a program.

    Args:
        undecided: rows that only a solver decides.
    """
    group = [int(program.group_of[c]) if c < program.n_z else len(program.groups) + c for c in range(program.n)]
    links = [sorted({group[c] for c in columns_of(row.form)}) for row in program.base_rows]
    for g, conditional in enumerate(program.groups):
        links += [[g, *(int(program.group_of[c]) for c in condition.columns)] for condition in conditional.conditions]
    pairs = np.array([(nodes[0], node) for nodes in links for node in nodes], dtype=np.int64).reshape(-1, 2)
    size = len(program.groups) + program.n
    graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    open_labels = {int(label[group[c]]) for row in undecided for c in columns_of(row.form)}
    found: dict[int, list[int]] = {}
    for g in range(len(program.groups)):
        found.setdefault(int(label[g]), []).append(g)
    return [Component(tuple(groups), l not in open_labels) for l, groups in found.items()]


def uniform_legal_levels(
    minimiser: Minimiser, n: int, rng: np.random.Generator, large: bool = True
) -> tuple[Indices, Booleans] | None:
    """Draw levels uniformly over the legal ones, in each component of groups where these can be counted.

    Args:
        large: include components with conditions and with large decision diagrams.

    Returns:
        n independent draws, (n, G), and True for the groups that are drawn, (G,); the levels of other groups are 0. None if
        legality needs a solver, or a rule that depends on no level is violated.
    """
    program, legality = minimiser.program, minimiser.free_legality
    levels, drawn = np.zeros((n, len(program.groups)), dtype=np.int64), np.zeros(len(program.groups), dtype=bool)
    undecided = [*legality.undecided, *(row for _, rows in legality.eliminations for row in rows)]
    if undecided or has_violated_constant_rule(legality):
        return None
    for component in program.once("components", lambda: components_of(program, ())):
        groups = list(component.groups)
        if not large and (len(groups) > FEW or any(program.groups[g].conditions for g in groups)):
            continue
        diagram = _diagram(minimiser, component, large)
        if diagram is not None:
            levels[:, groups], drawn[groups] = diagram.drawn(n, rng), True
    return levels, drawn


def _diagram(minimiser: Minimiser, component: Component, large: bool) -> Diagram | None:
    def made() -> Diagram | None:
        known = _constraints(minimiser.free_legality, component)
        limits = (minimiser.deadline,) if large else (NEVER, SMALL)
        return None if known is None else Diagram.of(*known, *limits)

    return minimiser.program.once(("diagram", component.groups, large), made)


def _constraints(legality: Legality, component: Component) -> tuple[list[int], list[RuleTable], list[LinearRow]] | None:
    """Return sizes, tables and linear rows over the groups of a component; None if its rules are too large for tables."""
    program, at = legality.program, {g: k for k, g in enumerate(component.groups)}
    known, rows = legality.constraints()
    tables = [RuleTable(tuple(at[g] for g in t.scope), t.legal) for t, _ in known if t.scope and t.scope[0] in at]
    linear: list[LinearRow] = []
    for row, _ in rows:
        groups = _groups_of(program, row)
        if not groups or groups[0] not in at:
            continue
        scope = tuple(at[g] for g in groups)
        size = entries(program.sizes[groups])
        if size <= (LARGEST if len(row.form.rows) else TABULATED):
            tables.append(RuleTable(scope, States.of_levels(program, groups).legal([row])))
        elif len(row.form.rows):
            return None
        else:
            weights = tuple(row.form.linear[program.groups[g].span] for g in groups)
            linear.append(LinearRow(scope, weights, row.low - row.slack, row.high + row.slack, row.slack))
    for g in component.groups:
        group = program.groups[g]
        tables.append(RuleTable((at[g],), _allowed(program, group)))
        if group.conditions:
            activity = _activity(program, g)
            if activity is None:
                return None
            tables.append(RuleTable(tuple(at[h] for h in activity.scope), activity.legal))
    return program.sizes[list(component.groups)].tolist(), tables, linear


def has_violated_constant_rule(legality: Legality) -> bool:
    """Return True if a rule that depends on no level is violated."""
    tables, rows = legality.constraints()
    without = [row for row, _ in rows if not columns_of(row.form)]
    return any(not t.scope and not bool(t.legal) for t, _ in tables) or any(
        not bool(row.holds(np.zeros(()))) for row in without
    )


def _groups_of(program: BinaryProgram, row: BaseRow) -> list[int]:
    return sorted({int(program.group_of[c]) for c in columns_of(row.form)})


def _allowed(program: BinaryProgram, group: Group) -> Booleans:
    """Return the levels that the bounds of a group's columns allow."""
    required = program.low[group.span] > 0.5
    allowed: Booleans = (program.high[group.span] > 0.5) & (required | ~np.any(required))
    return allowed


def _activity(program: BinaryProgram, g: int) -> RuleTable | None:
    """Return the joint levels of a conditional group and its parents at which its activity agrees with its conditions.

    Return None if the table is too large or the group depends on itself.
    """
    group = program.groups[g]
    parents = program.parents(group.conditions)
    scope = sorted({*parents, g})
    if entries(program.sizes[scope]) > LARGEST or g in parents:
        return None
    active = np.ones([1] * len(scope), dtype=bool)
    for condition in group.conditions:
        active = active & _table(program, condition, scope)
    shape = [1] * len(scope)
    shape[scope.index(g)] = group.size
    on = (np.arange(group.size) < group.size - 1).reshape(shape)
    legal = np.broadcast_to(active == on, program.sizes[scope])
    return RuleTable(tuple(scope), np.asarray(legal))


def _table(program: BinaryProgram, condition: Condition, scope: Sequence[int]) -> Booleans:
    """Return the truth values of a condition at joint levels of some groups; other groups have axes of length 1."""
    if isinstance(condition, Indicator):
        parent = int(program.group_of[condition.columns[0]])
        return program.held(condition).reshape([-1 if g == parent else 1 for g in scope])
    join = np.logical_and if condition.every else np.logical_or
    held = _table(program, condition.parts[0], scope)
    for part in condition.parts[1:]:
        held = join(held, _table(program, part, scope))
    return held


class Count(int):
    """Number of legal discrete configurations (all parameters except the numerical ones): an integer with a flag ``exact``.

    Attributes:
        exact: False if a limit stopped the count, which is then a lower bound.
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
        """The count as a plain integer."""
        return int(self)

    def __str__(self) -> str:
        return f"{int(self):,}" if self.exact else f"at least {int(self):,}"

    def __repr__(self) -> str:
        return f"<count: {self}>"


def count(minimiser: Minimiser, limit: int) -> Count:
    """Count legal levels, up to ``limit`` if they must be enumerated one by one; after the deadline, return a lower bound."""
    # with very many rules, the deadline may pass before anything else is known than this configuration
    known = legal_columns(minimiser.program, np.random.default_rng(0), minimiser.deadline.share(REPAIRING))
    found = _counted(minimiser, limit)
    if known is not None and not found:
        return Count(1, False)
    return found


def _counted(minimiser: Minimiser, limit: int) -> Count:
    program, legality = minimiser.program, minimiser.free_legality
    if has_violated_constant_rule(legality):
        return Count(0, True)
    # clusters decided by elimination have no table over levels, so they are counted one by one
    undecided = [*legality.undecided, *(row for _, rows in legality.eliminations for row in rows)]
    if undecided:
        empty = emptiness(program, minimiser.backend)
        if empty.columns is None:
            return Count(0, empty.status == INFEASIBLE)
        if not program.groups:
            return Count(1, True)
    total = Count(1, True)
    # components that need a solver come last, and are skipped if another component is empty
    for component in sorted(components_of(program, undecided), key=lambda c: not c.decided):
        known = _constraints(legality, component) if component.decided else None
        part = None if known is None else count_states(*known, minimiser.deadline)
        found = Count(0, False) if part is None else Count(part.number, part.exact)
        if not found.exact and found < limit:
            one_by_one = _one_by_one(minimiser, component.groups, limit)
            found = one_by_one if one_by_one.exact or one_by_one > found else found
        if found.exact and not found:
            return found
        total = Count(total * found, total.exact and found.exact)
    return total


def _one_by_one(minimiser: Minimiser, groups: Sequence[int], limit: int) -> Count:
    """Count legal levels of an independent set of groups by enumerating them one by one, up to ``limit``."""
    found: list[Exclusion] = []
    form = QuadraticForm.zero(minimiser.program.n)
    while len(found) < limit and not (found and minimiser.deadline.passed):
        answer = minimiser.minimise(form, QUESTION, excluded=found)
        if answer.columns is None:
            return Count(len(found), answer.status == INFEASIBLE)
        levels = np.full(len(minimiser.program.groups), ANY)
        levels[list(groups)] = minimiser.program.levels_of(answer.columns)[list(groups)]
        found.append(Exclusion(levels))
    return Count(len(found), False)
