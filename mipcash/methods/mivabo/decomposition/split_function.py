"""A weight sample split for dual decomposition into a discrete part, a continuous part and mixed factors.

Notation
    f(z, u) = f_d(z) + base . C(u) + sum_F sum_s state_Fs(z) amplitude_Fs . C(u).
    C(u) = cos(omega u + phase) (M,)    the cosines of all blocks, with their normalisation in the amplitudes.
    state_Fs(z)    0/1 polynomials of degree <= 2, exactly one of them 1 at a legal z. They are
                   z[g, l] of a group, z[g, l] z[h, l'] of a pair, 1 - on(z) and on(z) of a conditional numerical parameter

Features of a block are constant, linear and pairwise in an encoding that is linear in z. The contribution of a level is their value
at "level l of group g alone" less that at the zero vector. The contribution of a pair follows from inclusion-exclusion over two
levels. Both hold for any encoding and any order of the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.functions import Block, WeightSample
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.program import BinaryProgram, Indicator
from mipcash.program.unit_scale import RESOLVED, UnitScale, degree, key_of, resolved

Key = tuple[Any, ...]
"""(g, g) for a group, (g, h) for a pair, or the keys of the indicators of an activity."""


@dataclass(frozen=True)
class MixedFactor:
    """A mixed factor (see the module's notation).

    Attributes:
        amplitude: shape (S, M).
        constant: of the states' polynomials, shape (S,).
        linear: shape (S, n_z), dense: states and binaries are few.
        products: (state, row, column) of products with coefficient ``values``.
    """

    amplitude: Vector
    constant: Vector
    linear: Vector
    products: tuple[Indices, Indices, Indices]
    values: Vector

    @property
    def used(self) -> NDArray[np.bool_]:
        """Mask of the cosines with an amplitude in some state, shape (M,)."""
        return np.asarray(np.any(self.amplitude != 0, axis=0))

    def state(self, z: Vector) -> int:
        """Return the state at a legal z."""
        at = self.constant + self.linear @ z
        state, row, col = self.products
        np.add.at(at, state, self.values * z[row] * z[col])
        return int(np.argmax(at))


@dataclass(frozen=True)
class SplitFunction:
    """f split into parts (see the module's notation).

    Attributes:
        omega, phase: of the cosines, shapes (M, D) and (M,).
        base: shape (M,).
        discrete: f_d.
        factors: the mixed factors.
        branchable: mask of the numerical parameters on which a search may branch, shape (D,): those on whose value alone f depends.
            An inactive numerical parameter that is not gated by its own activity is not one of them.
    """

    omega: Vector
    phase: Vector
    base: Vector
    discrete: QuadraticForm
    factors: tuple[MixedFactor, ...]
    branchable: NDArray[np.bool_]

    @classmethod
    def of(cls, f: WeightSample, program: BinaryProgram, scale: UnitScale) -> SplitFunction:
        """Split a sample."""
        cosines = [b.cosines for b in f.blocks if b.cosines is not None]
        m = sum(c.size for c in cosines)
        omega = np.concatenate([np.zeros((0, f.n_numbers)), *(c.embedded(f.n_numbers) for c in cosines)])
        phase = np.concatenate([np.zeros(0), *(c.phase for c in cosines)])
        base = np.zeros(m)
        tables: dict[Key, Vector] = {}
        activities: dict[Key, tuple[Indicator, ...]] = {}
        at = 0
        for block, w in zip(f.blocks, f.weights, strict=True):
            if block.cosines is None:
                continue
            span = slice(at, at + block.cosines.size)
            at = span.stop
            weights = w * block.cosines.amplitude
            if isinstance(block.discrete, DiscreteFeatures):
                base[span] += _spread(block.discrete, weights, program, span, m, tables)
            elif not (conditions := resolved(block.discrete)):
                base[span] += weights[0]
            else:
                key = tuple(map(key_of, conditions))
                activities[key] = conditions
                tables.setdefault(key, np.zeros((2, m)))[1, span] += weights[0]
        plain = [k for k, b in enumerate(f.blocks) if b.cosines is None]
        rest = replace(f, blocks=tuple(f.blocks[k] for k in plain), weights=tuple(f.weights[k] for k in plain))
        factors = tuple(
            _activity_factor(activities[k], t, program, f) if k in activities else _level_factor(k, t, program)
            for k, t in tables.items()
            if np.any(t)
        )
        branchable = _branchable(f, scale)
        return cls(omega, phase, base, rest.form_at(np.full(f.n_numbers, 0.5)), factors, branchable)

    def coupled(self) -> NDArray[np.bool_]:
        """Return a mask (F, M) of a factor's cosines that share parameters with other parts; the rest need no multipliers."""
        seen = np.array([np.any(self.omega[row] != 0, axis=0) for row in [self.base != 0, *self._used()]])
        shared = seen.sum(axis=0) > 1
        found = np.zeros((len(self.factors), len(self.phase)), dtype=bool)
        for k, used in enumerate(self._used()):
            if np.any(seen[k + 1] & shared):
                found[k] = used
        return found

    def starts(self, levels: Vector | None) -> list[Vector]:
        """Return initial multipliers, shape (F, M): zero; the mean over states; those that make the continuous slave f(z, .)."""
        coupled = self.coupled()
        found = [np.zeros(coupled.shape)]
        if np.any(coupled):
            found.append(np.array([f.amplitude.mean(axis=0) for f in self.factors]) * coupled)
            if levels is not None:
                found.append(self.centred(levels))
        return found

    def centred(self, z: Vector) -> Vector:
        """Return multipliers that make the continuous slave f(z, .) for binaries z (n_z,): (F, M)."""
        states = [f.amplitude[f.state(z)] for f in self.factors]
        centred: Vector = np.array(states).reshape(len(self.factors), len(self.phase)) * self.coupled()
        return centred

    def influence(self) -> Vector:
        """Return how much f can change along each numerical parameter, up to a factor: (D,)."""
        size = np.abs(self.base) + sum(
            (np.abs(f.amplitude).max(axis=0) for f in self.factors), np.zeros(len(self.base))
        )
        influence: Vector = size @ np.abs(self.omega)
        return influence

    def _used(self) -> list[NDArray[np.bool_]]:
        return [f.used for f in self.factors]


def _spread(
    features: DiscreteFeatures, weights: Vector, program: BinaryProgram, span: slice, m: int, tables: dict[Key, Vector]
) -> Vector:
    """Add the contributions of levels and pairs of levels to the cosines ``span``; return that of the constant."""
    n_z, eye = len(features.encoding), np.eye(len(features.encoding))
    nothing = (features(np.zeros((1, n_z))) @ weights)[0]
    alone = features(eye) @ weights - nothing
    for g, group in enumerate(program.groups):
        table = tables.setdefault((g, g), np.zeros((group.size, m)))
        table[:, span] += alone[group.start : group.stop]
    for g, h in features.pairs:
        left, right = (np.arange(program.groups[k].start, program.groups[k].stop) for k in (g, h))
        i, j = np.repeat(left, len(right)), np.tile(right, len(left))
        both = features(eye[i] + eye[j]) @ weights - alone[i] - alone[j] - nothing
        tables.setdefault((g, h), np.zeros((len(i), m)))[:, span] += np.where(np.abs(both) > 1e-12, both, 0.0)
    constant: Vector = nothing
    return constant


def _activity_factor(
    conditions: tuple[Indicator, ...], amplitude: Vector, program: BinaryProgram, f: WeightSample
) -> MixedFactor:
    """Return a factor with the states off and on."""
    block = Block(conditions, None, np.ones(1))
    on = replace(f, blocks=(block,), weights=(np.ones((1, 1)),)).form_at(np.full(f.n_numbers, 0.5))
    return MixedFactor(
        amplitude,
        np.array([1.0 - on.constant, on.constant]),
        np.array([-on.linear, on.linear])[:, : program.n_z],
        (np.repeat([0, 1], len(on.values)), np.tile(on.rows, 2), np.tile(on.cols, 2)),
        np.concatenate([-on.values, on.values]),
    )


def _level_factor(key: Key, amplitude: Vector, program: BinaryProgram) -> MixedFactor:
    """Return a factor whose states are the levels of a group, or pairs of levels of two."""
    empty = np.zeros(0, dtype=np.int64)
    g, h = (program.groups[int(k)] for k in key)
    linear = np.zeros((len(amplitude), program.n_z))
    if g is h:
        linear[np.arange(g.size), np.arange(g.start, g.stop)] = 1.0
        return MixedFactor(amplitude, np.zeros(g.size), linear, (empty, empty, empty), np.zeros(0))
    rows, cols = np.repeat(np.arange(g.start, g.stop), h.size), np.tile(np.arange(h.start, h.stop), g.size)
    products = (np.arange(len(rows)), rows, cols)
    return MixedFactor(amplitude, np.zeros(len(rows)), linear, products, np.ones(len(rows)))


def _branchable(f: WeightSample, scale: UnitScale) -> NDArray[np.bool_]:
    """Return a mask of the numerical parameters that are always active, or on which f depends only where they are active."""
    gated: Mapping[int, bool] = {d: not c for d, c in enumerate(scale.conditions)}
    found = np.array([True] * f.n_numbers)
    for d in range(f.n_numbers):
        if gated[d]:
            continue
        own = scale.conditions[d]
        sees = [b for b in f.blocks if b.cosines is not None and np.any(b.cosines.embedded(f.n_numbers)[:, d] != 0)]
        found[d] = degree(own) <= RESOLVED and all(
            not isinstance(b.discrete, DiscreteFeatures) and [key_of(i) for i in b.discrete] == [key_of(i) for i in own]
            for b in sees
        )
    return found
