"""Dual decomposition of a function over a mixed space (daxberger2019, App. D and E): a certified gap for alternation.

Notation
    f(z, u) = f_d(z) + f_c(u) + sum_F sum_s [state of F is s] h_Fs(u)      to be *minimised* (the paper maximises).
    F         mixed factors: a group, a pair of groups, or the activity of a conditional numerical parameter. Its state is the
              level, the two levels, or off / on, an affine or quadratic 0/1 function of the binaries z.
    h, f_c    sums of the same M cosines: the continuous part of a ``WeightSample``;   C(u) (M,) the cosines.
    lambda_F  multipliers on the states of F (the paper's lambda^d);   mu_F (M,) multipliers on the cosines of F's copy of u.
    B         a box of numerical parameters

The slaves of Eqs. (18a-c), all minima over a superset of the legal points in B:

    L(mu) = min_z [f_d(z) + sum_F lambda_F,state(z)]                       discrete: the MIP, with all rules and its bound.
          + min_{u in B} [f_c(u) + sum_F mu_F . C(u)]                      continuous: ``continuous_bounds``.
          + sum_F min_{s, u in B} [h_Fs(u) - mu_F . C(u) - lambda_Fs]      mixed: the same, state by state

Kept from the paper: the three kinds of slave, factors over few discrete variables, subgradients of the multipliers without
projection (Eqs. 12-19). Changed, with the reason:

    * mu multiplies the cosines of the copies of u, not u itself. Copies that agree on u agree on C(u), so the bound
      holds as before, and the slaves keep their form (a sum of cosines). It also contains the multipliers under which the
      continuous slave is f(z, .) at any given z. Multipliers linear in u cannot express that.
    * lambda is eliminated. A mixed factor shares binaries with the discrete slave only, so the block
      coordinate step of MPLP (Sontag, Globerson and Jaakkola 2011), lambda_Fs = min_u [h_Fs - mu_F . C], is exact in all
      lambda at once. With it L(mu) is maximal in lambda, and every mixed slave is 0.
    * A slave may stop early: each returns a certified bound instead of its minimum, so that L is valid at every iteration.
    * Rules: the discrete slave contains all of them, also over numerical parameters (its columns, restricted to B). In the other
      slaves these are free within B, integers may be fractional, and an inactive parameter may take any value if f is not gated
      by its activity. These are relaxations, so the bound stays valid.
    * The remaining duality gap is closed by branching on the numerical parameters: the leaves cover the whole box, the
      certificate is the lowest bound of a leaf, and multipliers are inherited. The paper stops at the root (``nodes=0``).

The step length is Polyak's (polyak1969), (value - L) / |g|^2, scaled down after iterations without a better bound.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mipcash.acquisition.alternating import Minimum
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.backends.task import SolverSettings
from mipcash.errors import SpaceError, at_least
from mipcash.methods.mivabo.decomposition.slaves import Box, DualBound, Slaves, natural_unit
from mipcash.methods.mivabo.decomposition.split_function import SplitFunction
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.program.forms import Vector
from mipcash.program.points import Point
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

STARTS, TOLERANCE = 1, 1e-6
"""Random starts and tolerance of the continuous steps from rounded points."""


@dataclass(frozen=True)
class DecompositionSettings:
    """Limits of the decomposition; the bound is valid however small they are.

    Functions of few joint numerical parameters, or of numerical parameters with separate terms, are solved at the root. For eight
    joint numerical parameters, leaves tighten the bound more per second than splits do, because they restrict all copies of u to
    one box.

    Attributes:
        iterations: subgradient steps at the root.
        child_iterations: subgradient steps in a leaf, from its parent's multipliers.
        nodes: leaves that may be split; 0: the paper's decomposition.
        splits: boxes that branch and bound may split per continuous function and slave.
        step: first factor on Polyak's step, in (0, 2).
        patience: iterations without a better bound after which the factor is halved.
        tolerance: gap, relative to max(1, |value|), at which the search stops.
        solver: limits of each MIP.
    """

    iterations: int = 15
    child_iterations: int = 1
    nodes: int = 60
    splits: int = 24
    step: float = 1.0
    patience: int = 3
    tolerance: float = 1e-5
    solver: SolverSettings = field(default_factory=lambda: SolverSettings(time_limit=20.0, gap=1e-7, node_limit=20_000))

    def __post_init__(self) -> None:
        at_least(self, iterations=0, child_iterations=0, nodes=0, splits=0, patience=1, tolerance=0)
        if not 0.0 < self.step < 2.0:
            raise SpaceError(f"DecompositionSettings: step must lie between 0 and 2, got {self.step}")


@dataclass(frozen=True)
class Certificate:
    """Bounds on the minimum of f over the legal mixed space: ``lower <= min f <= value``.

    Attributes:
        lower: certified bound, up to the solver's tolerances.
        value: f at the best known legal point (inf without one).
        gap: ``value - lower``, on the scale of f.
        iterations: evaluations of L.
        history: best bound after each of them, not decreasing.
        best: the best of the given point and those rounded from the slaves; None if there is none.
        leaves: number of boxes whose bounds make up ``lower``.
    """

    lower: float
    value: float
    gap: float
    iterations: int
    history: tuple[float, ...]
    best: Minimum | None
    leaves: int


@dataclass(frozen=True)
class _Leaf:
    """A box, the best bound over it, and the multipliers and the dual bound with its solutions."""

    bound: float
    box: Box
    multipliers: Vector
    dual: DualBound


class _Search:
    """State of one decomposition; created by ``decompose``."""

    def __init__(
        self,
        f: WeightSample,
        domain: Domain,
        settings: DecompositionSettings,
        rng: np.random.Generator,
        primal: Minimum | None,
        excluded: Sequence[Exclusion],
    ) -> None:
        self.f, self.settings, self.rng, self.domain = f, settings, rng, domain
        self.scale, self.program = domain.scale, domain.program
        self.step = ContinuousStep(domain, STARTS, TOLERANCE)
        self.split = SplitFunction.of(f, self.program, self.scale)
        self.slaves = Slaves(self.split, domain, settings.solver, settings.splits, excluded)
        self.best = primal
        self.excluded = excluded
        self.history: list[float] = []
        self.rounded: set[bytes] = set()

    @property
    def value(self) -> float:
        return math.inf if self.best is None else self.best.value

    @property
    def enough(self) -> float:
        return self.settings.tolerance * max(1.0, abs(self.value)) if self.best is not None else 0.0

    # -- the dual of one box -------------------------------------------------------------------------------------

    def ascend(self, box: Box, starts: Sequence[Vector], iterations: int, floor: float, others: float) -> _Leaf:
        """Run subgradient ascent over one box from the best of several multipliers.

        Args:
            floor: a bound that holds over the box already.
            others: the lowest bound over all other boxes, for the history.
        """
        leaf: _Leaf | None = None

        def look(multipliers: Vector) -> DualBound:
            nonlocal leaf
            found = self.slaves.dual(box, multipliers)
            bound = max(floor, found.bound)
            if leaf is None or found.bound > leaf.dual.bound:
                leaf = _Leaf(bound, box, multipliers, found)
            self.note(min(others, leaf.bound))
            self.round(box, found)
            return found

        for start in starts:
            look(start)
        assert leaf is not None
        multipliers, dual = leaf.multipliers, leaf.dual
        factor, stale = self.settings.step, 0
        for _ in range(iterations):
            direction = self.slaves.supergradient(dual)
            length = float(np.sum(direction**2))
            missing = self.value - dual.bound if self.best is not None else max(1.0, abs(dual.bound))
            if self.done(leaf.bound) or length < 1e-16 or not math.isfinite(dual.bound):
                break
            before = leaf.dual.bound
            multipliers = multipliers + factor * missing / length * direction
            dual = look(multipliers)
            stale = 0 if leaf.dual.bound > before else stale + 1
            if stale >= self.settings.patience:
                # return to the best multipliers, with a shorter step
                factor, stale = 0.5 * factor, 0
                multipliers, dual = leaf.multipliers, leaf.dual
        return leaf

    def note(self, bound: float) -> None:
        self.history.append(float(max([bound, *self.history[-1:]])))

    def done(self, bound: float) -> bool:
        return bound >= self.value - self.enough

    # -- branching ----------------------------------------------------------------------------------------------

    def run(self) -> Certificate:
        root = self.slaves.root()
        starts = self.split.starts(None if self.best is None else self.best.point.one_hot(self.program))
        first = self.ascend(root, starts, self.settings.iterations, -math.inf, math.inf)
        heap = [(first.bound, 0, first)]
        closed = math.inf
        made = 1
        for _ in range(self.settings.nodes):
            if not heap or self.done(heap[0][0]):
                break
            _, _, leaf = heapq.heappop(heap)
            children = self.slaves.children(leaf.box, leaf.dual)
            if not children:
                # no numerical parameter can be split: the bound is final
                closed = min(closed, leaf.bound)
                continue
            for k, box in enumerate(children):
                open_bounds = [h[0] for h in heap] + [leaf.bound] * (len(children) - 1 - k)
                others = min([closed, *open_bounds], default=math.inf)
                child = self.ascend(box, [leaf.multipliers], self.settings.child_iterations, leaf.bound, others)
                if math.isfinite(child.bound):
                    heapq.heappush(heap, (child.bound, made, child))
                    made += 1
        lower = min([closed, *(h[0] for h in heap)], default=math.inf)
        self.note(lower)
        lower = min(lower, self.value)
        gap = 0.0 if lower == self.value else self.value - lower
        return Certificate(lower, self.value, gap, self.slaves.calls, tuple(self.history), self.best, len(heap))

    # -- primal points ------------------------------------------------------------------------------------------

    def round(self, box: Box, found: DualBound) -> None:
        """Round the slaves' solutions to a point, improve it, and store it if it is the best.

        Levels and numerical parameters in rules are those of the discrete slave, the rest is that of the continuous slaves.
        """
        if found.answer.columns is None:
            return
        levels = self.program.levels_of(found.answer.columns)
        key = levels.tobytes()
        if key in self.rounded or not all(e.admits(levels) for e in self.excluded):
            return
        self.rounded.add(key)
        z = self.program.one_hot(levels)
        u = found.copies[0].copy()
        columns = {n.label: n.column for n in self.program.numbers}
        on = self.scale.active(z[None])[0] > 0
        for d, label in enumerate(self.scale.labels):
            if on[d] and label in columns:
                u[d] = natural_unit(self.scale.domains[d], float(found.answer.columns[columns[label]]))
        u = np.where(on, self.scale.rounded(u), INACTIVE)
        moved = self.step.minimise(self.f, Point(levels, u), self.rng, columns=found.answer.columns)
        point = Point(levels, np.where(on, self.scale.rounded(moved), INACTIVE))
        value = self.f.value(z, point.units)
        if value < self.value:
            self.best = Minimum.unproven(self.domain, point, value)


def decompose(
    f: WeightSample,
    domain: Domain,
    settings: DecompositionSettings,
    rng: np.random.Generator,
    primal: Minimum | None = None,
    excluded: Sequence[Exclusion] = (),
) -> Certificate:
    """Compute a certified lower bound of f over the legal mixed space, and the best known legal point.

    Args:
        f: the function, e.g. a posterior sample or the posterior mean.
        domain: the space, with the solver of the discrete slave.
        settings: limits.
        rng: randomness of the continuous steps that improve rounded points.
        primal: a point to certify, e.g. the result of alternation.
        excluded: levels that do not count as legal.

    Returns:
        The certificate; ``lower`` is inf if there is no legal point.
    """
    if primal is not None:
        # the value is that of the configuration: without inactive numerical parameters, integers rounded, and f's own
        z = primal.point.one_hot(domain.program)
        units = np.where(domain.scale.active(z[None])[0] > 0, domain.scale.rounded(primal.point.units), INACTIVE)
        primal = replace(primal, point=Point(primal.point.levels, units), value=f.value(z, units))
    return _Search(f, domain, settings, rng, primal, excluded).run()
