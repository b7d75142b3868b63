"""A program at fixed numerical values as a network of finite variables with pairwise interactions only.

Notation
    i       variable: one group, or groups that rules bind so tightly that their legal joint levels are few.
    s       state, one of S; the states of variable i are ``starts[i] .. starts[i + 1] - 1``, each a legal joint level vector.
    T       (S, n_z) 0-1: the columns that a state sets to one.
    q       constant + sum_i theta[s_i] + sum_{i < j} M[s_i, s_j],   theta = T l + diag(T Q T')/2,   M = T Q T'

Variables are joined if their legal combinations are no more than their states. They are also joined if the combinations are few and
the join turns a rule over three variables or more into one over two. The remaining rules are forbidden pairs of states, and linear
rows over many variables.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from mipcash.backends.task import CUT_SLACK, Cut
from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.recent import Recent
from mipcash.program.rule_tables import JOINED, RuleTable, States, entries

KEPT_NETWORKS = 16
JOIN_LIMIT = 400
"""Maximum number of states of a variable that stands for a rule over several variables."""
WORK_LIMIT = 200_000
"""Maximum number of joint levels that are checked for one variable."""
TOTAL_WORK = 10 * WORK_LIMIT
"""Maximum number of joint levels that are checked for all joins of a network."""
STATE_LIMIT = 1_500
"""Maximum number of states in all, since the matrix of pairs is dense."""


@dataclass(frozen=True)
class Variable:
    """A variable of the network: groups that take their levels together.

    Attributes:
        groups: k of them.
        levels: shape (d, k), the legal joint levels: its states.
    """

    groups: tuple[int, ...]
    levels: Indices


@dataclass(frozen=True)
class PairwiseNetwork:
    """A network in the module's notation.

    Attributes:
        forbidden: pairs of states that exclude each other, shape (S, S), symmetric.
        weights, low, high: linear rows ``low <= sum_i weights[r, s_i] <= high`` of shape (m, S), (m,), (m,).
    """

    program: BinaryProgram
    variables: tuple[Variable, ...]
    starts: Indices
    members: sparse.csr_array
    forbidden: Booleans
    weights: Vector
    low: Vector
    high: Vector

    @cached_property
    def variable_of(self) -> Indices:
        """Variable of each state, shape (S,)."""
        return np.repeat(np.arange(len(self.variables)), np.diff(self.starts))

    @cached_property
    def _within(self) -> Booleans:
        return np.asarray(self.variable_of[:, None] == self.variable_of[None, :])

    def costs(self, form: QuadraticForm) -> tuple[Vector, Vector]:
        """Return theta (S,) and M (S, S), zero within a variable, of a folded form over the binaries."""
        n_z, states = self.program.n_z, len(self.variable_of)
        if not len(form.rows):
            return np.asarray(self.members @ form.linear[:n_z]), np.zeros((states, states))
        matrix = np.bincount(form.rows * n_z + form.cols, form.values, n_z * n_z).reshape(n_z, n_z)
        pairs: Vector = self.members @ (self.members @ (matrix + matrix.T)).T
        theta: Vector = self.members @ form.linear[:n_z] + pairs.diagonal() / 2
        pairs[self._within] = 0.0
        return theta, pairs

    def states_of(self, levels: Indices) -> Indices | None:
        """Return the states of one level vector, (G,) -> (V,), or None if some of its levels match no state."""
        found = []
        for variable, start in zip(self.variables, self.starts[:-1].tolist(), strict=True):
            (at,) = np.nonzero((variable.levels == levels[list(variable.groups)]).all(axis=1))
            if not len(at):
                return None
            found.append(start + int(at[0]))
        return np.array(found, dtype=np.int64)

    def levels_of(self, states: Indices) -> Indices:
        """Return the levels of states, (..., V) -> (..., G)."""
        levels = np.zeros((*states.shape[:-1], len(self.program.groups)), dtype=np.int64)
        for i, variable in enumerate(self.variables):
            levels[..., list(variable.groups)] = variable.levels[states[..., i] - self.starts[i]]
        return levels

    def admits(self, states: Indices) -> bool:
        """Return True if one state per variable, (V,), satisfies all rules."""
        body = self.weights[:, states].sum(axis=1)
        return bool(
            not self.forbidden[np.ix_(states, states)].any() and np.all((body >= self.low) & (body <= self.high))
        )

    def with_cuts(self, cuts: Sequence[Cut]) -> PairwiseNetwork:
        """Return the network with further rows over the binaries."""
        if not cuts:
            return self
        linear = np.array([cut.weights(self.program.n_z) for cut in cuts])
        return replace(
            self,
            weights=np.concatenate([self.weights, (self.members @ linear.T).T]),
            low=np.concatenate([self.low, [c.low - CUT_SLACK for c in cuts]]),
            high=np.concatenate([self.high, [c.high + CUT_SLACK for c in cuts]]),
        )


def network_at(legality: Legality, allowed: Booleans) -> PairwiseNetwork | None:
    """Return ``make_network``, cached with the program."""
    numbers = None if legality.numbers is None else tuple(sorted(legality.numbers.items()))
    kept: Recent[PairwiseNetwork | None] = legality.program.derived.setdefault("networks", Recent(KEPT_NETWORKS))
    return kept.get((numbers, allowed.tobytes()), lambda: make_network(legality, allowed))


def make_network(legality: Legality, allowed: Booleans) -> PairwiseNetwork | None:
    """Make the network of a program. Return None if it would be too large, or if rules are more than pairs and linear rows.

    Args:
        legality: complete, at the fixed numerical values.
        allowed: columns that may be one, shape (n_z,).
    """
    program = legality.program
    if not legality.complete or legality.eliminations:
        return None
    tables, rows = legality.constraints()
    kept: Recent[_Rules | None] = program.derived.setdefault("rules without numbers", Recent(KEPT_NETWORKS))
    general = kept.get(allowed.tobytes(), lambda: _free_rules(program, tables, rows, allowed))
    bound = _as_tables(program, [t for t, free in tables if not free], [r for r, free in rows if not free])
    if general is None or bound is None:
        return None
    joined = _Joining(general.tables + bound.tables, set(general.rejected)).run(general.variables, bound.tables)
    if joined is None:
        return None
    return _assembled(program, _Rules(general.tables + bound.tables, general.wide + bound.wide, joined))


@dataclass(frozen=True)
class _Rules:
    """Rules as tables, linear rows whose tables would be too large, the variables that the tables join, and rejected joins."""

    tables: list[RuleTable]
    wide: list[BaseRow]
    variables: list[Variable] = field(default_factory=list)
    rejected: set[tuple[tuple[int, ...], ...]] = field(default_factory=set)


def _free_rules(
    program: BinaryProgram,
    tables: Sequence[tuple[RuleTable, bool]],
    rows: Sequence[tuple[BaseRow, bool]],
    allowed: Booleans,
) -> _Rules | None:
    """Return the rules that hold at any numerical values and the variables that they join; None if there is no network of them."""
    rules = _as_tables(program, [t for t, free in tables if free], [r for r, free in rows if free])
    if rules is None:
        return None
    single = [Variable((g,), np.flatnonzero(allowed[x.start : x.stop])[:, None]) for g, x in enumerate(program.groups)]
    joining = _Joining(rules.tables, set())
    joined = joining.run(single, rules.tables)
    return None if joined is None else replace(rules, variables=joined, rejected=joining.rejected)


def _as_tables(program: BinaryProgram, tables: Sequence[RuleTable], rows: Sequence[BaseRow]) -> _Rules | None:
    """Return rules as tables and linear rows, or None if a row with products would need too large a table."""
    found = _Rules(list(tables), [])
    for row in rows:
        form = row.form
        groups = np.unique(
            program.group_of[np.concatenate([np.flatnonzero(form.linear), form.rows, form.cols])]
        ).tolist()
        if entries(program.sizes[groups]) > JOINED:
            if len(form.rows):
                return None
            found.wide.append(row)
        else:
            found.tables.append(RuleTable(tuple(groups), States.of_levels(program, groups).legal([row])))
    return replace(found, tables=_merged([t for t in found.tables if not t.legal.all()]))


def _merged(tables: Sequence[RuleTable]) -> list[RuleTable]:
    """Return one table per scope, in the order of first occurrence."""
    found: dict[tuple[int, ...], RuleTable] = {}
    for table in tables:
        known = found.get(table.scope)
        found[table.scope] = table if known is None else RuleTable(table.scope, known.legal & table.legal)
    return list(found.values())


@dataclass
class _Joining:
    """Joins variables as described in the module, fewest states first; ``rejected`` are joins with too many states."""

    tables: Sequence[RuleTable]
    rejected: set[tuple[tuple[int, ...], ...]]
    work: int = 0
    """Number of joint levels checked so far; above TOTAL_WORK the network is given up."""

    @cached_property
    def _of_group(self) -> Mapping[int, list[int]]:
        """Group -> indices of the tables over it."""
        found: dict[int, list[int]] = {}
        for k, table in enumerate(self.tables):
            for g in table.scope:
                found.setdefault(g, []).append(k)
        return found

    def _join(self, members: Sequence[Variable]) -> Variable | None:
        self.work += min(math.prod(len(v.levels) for v in members), WORK_LIMIT)
        inside = {g for v in members for g in v.groups}
        near = sorted({k for g in inside for k in self._of_group.get(g, ())})
        return _join(members, [self.tables[k] for k in near if inside.issuperset(self.tables[k].scope)])

    def run(self, variables: Sequence[Variable], news: Sequence[RuleTable]) -> list[Variable] | None:
        """Return the variables, filtered and joined; None if that takes more than TOTAL_WORK.

        Args:
            news: new tables, because of which a rejected join is tried again.
        """
        left = {k: self._join([v]) or v for k, v in enumerate(variables)}
        of = {g: k for k, variable in left.items() for g in variable.groups}
        new_scopes, seen = {t.scope for t in news}, set[frozenset[int]]()
        # a heap: the join of fewest states, then of the first variables
        worth: list[tuple[int, list[int], Variable]] = []
        scopes, count = {t.scope for t in self.tables}, len(variables)
        while True:
            fresh = {frozenset(of[g] for g in scope) for scope in scopes & new_scopes}
            for chosen in {frozenset(of[g] for g in scope) for scope in scopes} - seen:
                seen.add(chosen)
                members = sorted(chosen)
                key = tuple(left[k].groups for k in members)
                if len(members) < 2 or (key in self.rejected and chosen not in fresh):
                    continue
                joint = self._worth([left[k] for k in members])
                if self.work > TOTAL_WORK:
                    return None
                if joint is None:
                    self.rejected.add(key)
                else:
                    heapq.heappush(worth, (len(joint.levels), members, joint))
            while worth and not all(k in left for k in worth[0][1]):  # one of them is joined with others
                heapq.heappop(worth)
            if not worth:
                return list(left.values())
            _, members, joint = heapq.heappop(worth)
            for k in members:
                del left[k]
            left[count] = joint
            of.update(dict.fromkeys(joint.groups, count))
            count += 1
            scopes = {self.tables[k].scope for g in joint.groups for k in self._of_group.get(g, ())}

    def _worth(self, members: Sequence[Variable]) -> Variable | None:
        joint = self._join(members)
        if joint is None:
            return None
        size, before = len(joint.levels), sum(len(v.levels) for v in members)
        return joint if size <= before or (len(members) > 2 and size <= JOIN_LIMIT) else None


def _assembled(program: BinaryProgram, rules: _Rules) -> PairwiseNetwork | None:
    variables, tables = rules.variables, rules.tables
    if any(not t.scope and not t.legal for t in tables):  # a violated row without columns
        variables = [Variable(v.groups, v.levels[:0]) for v in variables]
    of = {g: v for v, variable in enumerate(variables) for g in variable.groups}
    if sum(len(v.levels) for v in variables) > STATE_LIMIT or any(len({of[g] for g in t.scope}) > 2 for t in tables):
        return None
    starts = np.cumsum([0, *(len(v.levels) for v in variables)])
    columns = [program.starts[list(v.groups)] + v.levels for v in variables]
    at = [np.repeat(np.arange(a, b), c.shape[1]) for a, b, c in zip(starts, starts[1:], columns, strict=False)]
    cols = np.concatenate([np.zeros(0, dtype=np.int64), *(c.ravel() for c in columns)])
    rows_at = np.concatenate([np.zeros(0, dtype=np.int64), *at])
    members = sparse.csr_array((np.ones(len(cols)), (rows_at, cols)), shape=(int(starts[-1]), program.n_z))
    linear = np.array([row.form.linear[: program.n_z] for row in rules.wide]).reshape(len(rules.wide), program.n_z)
    return PairwiseNetwork(
        program,
        tuple(variables),
        starts,
        members,
        _forbidden(variables, starts, tables, of),
        (members @ linear.T).T,
        np.array([row.low - row.slack for row in rules.wide]),
        np.array([row.high + row.slack for row in rules.wide]),
    )


def _join(members: Sequence[Variable], tables: Sequence[RuleTable]) -> Variable | None:
    """Return the legal combinations of the states of some variables, or None if there are too many to check.

    Args:
        tables: tables over groups of these variables only.
    """
    groups: tuple[int, ...] = ()
    levels = np.zeros((1, 0), dtype=np.int64)
    waiting = list(tables)
    for variable in sorted(members, key=lambda v: len(v.levels)):
        if len(levels) * len(variable.levels) > WORK_LIMIT:
            return None
        left = np.repeat(levels, len(variable.levels), axis=0)
        levels = np.concatenate([left, np.tile(variable.levels, (len(levels), 1))], axis=1)
        groups += variable.groups
        ready = [t for t in waiting if set(t.scope).issubset(groups)]
        waiting = [t for t in waiting if not set(t.scope).issubset(groups)]
        for table in ready:
            levels = levels[table.legal[tuple(levels[:, groups.index(g)] for g in table.scope)]]
    return Variable(groups, levels)


def _forbidden(
    variables: Sequence[Variable], starts: Indices, tables: Sequence[RuleTable], of: Mapping[int, int]
) -> Booleans:
    forbidden = np.zeros((int(starts[-1]), int(starts[-1])), dtype=bool)
    for table in tables:
        ends = sorted({of[g] for g in table.scope})
        if len(ends) < 2:
            continue
        i, j = ends
        at = []
        for g in table.scope:
            variable = variables[of[g]]
            levels = variable.levels[:, variable.groups.index(g)]
            at.append(levels[:, None] if of[g] == i else levels[None, :])
        block = ~table.legal[tuple(at)]
        forbidden[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] |= block
        forbidden[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] |= block.T
    return forbidden
