"""What pairs of variables cannot explain: a product kernel beside the structured one.

Notation
    d_g (size, size)    squared distance of two levels: 1 between categories; (p_l - p_m)^2 between places on [0, 1] of an
                        ordered group; off is at distance 1 from the middle
    R(x, x') = sr exp(-sum_g w_g d_g(z, z') - sum_j (u_j - u'_j)^2 / (2 r_j^2))

f = q + r with q ~ structured kernel and r ~ R. Losses are interpolated by the sum; only q is a quadratic form and goes to
the MIP, r enters predictions. Without r, interactions of three and more variables are forced onto pairs, and the model is
sure of what it cannot know.
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.program import Group
from mipcash.surrogates.level_kernels import ORDERED


def level_distance(group: Group) -> Vector:
    """d_g, shape (size, size), off included."""
    n_levels = group.size - int(group.conditional)
    if group.kind in ORDERED:
        place = np.linspace(0.0, 1.0, n_levels) if n_levels > 1 else np.full(1, 0.5)
        distance = np.full((group.size, group.size), 1.0)
        distance[:n_levels, :n_levels] = (place[:, None] - place) ** 2
        if group.conditional:
            distance[:n_levels, -1] = distance[-1, :n_levels] = 1.0 + (place - 0.5) ** 2
        np.fill_diagonal(distance, 0.0)
        return distance
    return np.asarray(1.0 - np.eye(group.size))
