"""The slaves of the dual decomposition over one box of numerical parameters, each solved or bounded with a certificate.

Notation
    B = [low, high] in [0, 1]^D    a box on the unit scale;   mu (F, M) multipliers;   C(u) (M,) cosines.
    u_0, u_F (D,)                  copies of the numerical parameters: minimisers of the continuous slave, and of factor F in
                                   the state that the discrete slave chose

Numerical parameters with a column in the program (those in rules) are restricted to the box there. The discrete slave therefore
respects the rules within the box, and a box without legal numerical values has the bound inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mipcash.backends.task import INFEASIBLE, Answer, Cut, SolverSettings, Task
from mipcash.methods.mivabo.decomposition.continuous_bounds import Bounded, CosineSums, lower_bounds
from mipcash.methods.mivabo.decomposition.split_function import SplitFunction
from mipcash.modelling.domains import Integer, Real
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

NARROW = 1e-7
"""Width on the unit scale below which a numerical parameter is not split."""
EDGE = 0.2
"""Least share of a box in each half."""


@dataclass(frozen=True)
class Box:
    """Unit values ``low <= u <= high``, shape (D,); ends of integers lie on their values."""

    low: Vector
    high: Vector


@dataclass(frozen=True)
class DualBound:
    """L(mu) over a box and the slaves' solutions.

    Attributes:
        bound: L(mu), certified.
        answer: of the discrete slave.
        copies: u_0, then u_F of each factor, shape (1 + F, D).
        seen: mask of the numerical parameters that a copy's slave depends on, shape (1 + F, D).
    """

    bound: float
    answer: Answer
    copies: Vector
    seen: NDArray[np.bool_]


class Slaves:
    """The slaves of one function on one domain."""

    def __init__(
        self,
        split: SplitFunction,
        domain: Domain,
        solver: SolverSettings,
        splits: int,
        excluded: Sequence[Exclusion],
    ) -> None:
        self.split, self.solver, self.splits = split, solver, splits
        self.backend, self.scale = domain.backend, domain.scale
        self.program = domain.program
        self.cuts = [e.cut(self.program) for e in excluded]
        self.coupled = split.coupled()
        self.calls = 0
        self._influence = split.influence()
        self._columns = {n.label: n for n in self.program.numbers}
        self._kept: dict[bytes, Bounded] = {}
        self._kept_box: Box | None = None

    def root(self) -> Box:
        """Return the box of all numerical parameters."""
        return Box(np.zeros(len(self.scale)), np.ones(len(self.scale)))

    def dual(self, box: Box, multipliers: Vector) -> DualBound:
        """Return L(mu) over a box; the bound is valid for any multipliers, and wherever a slave stops."""
        self.calls += 1
        split = self.split
        shifted = [f.amplitude - mu for f, mu in zip(split.factors, multipliers, strict=True)]
        continuous, *found = self._bounded([(split.base + multipliers.sum(axis=0))[None], *shifted], box)
        answer = self._discrete(box, [b.lower for b in found])
        copies = np.tile(continuous.points[0], (1 + len(found), 1))
        seen = np.zeros(copies.shape)
        moves = np.abs(split.omega)
        seen[0] = np.abs(split.base + multipliers.sum(axis=0)) @ moves
        if answer.columns is not None:
            z = answer.columns[: self.program.n_z]
            for k, (factor, bounded, amplitude) in enumerate(zip(split.factors, found, shifted, strict=True)):
                s = factor.state(z)
                copies[1 + k], seen[1 + k] = bounded.points[s], np.abs(amplitude[s]) @ moves
                # a numerical parameter on which only this factor depends is that of its copy
                only = (seen[1 + k] > 0) & (seen[:1].sum(axis=0) == 0)
                copies[0, only] = bounded.points[s][only]
        bound = answer.bound + float(continuous.lower[0]) if answer.status != INFEASIBLE else math.inf
        return DualBound(bound, answer, copies, seen > 0)

    def supergradient(self, dual: DualBound) -> Vector:
        """Return C(u_0) - C(u_F), shape (F, M): a supergradient of L for exact slaves, an ascent direction for bounded ones."""
        cosines = np.cos(dual.copies @ self.split.omega.T + self.split.phase)
        direction: Vector = (cosines[:1] - cosines[1:]) * self.coupled
        return direction

    def _bounded(self, amplitudes: Sequence[Vector], box: Box) -> list[Bounded]:
        """Return bounds of each slave's functions over a box.

        Functions of the same cosines are bounded together. Functions without multipliers recur at every iteration, so results are
        kept.
        """
        if self._kept_box is not box:
            self._kept, self._kept_box = {}, box
        keys = [a.tobytes() for a in amplitudes]
        if len(self._kept) > 4 * len(amplitudes):
            self._kept.clear()
        fresh: dict[bytes, dict[bytes, Vector]] = {}
        for key, a in zip(keys, amplitudes, strict=True):
            if key not in self._kept:
                fresh.setdefault(np.any(a != 0, axis=0).tobytes(), {})[key] = a
        for alike in fresh.values():
            sums = CosineSums(self.split.omega, self.split.phase, np.concatenate(list(alike.values())))
            whole, at = lower_bounds(sums, box.low, box.high, self.splits), 0
            for key, a in alike.items():
                rows = slice(at, at + len(a))
                self._kept[key] = Bounded(whole.lower[rows], whole.points[rows], whole.values[rows])
                at = rows.stop
        return [self._kept[key] for key in keys]

    def _discrete(self, box: Box, values: Sequence[Vector]) -> Answer:
        """Solve the MIP of f_d with a cost for each state of each factor."""
        form = self.split.discrete
        constant, linear = form.constant, form.linear.copy()
        rows, cols, weights = [form.rows], [form.cols], [form.values]
        for factor, value in zip(self.split.factors, values, strict=True):
            constant += float(value @ factor.constant)
            linear[: self.program.n_z] += value @ factor.linear
            state, row, col = factor.products
            rows.append(row)
            cols.append(col)
            weights.append(factor.values * value[state])
        whole = QuadraticForm(constant, linear, np.concatenate(rows), np.concatenate(cols), np.concatenate(weights))
        task = Task(self.program, self.program.folded(whole), {}, [*self.cuts, *self._box_cuts(box)])
        return self.backend.solve(task, self.solver)

    def _box_cuts(self, box: Box) -> list[Cut]:
        cuts = []
        for d, (label, domain) in enumerate(zip(self.scale.labels, self.scale.domains, strict=True)):
            if label in self._columns and (box.low[d] > 0.0 or box.high[d] < 1.0):
                slack = 1e-9 * (domain.high - domain.low)
                ends = [float(domain.from_unit(v)) for v in (box.low[d], box.high[d])]
                column = np.array([self._columns[label].latent], dtype=np.int64)
                cuts.append(Cut(column, np.ones(1), ends[0] - slack, ends[1] + slack))
        return cuts

    # -- branching ----------------------------------------------------------------------------------------------

    def children(self, box: Box, dual: DualBound) -> list[Box]:
        """Return two halves along the numerical parameter with the largest disagreement of copies; none if none can be split."""
        copies, seen = dual.copies, dual.seen
        low, high = box.low.copy(), box.high.copy()
        if dual.answer.columns is not None:
            copies, seen = self._with_columns(dual, copies, seen)
        first = np.min(np.where(seen, copies, np.inf), axis=0, initial=np.inf)
        last = np.max(np.where(seen, copies, -np.inf), axis=0, initial=-np.inf)
        spread = np.maximum(0.0, np.where(np.isfinite(first) & np.isfinite(last), last - first, 0.0))
        width = high - low
        score = self._influence * (spread + 0.1 * width)
        score[~self.split.branchable | (width < NARROW)] = 0.0
        if not len(score) or not np.any(score > 0):
            return []
        d = int(np.argmax(score))
        middle = 0.5 * (first[d] + last[d]) if spread[d] > 1e-6 * width[d] else 0.5 * (low[d] + high[d])
        middle = float(np.clip(middle, low[d] + EDGE * width[d], high[d] - EDGE * width[d]))
        left, right = high.copy(), low.copy()
        left[d] = right[d] = middle
        domain = self.scale.domains[d]
        if domain.step is not None:
            top = domain.from_unit(high[d])
            at = max(domain.from_unit(low[d]), min(domain.from_unit(middle), top - domain.step))
            left[d], right[d] = domain.to_unit(at), domain.to_unit(at + domain.step)
        return [Box(low, left), Box(right, high)]

    def _with_columns(
        self, dual: DualBound, copies: Vector, seen: NDArray[np.bool_]
    ) -> tuple[Vector, NDArray[np.bool_]]:
        """Return the copies, and the discrete slave's own numerical parameters where they are active."""
        columns = dual.answer.columns
        assert columns is not None
        own, known = copies[0].copy(), np.zeros(len(self.scale))
        on = self.scale.active(columns[None, : self.program.n_z])[0]
        for d, label in enumerate(self.scale.labels):
            if label in self._columns and on[d]:
                own[d] = natural_unit(self.scale.domains[d], float(columns[self._columns[label].column]))
                known[d] = 1.0
        return np.concatenate([copies, own[None]]), np.concatenate([seen, known[None] > 0])


def natural_unit(domain: Real | Integer, value: float) -> float:
    """Return the unit value of a solver's value, which may leave its domain by a tolerance (and log domains do not reach 0)."""
    return domain.to_unit(min(float(domain.high), max(float(domain.low), value)))
