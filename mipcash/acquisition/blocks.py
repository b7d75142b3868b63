"""Moves of whole blocks: a choice that decides what other parameters mean, with what is remembered of its levels.

Notation
    s (R, G)    levels;   u (R, D) unit values;   y losses, the best observation first
    block       a group of categories whose level switches other parameters on (a module and its algorithms), or, beside numbers,
                any group of categories: what the numbers (integers and ordinals too) mean may be another thing beside another
    memory      of a level of a block: the best observation that has it

The splitting methods of liu2020 choose the algorithms while hyperparameters stay, and the hyperparameters while algorithms stay.
With one model over everything neither has to wait for the other; what is left of the splitting is where it looks:

    swaps       the incumbent with another level of one block, and with what the memory of that level has behind the block
    tuned       the best few with other numbers, and other levels of what is ordered
    revisits    of a category beside numbers: its memory's numbers, moved, and others all over the range

All of them are legal. A swap that breaks rules has one other block changed besides, if that mends it; else the solver finds the
legal levels nearest to it that have the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.backends.task import SolverSettings
from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.space.domain import Domain
from mipcash.space.exclusion import ANY, Exclusion

ORDERED = ("integer", "ordinal")
"""Kinds of groups with an order among their levels; orderings of modules are none."""
MOST = 96
"""Swaps that are looked at in one proposal, at most."""
TUNED, COPIES = 4, 16
"""Observations whose numbers are moved, and how often each of them."""
REVISITS = 64
"""Points of all categories beside numbers together, at most."""
SPREADS = (0.05, 0.15, 0.4)
"""Standard deviations, on the unit scale, by which numbers are moved."""
ABOUT, SMALL = 32, (0.01, 0.05)
"""Refinements of the incumbent that are looked at, and standard deviations by which their numbers are moved."""
UNTRIED = 3
"""Draws of what is behind a level that was never observed."""
ASKED = 12
"""Swaps that are looked at one by one, of those that numbers in rules forbid as they are."""
SETTINGS = 8
"""Settings of the numbers in rules at which levels are looked at together, in one kind of move."""
MENDED = 1
"""Swaps that a solver is asked to mend in one proposal."""
MENDING = SolverSettings(time_limit=1.0, gap=0.05, node_limit=200)


@dataclass(frozen=True)
class Block:
    """A choice, and what is behind it.

    Attributes:
        group: the choice.
        groups, numbers: what is switched on by it, or by what is.
    """

    group: int
    groups: Indices
    numbers: Indices

    @property
    def module(self) -> bool:
        """Whether anything is behind it."""
        return bool(len(self.groups) + len(self.numbers))


def blocks_of(domain: Domain) -> tuple[Block, ...]:
    """The blocks of a domain: modules, and the other groups of categories where there are numbers without conditions."""
    program, scale = domain.program, domain.scale
    parents = [program.parents(group.conditions) for group in program.groups]
    of_numbers = [program.parents(conditions) for conditions in scale.conditions]
    always = any(not conditions for conditions in scale.conditions)
    always |= any(g.kind in ORDERED and not g.conditions and g.n_levels > 2 for g in program.groups)
    found = []
    for g, group in enumerate(program.groups):
        if group.kind != "categorical" or group.n_levels < 2:
            continue
        behind = {g}
        for child in range(g + 1, len(parents)):  # conditions refer to earlier groups
            if parents[child] & behind:
                behind.add(child)
        numbers = [d for d, each in enumerate(of_numbers) if each & behind]
        block = Block(g, np.array(sorted(behind - {g}), dtype=np.int64), np.array(numbers, dtype=np.int64))
        if block.module or always:
            found.append(block)
    return tuple(found)


class BlockMoves:
    """The moves of one domain's blocks, see the module's description.

    Args:
        domain: where they live.
        near: what is admitted there, and the levels of groups that are switched on.
        observed: legal observations, best first; at least one.
    """

    def __init__(self, domain: Domain, blocks: Sequence[Block], near: Neighbourhood, observed: Points) -> None:
        self.domain, self.program, self.scale = domain, domain.program, domain.scale
        self.blocks, self.near, self.observed = blocks, near, observed
        held = {n.label for n in self.program.numbers}
        self._held = np.array([label in held for label in self.scale.labels], dtype=bool)
        self._bound = bool(held)

    def points(self, rng: np.random.Generator) -> Points:
        """Legal points of all three kinds."""
        if not self.blocks:
            return self.observed[:0]
        return Points.joined(self.swaps(rng), self.tuned(rng), self.revisits(rng))

    # -- swaps --------------------------------------------------------------------------------------------------

    def swaps(self, rng: np.random.Generator) -> Points:
        """The incumbent with every other level of each of its modules, one at a time."""
        incumbent = self.observed[0]
        wanted = [
            (block, level)
            for block in self.blocks
            if block.module and incumbent.levels[block.group] != self.program.off_levels[block.group]
            for level in range(self.program.groups[block.group].n_levels)
            if level != incumbent.levels[block.group]
        ]
        if len(wanted) > MOST:
            wanted = [wanted[k] for k in sorted(rng.choice(len(wanted), size=MOST, replace=False))]
        latent, units, moves = list[Indices](), list[Vector](), list[tuple[Block, int]]()
        for block, level in wanted:
            memory = self.memory(block.group, level)
            for _ in range(1 if memory is not None else UNTRIED):
                s, u = self.swapped(incumbent, block, level, memory, rng)
                latent.append(s)
                units.append(u)
                moves.append((block, level))
        if not moves:
            return self.observed[:0]
        return self._legal(np.array(latent), np.array(units), moves, rng)

    def memory(self, group: int, level: int) -> Point | None:
        """The best observation that has a level; None: there is none."""
        rows = np.flatnonzero(self.observed.levels[:, group] == level)
        return self.observed[int(rows[0])] if len(rows) else None

    def swapped(
        self, point: Point, block: Block, level: int, memory: Point | None, rng: np.random.Generator
    ) -> tuple[Indices, Vector]:
        """A point with another level of a block, and what the memory has behind it: latent levels (G,), units (D,)."""
        latent, units = self.near.latent(point.levels), point.units.copy()
        latent[block.group] = level
        if memory is None:
            latent[block.groups] = rng.integers(self.program.n_levels[block.groups])
            units[block.numbers] = rng.random(len(block.numbers))
            return latent, self.scale.rounded(units)
        there = memory.levels[block.groups] != self.program.off_levels[block.groups]
        latent[block.groups[there]] = memory.levels[block.groups[there]]
        units[block.numbers] = memory.units[block.numbers]
        return latent, units

    def _legal(
        self, latent: Indices, units: Vector, moves: Sequence[tuple[Block, int]], rng: np.random.Generator
    ) -> Points:
        """Moves that are legal, or mended: (N, G), (N, D) -> points."""
        legality = None if self._bound else self.near.legality_at(units[0])
        if legality is None:
            levels, legal = self._checked(latent, units)
            rest = np.flatnonzero(~legal)
            asked = self._asked(latent[rest], units[rest], [moves[k] for k in rest.tolist()], rng)
            legal &= self.near.admitted(levels)
            return Points.joined(Points(levels[legal], units[legal]), asked)
        levels = legality.effective(latent)
        legal = legality.check(levels)
        found = [Points(levels[legal], units[legal])]
        unmended = []
        for k in np.flatnonzero(~legal).tolist():
            beside, numbers = self._beside(latent[k], units[k], moves[k][0].group, rng)
            beside = legality.effective(beside)
            kept = np.flatnonzero(legality.check(beside) & self.near.admitted(beside))
            if len(kept):
                chosen = rng.choice(kept, size=1)
                found.append(Points(beside[chosen], numbers[chosen]))
            else:
                unmended.append(k)
        found += self._solved(latent, units, moves, unmended, rng)
        joined = Points.joined(*found)
        return joined[self.near.admitted(joined.levels)]

    def _beside(self, latent: Indices, units: Vector, group: int, rng: np.random.Generator) -> tuple[Indices, Vector]:
        """Latent levels, (G,), and units, (D,), with another level of one block besides that of a group: (N, G), (N, D)."""
        rows, numbers = [latent[None][:0]], [units[None][:0]]
        for block in self.blocks:
            for level in range(self.program.groups[block.group].n_levels) if block.group != group else ():
                if level != latent[block.group]:
                    s, u = self.swapped(Point(latent, units), block, level, self.memory(block.group, level), rng)
                    rows.append(s[None])
                    numbers.append(u[None])
        return np.concatenate(rows), np.concatenate(numbers)

    def _solved(
        self,
        latent: Indices,
        units: Vector,
        moves: Sequence[tuple[Block, int]],
        rows: Sequence[int],
        rng: np.random.Generator,
    ) -> list[Points]:
        """Some of the moves as a solver mends them."""
        chosen = rng.permutation(np.array(rows, dtype=np.int64))[:MENDED]
        found = [self.mended(latent[k], units[k], moves[k][0].group, moves[k][1]) for k in chosen.tolist()]
        return [Points(p.levels[None], p.units[None]) for p in found if p is not None]

    def _checked(self, latent: Indices, units: Vector) -> tuple[Indices, Booleans]:
        """Levels as they count beside their numbers, (N, G), and which are legal, (N,): at a few settings of the numbers in rules.

        Those that most rows share are looked at; rows of others, or where only a solver can tell, count as illegal.
        """
        levels, legal = latent.copy(), np.zeros(len(latent), dtype=bool)
        _, at, shared = np.unique(units[:, self._held], axis=0, return_inverse=True, return_counts=True)
        for setting in np.argsort(-shared, kind="stable")[:SETTINGS]:
            rows = np.flatnonzero(at.reshape(-1) == setting)
            legality = self.near.legality_at(units[rows[0]])
            if legality is not None:
                levels[rows] = legality.effective(latent[rows])
                legal[rows] = legality.check(levels[rows])
        return levels, legal

    def _asked(
        self, latent: Indices, units: Vector, moves: Sequence[tuple[Block, int]], rng: np.random.Generator
    ) -> Points:
        """The same where numbers in rules forbid a move as it is, or only a solver can tell: a few of the moves, one by one."""
        levels = self.near.domain.free_legality.effective(latent)
        likely = self.near.domain.free_legality.check(levels) & self.near.admitted(levels)
        found, broken = [], []
        for k in rng.permutation(len(levels))[:ASKED]:
            if self.domain.deadline.passed:
                break
            point = Point(levels[k], units[k]) if likely[k] else None
            if point is not None and not self.domain.is_legal(point):
                point = self._cleaned(point)
            if point is None:
                broken.append(int(k))
            else:
                found.append(Points(point.levels[None], point.units[None]))
        found += self._solved(latent, units, moves, broken, rng)
        return Points.joined(self.observed[:0], *found)

    def _cleaned(self, point: Point) -> Point | None:
        """The point with its numbers moved to where they are legal; None where that is not known."""
        rules = self.domain.legal_numbers(point.levels, self.domain.columns(point))
        if rules is None or not rules.labels:  # the levels alone are not legal, or only a solver can tell
            return None
        natural = self.scale.natural(point.units)
        clean = rules.clean(np.array([natural[label] for label in rules.labels]))
        if clean is None:
            return None
        units = point.units.copy()
        for label, value in zip(rules.labels, clean.tolist(), strict=True):
            d = self.scale.labels.index(label)
            units[d] = self.scale.domains[d].to_unit(value)
        moved = Point(point.levels, units)
        return moved if self.domain.is_legal(moved) else None

    def mended(self, latent: Indices, units: Vector, group: int, level: int) -> Point | None:
        """The legal point whose levels are nearest to given ones, (G,), among those with one level; None: not found.

        Numbers in rules stay where they are if that can be, else the solver says where they go.
        """
        program = self.program
        linear = np.zeros(program.n)
        linear[program.starts + np.minimum(latent, program.n_levels - 1)] = -1.0
        none = np.zeros(0, dtype=np.int64)
        form = QuadraticForm(0.0, linear, none, none, np.zeros(0))
        only = only_level(program, group, level)
        for held in (units, None) if program.numbers else (units,):
            answer = self.domain.minimise(form, MENDING, units=held, excluded=only)
            if answer.columns is not None:
                break
        if answer.columns is None:
            return None
        u = units.copy()
        for number in program.numbers:
            d = self.scale.labels.index(number.label)
            if number.column != number.latent and answer.columns[number.column] != answer.columns[number.latent]:
                continue  # it is off
            u[d] = self.scale.domains[d].to_unit(float(answer.columns[number.column]))
        point = Point(program.levels_of(answer.columns), u)
        return point if self.domain.is_legal(point) else self._cleaned(point)

    # -- numbers ------------------------------------------------------------------------------------------------

    def tuned(self, rng: np.random.Generator) -> Points:
        """The best few with some of their numbers, and of their ordered levels, moved."""
        return self._moved(self.observed[:TUNED], COPIES, rng)

    def about(self, rng: np.random.Generator) -> Points:
        """The incumbent with some of its numbers, and of its ordered levels, moved a little."""
        return self._moved(self.observed[:1], ABOUT, rng, SMALL)

    def revisits(self, rng: np.random.Generator) -> Points:
        """Of every category beside numbers: its memory with the numbers moved, and with others all over the range."""
        plain = [b for b in self.blocks if not b.module]
        pairs = [(b.group, level) for b in plain for level in range(self.program.groups[b.group].n_levels)]
        known = [m for m in (self.memory(g, level) for g, level in pairs) if m is not None]
        if not known:
            return self.observed[:0]
        copies = max(1, REVISITS // (2 * len(known)))
        bests = Points.of(known[:REVISITS], len(self.program.groups), len(self.scale))
        moved = self._moved(bests, copies, rng)
        if self.near.legality_at(bests.units[0]) is None:
            return moved
        inside = np.repeat(bests.levels, copies, axis=0)
        units = self.scale.rounded(rng.random((len(inside), len(self.scale))))
        units[:, self._held] = np.repeat(bests.units, copies, axis=0)[:, self._held]
        there = inside[:, self._ordered] != self.program.off_levels[self._ordered]
        inner = self.program.n_levels[self._ordered] > 2  # the ends of a range are for descents
        drawn = rng.integers(inner, self.program.n_levels[self._ordered] - inner, size=there.shape)
        inside[:, self._ordered] = np.where(there, drawn, inside[:, self._ordered])
        inside, legal = self._checked(inside, units)
        keep = legal & self.near.admitted(inside)
        return Points.joined(moved, Points(inside[keep], units[keep]))

    def _moved(
        self, points: Points, copies: int, rng: np.random.Generator, spreads: Sequence[float] = SPREADS
    ) -> Points:
        """Copies of legal points with ordered levels and numbers moved, but for those in rules; illegal ones are left out."""
        levels, units = np.repeat(points.levels, copies, axis=0), np.repeat(points.units, copies, axis=0)
        if not len(levels):
            return points[:0]
        spread = rng.choice(spreads, size=(len(units), 1))
        chosen = rng.random(units.shape) < 0.5
        moved = units + chosen * spread * rng.normal(size=units.shape)
        moved = np.clip(1.0 - np.abs(1.0 - np.abs(moved)), 0.0, 1.0)  # reflected: the ends of a range are for descents
        moved = self.scale.rounded(moved)
        moved[:, self._held] = units[:, self._held]
        ordered = self._ordered
        if len(ordered):
            top = self.program.n_levels[ordered] - 1
            there = levels[:, ordered] != self.program.off_levels[ordered]
            step = np.round(spread * rng.normal(size=there.shape) * np.maximum(top, 1)).astype(np.int64)
            chosen = there & (rng.random(there.shape) < 0.5)
            to = np.clip(levels[:, ordered] + step, 0, top)
            levels[:, ordered] = np.where(chosen, to, levels[:, ordered])
        levels, legal = self._checked(levels, moved)
        keep = legal & self.near.admitted(levels)
        return Points(levels[keep], moved[keep])

    @cached_property
    def _ordered(self) -> Indices:
        return np.array([g for g, group in enumerate(self.program.groups) if group.kind in ORDERED], dtype=np.int64)


def only_level(program: BinaryProgram, group: int, level: int) -> list[Exclusion]:
    """What leaves one level of a group, and no other."""
    found = []
    for other in range(program.groups[group].size):
        if other != level:
            levels = np.full(len(program.groups), ANY)
            levels[group] = other
            found.append(Exclusion(levels))
    return found


def least_tried(
    program: BinaryProgram, blocks: Sequence[Block], incumbent: Indices, tried: Indices, rng: np.random.Generator
) -> list[Exclusion]:
    """What leaves one module of the incumbent, at random, its least tried other level, and the other modules as they are.

    Args:
        incumbent: levels, (G,).
        tried: levels of all that was proposed, (t, G).

    Returns:
        Nothing where the incumbent has no module.
    """
    active = [b.group for b in blocks if b.module and incumbent[b.group] != program.off_levels[b.group]]
    if not active:
        return []
    g = int(rng.choice(active))
    count = np.bincount(tried[:, g], minlength=program.groups[g].size)[: program.groups[g].n_levels].astype(float)
    count[incumbent[g]] = np.inf
    level = int(rng.choice(np.flatnonzero(count == count.min())))
    behind = set(next(b for b in blocks if b.group == g).groups.tolist())
    kept = [only_level(program, h, int(incumbent[h])) for h in active if h != g and h not in behind]
    return [*only_level(program, g, level), *(e for each in kept for e in each)]
