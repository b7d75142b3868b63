"""Minimise a quadratic form over the legal configurations of one program: first an incumbent, then the proof of optimality."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mipcash.backends.heuristics.local_search import KICKS, LocalSearch
from mipcash.backends.task import FEASIBLE, INFEASIBLE, UNKNOWN, Answer, Backend, SolverSettings, Task
from mipcash.backends.timed import timed
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import warn
from mipcash.program.affine_rows import columns_of
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality, legality_at
from mipcash.program.program import BinaryProgram, is_wide, orders_of
from mipcash.space.exclusion import Exclusion, Exclusions

RESTARTS = 48
ANCHORS = 4
ANCHOR_SECONDS = 10.0
LOCAL = 0.3
"""Share of the time left for local search, before the solver."""
LOOKED_AT = 32
"""Number of local search solutions that are checked against the exclusions at a time, best first."""

REFUTED = 1e-6
"""Least distance by which a legal configuration refutes a bound, relative to the largest coefficient of the form."""


class Minimiser:
    """Minimiser of forms over one program with one backend; it caches legality tables and a pool of legal starts."""

    def __init__(self, program: BinaryProgram, backend: Backend) -> None:
        self.program, self.backend = program, backend
        self.deadline = NEVER
        self._anchors: list[list[Indices]] = []
        self.free_legality = legality_at(program, None)
        """Legality of levels for any numerical values; complete only if no rule contains a numerical parameter."""
        self.separable = _separable(program)
        self.orderings = orders_of(program)

    def until(self, deadline: Deadline) -> Minimiser:
        """Return the same minimiser with a deadline; both share the cached starts."""
        twin = copy.copy(self)
        twin.backend, twin.deadline = timed(self.backend, deadline), deadline
        return twin

    def default_starts(self) -> list[Indices]:
        """Return a few legal levels found by the solver, as starts of local search if the caller has none.

        They depend on the program alone, so a minimiser that was used before gives the same results as a new one. They are not
        cached if the deadline passed while they were computed.
        """
        if self._anchors:
            return self._anchors[0]
        rng = np.random.default_rng(0)
        forms = [_random_direction(self.program, rng) for _ in range(ANCHORS)]
        settings = SolverSettings(time_limit=ANCHOR_SECONDS, gap=0.05)
        answers = [self.backend.solve(Task(self.program, form), settings) for form in forms]
        found = [self.program.levels_of(a.columns) for a in answers if a.columns is not None]
        if not self.deadline.passed:
            self._anchors.append(found)
        return found

    def search(self, numbers: Mapping[str, float] | None) -> LocalSearch | None:
        """Return the local search at fixed numerical values (None: free); None if legality cannot be decided without a solver."""
        legality = self.legality(numbers)
        return None if legality is None else LocalSearch(self.program, legality, self.deadline)

    def legality(self, numbers: Mapping[str, float] | None) -> Legality | None:
        """Return the legality of levels at given numerical values (None: free); None if it cannot be decided without a solver."""
        free = not self.program.numbers or numbers is None
        legality = self.free_legality if free else legality_at(self.program, numbers)
        return legality if legality.complete else None

    def minimise(
        self,
        form: QuadraticForm,
        settings: SolverSettings,
        *,
        numbers: Mapping[str, float] | None = None,
        excluded: Sequence[Exclusion] = (),
        starts: Sequence[Indices] = (),
        rng: np.random.Generator | None = None,
        restarts: int = RESTARTS,
    ) -> Answer:
        """Minimise a form over the base columns.

        Args:
            numbers: label -> natural value at which the numerical parameters in rules are fixed; None leaves them free.
            excluded: levels that may not be returned (no-good cuts).
            starts: levels to start local search from; the anchors if empty. Without local search the best start is the incumbent.
            rng: randomness of local search; None disables it.
            restarts: number of descents of local search.

        Returns:
            The best point known with its bound; without columns if the program is infeasible or a limit found no point.
        """
        folded = self.program.folded(form)
        first = self if rng is None else self.until(self.deadline.share(LOCAL))
        incumbent = first.incumbent(folded, numbers, excluded, starts, rng, restarts)
        cuts = [e.cut(self.program) for e in excluded]
        fixed = {} if numbers is None else {n.latent: numbers[n.label] for n in self.program.numbers}
        start = None if incumbent is None else self.columns(incumbent[0], numbers)
        answer = self.backend.solve(Task(self.program, folded, fixed, cuts, start), settings)
        if incumbent is None or start is None:
            return answer
        value = incumbent[1]
        known = bool(np.all(np.isfinite(start)))
        if known and (answer.status == INFEASIBLE or value < answer.bound - REFUTED * _largest(folded)):
            claim = (
                "that there is no solution" if answer.status == INFEASIBLE else f"that none is below {answer.bound:g}"
            )
            warn(
                f"solver {answer.prover!r} claims {claim}, and a legal configuration has {value:g}; the answer counts as "
                "unproven, check the solver or take another one"
            )
            answer = replace(answer, status=UNKNOWN, columns=None, bound=-math.inf)
        if answer.columns is None and answer.status != INFEASIBLE:
            # the limit was reached before the solver accepted the start: return the incumbent with the solver's bound
            base = np.where(np.isnan(start), 0.0, start)
            return replace(answer, status=FEASIBLE, columns=base, value=value, bound=min(answer.bound, value))
        if answer.columns is not None and value < answer.value - 1e-9 and known:
            return replace(answer, columns=start, value=value, bound=min(answer.bound, value))
        return answer

    def incumbent(
        self,
        folded: QuadraticForm,
        numbers: Mapping[str, float] | None,
        excluded: Sequence[Exclusion],
        starts: Sequence[Indices],
        rng: np.random.Generator | None,
        restarts: int = RESTARTS,
        kicks: int = KICKS,
    ) -> tuple[Indices, float] | None:
        """Run local search alone, for a folded form. Return legal levels and their value; None if it does not apply or fails."""
        if not self._over_levels(folded) or (rng is None and not len(starts)):
            return None
        if rng is not None and not len(folded.rows) and is_wide(self.program.n_z, len(self.program.groups)):
            return None  # single moves take longer than the solver's linear program
        legality = self.legality(numbers)
        if legality is None or (rng is not None and self.deadline.passed):
            return None
        pool = list(starts) or self.default_starts()
        levels = np.array(pool, dtype=np.int64).reshape(len(pool), len(self.program.groups))
        levels = levels[legality.check(levels)]
        if not len(levels):
            return None
        found = np.array([folded.value(self._padded(s)) for s in levels])
        order = np.argsort(found, kind="stable")
        levels, found = levels[order], found[order]
        if rng is not None:
            search = LocalSearch(self.program, legality, self.deadline)
            levels, found = search.descend(folded, levels[: restarts // 2], restarts, rng, kicks)
        admitted = Exclusions.of(excluded).admitted
        for a in range(0, len(levels), LOOKED_AT):
            left = a + np.flatnonzero(admitted(levels[a : a + LOOKED_AT]))
            if len(left):
                return levels[left[0]], float(found[left[0]])
        return None

    def _over_levels(self, folded: QuadraticForm) -> bool:
        """Return True if a form does not depend on numerical columns."""
        n_z = self.program.n_z
        return not (np.any(folded.linear[n_z:]) or np.any(folded.rows >= n_z) or np.any(folded.cols >= n_z))

    def _padded(self, levels: Indices) -> Vector:
        return np.concatenate([self.program.one_hot(levels), np.zeros(self.program.n - self.program.n_z)])

    def columns(self, levels: Indices, numbers: Mapping[str, float] | None) -> Vector:
        """Return base columns, (n,), of levels, (G,), and natural values by label; nan for auxiliary variables."""
        base = np.full(self.program.n, np.nan)
        z = self.program.one_hot(levels)
        base[: self.program.n_z] = z
        for number in self.program.numbers if numbers is not None else ():
            assert numbers is not None
            on = all(bool(c.holds(z)) for c in number.conditions)
            base[number.latent] = numbers[number.label]
            base[number.column] = numbers[number.label] if on else 0.0
        return base


def _random_direction(program: BinaryProgram, rng: np.random.Generator) -> QuadraticForm:
    linear = np.zeros(program.n)
    linear[: program.n_z] = rng.normal(size=program.n_z)
    return replace(QuadraticForm.zero(program.n), linear=linear)


def _largest(form: QuadraticForm) -> float:
    """Return the largest absolute coefficient of a form, at least 1."""
    return float(np.abs(np.concatenate([[1.0, form.constant], form.linear, form.values])).max())


def _separable(program: BinaryProgram) -> bool:
    """Return True if no row relates a numerical parameter to an auxiliary variable, so that levels and values decide legality."""
    numbers = {c for n in program.numbers for c in (n.column, n.latent)}
    auxiliaries = set(range(program.n_z, program.n)) - numbers - {n.place for n in program.numbers}
    auxiliaries -= {p.column for p in program.bilinear}
    for row in program.base_rows:
        used = columns_of(row.form)
        if used & numbers and used & auxiliaries:
            return False
    return True
