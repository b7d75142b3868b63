"""Designs of experiments: n points selected from many legal samples by a criterion.

Notation
    X (N, p)    features of N candidates. A numerical or ordinal value is scaled to [-1, 1], a category has an indicator per level,
                an ordering has the position of each member, scaled to [-1, 1]; the columns of an inactive parameter are 0
    F (N, q)    model matrix of the linear model: 1 and X
    S           the selected candidates

    maximin     min_{i, j in S} ||x_i - x_j|| is large: farthest-first traversal (Gonzalez 1985), at least half the largest value
    d-optimal   det(RIDGE I + F_S' F_S) is large: greedy selection, then exchanges of one point while they help (Fedorov 1972)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mipcash.modelling.domains import Categorical, Configuration, Ordinal, Permutation, level_of
from mipcash.modelling.parameters import Parameter
from mipcash.program.forms import Indices, Vector

PER_POINT, LEAST = 20, 200
"""Candidates per point of a design, and the least number of candidates."""
RIDGE = 1e-6
"""Weight of the identity in the information matrix, which is singular as long as there are fewer points than columns."""
PASSES = 20
"""Largest number of passes of exchanges over all points."""
HELPS = 1e-9
"""Least gain in the logarithm of the determinant for which points are exchanged."""


def candidates(n: int) -> int:
    """Return the number of samples from which n points are selected; d-optimal ones also from as many at ends of ranges."""
    return max(LEAST, PER_POINT * n) if n else 0


def selected(
    parameters: Mapping[str, Parameter],
    configs: Sequence[Configuration],
    n: int,
    criterion: str,
    rng: np.random.Generator,
) -> list[Configuration]:
    """Return n distinct samples selected by a criterion; all distinct samples if there are fewer."""
    different = list({repr(sorted(c.items(), key=lambda item: item[0])): c for c in configs}.values())
    if len(different) <= n:
        return different
    chosen = CRITERIA[criterion](features(parameters, different), n, rng)
    return [different[k] for k in chosen.tolist()]


def features(parameters: Mapping[str, Parameter], configs: Sequence[Configuration]) -> Vector:
    """Return X: (N, p)."""
    blocks = list[Vector]()
    for name, parameter in parameters.items():
        domain, active = parameter.domain, [name in c for c in configs]
        if isinstance(domain, Permutation):
            block = np.array([[c[name].index(m) if name in c else 0 for m in domain.members] for c in configs])
            block = _centred(block / max(1, len(domain.members) - 1))
        elif isinstance(domain, Categorical):
            levels = np.array([level_of(domain, c[name]) if name in c else -1 for c in configs])
            block = np.asarray(levels[:, None] == np.arange(len(domain.values)), dtype=float)
        elif isinstance(domain, Ordinal):
            places = np.array([level_of(domain, c[name]) if name in c else 0 for c in configs], dtype=float)
            block = _centred(places[:, None] / max(1, len(domain.values) - 1))
        else:
            block = _centred(np.array([[domain.to_unit(c[name]) if name in c else 0.0] for c in configs]))
        blocks.append(block * np.array(active)[:, None])
    return np.concatenate(blocks, axis=1)


def _centred(units: Vector) -> Vector:
    return np.asarray(2.0 * units - 1.0)


def maximin(x: Vector, n: int, rng: np.random.Generator) -> Indices:
    """Return n candidates far from each other: (N, p) -> (n,)."""
    chosen = [int(rng.integers(len(x)))]
    nearest = np.linalg.norm(x - x[chosen[0]], axis=1)
    while len(chosen) < n:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(x - x[chosen[-1]], axis=1))
    return np.array(chosen)


def d_optimal(x: Vector, n: int, rng: np.random.Generator) -> Indices:
    """Return n candidates that determine a linear model well: (N, p) -> (n,)."""
    f = np.column_stack([np.ones(len(x)), x])
    inverse, chosen, free = np.eye(f.shape[1]) / RIDGE, list[int](), np.ones(len(f), dtype=bool)

    def best(inverse: Vector) -> tuple[int, float]:
        gain = np.where(free, np.einsum("ij,jk,ik->i", f, inverse, f), -np.inf)
        k = int(np.argmax(gain))
        return k, float(gain[k])

    for _ in range(n):
        k, _ = best(inverse)
        inverse, free[k] = _changed(inverse, f[k], 1.0), False
        chosen.append(k)
    for _ in range(PASSES):
        helped = False
        for place in rng.permutation(n).tolist():
            old = chosen[place]
            rest, free[old] = _changed(inverse, f[old], -1.0), True
            k, gain = best(rest)
            if np.log1p(gain) - np.log1p(float(f[old] @ rest @ f[old])) <= HELPS:
                k = old
            helped |= k != old
            inverse, chosen[place], free[k] = _changed(rest, f[k], 1.0), k, False
        if not helped:
            break
    return np.array(chosen)


def _changed(inverse: Vector, row: Vector, sign: float) -> Vector:
    """Return the inverse of the information matrix after a row was added (sign 1) or removed (-1), by Sherman and Morrison."""
    image = inverse @ row
    return np.asarray(inverse - sign * np.outer(image, image) / (1.0 + sign * float(row @ image)))


Criterion = Callable[[Vector, int, np.random.Generator], Indices]
D_OPTIMAL = "d-optimal"
CRITERIA: Mapping[str, Criterion] = {
    "maximin": maximin,
    D_OPTIMAL: d_optimal,
}
"""Criteria by name."""
