"""Prior variances fitted to the evidence (maximum a posteriori).

Notation
    k_g (t, t)      level covariance of group g between observations, 0 where either is off.
    a_g             relevance of group g;   S = sum_g a_g k_g.
    e2              sum over the pairs of groups g < h that may interact of a_g k_g a_h k_h, elementwise.
    T               numerical parameters that share a feature: all that are always active. If pairs are declared: the components of
                    the declared graph and each of its numerical parameters; with c_T (a share of the constant) and w_T (G,) 0/1,
                    the groups that it may multiply.
    P_T (t, t)      exp(-sum_{d in T} (u_d - u'_d)^2 / (2 l_d^2)).
    r_j (t, t)      on_j on'_j exp(-(u_j - u'_j)^2 / (2 m_j^2)) of each numerical parameter j, with relevance b_j.
    G, J            numbers of groups and of numerical parameters

    K = 1 + s1/(G + J) (S + sum_j b_j r_j) + s2 2/(G (G - 1)) e2 + sum_T P_T o (sc c_T + sm/G sum_g w_Tg a_g k_g)

    S = K + s2 I + diag(v),   v (t,) variances of the observations beside the fitted s2

    log posterior = -y'S^-1 y / 2 - log det S / 2 + sum_i log N(theta_i; mu_i, sd_i)

theta = log of [a (G), b (J), m (J), l (D_u), s1, s2, sc, sm, noise]; gradients are analytic. Priors: docs/model.md, 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mipcash.deadline import NEVER, Deadline
from mipcash.methods.mivabo.interactions import Interactions
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.surrogates.level_kernels import LevelKernel
from mipcash.surrogates.maximum import maximum
from mipcash.surrogates.protocols import Noise

JITTER = 1e-8


@dataclass(frozen=True)
class Shared:
    """Numbers that share a feature, and the groups whose effects the feature may multiply.

    Attributes:
        dims: indices into the list of numerical parameters passed to ``shared``.
        constant: share of the constant that multiplies the feature, which makes it a phi_c.
        groups: 0/1, shape (G,): the groups that the feature multiplies, which makes it a phi_m.
    """

    dims: Indices
    constant: float
    groups: Vector


def shared(n_groups: int, dims: Indices, declared: Interactions | None) -> tuple[Shared, ...]:
    """Return the sets of numerical parameters that share a feature.

    Without declared pairs this is one set of all numerical parameters. With declared pairs, these are the components of the
    declared graph, and a set of one for each numerical parameter that interacts with groups.

    Args:
        dims: the numerical parameters; the sets hold indices into this array.
    """
    if not len(dims):
        return ()
    if declared is None:
        return (Shared(np.arange(len(dims)), 1.0, np.ones(n_groups)),)
    place = {int(d): k for k, d in enumerate(dims)}
    parts = _components(declared, dims)
    found = [Shared(np.array([place[d] for d in part]), 1.0 / len(parts), np.zeros(n_groups)) for part in parts]
    for d in dims.tolist():
        groups = np.array([float((g, d) in declared.mixed) for g in range(n_groups)])
        if groups.any():
            found.append(Shared(np.array([place[d]]), 0.0, groups))
    return tuple(found)


def _components(declared: Interactions, dims: Indices) -> list[tuple[int, ...]]:
    """Return the sets of the numerical parameters ``dims`` that share a continuous feature: pairs, and single ones in no pair.

    If all of ``dims`` interact they form one set, the joint kernel, instead of a sum over pairs.
    """
    among = sorted(dims.tolist())
    edges = [pair for pair in combinations(among, 2) if pair in declared.numbers]
    if len(edges) == len(among) * (len(among) - 1) // 2:
        return [tuple(among)] if among else []
    paired = {d for pair in edges for d in pair}
    return sorted([*edges, *((d,) for d in among if d not in paired)])


@dataclass(frozen=True)
class Layout:
    """Positions of the hyperparameters in theta, and their prior.

    Attributes:
        n_groups, n_numbers: G and J.
        joint: numerical parameters that are always active, shape (D_u,).
    """

    n_groups: int
    n_numbers: int
    joint: Indices

    @property
    def slices(self) -> dict[str, slice]:
        ends = np.cumsum([0, self.n_groups, self.n_numbers, self.n_numbers, len(self.joint), 1, 1, 1, 1, 1])
        names = ("a", "b", "m", "l", "s1", "s2", "sc", "sm", "noise")
        return {n: slice(int(i), int(j)) for n, i, j in zip(names, ends[:-1], ends[1:], strict=True)}

    def prior(self) -> tuple[Vector, Vector]:
        """Return means and standard deviations of theta."""
        joint = max(1, len(self.joint))
        parts = [
            (np.zeros(self.n_groups), 1.0),
            (np.zeros(self.n_numbers), 1.0),
            (np.full(self.n_numbers, math.log(0.5)), 0.7),
            (np.full(len(self.joint), math.log(0.5 * math.sqrt(joint))), 0.7),
            (np.array([math.log(0.5)]), 1.5),
            (np.array([math.log(0.3)]), 1.5),
            (np.array([math.log(0.3)]), 1.5),
            (np.array([math.log(0.2)]), 1.5),
            (np.array([math.log(1e-3)]), 1.5),
        ]
        return np.concatenate([m for m, _ in parts]), np.concatenate([np.full(len(m), s) for m, s in parts])


@dataclass(frozen=True)
class Grams:
    """The parts of K that do not depend on theta.

    Attributes:
        groups: k_g stacked, shape (G, t, t).
        active: on_j on'_j stacked, shape (J, t, t).
        squares: (u_d - u'_d)^2 stacked, shape (J, t, t).
        joint: as in ``Layout``.
        pairs: which groups may interact, symmetric 0/1 of shape (G, G) with a zero diagonal; None: all.
        shared: the sets T.
    """

    groups: Vector
    active: Vector
    squares: Vector
    joint: Indices
    pairs: Vector | None
    shared: tuple[Shared, ...]

    @classmethod
    def of(
        cls, program: BinaryProgram, scale: UnitScale, z: Vector, u: Vector, declared: Interactions | None = None
    ) -> Grams:
        """Make them from observations z (t, n_z) and u (t, D); ``declared=None``: everything may interact."""
        groups = []
        for group in program.groups:
            levels = z[:, group.start : group.stop]
            groups.append(levels @ LevelKernel(group).matrix @ levels.T)
        on, joint = scale.active(z), always_active(scale)
        t, n_groups = len(z), len(groups)
        pairs = None
        if declared is not None:
            pairs = np.zeros((n_groups, n_groups))
            for g, h in declared.groups:
                pairs[g, h] = pairs[h, g] = 1.0
        return cls(
            np.array(groups).reshape(-1, t, t),
            np.einsum("sj,tj->jst", on, on),
            (u.T[:, :, None] - u.T[:, None, :]) ** 2,
            joint,
            pairs,
            shared(n_groups, joint, declared),
        )

    @property
    def layout(self) -> Layout:
        return Layout(len(self.groups), len(self.active), self.joint)


def always_active(scale: UnitScale) -> Indices:
    """Return the indices of the numerical parameters without conditions."""
    return np.array([d for d, c in enumerate(scale.conditions) if not c], dtype=np.int64)


def covariance(theta: Vector, grams: Grams) -> tuple[Vector, Vector]:
    """Return K + noise I and its derivatives with respect to theta: (t, t), (n_theta, t, t)."""
    at, p = grams.layout.slices, np.exp(theta)
    n_groups, n_numbers, t = len(grams.groups), len(grams.active), grams.groups.shape[-1]
    a, b, m, l = p[at["a"]], p[at["b"]], p[at["m"]], p[at["l"]]
    s1, s2, sc, sm, noise = (float(p[at[name]][0]) for name in ("s1", "s2", "sc", "sm", "noise"))
    c1 = 1.0 / max(1, n_groups + n_numbers)
    c2 = 2.0 / max(1, n_groups * (n_groups - 1))
    cm = 1.0 / max(1, n_groups)
    ak = a[:, None, None] * grams.groups
    total = ak.sum(axis=0) if n_groups else np.zeros((t, t))
    # the sum over the partners of each group
    others = total - ak if grams.pairs is None or not n_groups else np.tensordot(grams.pairs, ak, axes=1)
    e2 = 0.5 * (ak * others).sum(axis=0)
    br = b[:, None, None] * grams.active * np.exp(-0.5 * grams.squares / m[:, None, None] ** 2)
    joint_squares = grams.squares[grams.joint]
    constants, mixed = np.zeros((t, t)), np.zeros((t, t))
    # factors of a_g k_g; derivatives with respect to log l
    beside, by_length = np.zeros_like(ak), np.zeros_like(joint_squares)
    for part in grams.shared:
        p_t = np.exp(-0.5 * np.sum(joint_squares[part.dims] / l[part.dims, None, None] ** 2, axis=0))
        own = np.tensordot(part.groups, ak, axes=1) if n_groups else np.zeros((t, t))
        constants += part.constant * p_t
        mixed += p_t * own
        beside += part.groups[:, None, None] * p_t
        bracket = p_t * (sc * part.constant + sm * cm * own)
        by_length[part.dims] += bracket * joint_squares[part.dims] / l[part.dims, None, None] ** 2
    k = 1.0 + s1 * c1 * (total + br.sum(axis=0)) + s2 * c2 * e2 + sc * constants + sm * cm * mixed
    identity = np.eye(t)
    k = k + (noise + JITTER) * identity
    d = np.concatenate(
        [
            ak * (s1 * c1 + s2 * c2 * others + sm * cm * beside),
            s1 * c1 * br,
            s1 * c1 * br * grams.squares / m[:, None, None] ** 2,
            by_length,
            (s1 * c1 * (total + br.sum(axis=0)))[None],
            (s2 * c2 * e2)[None],
            (sc * constants)[None],
            (sm * cm * mixed)[None],
            (noise * identity)[None],
        ]
    )
    return k, d


def negative_log_posterior(theta: Vector, grams: Grams, y: Vector, noise: Noise = 0.0) -> tuple[float, Vector]:
    """Return the objective of the fit and its gradient: scalar, (n_theta,).

    Args:
        noise: v, variances beside s2: a number, or shape (t,).
    """
    k, d = covariance(theta, grams)
    k[np.diag_indices_from(k)] += noise
    mean, sd = grams.layout.prior()
    lower, flag = cho_factor(k, lower=True)
    alpha = cho_solve((lower, flag), y)
    inverse = cho_solve((lower, flag), np.eye(len(y)))
    value = 0.5 * y @ alpha + np.sum(np.log(np.diag(lower))) + 0.5 * np.sum(((theta - mean) / sd) ** 2)
    gradient = -0.5 * np.einsum("nst,st->n", d, np.outer(alpha, alpha) - inverse) + (theta - mean) / sd**2
    return float(value), gradient


def fit(
    grams: Grams,
    y: Vector,
    starts: Sequence[Vector],
    iterations: int = 25,
    noise: Noise = 0.0,
    deadline: Deadline = NEVER,
) -> tuple[Vector, float]:
    """Fit MAP hyperparameters: the best of L-BFGS-B from several starts (the prior median is always one of them).

    Returns:
        theta and its negative log posterior.
    """
    prior = grams.layout.prior()

    def objective(theta: Vector) -> tuple[float, Vector]:
        return negative_log_posterior(theta, grams, y, noise)

    return maximum(objective, prior, [*starts, prior[0]], iterations, deadline)
