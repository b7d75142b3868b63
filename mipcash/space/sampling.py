"""Legal samples and initial designs, without rejection loops.

Where most of the product domain is legal, uniform levels are drawn and the illegal ones dropped, in one batch. Elsewhere
the solver makes seeds: for a random target configuration and random weights w_g it minimises ``-sum_g w_g z[g, target_g]``,
the legal configuration nearest to the target. Random walks of legal moves then spread the seeds (beside numbers that
rules bind, at the seed's numbers); where legality cannot be decided without the solver, every sample is a seed.
Numbers are stratified over their unit scale (Latin hypercube), or, where rules bind them, moved by hit-and-run inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.backends.base import SolverSettings
from mipcash.backends.heuristics.local_search import LocalSearch
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.space.exclusion import Exclusion
from mipcash.space.minimiser import Oracle, Point

SEEDS = 48
"""Solver-made starting points of a large sample."""
BATCH = 2048
TIE_BREAK = 0.1
"""Pull of the random target beside the reward of an unseen level: a level that excludes many others is still worth it."""
HEAVIEST = 1e4
"""Weight of a level at most: a solver cannot tell the others' rewards from nothing beside larger ones."""
LOOSE = 0.5
"""Fraction of legal uniform draws above which the space counts as loose."""


@dataclass(frozen=True)
class DiscreteSample:
    """Levels, with the solver's columns where a solver made them (None for levels whose numbers are unbound by rules)."""

    levels: Indices
    point: Point | None


def sample_levels(oracle: Oracle, n: int, settings: SolverSettings, rng: np.random.Generator) -> list[DiscreteSample]:
    """n legal level vectors; fewer only if the space is empty (then none).

    Every solve is bounded by ``settings``; no loop depends on luck.
    """
    program = oracle.program
    search = oracle.search(None) if not program.numbers else None
    if search is None:
        return _walks_beside_numbers(oracle, n, settings, rng)
    latent = uniform_levels(oracle, max(BATCH, n), rng)
    levels = search.legality.effective(latent)
    legal = search.legality.check(levels)
    if legal.mean() >= LOOSE and legal.sum() >= n:
        return [DiscreteSample(s, None) for s in levels[legal][:n]]
    return _seeds_and_walks(oracle, search, n, settings, rng)


def _seeds_and_walks(
    oracle: Oracle, search: LocalSearch, n: int, settings: SolverSettings, rng: np.random.Generator
) -> list[DiscreteSample]:
    seeds = [p for p in (seed(oracle, settings, rng) for _ in range(min(n, SEEDS))) if p is not None]
    if not seeds:
        return []
    found = [DiscreteSample(p.levels, None) for p in seeds]
    if n > len(found):
        starts = np.array([seeds[k % len(seeds)].levels for k in range(n - len(found))])
        walked = search.legality.effective(search.walk(starts, 3 * len(oracle.program.groups), rng))
        found += [DiscreteSample(s, None) for s in walked]
    return found


def _walks_beside_numbers(
    oracle: Oracle, n: int, settings: SolverSettings, rng: np.random.Generator
) -> list[DiscreteSample]:
    """Samples where rules bind numbers: seeds, then walks of the levels at each seed's numbers."""
    seeds = [p for p in (seed(oracle, settings, rng) for _ in range(min(n, SEEDS))) if p is not None]
    found = [DiscreteSample(p.levels, p) for p in seeds]
    share = -(-(n - len(found)) // max(1, len(seeds)))
    for point in seeds if share > 0 else []:
        numbers = {x.label: float(point.columns[x.latent]) for x in oracle.program.numbers}
        search = oracle.search(numbers) if oracle.separable else None
        if search is None:
            extra = [p for p in (seed(oracle, settings, rng) for _ in range(share)) if p is not None]
            found += [DiscreteSample(p.levels, p) for p in extra]
            continue
        starts = np.repeat(point.levels[None], share, axis=0)
        walked = search.legality.effective(search.walk(starts, 3 * len(oracle.program.groups), rng))
        legal = walked[search.legality.check(walked)]
        found += [DiscreteSample(s, oracle.unproven(s, numbers, float("nan"))) for s in legal]
    return found[:n]


def uniform_levels(oracle: Oracle, n: int, rng: np.random.Generator) -> Indices:
    """Uniform latent levels, rules ignored (orderings are permutations): shape (n, G)."""
    program = oracle.program
    sizes = program.sizes - np.array([int(g.conditional) for g in program.groups], dtype=np.int64)
    latent = rng.integers(sizes, size=(n, len(sizes))) if len(sizes) else np.zeros((n, 0), dtype=np.int64)
    for members in oracle.orderings.values():
        latent[:, members] = rng.permuted(np.tile(np.arange(len(members)), (n, 1)), axis=1)
    return latent


def seed(
    oracle: Oracle,
    settings: SolverSettings,
    rng: np.random.Generator,
    bonus: Vector | None = None,
    excluded: Sequence[Exclusion] = (),
    pull: float = 1.0,
) -> Point | None:
    """The legal point nearest to a random target, in a random weighting of the groups.

    Args:
        pull: mean weight of the target.
        bonus: extra reward per one-hot column, shape (n_z,).
        excluded: what may not be returned.
    """
    program = oracle.program
    linear = np.zeros(program.n)
    target = uniform_levels(oracle, 1, rng)[0]
    linear[program.starts + target] -= pull * rng.exponential(size=len(target))
    if bonus is not None:
        linear[: program.n_z] -= bonus
    for number in program.numbers:
        span = max(1e-12, program.high[number.latent] - program.low[number.latent])
        linear[number.latent] += rng.normal() / span
    empty = np.zeros(0, dtype=np.int64)
    form = QuadraticForm(0.0, linear, empty, empty, np.zeros(0))
    return oracle.minimise(form, settings, excluded=excluded)


def cover(
    oracle: Oracle,
    shown: Sequence[Indices],
    settings: SolverSettings,
    rng: np.random.Generator,
    excluded: Sequence[Exclusion] = (),
) -> Point | None:
    """The next point of an initial design that covers the levels a legal configuration can take, structure and rare ones first.

    A level that no earlier point shows earns 1, one shown k times 1 / (1 + k)^2; a random target breaks ties and keeps points
    apart. Levels on which other parameters depend (the structure) come before those, as large structures, which have more
    levels to show, would be all that is ever seen otherwise: w (1 + U) where a level was shown at most once more than the
    rarest of its group, 3 w where it was never shown, else no more than w U / 2. U is uniform, so that groups do not
    alternate in step, and w such that all that depends on the group earns less than w / 2 (up to five levels deep or so, where
    w reaches its limit and deeper structures are shown somewhat more often).

    Args:
        shown: levels of the earlier points.
        excluded: what may not be returned.
    """
    program = oracle.program
    count = program.one_hot(np.array(shown)).sum(axis=0) if shown else np.zeros(program.n_z)
    bonus = program.active_columns / (1.0 + count) ** 2
    for g, weight in _structure(program).items():
        group = program.groups[g]
        at = np.arange(group.start, group.stop - int(group.conditional))
        bonus[at] = 3.0 * weight
        known = at[count[at] > 0]
        more = count[known] - count[known].min(initial=np.inf)
        rare, drawn = np.where(more < 2, 1.0, 0.0), rng.random(len(known)) / np.maximum(1.0, more)
        bonus[known] = weight * (rare + drawn)
    return seed(oracle, settings, rng, bonus=bonus, excluded=excluded, pull=TIE_BREAK)


def _structure(program: BinaryProgram) -> dict[int, float]:
    """Groups on which others depend, with twice of what those can earn (and 2), up to a limit."""
    dependents: dict[int, set[int]] = {}
    for child, group in enumerate(program.groups):
        for parent in {int(program.group_of[c]) for condition in group.conditions for c in condition.columns}:
            dependents.setdefault(parent, set()).add(child)
    weights: dict[int, float] = {}

    def weight(g: int) -> float:
        if g not in weights:
            earned = sum(3.0 * weight(c) if c in dependents else 1.0 for c in dependents[g])
            weights[g] = min(HEAVIEST, 2.0 + 2.0 * earned)
        return weights[g]

    return {g: weight(g) for g in dependents}


def latin_hypercube(n: int, k: int, rng: np.random.Generator) -> Vector:
    """Stratified points in the unit cube, shape (n, k)."""
    strata = rng.permuted(np.tile(np.arange(n), (k, 1)), axis=1).T
    values: Vector = (strata + rng.random((n, k))) / n
    return values


def farthest_units(before: Vector, k: int, rng: np.random.Generator, candidates: int = 32) -> Vector:
    """Of some random points in the unit cube, the one farthest from those before (nan: inactive there). (t, k) -> (k,)"""
    drawn = rng.random((candidates, k))
    return np.asarray(drawn[farthest(drawn, before)])


def farthest(drawn: Vector, before: Vector) -> int:
    """Which of some points, (c, k), is the farthest from those before, (t, k); the first where there are none."""
    if not len(before) or not drawn.shape[1]:
        return 0
    apart = drawn[:, None, :] - before[None, :, :]
    distance = np.nanmean(np.where(np.isnan(apart), 0.25, np.abs(apart)), axis=2).min(axis=1)
    return int(np.argmax(distance))
