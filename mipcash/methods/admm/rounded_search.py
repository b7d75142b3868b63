"""The expected improvement of a process over the whole cube, sought at what a point rounds to and not where no configuration is.

Notation
    x (B, d)    rows of the cube (:mod:`mipcash.optimizers.unit_cube`); what is inactive lies in the middle
    P(x)        x rounded to levels and orders, what its conditions switch off in the middle; numbers stay as they are, the wide
                integers among them, whose steps are below 1/64
    a(x)        minus the logarithm of the expected improvement

1. a pool: uniform rows, and the best observations with a few of their variables drawn again or moved; all of them rounded
2. from the best of them L-BFGS-B over the active ordered columns, by the gradient of the process, and rounded again
3. everything by a(P(x)); rows whose levels break rules come last
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.continuous_step import flat_after
from mipcash.deadline import Deadline
from mipcash.methods.admm.matern import MaternProcess
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.forms import Booleans, Vector
from mipcash.program.points import Points
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.domain import Domain

REDRAWN = 0.5
"""Share of the changes of an ordered variable that draw it anew; the others move it."""
SPREAD = 0.12
"""Standard deviation by which one is moved."""
CHANGES = 2.0
"""Variables that are changed, on average, beside the one that always is."""


@dataclass(frozen=True)
class RoundedSearch:
    """See the module's description.

    Attributes:
        samples: rows of the pool, half of them uniform.
        best: observations whose neighbours are in it.
        starts: descents.
        iterations: of each.
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
        """Rounded rows, most promising first.

        Args:
            target: the value to improve on, on the scale of the process.
            observed: rows, best first.
            deadline: when descents end.
        """
        log_ei = LogEI(target)
        n_uniform = self.samples // 2
        uniform = rng.random((n_uniform, self.cube.size))
        pool, legal = self.rounded(np.concatenate([uniform, self._neighbours(observed, self.samples - n_uniform, rng)]))
        values = np.where(legal, log_ei(*process.predict(pool)), np.inf)
        pool = pool[np.argsort(values, kind="stable")]
        ends = [self._descended(process, log_ei, row, deadline) for row in pool[: self.starts]]
        polished, still_legal = self.rounded(np.array(ends))
        rows = np.concatenate([polished, pool])
        legal = np.concatenate([still_legal, np.sort(legal)[::-1]])
        values = np.where(legal, log_ei(*process.predict(rows)), np.inf)
        return np.asarray(rows[np.argsort(values, kind="stable")])

    def rounded(self, x: Vector) -> tuple[Vector, Booleans]:
        """P(x) (B, d), and which rows keep the rules that levels alone decide (B,)."""
        points = self.cube.decoded(x)
        levels = self.domain.free_legality.effective(points.levels)
        on = self.domain.scale.active_at(self.domain.program, levels) > 0
        rows = self.cube.encode(Points(levels, np.where(on, points.units, INACTIVE)))
        return rows, self.domain.free_legality.check(levels)

    def _neighbours(self, observed: Vector, count: int, rng: np.random.Generator) -> Vector:
        """The best rows, a few active variables of each changed; what is inactive is drawn, should it become active."""
        base = observed[: self.best][np.arange(count) % min(self.best, len(observed))]
        drawn, variables, n = rng.random(base.shape), self.cube.variables, self.cube.n_variables
        on = np.zeros((count, n), dtype=bool)
        on[:, variables[self.cube.ordered]] = base[:, self.cube.ordered] != INACTIVE
        rows, columns = np.nonzero((base == 1.0) & ~self.cube.ordered)
        on[rows, variables[columns]] = True
        chance = rng.random((count, n))
        changed = on & (chance < CHANGES / np.maximum(on.sum(axis=1, keepdims=True), 1))
        changed[np.arange(count), np.where(on, chance, np.inf).argmin(axis=1)] = True
        moved = np.clip(base + SPREAD * rng.normal(size=base.shape), 0.0, 1.0)
        again = (rng.random((count, n)) < REDRAWN)[:, variables] | ~self.cube.ordered
        made = np.where(changed[:, variables], np.where(again, drawn, moved), base)
        return np.where(on[:, variables], made, drawn)

    def _descended(self, process: MaternProcess, log_ei: LogEI, row: Vector, deadline: Deadline) -> Vector:
        free = np.flatnonzero(self.cube.ordered & (row != INACTIVE))
        if not len(free):
            return row
        at = row.copy()

        def objective(x: Vector) -> tuple[float, Vector]:
            at[free] = x
            mu, sd, by_mu, by_sd = process.slope(at)
            value, slope, steep = log_ei.slope(mu, sd)
            return value, (slope * by_mu + steep * by_sd)[free]

        found = minimize(
            flat_after(objective, deadline),
            row[free],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(free),
            options={"maxiter": self.iterations},
        )
        at[free] = np.clip(found.x, 0.0, 1.0)
        return at
