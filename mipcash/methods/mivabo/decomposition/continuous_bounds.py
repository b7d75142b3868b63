"""Certified lower bounds of sums of cosines over a box, as all slaves of the dual decomposition need them.

Notation
    s_k(u) = sum_m A_km cos(omega_m . u + phase_m),   A (K, M) amplitudes, omega (M, D), phase (M,), u in [low, high]
    c, r (B, D)      centres and radii of B boxes;   a = omega c + phase,   rho = |omega| r   (B, M)

Over one box, with v = u - c and d_m = omega_m . v in [-rho_m, rho_m], two bounds hold, and the larger one is kept:

    linear      A cos(a + d) >= k d + min_d [A cos(a + d) - k d] with the slope k of the chord over [-rho, rho]. The minimum
                over d is known in closed form. The sum of the slopes is linear in v and so minimal at a corner. The bound is
                tight for large boxes (k -> 0 is interval arithmetic).
    quadratic   s(c) + g . v + v'Hv / 2 - sum_m |A_m| min(rho^3 / 6, |sin a| rho^3 / 6 + rho^4 / 24), Taylor's formula with
                its third-order remainder. v'Hv is bounded below by its diagonal, made dominant as in Gershgorin's theorem with
                the radii as weights, so the minimum is coordinatewise. Amplitudes of opposite sign cancel in g and H, but not
                in the linear bound, so this bound is the tight one for small boxes.

Branch and bound splits, for all K functions at once, the box with the lowest bound. If a function is monotone in a coordinate over
a box, the box shrinks to the face with the minimum before it is split. The test is that the derivative at c exceeds
sum_e |H_de| r_e + sum_m |A_m omega_md| rho_m^2 / 2. The search may stop at any time: the lowest bound among the boxes bounds the
function. Functions whose cosines share no coordinate are bounded separately and added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from mipcash.program.forms import Indices, Vector

ROUNDING = 1e-13
"""Floating-point error allowed for, relative to the sum of the amplitudes and per cosine."""


@dataclass(frozen=True)
class CosineSums:
    """K sums of the same M cosines (see the module's notation)."""

    omega: Vector
    phase: Vector
    amplitude: Vector

    def __call__(self, u: Vector) -> Vector:
        """Return the values, one point per function: (K, D) -> (K,)."""
        values: Vector = np.sum(self.amplitude * np.cos(u @ self.omega.T + self.phase), axis=1)
        return values


@dataclass(frozen=True)
class Bounded:
    """Bounds of K functions.

    Attributes:
        lower: certified, shape (K,).
        points: the best point found for each function, shape (K, D), the centre in coordinates on which it does not depend.
        values: the functions there, shape (K,).
    """

    lower: Vector
    points: Vector
    values: Vector


def lower_bounds(sums: CosineSums, low: Vector, high: Vector, splits: int, tolerance: float = 1e-9) -> Bounded:
    """Bound K functions over one box.

    Args:
        sums: the functions.
        low, high: the box, shape (D,).
        splits: maximum number of splits, per function and per set of coordinates that its cosines connect.
        tolerance: gap between bound and best value, relative to the sum of amplitudes, at which a function is done.
    """
    centre = 0.5 * (low + high)
    n = len(sums.amplitude)
    points = np.tile(centre, (n, 1))
    used = np.any(sums.amplitude != 0, axis=0)
    still = used & ~np.any(sums.omega != 0, axis=1)
    lower = sums.amplitude[:, still] @ np.cos(sums.phase[still])
    lower = lower - ROUNDING * np.sum(np.abs(sums.amplitude[:, still]), axis=1)
    for cosines, dims in _components(sums.omega, used & ~still):
        part = CosineSums(sums.omega[np.ix_(cosines, dims)], sums.phase[cosines], sums.amplitude[:, cosines])
        found = _branch_and_bound(part, low[dims], high[dims], splits, tolerance)
        lower = lower + found.lower
        points[:, dims] = found.points
    return Bounded(lower, points, sums(points))


def _components(omega: Vector, used: Vector) -> list[tuple[Indices, Indices]]:
    """Return the used cosines and the coordinates that they depend on, by connected component."""
    cosines = np.flatnonzero(used)
    seen = (omega[cosines] != 0).astype(np.int64)
    count, label = connected_components(seen.T @ seen, directed=False)
    found = []
    for k in range(count):
        dims = np.flatnonzero(label == k)
        mine = cosines[np.any(seen[:, dims] != 0, axis=1)]
        if len(mine):
            found.append((mine, dims))
    return found


def _branch_and_bound(sums: CosineSums, low: Vector, high: Vector, splits: int, tolerance: float) -> Bounded:
    n, size = len(sums.amplitude), len(low)
    lows, highs = np.zeros((n, splits + 1, size)), np.zeros((n, splits + 1, size))
    lows[:, 0], highs[:, 0] = low, high
    lower = np.full((n, splits + 1), np.inf)
    root = box_bounds(sums, np.tile(low, (n, 1)), np.tile(high, (n, 1)))
    lows[:, 0], highs[:, 0], lower[:, 0], points = root.low, root.high, root.lower, root.points
    values = sums(points)
    enough = tolerance * np.sum(np.abs(sums.amplitude), axis=1)
    reach = np.abs(sums.amplitude) @ np.abs(sums.omega)
    for fresh in range(1, splits + 1):
        k = np.flatnonzero(values - lower.min(axis=1) > enough)
        if not len(k):
            break
        worst = np.argmin(lower[k], axis=1)
        parent, l, h = lower[k, worst], lows[k, worst], highs[k, worst]
        # the coordinate along which the function can change most
        split = np.argmax(reach[k] * (h - l), axis=1)
        rows = np.arange(len(k))
        middle = 0.5 * (l[rows, split] + h[rows, split])
        left_high, right_low = h.copy(), l.copy()
        left_high[rows, split] = right_low[rows, split] = middle
        both = CosineSums(sums.omega, sums.phase, np.tile(sums.amplitude[k], (2, 1)))
        boxes = box_bounds(both, np.concatenate([l, right_low]), np.concatenate([left_high, h]))
        bound, value = np.maximum(boxes.lower, np.tile(parent, 2)), both(boxes.points)
        for half, slot in ((slice(0, len(k)), worst), (slice(len(k), None), np.full(len(k), fresh))):
            lower[k, slot], lows[k, slot], highs[k, slot] = bound[half], boxes.low[half], boxes.high[half]
            better = value[half] < values[k]
            values[k[better]], points[k[better]] = value[half][better], boxes.points[half][better]
    return Bounded(lower.min(axis=1), points, values)


@dataclass(frozen=True)
class Boxes:
    """B boxes, each with the bound of a function over it.

    Attributes:
        low, high: the boxes, shrunk to a face where the function is monotone, shape (B, D).
        lower: certified bounds, shape (B,).
        points: points of the boxes where the relaxations are minimal, shape (B, D).
    """

    low: Vector
    high: Vector
    lower: Vector
    points: Vector


def box_bounds(sums: CosineSums, low: Vector, high: Vector) -> Boxes:
    """Bound B functions, each over a box of its own (B, D), without branching."""
    centre, radius = 0.5 * (low + high), 0.5 * (high - low)
    angle = centre @ sums.omega.T + sums.phase
    rho = radius @ np.abs(sums.omega).T
    cos, sin = sums.amplitude * np.cos(angle), sums.amplitude * np.sin(angle)
    size = np.abs(sums.amplitude)
    linear = _linear_bound(sums, angle, rho, radius)
    gradient, hessian = -sin @ sums.omega, _hessian(sums, cos)
    step, quadratic = _quadratic_minimum(gradient, hessian, radius)
    rest = np.minimum(1.0, np.abs(np.sin(angle)) + rho / 4.0) * rho**3 / 6.0
    quadratic = np.sum(cos, axis=1) + quadratic - np.sum(size * rest, axis=1)
    slack = ROUNDING * sums.omega.shape[0] * np.sum(size, axis=1)
    points = np.clip(np.where((quadratic > linear)[:, None], centre + step, centre), low, high)
    change = np.einsum("bde,be->bd", np.abs(hessian), radius) + 0.5 * (size * rho**2) @ np.abs(sums.omega)
    change += ROUNDING * size @ np.abs(sums.omega)
    return Boxes(
        np.where(gradient < -change, high, low),
        np.where(gradient > change, low, high),
        np.maximum(linear, quadratic) - slack,
        points,
    )


def _hessian(sums: CosineSums, cos: Vector) -> Vector:
    m, d = sums.omega.shape
    outer = (sums.omega[:, :, None] * sums.omega[:, None, :]).reshape(m, d * d)
    return -(cos @ outer).reshape(-1, d, d)


def _linear_bound(sums: CosineSums, angle: Vector, rho: Vector, radius: Vector) -> Vector:
    """Return the linear bound: (B,)."""
    a = sums.amplitude
    # chord of A cos(angle + d) over [-rho, rho]
    share = np.sin(angle) * np.sinc(rho / np.pi)
    slope = -a * share
    # interior minima of A cos(angle + d) - slope d solve sin(angle + d) = share, where A cos(angle + d) < 0
    root = np.arcsin(np.clip(share, -1.0, 1.0))
    root = np.where(a > 0, np.pi - root, root) - angle
    turn = 2.0 * np.pi
    lowest = np.minimum(
        a * np.cos(angle - rho) + slope * rho,
        a * np.cos(angle + rho) - slope * rho,
    )
    # equal minima recur at every full turn, and the line is monotone: the first or the last minimum inside is the lowest
    for d in (root + turn * np.ceil((-rho - root) / turn), root + turn * np.floor((rho - root) / turn)):
        value = a * np.cos(angle + d) - slope * d
        lowest = np.where(np.abs(d) <= rho, np.minimum(lowest, value), lowest)
    bound: Vector = np.sum(lowest, axis=1) - np.sum(np.abs(slope @ sums.omega) * radius, axis=1)
    return bound


def _quadratic_minimum(gradient: Vector, hessian: Vector, radius: Vector) -> tuple[Vector, Vector]:
    """Return minimiser (B, D) and minimum (B,) over |v| <= radius of a separable function below g . v + v'Hv / 2."""
    diagonal = np.einsum("bdd->bd", hessian)
    # |H_de v_d v_e| <= |H_de| (v_d^2 r_e / r_d + v_e^2 r_d / r_e) / 2
    safe = np.where(radius > 0, radius, 1.0)
    others = np.einsum("bde,be->bd", np.abs(hessian), radius) / safe - np.abs(diagonal)
    curvature = diagonal - others
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(curvature > 0, -gradient / curvature, -np.sign(gradient) * radius)
    step = np.clip(inside, -radius, radius)
    step = np.where((curvature <= 0) & (gradient == 0), radius, step)
    return step, np.sum(gradient * step + 0.5 * curvature * step**2, axis=1)
