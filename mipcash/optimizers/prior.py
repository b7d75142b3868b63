"""Prior weights of the user in the initial design and in the acquisition function (``mipcash.Space.expect``).

Notation
    pi(x)       prior weight of a configuration: the product of the weights of its active parameters, relative to equal weights
    n           number of observations
    alpha(x)    acquisition function, a negative logarithm that is minimised

piBO (Hvarfner et al. 2022, Section 3) multiplies the expected improvement by pi(x)^(beta / n). On the logarithmic scale it
minimises

    alpha(x) - (beta / n) log pi(x)

so that the influence of the prior vanishes as observations accumulate. The paper's beta is a tenth of the budget, which is not
known here: it is BETA, a tenth of a hundred evaluations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mipcash.modelling.domains import Configuration
from mipcash.modelling.expectations import Expectation
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Section

BETA = 10.0
DRAWS = 16
"""Number of legal samples from which a point of the initial design is drawn by its weight."""


@dataclass(frozen=True, eq=False)
class Prior:
    """log pi of points.

    Attributes:
        levels: group -> log weights of its levels, 0 of its off level.
        numbers: index of a numerical parameter -> its expectation.
    """

    program: BinaryProgram
    scale: UnitScale
    levels: Mapping[int, Vector]
    numbers: Mapping[int, Expectation]

    @classmethod
    def of(cls, domain: Domain) -> Prior | None:
        """Return the prior of a domain; None if no parameter has one."""
        program, levels, numbers = domain.program, dict[int, Vector](), dict[int, Expectation]()
        given = {n: e for n, e in domain.declaration.expectations.items() if e.table is not None}
        for g, group in enumerate(program.groups):
            if group.parameter in given:
                declared = domain.declaration.parameters[group.parameter].domain
                table = given[group.parameter].table
                if hasattr(declared, "to_unit"):
                    table = given[group.parameter].log_weight(np.array([declared.to_unit(v) for v in group.values]))
                levels[g] = np.append(table, 0.0)  # type: ignore[arg-type]  # entries without a table are left out above
        for label, expectation in given.items():
            if label in domain.scale.place:
                numbers[domain.scale.place[label]] = expectation
        return cls(program, domain.scale, levels, numbers) if levels or numbers else None

    def log(self, points: Points) -> Vector:
        """Return log pi of a batch: shape (B,)."""
        total = np.zeros(len(points))
        for g, table in self.levels.items():
            total += table[points.levels[:, g]]
        active = self.scale.active_at(self.program, points.levels)
        for d, expectation in self.numbers.items():
            total += active[:, d] * expectation.log_weight(points.units[:, d])
        return total

    def drawn(self, domain: Domain, rng: np.random.Generator) -> Configuration:
        """Return one of DRAWS legal samples, drawn in proportion to pi."""
        configs = domain.sample(DRAWS, rng)
        log = self.log(domain.encode(configs))
        weights = np.exp(log - log.max())
        return configs[int(rng.choice(len(configs), p=weights / weights.sum()))]


@dataclass(frozen=True)
class WeightedPrior:
    """-weight log pi, which is added to an acquisition function.

    Attributes:
        weight: beta / n.
    """

    prior: Prior
    weight: float

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""
        return -self.weight * self.prior.log(points)

    def section(self, z: Vector) -> Section:
        """Return the function at fixed binaries, (n_z,), up to a constant."""
        active = self.prior.scale.active(z[None])[0]
        moving = [(d, e) for d, e in self.prior.numbers.items() if active[d]]

        def value(u: Vector) -> tuple[float, Vector]:
            gradient, total = np.zeros(len(u)), 0.0
            for d, expectation in moving:
                total -= self.weight * float(expectation.log_weight(u[d]))
                gradient[d] = -self.weight * expectation.slope(float(u[d]))
            return total, gradient

        return value
