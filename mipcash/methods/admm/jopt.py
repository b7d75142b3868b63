"""JOPT(BO), the joint optimization that the ADMM papers compare with (liu2020, appendix 14), over rounded points.

Notation
    x (B, d)    a configuration in [0, 1]^d: one column per ordered parameter (its level), one-hot columns per category, one
                column per member of an ordering (its position). Numerical parameters have their unit values. Inactive columns
                are 1/2.

1. One Gaussian process over all columns (``mipcash.methods.admm.matern``), with a length-scale per column.
   Pending trials count at their means, so that deviations shrink near them (the kriging believer of ginsbourger2010). A proposal
   keeps a distance to them if it can.
2. Expected improvement at the rounded points, over the lowest posterior mean.
3. A rounded point that violates a rule is moved to the nearest legal configuration.

The expected improvement of the process is maximised over the whole cube, evaluated at rounded points only.

Notation
    x (B, d)    rows of the cube (``mipcash.optimizers.unit_cube``); inactive columns are 1/2.
    P(x)        x rounded to levels and orders, with columns that its conditions switch off at 1/2. Numerical parameters stay as
                they are, also wide integers, whose steps are below 1/64.
    a(x)        minus the logarithm of the expected improvement

1. A pool: uniform rows, and the best observations with a few of their variables redrawn or moved; all of them rounded.
2. L-BFGS-B from the best of them over the active ordered columns, by the gradient of the process, then rounding.
3. All rows ordered by a(P(x)); rows whose levels violate rules come last.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from mipcash.acquisition.acquisition import PLACES, rounded
from mipcash.acquisition.analytic import LogEI
from mipcash.deadline import Deadline
from mipcash.errors import check_settings
from mipcash.methods.admm.legal import exactly_legal
from mipcash.methods.admm.matern import MaternProcess
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import Proposal
from mipcash.optimizers.pending import EXACT
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.forms import Booleans, Vector
from mipcash.program.points import Point, Points
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.domain import Domain
from mipcash.surrogates.maximum import steady

REDRAWN = 0.5
"""Share of the changes of an ordered variable that redraw it; the other changes move it."""
SPREAD = 0.12
"""Standard deviation of such a move."""
CHANGES = 2.0
"""Average number of variables that are changed, beside the one that always is."""


@dataclass(frozen=True)
class RoundedSearch:
    """The search over rounded points, as described in the module.

    Attributes:
        samples: rows of the pool, half of them uniform.
        best: number of best observations whose neighbours are in the pool.
        starts: number of descents.
        iterations: of each descent.
    """

    domain: Domain
    cube: UnitCube
    samples: int
    best: int
    starts: int
    iterations: int

    def candidates(
        self, process: MaternProcess, target: float, observed: Vector, rng: np.random.Generator, deadline: Deadline
    ) -> Vector:
        """Return rounded rows, most promising first.

        Args:
            target: the value to improve on, on the scale of the process.
            observed: rows, best first.
            deadline: when descents end.
        """
        log_ei = LogEI(target)
        n_uniform = self.samples // 2
        uniform = rng.random((n_uniform, self.cube.size))
        pool, legal = self.rounded(np.concatenate([uniform, self._neighbours(observed, self.samples - n_uniform, rng)]))
        values = np.where(legal, rounded(log_ei(*process.predict(pool))), np.inf)
        pool = pool[np.argsort(values, kind="stable")]
        ends = [self._descended(process, log_ei, row, deadline) for row in pool[: self.starts]]
        polished, still_legal = self.rounded(np.array(ends))
        rows = np.concatenate([polished, pool])
        legal = np.concatenate([still_legal, np.sort(legal)[::-1]])
        values = np.where(legal, rounded(log_ei(*process.predict(rows))), np.inf)
        return np.asarray(rows[np.argsort(values, kind="stable")])

    def rounded(self, x: Vector) -> tuple[Vector, Booleans]:
        """Return P(x), (B, d), and a mask of the rows that satisfy the rules over levels, (B,)."""
        points = self.cube.decoded(x)
        levels = self.domain.free_legality.effective(points.levels)
        on = self.domain.scale.active_at(self.domain.program, levels) > 0
        rows = self.cube.encode(Points(levels, np.where(on, points.units, INACTIVE)))
        return rows, self.domain.free_legality.check(levels)

    def active(self, x: Vector) -> Booleans:
        """Return which parameters are active at rounded rows: (B, d) -> (B, n_variables)."""
        program = self.domain.program
        levels = self.domain.free_legality.effective(self.cube.decoded(x).levels)
        groups = levels < np.array([g.n_levels for g in program.groups], dtype=np.int64)
        return np.concatenate([groups, self.domain.scale.active_at(program, levels) > 0], axis=1)

    def _neighbours(self, observed: Vector, count: int, rng: np.random.Generator) -> Vector:
        """Return the best rows with a few active variables changed; inactive columns are drawn, in case they become active."""
        base = observed[: self.best][np.arange(count) % min(self.best, len(observed))]
        drawn, variables, n = rng.random(base.shape), self.cube.variables, self.cube.n_variables
        on, chance = self.active(base), rng.random((count, n))
        changed = on & (chance < CHANGES / np.maximum(on.sum(axis=1, keepdims=True), 1))
        changed[np.arange(count), np.where(on, chance, np.inf).argmin(axis=1)] = True
        moved = np.clip(base + SPREAD * rng.normal(size=base.shape), 0.0, 1.0)
        again = (rng.random((count, n)) < REDRAWN)[:, variables] | ~self.cube.ordered
        made = np.where(changed[:, variables], np.where(again, drawn, moved), base)
        return np.where(on[:, variables], made, drawn)

    def _descended(self, process: MaternProcess, log_ei: LogEI, row: Vector, deadline: Deadline) -> Vector:
        free = np.flatnonzero(self.cube.ordered & self.active(row[None])[0, self.cube.variables])
        if not len(free):
            return row
        at = row.copy()

        def objective(x: Vector) -> tuple[float, Vector]:
            at[free] = x
            mu, sd, by_mu, by_sd = process.slope(at)
            value, slope, steep = log_ei.slope(mu, sd)
            return value, (slope * by_mu + steep * by_sd)[free]

        found = minimize(
            steady(objective, deadline),
            row[free],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(free),
            options={"maxiter": self.iterations},
        )
        at[free] = np.round(np.clip(found.x, 0.0, 1.0), PLACES)
        return at


NEAR = 0.02
"""Least distance of a proposal to a pending trial, as the largest difference of a column, if there is another candidate."""
ITERATIONS = 12
"""Iterations of L-BFGS-B on the likelihood; the last digits of a length-scale change no proposal."""
BEST = 6
"""Number of best observations whose neighbours are in the pool."""
THETA = "theta"
"""Key in the optimizer's state: the hyperparameters of the last fit, from which the next fit starts."""
FIT, SEARCH = 0.35, 0.7
"""Shares of the remaining time for the fit and for the acquisition; the rest is for rounding."""


@dataclass(frozen=True)
class JoptSettings:
    """Settings of the optimizer ``jopt``, joint optimization over relaxed levels and numbers.

    Args:
        n_initial: size of the initial design.
        samples: random points from which the starts are chosen.
        starts: runs of L-BFGS-B.
        iterations: of each run.

    Raises:
        SpaceError: ``n_initial`` or ``starts`` is below 1, there are fewer samples than starts, or a setting is no whole number.

    Examples:
        >>> from mipcash.methods.admm import JoptSettings
        >>> JoptSettings(starts=2, iterations=10).samples
        600
    """

    n_initial: int = 10
    samples: int = 600
    starts: int = 3
    iterations: int = 30

    def __post_init__(self) -> None:
        check_settings(self, n_initial=1, starts=1, iterations=0, samples=self.starts)


class Jopt(ModelBased):
    """JOPT(BO) as described in the module."""

    name: ClassVar[str] = "jopt"
    takes_limits = True

    def __init__(self, domain: Domain, settings: JoptSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: JoptSettings = settings or JoptSettings()
        self.cube = UnitCube(self.program, len(self.scale))

    def _search(self, step: Step) -> Proposal | None:
        began = time.perf_counter()
        x, fitted = self.cube.encode(step.data.points), step.request.state.get(THETA)
        start = None if fitted is None else np.array(fitted, dtype=float)
        process = MaternProcess.fit(
            x,
            step.data.merits,
            noise=step.data.noise(),
            start=start,
            iterations=ITERATIONS,
            deadline=self.domain.deadline.share(FIT),
        )
        awaited = self.cube.encode(self.awaited(step.request))
        kept = step.data.legal & step.data.complete
        kept = kept if kept.any() else step.data.legal
        means = process.predict(np.concatenate([x[kept], awaited]))[0]
        step.clock.add("surrogate", began)
        began = time.perf_counter()
        s = self.settings
        search = RoundedSearch(self.domain, self.cube, s.samples, BEST, s.starts, s.iterations)
        ranked = x[step.data.order] if len(step.data.order) else x
        candidates = search.candidates(
            process.given(awaited, EXACT * process.fitted_noise),
            float(means.min()),
            ranked,
            step.rng,
            self.domain.deadline.share(SEARCH),
        )
        step.clock.add("acquisition", began)
        began = time.perf_counter()
        found = first_new(self.domain, self.cube, [*candidates], awaited, step)
        step.clock.add("rounding", began, self.domain.deadline)
        state = {**step.request.state, THETA: [round(t, 6) for t in process.theta.tolist()]}
        return None if found is None else Proposal(found, None, self.name, step.clock.seconds, state)


def first_new(
    domain: Domain, cube: UnitCube, candidates: Sequence[Vector], awaited: Vector, step: Step, repaired: bool = True
) -> Configuration | None:
    """Return the configuration of the first candidate, (d,), that is new once rounded, or None if there is none.

    A candidate near a pending trial, rows of ``awaited`` (b, d), is returned only if no other one is new, or time is up.

    Args:
        repaired: whether a point that violates a rule is moved to the nearest legal configuration, or returned as it is.
    """
    before, distances, tried = step.before, domain.exclusions([], step.request.min_distance), set()
    spare: Configuration | None = None
    for x in candidates:
        if spare is not None and domain.deadline.passed:
            break
        latent = cube.decode(x)
        levels = domain.free_legality.effective(latent.levels[None])[0]
        config = domain.raw(Point(levels, latent.units))
        if repr(config) in tried:
            continue
        tried.add(repr(config))
        if repaired:
            config = exactly_legal(domain, domain.nearest(config))
            levels = domain.program.encode(config)
        if domain.repeats(config, before) or not all(e.admits(levels) for e in distances):
            continue
        if not near(cube.encode(domain.encode([config]))[0], awaited):
            return config
        spare = spare or config
    return spare


def near(x: Vector, awaited: Vector) -> bool:
    """Return True if one x, (d,), is near any of the rows (b, d)."""
    return bool((np.abs(awaited - x).max(axis=1, initial=0.0) < NEAR).any())
