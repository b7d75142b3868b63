"""Importance of parameters, alone and in pairs: variance components of the surrogate's loss, with their uncertainty.

Notation
    f           the loss on the scale of the surrogate; S functions drawn from its posterior, the first its mean
    x_b (b = 1..N)   background: legal configurations;   g a value of parameter i, equally likely within its legal range
    E_i(g)      mean over b of f(x_b with i at g), the partial dependence (Friedman 2001)
    V           variance of f over the background, or over it with one parameter spread over its values; the largest of these

    alone_i  = var_g E_i(g) / V
    whole_i  = mean_b var_g f(x_b with i at g) / V,   the effect of moving i alone, for any values of the other parameters
    pair_ij  = var_gh [E_ij(g, h) - E_i(g) - E_j(h) + E] / V,   E_i and E_j the means of E_ij's rows and columns

If parameters are independent and all is legal, these are the first-order, total and second-order indices of Sobol (2001). Otherwise
they are statements about the model, because moving one parameter may give an illegal configuration. Each is computed for every
drawn function, so that the quartiles and the 90 % interval express the uncertainty of the surrogate, given its hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product

import numpy as np

from mipcash.optimizers.loss_model import Functions
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.report.data.box import effective, latent_of
from mipcash.report.data.run import Run
from mipcash.report.data.settings import Setting, Variable
from mipcash.space.domain import Domain

FUNCTIONS = 60
BACKGROUND, FEWEST = 64, 24
"""Largest number of background configurations; and the number below which evaluated ones are added."""
VALUES, PAIR_VALUES = 9, 6
POINTS, PAIR_POINTS = 14_000, 16_000
"""Number of points that are evaluated for all parameters, and for all pairs."""
PAIRED = 6
"""Number of most important parameters whose pairs are computed."""
LEVELS = (0.05, 0.5, 0.95)
SMALL = 1e-12


@dataclass(frozen=True)
class Spread:
    """Distribution of a share over the drawn functions.

    Attributes:
        low, middle, high: quantiles at 5, 50 and 95 %.
    """

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, draws: Vector) -> Spread:
        """Return the quantiles of S draws."""
        return cls(*(float(q) for q in np.quantile(draws, LEVELS)))


@dataclass(frozen=True)
class Importance:
    """Importance of one parameter: see the module's notation."""

    label: str
    alone: Spread
    whole: Spread


@dataclass(frozen=True)
class Pair:
    """Interaction of two parameters."""

    first: str
    second: str
    share: Spread


@dataclass(frozen=True)
class Effects:
    """Importance and interactions; see the module's description.

    Attributes:
        parameters: all that can be active and moved, the most important first.
        pairs: interactions of the PAIRED most important parameters, the strongest first.
    """

    parameters: tuple[Importance, ...]
    pairs: tuple[Pair, ...]

    @property
    def labels(self) -> list[str]:
        """Names, the most important first."""
        return [p.label for p in self.parameters]


def effects(run: Run, seed: int = 0) -> Effects | None:
    """Return the effects in a run; None if there is no model of its loss."""
    model, place = run.model, run.place
    if model is None or place is None:
        return None
    rng, domain, extents = np.random.default_rng(seed), place.domain, place.extents
    base = place.box.latent[place.box.legal][:BACKGROUND]
    if len(base) < FEWEST:  # few draws of the box are legal
        kept = rng.permutation(len(model.points))[: BACKGROUND - len(base)]
        base = Points.joined(base, latent_of(domain, model.points[kept], rng))

    def varied(labels: Iterable[str], count: int) -> list[Variable]:
        made = [Variable.of(domain, label, count, extents[label], rng) for label in labels]
        return [v for v in made if v is not None and len(v.settings) > 1]

    variables = varied([l for l in domain.declaration.parameters if l in extents], VALUES)
    functions = model.functions(effective(domain, base), FUNCTIONS, rng)
    values = functions(effective(domain, base))
    n = max(8, min(len(base), POINTS // max(1, VALUES * len(variables))))
    tables = [_table(domain, base[:n], values[:, :n], functions, [(s,) for s in v.settings]) for v in variables]
    spread = np.array([values.var(axis=1), *(t.var(axis=(1, 2)) for t in tables)])
    total, found = np.maximum(spread.max(axis=0), SMALL), list[Importance]()
    for v, table in zip(variables, tables, strict=True):
        alone, whole = table.mean(axis=1).var(axis=1) / total, table.var(axis=2).mean(axis=1) / total
        found.append(Importance(v.label, Spread.of(alone), Spread.of(whole)))
    found.sort(key=lambda p: -p.whole.middle)
    both, pairs = list(combinations(varied([p.label for p in found[:PAIRED]], PAIR_VALUES), 2)), list[Pair]()
    n = max(8, min(len(base), PAIR_POINTS // max(1, len(both) * PAIR_VALUES**2)))
    for a, b in both:
        moves = list(product(a.settings, b.settings))
        table = _table(domain, base[:n], values[:, :n], functions, moves).mean(axis=1)
        table = table.reshape(len(total), len(a.settings), len(b.settings))
        rows, columns = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
        inner = table - rows - columns + table.mean(axis=(1, 2), keepdims=True)
        pairs.append(Pair(a.label, b.label, Spread.of((inner**2).mean(axis=(1, 2)) / total)))
    return Effects(tuple(found), tuple(sorted(pairs, key=lambda p: -p.share.middle)))


def _table(
    domain: Domain, base: Points, values: Vector, functions: Functions, moves: Sequence[Sequence[Setting]]
) -> Vector:
    """Return f at the background after each move: (S, N, moves). Only changed points are evaluated."""
    before = effective(domain, base)
    table = np.repeat(values[:, :, None], len(moves), axis=2)
    active = domain.scale.active_at(domain.program, before.levels) > 0
    shown = np.where(active, before.units, 0.5)
    moved, where = [], []
    for k, move in enumerate(moves):
        after = effective(domain, reduce(lambda points, setting: setting.at(points), move, base))
        on = domain.scale.active_at(domain.program, after.levels) > 0
        changed = (after.levels != before.levels).any(axis=1) | (np.where(on, after.units, 0.5) != shown).any(axis=1)
        rows = np.flatnonzero(changed)
        moved.append(after[rows])
        where += [(int(b), k) for b in rows]
    if where:
        found = functions(Points.joined(*moved))
        rows, at = np.array(where, dtype=np.int64).T
        table[:, rows, at] = found
    return table
