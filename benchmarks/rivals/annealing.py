"""Simulated annealing in the place of the MIP (daxberger2019, Sec. 5: MiVaBO-SA and GP-SA; Kirkpatrick et al. 1983).

Notation:
    s (G,), u (D,)   levels and unit values of the current configuration.
    E(s, u)          energy of the configuration, on standardised losses.
    T_k              temperature of step k: hot (cold / hot)^(k / steps).

Energies:
    mivabo-annealing   E = f~, a posterior sample of MiVaBO's linear model, which MiVaBO minimises by MIP and L-BFGS-B.
    gp-annealing       E = mu - kappa sd, the lower confidence bound of the Gaussian process of :mod:`joint_gp`.

A step moves to a random neighbour and stays there with probability min(1, exp(-(E' - E) / T_k)). The paper gives
illegal points a high energy. Here all neighbours are legal, which is the same walk without the steps that it would
reject. Neighbours:

    levels           One group changes its level, or two members of an ordering change places. Some steps make two such
                     changes, since rules on several parameters may forbid either change alone.
    free numbers     A Gaussian step, reflected into [0, 1]. An integer moves by at least one.
    numbers in rules One step of hit-and-run inside the rules, which equations require.

The first walk starts from the best observation, further walks from legal samples. It may pass through earlier
proposals.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.rivals.joint_gp import GaussianProcess
from mipcash.errors import check_settings
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.methods.mivabo.mivabo import LinearSurrogate, MiVaBOSettings
from mipcash.optimizers.data import Data
from mipcash.optimizers.in_time import sampled
from mipcash.optimizers.model_based import ModelBased, Step
from mipcash.optimizers.mutation import Neighbours
from mipcash.optimizers.optimizer import Proposal
from mipcash.optimizers.pending import believed
from mipcash.optimizers.unit_cube import UnitCube
from mipcash.program.forms import Indices
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.domain import Domain
from mipcash.surrogates.cosines import CosineSum

Energy = Callable[[Point], float]
"""E at a legal point."""
FIT = 0.35
"""Share of the time for the fit."""


STEPS, WALKS = 200, 2
"""Steps of a walk and number of walks; the first starts from the best observation, further ones from legal samples."""
HOT, COLD = 1.0, 1e-3
"""First and last temperature; losses have unit variance."""
KAPPA = 2.0
"""Standard deviations below the mean of the confidence bound."""
INFLATION = 0.25
"""As in :class:`mipcash.methods.mivabo.mivabo.MiVaBOSettings`."""


@dataclass(frozen=True)
class AnnealingSettings:
    """Settings of annealing: the size of the initial design."""

    n_initial: int = 10

    def __post_init__(self) -> None:
        check_settings(self, n_initial=1)


def temperature(step: int, steps: int) -> float:
    """Return T_k."""
    return float(HOT * (COLD / HOT) ** (step / steps))


class Walk:
    """Walks over legal neighbours, for one proposal.

    Args:
        domain: domain of the points.
        memory: levels that groups take when they are switched on, shape (G,).
        steps: their number.
    """

    def __init__(self, domain: Domain, memory: Indices, steps: int = STEPS) -> None:
        self.domain, self.steps = domain, steps
        self.neighbours = Neighbours(domain, memory)

    def run(
        self, energy: Energy, start: Point, admitted: Callable[[Point], bool], rng: np.random.Generator
    ) -> tuple[Point, float] | None:
        """Walk once and return the best admitted point on the walk and its energy, or None."""
        best: tuple[Point, float] | None = None
        seen: dict[tuple[bytes, bytes], float] = {}

        def kept(point: Point) -> float:
            """Return the stored energy of a point, since walks over few levels often return to a point."""
            key = point.levels.tobytes(), point.units.tobytes()
            if key not in seen:
                seen[key] = energy(point)
            return seen[key]

        point, here = start, kept(start)
        for k in range(self.steps):
            if self.domain.deadline.passed:
                break
            found = self.neighbours.neighbour(point, rng)
            chance = rng.random()
            if found is None:
                continue
            there = kept(found)
            if there <= here or chance < math.exp(-(there - here) / temperature(k, self.steps)):
                point, here = found, there
                if (best is None or here < best[1]) and admitted(point):
                    best = (point, here)
        return best


class _Annealing(ModelBased):
    """Annealing over an energy that subclasses define."""

    takes_limits = True

    def __init__(self, domain: Domain, settings: AnnealingSettings | None = None) -> None:
        super().__init__(domain)
        self.settings: AnnealingSettings = settings or AnnealingSettings()

    @abstractmethod
    def _energy(self, data: Data, awaited: Points, rng: np.random.Generator) -> Energy:
        """Return E from the data and the points under evaluation."""

    def _search(self, step: Step) -> Proposal | None:
        began = time.perf_counter()
        energy = self._energy(step.data, self.awaited(step.request), step.rng)
        step.clock.add("surrogate", began)
        began = time.perf_counter()
        before, distances = step.before, self.domain.exclusions([], step.request.min_distance)

        def admitted(point: Point) -> bool:
            new = not self.domain.repeats(self.domain.raw(point), before)
            return new and all(e.admits(point.levels) for e in distances)

        best = step.data.best(1)
        fresh = self.domain.encode(sampled(self.domain, WALKS - 1, step.rng))
        memory = np.minimum(best.levels[0], self.program.n_levels - 1)
        walk = Walk(self.domain, memory)
        ends = [walk.run(energy, start, admitted, step.rng) for start in Points.joined(best, fresh)]
        found = min((e for e in ends if e is not None), key=lambda e: e[1], default=None)
        step.clock.add("annealing", began, self.domain.deadline)
        # the space checks the rules again, as for every proposal
        return None if found is None else Proposal(self.domain.decode(found[0]), None, self.name, step.clock.seconds)


class MiVaBOAnnealing(_Annealing):
    """MiVaBO's linear model and Thompson sampling, with the sample minimised by annealing."""

    name: ClassVar[str] = "mivabo-annealing"

    def __init__(self, domain: Domain, settings: AnnealingSettings | None = None) -> None:
        super().__init__(domain, settings)
        self.surrogate = LinearSurrogate(self.program, self.scale, MiVaBOSettings())

    def _energy(self, data: Data, awaited: Points, rng: np.random.Generator) -> Energy:
        deadline = self.domain.deadline.share(FIT)
        posterior, _ = self.surrogate.fit(data.points, data.merits, {}, rng, data.noise(), deadline)
        f = believed(posterior, awaited).sample(rng, INFLATION)
        return _sample_energy(f, self.program)


def _sample_energy(f: WeightSample, program: BinaryProgram) -> Energy:
    """Return f at points. Its sections are cached, since a step changes the levels or the numbers."""
    sections: dict[bytes, CosineSum] = {}

    def energy(point: Point) -> float:
        at = point.levels.tobytes()
        if at not in sections:
            sections[at] = f.section(point.one_hot(program))
        return sections[at](point.units)[0]

    return energy


class GPAnnealing(_Annealing):
    """Gaussian process over all parameters, with its lower confidence bound minimised by annealing."""

    name: ClassVar[str] = "gp-annealing"

    def __init__(self, domain: Domain, settings: AnnealingSettings | None = None) -> None:
        super().__init__(domain, settings)
        self.cube = UnitCube(self.program, len(self.scale))

    def _energy(self, data: Data, awaited: Points, rng: np.random.Generator) -> Energy:
        deadline = self.domain.deadline.share(FIT)
        gp = GaussianProcess(self.cube.encode(data.points), data.merits, deadline, data.noise())
        gp = gp.given(self.cube.encode(awaited))

        def bound(point: Point) -> float:
            on = self.scale.active(point.one_hot(self.program)[None])[0]
            shown = Point(point.levels, np.where(on > 0, point.units, INACTIVE))
            mean, sd = gp(self.cube.encode(Points.of([shown], len(shown.levels), len(shown.units))))
            return float(mean[0] - KAPPA * sd[0])

        return bound
