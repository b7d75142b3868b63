"""Mutation of the best: legal random changes of one of the best observations, without a model.

1. Initial design by the solver.
2. A parent is drawn among the best, each half as likely as the one before it. With outcome constraints the best are the feasible
   ones by loss, then the infeasible ones by violation (Deb 2000).
3. One or two random legal moves are made from it, and more if all of them lead to configurations proposed before.

A move is to a legal neighbour:

    levels     One group changes its level, or two members of an ordering change places. Sometimes two such changes are made at
               once, since rules that tie parameters together may forbid either change alone.
    a numerical parameter
               A Gaussian step, reflected into [0, 1]. An integer moves by at least one.
    numerical parameters in rules
               One step of hit-and-run inside their rules, which is needed for equations.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.errors import check_settings
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.optimizer import Proposal
from mipcash.program.forms import Indices, Vector
from mipcash.program.moves import moves_of
from mipcash.program.points import Point
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.domain import Domain

MORE = 30
"""Number of tries after which one more move is made at once."""


class Neighbours:
    """Random legal moves over one domain, for one proposal. Results that depend on levels or numerical parameters alone are cached.

    Args:
        domain: domain of the points.
        memory: levels that groups take when they become active, shape (G,).
        pairs: share of the moves over levels that make two changes.
        width: standard deviation of a step of a numerical parameter, on the unit scale.
    """

    def __init__(self, domain: Domain, memory: Indices, pairs: float = 0.3, width: float = 0.15) -> None:
        self.memory, self.pairs, self.width = memory, pairs, width
        self.domain, self.program, self.scale = domain, domain.program, domain.scale
        held = {n.label for n in self.program.numbers}
        self.bound = np.array([label in held for label in self.scale.labels], dtype=bool)
        self.moves = moves_of(self.program)
        self.step = ContinuousStep(domain, 0, 0.0)
        self._known: dict[tuple[bytes, bytes], bool] = {}

    def active(self, levels: Indices) -> NDArray[np.bool_]:
        """Return True for active numerical parameters, shape (D,)."""
        return np.asarray(self.scale.active_at(self.program, levels[None])[0] > 0)

    def neighbour(self, point: Point, rng: np.random.Generator) -> Point | None:
        """Return a random legal neighbour; None if the drawn move is not possible."""
        on = self.active(point.levels)
        free, tied = np.flatnonzero(on & ~self.bound), bool(np.any(on & self.bound))
        n_discrete = self.moves.n_choices
        # one chance for each discrete parameter, one for the numerical parameters in rules, one for the other ones
        drawn = int(rng.integers(max(1, n_discrete + int(len(free) > 0) + int(tied))))
        if drawn < n_discrete:
            return self._level(point, drawn, rng)
        if drawn == n_discrete and len(free):
            return Point(point.levels, self._stepped(point.units, int(rng.choice(free)), rng))
        return self._bound_step(point, rng) if tied else None

    def _level(self, point: Point, drawn: int, rng: np.random.Generator) -> Point | None:
        """Return the point with another level, or None if it is illegal. Newly active numerical parameters are drawn at random."""
        levels, u = point.levels, point.units
        before = self.moves.latent(levels, self.memory)
        latent = self.moves.change(levels, before, drawn, rng)
        if rng.random() < self.pairs:
            latent = self.moves.change(levels, latent, int(rng.integers(self.moves.n_choices)), rng)
        if np.array_equal(latent, before):
            return None
        after: Indices = self.domain.free_legality.effective(latent[None])[0]
        was, on = self.active(levels), self.active(after)
        if np.any(was != on):
            u = np.where(on, self.scale.rounded(np.where(was, u, rng.random(len(u)))), INACTIVE)
        moved = Point(after, u)
        return moved if self._legal(moved) else None

    def _legal(self, point: Point) -> bool:
        key = point.levels.tobytes(), point.units[self.bound].tobytes()
        if key in self._known:
            return self._known[key]
        check = self.domain.legality(point.units)
        legal = bool((self.domain.free_legality if check is None else check).check(point.levels[None])[0])
        # the solver is called last, and only if the tables cannot decide
        self._known[key] = legal and (check is not None or self.domain.is_legal(point))
        return self._known[key]

    def _stepped(self, u: Vector, d: int, rng: np.random.Generator) -> Vector:
        """Return u after a Gaussian step of one numerical parameter that is in no rule."""
        moved, domain = u.copy(), self.scale.domains[d]
        value = abs(u[d] + self.width * rng.normal())
        moved[d] = min(1.0, max(0.0, 2.0 - value if value > 1.0 else value))
        if domain.step is not None:
            here, there = domain.from_unit(u[d]), domain.from_unit(moved[d])
            if here == there:
                there = domain.nearest(here + domain.step * (1 if rng.random() < 0.5 else -1))
            moved[d] = domain.to_unit(there)
        return moved

    def _bound_step(self, point: Point, rng: np.random.Generator) -> Point | None:
        """Return the point after one step of hit-and-run over the numerical parameters in rules; None if that is not possible."""
        rules = self.domain.legal_numbers(point.levels, self.domain.columns(point))
        if rules is None or not rules.labels:
            return None  # rules that only a solver can check: the numerical parameters keep their values
        start, moved = self.step.natural(point.units, rules.labels), point.units.copy()
        if not rules.legal(start):
            return None
        self.step.put(moved, rules.labels, rules.walk(start, 1, rng))
        return Point(point.levels, moved)


@dataclass(frozen=True)
class MutationSettings:
    """Settings of the optimizer ``mutation``.

    Args:
        n_initial: size of the initial design.
        parents: number of the best observations that are mutated.
        tries: draws after which the solver is asked for a configuration.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> method = mc.Method("mutation", settings=mc.settings.MutationSettings(n_initial=2, parents=1))
        >>> mc.minimize(lambda c: c["a"], space, 4, optimizer=method, progress=False).n_done
        4
    """

    n_initial: int = 10
    parents: int = 5
    tries: int = 120

    def __post_init__(self) -> None:
        check_settings(self, n_initial=1, parents=1, tries=0)


class Mutation(ModelBased):
    """Search by mutation (see the module's description)."""

    name: ClassVar[str] = "mutation"
    takes_limits = True

    def __init__(self, domain: Domain, settings: MutationSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: MutationSettings = settings or MutationSettings()

    def _search(self, step: Step) -> Proposal | None:
        began, rng = time.perf_counter(), step.rng
        best, excluded = step.data.best(self.settings.parents), self._excluded(step)
        chances = 0.5 ** np.arange(len(best))
        memory = np.minimum(best.levels[0], [len(g.values) - 1 for g in self.program.groups])
        neighbours, found = Neighbours(self.domain, memory), None
        for attempt in range(self.settings.tries):
            if self.domain.deadline.passed:
                break
            parent = best[int(rng.choice(len(best), p=chances / chances.sum()))]
            point = self._changed(neighbours, parent, 1 + int(rng.integers(2)) + attempt // MORE, rng)
            admitted = all(e.admits(point.levels) for e in excluded)
            if admitted and not self.domain.repeats(self.domain.raw(point), step.before):
                found = point
                break
        step.clock.add("mutation", began, self.domain.deadline)
        # decode checks the configuration against the space, as for every proposal
        return None if found is None else Proposal(self.domain.decode(found), None, self.name, step.clock.seconds)

    def _changed(self, neighbours: Neighbours, point: Point, moves: int, rng: np.random.Generator) -> Point:
        """Return the point after several legal moves; moves that are not possible are skipped."""
        for _ in range(moves):
            point = neighbours.neighbour(point, rng) or point
        return point
