"""A draw f0 from the prior of the structured model.

Notation
    C (n_z, F)      block-diagonal factor of the level covariances, C C' = blockdiag(a_g k_g)
    phi_j (q,)      Fourier features of numerical parameter j, E[phi_j(u) . phi_j(u')] = exp(-(u_j - u'_j)^2 / (2 m_j^2))
    psi (M,)        Fourier features of P;  chi_jk (q2,) those of the product of two numbers' kernels

    f0 = w + z'C w_lin + sum_j on_j phi_j . w_j + z'C W_gg C'z + z'C W_gj (on phi) + sum_{j<k} on_j on_k chi_jk . w_jk
         + sum_m psi_m(u) (w_m + z'C v_m + z'C W_m C'z)

with independent normal weights whose variances are those in K, zero for pairs that are not in E.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mipcash.program.forms import Vector
from mipcash.surrogates.cosines import CosineFeatures, CosineSum
from mipcash.surrogates.level_kernels import factor_of
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.functions.form_parts import FormParts
from mipcash.surrogates.structured.kernel import Kernel

PER_NUMBER, PER_PAIR, JOINT, JOINT_PAIRS = 16, 16, 64, 32
"""Numbers of random Fourier features: q, q2, M, and those of P that also carry pairs of groups (the sq term)."""


class PriorDraw:
    """Weights of f0, in the coordinates of the factors (see the module's notation).

    Attributes:
        structure: the space.
        factor: C, shape (n_z, F).
        number_maps: phi_j, J of them.
        pair_maps: chi_jk by (j, k).
        joint_map: psi, None where no number is always active.
        constant, linear: w; w_lin, shape (F,).
        number_weights: shape (J, q).
        group_pairs: W_gg, shape (F, F), upper triangle.
        mixed: W_gj, shape (F, J, q).
        pair_weights: by (j, k), shapes (q2,).
        joint_constant, joint_linear, joint_pairs: shapes (M,), (M, F), (M', F, F).
    """

    def __init__(self, kernel: Kernel, rng: np.random.Generator) -> None:
        s, (c1, c2, sc, cm, cq) = kernel.structure, kernel.factors
        blocks = [factor_of(a * k.matrix) for k, a in zip(kernel.blocks, kernel.a, strict=True)]
        owner = np.repeat(np.arange(s.n_groups), [b.shape[1] for b in blocks]).astype(np.int64)
        self.structure, self.factor = s, np.zeros((s.n_z, len(owner)))
        for g, (group, block) in enumerate(zip(s.groups, blocks, strict=True)):
            self.factor[group.start : group.stop, owner == g] = block
        n_f, n_groups = len(owner), s.n_groups
        upper = np.triu(s.pairs[:n_groups, :n_groups], k=1)[np.ix_(owner, owner)]
        between = s.pairs[:n_groups, n_groups:][owner]
        fourier = CosineFeatures.fourier
        self.number_maps = [fourier(np.array([j]), kernel.m[j : j + 1], PER_NUMBER, rng) for j in range(s.n_numbers)]
        pairs = [jk for jk in combinations(range(s.n_numbers), 2) if s.pairs[n_groups + jk[0], n_groups + jk[1]]]
        self.pair_maps = {jk: fourier(np.array(jk), kernel.m[list(jk)], PER_PAIR, rng) for jk in pairs}
        n_joint = JOINT if len(s.joint) else 0
        n_square, roots = min(n_joint, JOINT_PAIRS), np.sqrt(kernel.b)
        self.joint_map = fourier(s.joint, kernel.joint_length, n_joint, rng) if n_joint else None
        self.constant = float(rng.normal())
        self.linear = np.sqrt(c1) * rng.normal(size=n_f)
        self.number_weights = np.sqrt(c1) * roots[:, None] * rng.normal(size=(s.n_numbers, PER_NUMBER))
        self.group_pairs = np.sqrt(c2) * rng.normal(size=(n_f, n_f)) * upper
        self.mixed = np.sqrt(c2) * (between * roots)[:, :, None] * rng.normal(size=(n_f, s.n_numbers, PER_NUMBER))
        self.pair_weights = {(j, k): np.sqrt(c2) * roots[j] * roots[k] * rng.normal(size=PER_PAIR) for j, k in pairs}
        self.joint_constant = np.sqrt(sc) * rng.normal(size=n_joint)
        self.joint_linear = np.sqrt(cm) * rng.normal(size=(n_joint, n_f))
        # M' of M features carry the pairs; this factor preserves their variance.
        scale = np.sqrt(cq * n_joint / max(1, n_square))
        self.joint_pairs = scale * rng.normal(size=(n_square, n_f, n_f)) * upper

    def values(self, points: Encoded) -> Vector:
        """Return f0 at a batch: (B,)."""
        e = points.z @ self.factor
        total = self.constant + e @ self.linear + np.sum((e @ self.group_pairs) * e, axis=1)
        for j, phi in enumerate(self.number_maps):
            coefficients = self.number_weights[j] + e @ self.mixed[:, j]
            total += points.on[:, j] * np.sum(phi(points.u) * coefficients, axis=1)
        for (j, k), chi in self.pair_maps.items():
            total += points.on[:, j] * points.on[:, k] * (chi(points.u) @ self.pair_weights[j, k])
        if self.joint_map is not None:
            total += np.sum(self.joint_map(points.u) * self._joint_coefficients(e), axis=1)
        return np.asarray(total)

    def _joint_coefficients(self, e: Vector) -> Vector:
        """Return the coefficient of each feature of P: (B, F) -> (B, M)."""
        coefficients: Vector = self.joint_constant + e @ self.joint_linear.T
        n_square = len(self.joint_pairs)
        for m in range(n_square):
            coefficients[:, m] += np.sum((e @ self.joint_pairs[m]) * e, axis=1)
        return coefficients

    def waves(self, z: Vector, on: Vector) -> CosineSum:
        """Return f0(z, .) at fixed binaries z (n_z,) and activities on (J,) as a sum of cosines."""
        e = z @ self.factor
        value = float(self.constant + e @ self.linear + e @ self.group_pairs @ e)
        pieces = [
            (phi, on[j] * (self.number_weights[j] + e @ self.mixed[:, j])) for j, phi in enumerate(self.number_maps)
        ]
        pieces += [(chi, on[j] * on[k] * self.pair_weights[j, k]) for (j, k), chi in self.pair_maps.items()]
        if self.joint_map is not None:
            pieces.append((self.joint_map, self._joint_coefficients(e[None])[0]))
        return CosineSum(value, pieces, self.structure.n_numbers)

    def parts_at(self, u: Vector) -> FormParts:
        """Return the coefficients of f0(., u)."""
        s = self.structure
        phi = np.array([f(u[None])[0] for f in self.number_maps]).reshape(self.number_weights.shape)
        number_pairs = np.zeros((s.n_numbers, s.n_numbers))
        for (j, k), chi in self.pair_maps.items():
            number_pairs[j, k] = number_pairs[k, j] = float(chi(u[None])[0] @ self.pair_weights[j, k])
        constant, linear, square = self.constant, self.linear, self.group_pairs
        if self.joint_map is not None:
            psi = self.joint_map(u[None])[0]
            constant, linear = constant + float(psi @ self.joint_constant), linear + psi @ self.joint_linear
            if len(self.joint_pairs):
                square = square + np.tensordot(psi[: len(self.joint_pairs)], self.joint_pairs, axes=1)
        whole = self.factor @ square @ self.factor.T
        return FormParts(
            constant=constant,
            linear=self.factor @ linear,
            active=np.sum(phi * self.number_weights, axis=1),
            group_pairs=whole + whole.T,
            mixed=self.factor @ np.einsum("fjq,jq->fj", self.mixed, phi),
            number_pairs=number_pairs,
        )
