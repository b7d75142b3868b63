"""Legal points in the subproblems: the nearest legal point with z fixed (delta-min), and legal choices (z-min).

Notation
    z (Z,), theta (P,)     as in ``mipcash.methods.admm.variables``
    P_z(theta)             the legal configuration with these choices that is nearest to theta

Without rules P_z rounds every coordinate to its nearest value (liu2020, eq. 4 and 11). If the rounded point violates a rule, a MILP
finds the nearest legal point. Its distance is the squared distance over the levels, which is linear in their binaries. Every
numerical parameter that occurs in a rule adds the share of its range by which it moves. The other numerical parameters stay, and
the choices are fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment

from mipcash.backends.task import Task
from mipcash.errors import SpaceError
from mipcash.methods.admm.variables import Variables
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.points import Point
from mipcash.space.compiled import QUESTION
from mipcash.space.conflict import decided
from mipcash.space.domain import Domain
from mipcash.space.nearest import with_distances


def exactly_legal(domain: Domain, config: Configuration) -> Configuration:
    """Return a configuration that is legal within tolerances, its numbers moved so that Python finds every inequality to hold."""
    return domain.decode(domain.encode([config])[0]) if domain.program.numbers else config


class Projection:
    """P_z (see the module's notation)."""

    def __init__(self, domain: Domain, variables: Variables) -> None:
        self.domain, self.variables = domain, variables
        self.program = domain.program

    def __call__(self, z: Indices, theta: Vector) -> Configuration | None:
        """Return P_z(theta), or None if no legal configuration has these choices.

        Raises:
            UndecidedError: a limit stopped the solver before this was known.
        """
        config = self.domain.raw(self._rounded(z, theta))
        if self._has(config, z) and self.domain.space.is_legal(config):
            config = exactly_legal(self.domain, config)
            return {**config, **self.domain.fixed}  # exact values: the unit scale changes last digits
        return self._nearest(z, theta)

    def _has(self, config: Configuration, z: Indices) -> bool:
        """Return True if the rounded configuration has the choices z; a choice may be inactive at some theta."""
        try:
            return bool(np.array_equal(self.program.encode(config)[self.variables.choices], z))
        except (KeyError, ValueError, StopIteration):
            return False

    def _rounded(self, z: Indices, theta: Vector) -> Point:
        levels = np.zeros(len(self.program.groups), dtype=np.int64)
        levels[self.variables.choices] = z
        for g, cost in zip(self.variables.tuned, self.variables.costs(theta), strict=True):
            levels[g] = int(np.argmin(cost))
        levels = self.domain.free_legality.effective(levels[None])[0]
        return Point(levels, self.domain.scale.rounded(np.clip(self.variables.units(theta), 0.0, 1.0)))

    def _nearest(self, z: Indices, theta: Vector) -> Configuration | None:
        program, variables = self.program, self.variables
        linear = np.zeros(program.n)
        for g, cost in zip(variables.tuned, variables.costs(theta), strict=True):
            start = program.groups[g].start
            linear[start : start + len(cost)] = cost
        units = np.clip(variables.units(theta), 0.0, 1.0)
        natural = self.domain.scale.natural(units)
        wanted = {n.latent: natural[n.label] for n in program.numbers}
        lifted, costs = with_distances(program, wanted)
        form = replace(QuadraticForm.zero(lifted.n), linear=np.concatenate([linear, costs]))
        answer = self.domain.minimiser.backend.solve(Task(lifted, form, self._held(z)), QUESTION)
        if decided(answer).columns is None:
            return None
        assert answer.columns is not None
        bound = {n.label for n in program.numbers}
        free = {label: value for label, value in natural.items() if label not in bound}
        levels = program.levels_of(answer.columns)
        return self.domain.space.configuration(levels, answer.columns[: program.n], free)

    def _held(self, z: Indices) -> dict[int, float]:
        """Return the columns of the choices and their values."""
        held: dict[int, float] = {}
        for g, level in zip(self.variables.choices, z, strict=True):
            group = self.program.groups[g]
            held |= {group.start + k: float(k == level) for k in range(group.size)}
        return held

    def argmax(self, weights: Vector, theta: Vector) -> Indices:
        """Return the legal z, (Z,), of the largest sum of weights, (K,).

        The best level of every choice by itself is returned if that is legal (eq. A38), with the best assignment for an order; else
        a MILP is solved.

        Raises:
            SpaceError: no configuration is legal.
        """
        starts = np.concatenate([[0], np.cumsum(self.variables.sizes)]).astype(np.int64)
        if not any(self.program.groups[g].conditional for g in self.variables.choices):
            apart = self._apart([weights[a:b] for a, b in pairwise(starts)])
            if self(apart, theta) is not None:
                return apart
        program, linear = self.program, np.zeros(self.program.n)
        for k, g in enumerate(self.variables.choices):
            linear[program.groups[g].span] = -weights[starts[k] : starts[k + 1]]
        answer = self.domain.minimise(replace(QuadraticForm.zero(program.n), linear=linear), QUESTION)
        if decided(answer).columns is None:
            raise SpaceError(f"no configuration of space {self.domain.space.name!r} is legal")
        assert answer.columns is not None
        return program.levels_of(answer.columns)[self.variables.choices]

    def _apart(self, weights: Sequence[Vector]) -> Indices:
        """Return the best level of every choice regardless of rules; for an order, the best assignment of modules to positions."""
        z = np.array([int(np.argmax(w)) for w in weights], dtype=np.int64)
        where = {int(g): k for k, g in enumerate(self.variables.choices)}
        for groups in self.domain.minimiser.orderings.values():
            members = [where[g] for g in groups]
            _, z[members] = linear_sum_assignment(np.array([weights[k] for k in members]), maximize=True)
        return z
