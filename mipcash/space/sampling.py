"""Legal samples and initial designs.

If most of the product domain is legal, uniform levels are drawn in one batch and the illegal ones dropped; if rules contain
numerical parameters, uniform levels and numbers, as long as enough of them are legal. Otherwise the levels of parameters on which
no other one depends are drawn uniformly from the legal ones, where a decision diagram can count these. For the rest the solver
makes seeds: for a random target configuration and random weights w_g it minimises ``-sum_g w_g z[g, target_g]``, which yields the
legal configuration nearest to the target. Random walks of legal moves then spread the seeds. If rules contain numerical
parameters, the walks keep the seed's values of them. If legality cannot be decided without the solver, every sample is a seed.
Numerical parameters are stratified over their unit scale (Latin hypercube); those in rules are sampled by hit-and-run within their
legal set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats.qmc import LatinHypercube

from mipcash.backends.heuristics.local_search import LocalSearch
from mipcash.backends.heuristics.repair import REPAIRING, many_over_levels, many_rules, repaired
from mipcash.backends.task import INFEASIBLE, UNKNOWN, Answer, SolverSettings, Task
from mipcash.errors import InfeasibleSpaceError, SpaceError, UndecidedError
from mipcash.modelling.domains import Configuration, Integer
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import decided, emptiness
from mipcash.space.counting import rewards, uniform_legal_levels
from mipcash.space.exclusion import Exclusion
from mipcash.space.explanation import explained
from mipcash.space.minimiser import Minimiser
from mipcash.space.nearest import with_distances
from mipcash.space.numbers.assembly import PARTS

SEEDS = 24
"""Number of starting points that the solver makes for a large sample."""
SEEDING = 0.6
"""Fraction of the remaining time that all seeds may take together; the rest is for walks from them."""
LEVELS = 0.5
"""Fraction of the remaining time for levels beside numbers; the rest is for drawing these numbers."""
FEW_SEEDS = 4
"""The same number under MANY rows. Points of a design then start from local search and are solved only within the limits of EASY.
"""
EASY = SolverSettings(time_limit=2.0, gap=0.05, node_limit=200)
FOUND = 0.5
"""Relative gap at which seeds, and the first point of a design, are accepted under MANY rows."""
DESCENTS = 8
"""Number of descents of that local search."""
BATCH = 2048
TIE_BREAK = 0.1
"""Weight of the random target relative to the reward of an unseen level, so that even a level that excludes many others is worth
it."""
UNEQUAL = 1e-3
"""Largest random reward of any level. Levels that earn the same would leave the choice to the version of a solver."""
HEAVIEST = 1e4
"""Largest weight of a level. Next to larger weights, a solver cannot distinguish the other rewards from zero."""
LOOSE = 0.5
"""Fraction of legal uniform draws above which the space counts as loose."""
SOME, TRIED = 0.25, 32
"""Levels and numbers are drawn together if at least this fraction of this many first draws is legal."""
SLACK = 1e-9
"""Tolerance of the bounds of columns at drawn numbers."""
DRAWS = 8
"""Number of draws of bound numbers, of which a design takes the farthest from its earlier points."""


DiscreteSample = tuple[Indices, Vector | None]
"""Legal levels, (G,), and base columns, (n,), if the space has numbers in rules."""


def sample(
    space: CompiledSpace,
    minimiser: Minimiser,
    n: int,
    rng: np.random.Generator,
    uniform: bool = False,
    ends: bool = False,
) -> list[Configuration]:
    """Return n legal, well-spread configurations; fewer if the deadline of the minimiser passes.

    Args:
        uniform: draw the levels uniformly from the legal ones.
        ends: put numerical parameters at ends of their ranges, those in rules at corners of the legal set, and ordered groups at
            their first or last level where the rules permit.

    Raises:
        InfeasibleSpaceError: the space is empty; the message names the conflicting rules.
        SolverError: a limit was reached before any configuration was known.
        SpaceError: the levels are to be uniform, and the legal ones cannot be counted.
    """
    samples = (
        _uniform(space, minimiser, n, rng)
        if uniform
        else _by_volume(space, minimiser, n, rng) or sample_levels(minimiser, n, rng)
    )
    if n and not samples:
        raise InfeasibleSpaceError(explained(space, minimiser.backend, empty=True))
    units = LatinHypercube(len(space.tuned), rng=rng).random(max(1, n))
    for k, x in enumerate(space.tuned if uniform else ()):  # rounding gives the ends of a range half the weight
        if isinstance(x.domain, Integer) and not x.domain.log:
            last = len(x.domain) - 1
            units[:, k] = np.minimum(np.floor(units[:, k] * (last + 1)), last) / last
    if ends:
        samples, units = _at_ends(minimiser, samples, rng), np.round(units)
    found = list[Configuration]()
    for k, (levels, columns) in enumerate(samples):
        if found and minimiser.deadline.passed:
            break
        found.append(finished(space, levels, columns, units[k], rng, spread=not ends))
    return found


def _at_ends(minimiser: Minimiser, samples: Sequence[DiscreteSample], rng: np.random.Generator) -> list[DiscreteSample]:
    """Return samples with each ordered group at a random end of its levels, one after the other, where this is legal."""
    program = minimiser.program
    search = None if program.numbers or not samples else minimiser.search(None)
    if search is None or not search.legality.complete:
        return list(samples)
    latent = np.minimum(np.array([levels for levels, _ in samples]), program.n_levels - 1)
    for g, group in enumerate(program.groups):
        if group.ordered and group.kind != "ordering":
            trial = latent.copy()
            trial[:, g] = (group.n_levels - 1) * rng.integers(2, size=len(trial))
            legal = search.legality.check(search.legality.effective(trial))
            latent[legal] = trial[legal]
    return [(s, None) for s in search.legality.effective(latent)]


def _uniform(space: CompiledSpace, minimiser: Minimiser, n: int, rng: np.random.Generator) -> list[DiscreteSample]:
    found = None if minimiser.program.numbers else uniform_legal_levels(minimiser, n, rng)
    levels = found[0] if found is not None and found[1].all() else None
    if levels is None and n and emptiness(space.program, minimiser.backend).status != INFEASIBLE:
        raise SpaceError(
            f"the legal configurations of space {space.name!r} cannot be counted exactly, so there are no uniform draws: rules "
            "contain numerical or auxiliary variables, or tie too many parameters. Leave criterion= out for well-spread samples"
        )
    return [] if levels is None else [(s, None) for s in levels]


def finished(
    space: CompiledSpace,
    levels: Indices,
    columns: Vector | None,
    units: Vector,
    rng: np.random.Generator,
    before: Vector | None = None,
    spread: bool = True,
) -> Configuration:
    """Return a configuration of these levels. Numerical parameters in rules are drawn, all other ones are from ``units``.

    Args:
        columns: base columns of a point with these levels; None if no rule contains a numerical parameter.
        units: unit values, used for the numerical parameters that occur in no rule, shape (D,).
        before: unit values of earlier configurations, (t, D). If given, the farthest of several draws is taken.
        spread: draw the numerical parameters in rules; False: they have the values of ``columns``.
    """
    tuned = space.tuned
    numbers = {n.label: float(n.domain.from_unit(u)) for n, u in zip(tuned, units, strict=True)}
    if columns is None:
        return space.checked(space.program.decode(levels, space.active(levels, numbers)))
    for bound in space.program.numbers:
        numbers[bound.label] = float(columns[bound.column])
    legal = space.legal_numbers(levels, columns)
    if spread and legal is not None and legal.labels:
        start = legal.clean(np.array([numbers[label] for label in legal.labels]))
        if start is not None:
            drawn = [legal.spread(start, rng) for _ in range(1 if before is None else DRAWS)]
            position = {n.label: d for d, n in enumerate(tuned)}
            at = [position[label] for label in legal.labels]
            scaled = [[tuned[d].domain.to_unit(v) for d, v in zip(at, x, strict=True)] for x in drawn]
            chosen = 0 if before is None else farthest(np.array(scaled), before[:, at])
            numbers.update(zip(legal.labels, drawn[chosen].tolist(), strict=True))
    return space.decoded(levels, columns, space.active(levels, numbers), legal)


def sample_levels(minimiser: Minimiser, n: int, rng: np.random.Generator) -> list[DiscreteSample]:
    """Return n legal level vectors; fewer only if the space is empty (then none) or the deadline passes.

    Every solve is bounded by ``QUESTION``, and there are no rejection loops.

    Raises:
        SolverError: a limit was reached before anything was found or proven.
    """
    program = minimiser.program
    search = minimiser.search(None) if not program.numbers else None
    if search is None:
        return _walks_beside_numbers(minimiser, n, rng)
    latent = uniform_levels(minimiser, max(BATCH, n), rng)
    levels = search.legality.effective(latent)
    legal = search.legality.check(levels)
    if legal.mean() >= LOOSE and legal.sum() >= n:
        return [(s, None) for s in levels[legal][:n]]
    found = uniform_legal_levels(minimiser, n, rng, large=False)
    if found is not None and found[1].all():
        return [(s, None) for s in found[0]]
    walked = _seeds_and_walks(minimiser, search, n, rng)
    uniform = walked if found is None else np.where(found[1], found[0][: len(walked)], walked)
    return [(s, None) for s in uniform]


def _seeds(minimiser: Minimiser, count: int, rng: np.random.Generator) -> list[tuple[Indices, Vector]]:
    """Return levels and base columns of ``count`` seeds, fewer if the deadline passes, none if nothing is legal.

    Raises:
        SolverError: a limit was reached before anything was found or proven.
    """
    if many_over_levels(minimiser.program):
        repairing = minimiser.until(minimiser.deadline.share(REPAIRING))
        made = [levels for _ in range(count) for levels in _repaired(repairing, rng)]
        if made:
            return [(levels, minimiser.columns(levels, None)) for levels in made]
    # a first solution depends on the version of a solver, so only under MANY rows
    settings = replace(QUESTION, gap=FOUND) if many_rules(minimiser.program) else QUESTION
    answers, seeding = list[Answer](), minimiser.until(minimiser.deadline.share(SEEDING))
    for _ in range(count):
        answers.append(seed(seeding, settings, rng))
        if seeding.deadline.passed:
            break
    if (
        len(answers) == 1 and answers[0].status == UNKNOWN and seeding.deadline.passed
    ):  # the first solve may take all the time
        answers.append(seed(minimiser, settings, rng))
    found = [a.columns for a in answers if a.columns is not None]
    if answers and not found:
        decided(answers[-1])
    return [(minimiser.program.levels_of(columns), columns) for columns in found]


def _seed_count(minimiser: Minimiser) -> int:
    return FEW_SEEDS if many_rules(minimiser.program) else SEEDS


def _seeds_and_walks(minimiser: Minimiser, search: LocalSearch, n: int, rng: np.random.Generator) -> Indices:
    """Return legal levels, (n, G); fewer only if there are none or the deadline passes."""
    seeds = _seeds(minimiser, min(n, _seed_count(minimiser)), rng)
    found = np.array([levels for levels, _ in seeds], dtype=np.int64).reshape(len(seeds), len(minimiser.program.groups))
    if n > len(found) > 0:
        starts = found[np.arange(n - len(found)) % len(found)]
        walked = search.legality.effective(search.walk(starts, 3 * len(minimiser.program.groups), rng))
        found = np.concatenate([found, walked])
    return found


def _walks_beside_numbers(minimiser: Minimiser, n: int, rng: np.random.Generator) -> list[DiscreteSample]:
    """Sample levels if rules contain numerical parameters: make seeds, then walk over levels at the values of each seed."""
    seeds = _seeds(minimiser, min(n, _seed_count(minimiser)), rng)
    found: list[DiscreteSample] = [*seeds]
    share = -(-(n - len(found)) // max(1, len(seeds)))
    minimiser = minimiser.until(minimiser.deadline.share(LEVELS))
    for levels, columns in seeds if share > 0 else []:
        if minimiser.deadline.passed:
            break
        numbers = {x.label: float(columns[x.latent]) for x in minimiser.program.numbers}
        search = minimiser.search(numbers) if minimiser.separable else None
        if search is None:
            with suppress(UndecidedError):  # samples found so far are returned
                found += _seeds(minimiser, share, rng)
            continue
        starts = np.repeat(levels[None], share, axis=0)
        walked = search.legality.effective(search.walk(starts, 3 * len(minimiser.program.groups), rng))
        legal = walked[search.legality.check(walked)]
        found += [(s, minimiser.columns(s, numbers)) for s in legal]
    return [found[k] for k in rng.permutation(len(found))[:n]]  # the samples of one seed are alike


def _by_volume(space: CompiledSpace, minimiser: Minimiser, n: int, rng: np.random.Generator) -> list[DiscreteSample]:
    """Draw levels as often as their numbers have volume: uniform levels, kept if uniform numbers beside them are legal.

    Returns:
        Nothing if no rule contains a number, too few of these draws are legal, or levels and numbers do not decide legality.
    """
    bound, found = {x.label for x in minimiser.program.numbers}, list[DiscreteSample]()
    low, high = minimiser.program.low - SLACK, minimiser.program.high + SLACK
    of = [column for x in minimiser.program.numbers for column in (x.column, x.latent)]
    before, deadline = rng.bit_generator.state, minimiser.deadline.share(LEVELS)
    for tried in range(4 * int(n / SOME) + TRIED if bound and minimiser.separable else 0):
        if deadline.passed:
            return found
        numbers = {t.label: float(t.domain.from_unit(rng.random())) for t in space.tuned if t.label in bound}
        legality = minimiser.legality(numbers)
        if legality is None or (tried == TRIED and len(found) < SOME * TRIED):
            break
        levels = legality.effective(uniform_levels(minimiser, 1, rng))
        if legality.check(levels)[0]:
            columns = minimiser.columns(levels[0], numbers)
            # a user may have narrowed or fixed a variable on the live model
            if np.all((columns[of] >= low[of]) & (columns[of] <= high[of])):
                found.append((levels[0], columns))
        if len(found) == n:
            return found
    rng.bit_generator.state = before  # what follows does not depend on this attempt
    return []


def uniform_levels(minimiser: Minimiser, n: int, rng: np.random.Generator) -> Indices:
    """Return uniform latent levels, shape (n, G). Rules are ignored, but orderings are permutations."""
    program = minimiser.program
    counts = program.n_levels
    latent = rng.integers(counts, size=(n, len(counts))) if len(counts) else np.zeros((n, 0), dtype=np.int64)
    for members in minimiser.orderings.values():
        latent[:, members] = rng.permuted(np.tile(np.arange(len(members)), (n, 1)), axis=1)
    return latent


def seed(
    minimiser: Minimiser,
    settings: SolverSettings,
    rng: np.random.Generator,
    bonus: Vector | None = None,
    excluded: Sequence[Exclusion] = (),
    pull: float = 1.0,
    starts: Sequence[Indices] = (),
) -> Answer:
    """Solve for the legal point nearest to a random target, in a random weighting of the groups.

    Args:
        starts: levels to start local search from; if empty, there is no local search.
        pull: mean weight of the target.
        bonus: extra reward per one-hot column, shape (n_z,).
        excluded: levels that may not be returned.
    """
    program = minimiser.program
    linear = np.zeros(program.n)
    target = uniform_levels(minimiser, 1, rng)[0]
    linear[program.starts + target] -= pull * rng.exponential(size=len(target))
    linear[: program.n_z] -= UNEQUAL * rng.random(program.n_z)
    if bonus is not None:
        linear[: program.n_z] -= bonus
    if pins_numbers(program) or program.equated:  # the ends of the numbers would be those of the levels
        return _near_numbers(minimiser, settings, rng, linear, excluded)
    for number in program.numbers:
        span = max(1e-12, program.high[number.latent] - program.low[number.latent])
        linear[number.latent] += rng.normal() / span
    form = replace(QuadraticForm.zero(program.n), linear=linear)
    if not starts:
        return minimiser.minimise(form, settings, excluded=excluded)
    return minimiser.minimise(form, settings, excluded=excluded, starts=starts, rng=rng, restarts=DESCENTS)


def pins_numbers(program: BinaryProgram, reals: bool = True) -> bool:
    """Return True if auxiliary variables in rules have too many values together to draw the numerical parameters in all parts.

    Of the binaries of a clause, such as the alternatives of a rule, one at a time counts (``mipcash.space.numbers.assembly``).

    Args:
        reals: count continuous ones too, of which not all can be eliminated.
    """
    return bool(program.numbers) and program.once(("pins", reals), lambda: _pins_numbers(program, reals))


def _pins_numbers(program: BinaryProgram, reals: bool) -> bool:
    others, whole = _auxiliaries(program)
    values = dict(zip(whole.tolist(), (program.high[whole] - program.low[whole] + 1.0).tolist(), strict=True))
    for row in program.base_rows:
        form, clause = row.form, row.low == 1.0 and row.high == np.inf and not len(row.form.rows)
        binaries = [c for c in np.flatnonzero(form.linear).tolist() if values.get(c) == 2.0] if clause else []
        values.update(dict.fromkeys(binaries, (len(binaries) + 1.0) ** (1.0 / max(1, len(binaries)))))
    return (reals and len(whole) < len(others)) or sum(map(math.log2, values.values())) > math.log2(PARTS)


def _auxiliaries(program: BinaryProgram) -> tuple[Indices, Indices]:
    """Return the base columns of all auxiliary variables, and of the integer ones."""
    own = {c for x in program.numbers for c in (x.column, x.latent, x.place, x.on)} | {
        p.column for p in program.bilinear
    }
    found = np.array([c for c in range(program.n_z, program.n) if c not in own], dtype=np.int64)
    return found, found[program.integer[found] > 0]


def _near_numbers(
    minimiser: Minimiser,
    settings: SolverSettings,
    rng: np.random.Generator,
    linear: Vector,
    excluded: Sequence[Exclusion],
) -> Answer:
    """Solve for the legal point nearest to random values of the numbers in rules, beside costs of the base columns.

    Auxiliary binaries have random costs too, so that their combinations differ.
    """
    program, wanted = minimiser.program, dict[int, float]()
    for number in program.numbers:
        domain: Any = program.domains[number.label]
        value = float(domain.from_unit(rng.random()))
        wanted[number.latent] = min(program.high[number.latent], max(program.low[number.latent], value))
    lifted, costs = with_distances(program, wanted)
    _, whole = _auxiliaries(program)
    binaries = whole[program.high[whole] - program.low[whole] == 1.0]
    linear[binaries] += rng.normal(size=len(binaries))
    form = replace(
        QuadraticForm.zero(lifted.n), linear=np.concatenate([linear, costs * rng.exponential(size=len(costs))])
    )
    cuts = [e.cut(lifted) for e in excluded]
    answer = minimiser.backend.solve(Task(lifted, form, {}, cuts), settings)
    return answer if answer.columns is None else replace(answer, columns=answer.columns[: program.n])


def cover(
    minimiser: Minimiser,
    shown: Sequence[Indices],
    settings: SolverSettings,
    rng: np.random.Generator,
    excluded: Sequence[Exclusion] = (),
) -> Answer:
    """Solve for the next point of an initial design that covers the levels a legal configuration can take.

    The solver maximises a sum of rewards of levels. A level that no earlier point shows earns 1, a level shown k times earns
    1 / (1 + k)^2. A random target breaks ties and spreads the points. Levels on which other parameters depend (the structure) come
    before the levels that depend on them. Otherwise large structures, which have more levels to show, would crowd out small ones.

    A structural level earns 3 w if it was never shown. If it was shown at most once more than the rarest level of its group, it
    earns w (1 + U), otherwise no more than w U / 2. U is uniform, so that groups do not alternate in step. w is such that all
    levels that depend on the group earn less than w / 2. This holds up to about five nested levels, where w reaches its maximum.
    Deeper structures are shown somewhat more often.

    Args:
        shown: levels of the earlier points.
        excluded: levels that may not be returned.
    """
    program = minimiser.program
    count = program.one_hot(np.array(shown)).sum(axis=0) if shown else np.zeros(program.n_z)
    bonus = program.active_columns / (1.0 + count) ** 2
    for g, weight in _structure(program).items():
        group = program.groups[g]
        at = np.arange(group.start, group.start + group.n_levels)
        bonus[at] = 3.0 * weight
        known = at[count[at] > 0]
        more = count[known] - count[known].min(initial=np.inf)
        rare, drawn = np.where(more < 2, 1.0, 0.0), rng.random(len(known)) / np.maximum(1.0, more)
        bonus[known] = weight * (rare + drawn)
    points = np.array(shown, dtype=np.int64).reshape(len(shown), len(program.groups))
    others = np.maximum.reduceat(bonus, program.starts).sum() if len(program.groups) else 0.0
    bonus = np.maximum(bonus, rewards(program, points, min(HEAVIEST, float(others))))
    starts: Sequence[Indices] = ()
    if many_over_levels(program):
        starts = shown or _repaired(minimiser.until(minimiser.deadline.share(REPAIRING)), rng)
        easy = replace(EASY, time_limit=min(EASY.time_limit, settings.time_limit))
        settings = easy if starts else replace(settings, gap=FOUND)
    return seed(minimiser, settings, rng, bonus=bonus, excluded=excluded, pull=TIE_BREAK, starts=starts)


def _repaired(minimiser: Minimiser, rng: np.random.Generator) -> list[Indices]:
    """Return legal levels near random ones, made without a solver before the deadline; an empty list if none are found."""
    target = uniform_levels(minimiser, 1, rng)[0]
    found = repaired(minimiser.free_legality, target, rng, minimiser.deadline)
    return [] if found is None else [found]


def _structure(program: BinaryProgram) -> dict[int, float]:
    """Return group -> weight of the groups that others depend on: 2 + twice the reward of its dependents, up to a maximum."""
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


def farthest_units(before: Vector, k: int, rng: np.random.Generator, candidates: int = 32) -> Vector:
    """Return the one of several random points in the unit cube that is farthest from ``before`` (nan: inactive). (t, k) -> (k,)"""
    drawn = rng.random((candidates, k))
    return np.asarray(drawn[farthest(drawn, before)])


def farthest(drawn: Vector, before: Vector) -> int:
    """Return the index of the point, (c, k), that is farthest from ``before``, (t, k); 0 if ``before`` is empty."""
    if not len(before) or not drawn.shape[1]:
        return 0
    apart = drawn[:, None, :] - before[None, :, :]
    distance = np.nanmean(np.where(np.isnan(apart), 0.25, np.abs(apart)), axis=2).min(axis=1)
    return int(np.argmax(distance))
