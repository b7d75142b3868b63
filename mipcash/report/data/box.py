"""The box of a space: every parameter independent and uniform over its range, without the rules.

Notation
    n draws;   latent (n, G) a level of every group, also of inactive ones;   units (n, D)
    p the share of the box that is legal;   k of the n draws are legal

p is estimated by k / n with Wilson's interval at 95 %: centre (k + z^2/2) / (n + z^2), half width z / (n + z^2) sqrt(k (n - k) / n
+ z^2 / 4), z = 1.96; for evenly spread draws it is too wide. A parameter of the box is active if its conditions hold.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from scipy.stats.qmc import Sobol

from mipcash.modelling.domains import Permutation
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain

DRAWS = 2000
SECONDS = 3.0
"""Time limit for checking the draws."""


@dataclass(frozen=True, eq=False)
class Box:
    """Draws from the box. Make them with ``drawn``.

    Attributes:
        latent: n of them.
        legal: shape (n,).
    """

    latent: Points
    legal: Booleans

    @classmethod
    def drawn(cls, domain: Domain, rng: np.random.Generator, draws: int = DRAWS, seconds: float = SECONDS) -> Box:
        """Draw, and check which draws are legal; at the time limit, keep only the draws checked so far."""
        latent, began = latent_draws(domain, draws, rng), time.perf_counter()
        shown = effective(domain, latent)
        legal = domain.free_legality.check(shown.levels)
        looked = draws
        if domain.program.has_base_rows and not domain.free_legality.complete:
            for k in np.flatnonzero(legal):
                if time.perf_counter() - began > seconds:
                    looked = int(k)
                    break
                legal[k] = domain.is_legal(shown[int(k)])
        return cls(latent[:looked], np.asarray(legal[:looked], dtype=bool))

    @property
    def share(self) -> float:
        """Estimate of p; nan without draws."""
        return float(self.legal.mean()) if len(self.legal) else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of p at 95 %."""
        if not len(self.legal):
            return 0.0, 1.0
        found = binomtest(int(self.legal.sum()), len(self.legal)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


def latent_draws(domain: Domain, n: int, rng: np.random.Generator) -> Points:
    """Return n draws from the box: a level of every group, an order of every ordering, unit values of all numerical parameters.

    They are evenly spread (scrambled Sobol' points), since few of them serve as the background of all effects.
    """
    groups = domain.program.groups
    drawn = _spread(n, len(groups) + len(domain.scale), rng)
    levels = (drawn[:, : len(groups)] * [group.n_levels for group in groups]).astype(np.int64)
    for label, parameter in domain.declaration.parameters.items():
        if isinstance(parameter.domain, Permutation):
            among = [g for g, group in enumerate(groups) if group.parameter == label]
            levels[:, among] = np.argsort(drawn[:, among], axis=1)
    return Points(levels, domain.scale.rounded(drawn[:, len(groups) :]))


def _spread(n: int, dims: int, rng: np.random.Generator) -> Vector:
    """Return n points of the unit cube, (n, dims)."""
    if not 0 < dims <= Sobol.MAXDIM:
        return rng.random((n, dims))
    return np.asarray(Sobol(dims, rng=rng).random_base2(max(0, n - 1).bit_length())[:n])


def orders(members: int, n: int, rng: np.random.Generator) -> Indices:
    """Return the positions of each member in n random orders: shape (n, members)."""
    return np.argsort(rng.random((n, members)), axis=1)


def effective(domain: Domain, latent: Points) -> Points:
    """Return the points as configurations have them, with groups inactive if their conditions fail."""
    return Points(domain.free_legality.effective(latent.levels), latent.units)


def latent_of(domain: Domain, points: Points, rng: np.random.Generator) -> Points:
    """Fill in points: draw a level for every inactive group, and a value for every inactive numerical parameter."""
    drawn = latent_draws(domain, len(points), rng)
    sizes = np.array([group.n_levels for group in domain.program.groups], dtype=np.int64)
    active = domain.scale.active_at(domain.program, points.levels) > 0
    levels = np.where(points.levels < sizes, points.levels, drawn.levels)
    units: Vector = np.where(active, points.units, drawn.units)
    return Points(levels, units)
