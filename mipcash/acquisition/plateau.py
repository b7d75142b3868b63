"""Away from plateaus: where the best observations tie exactly, other choices than theirs have their turn.

Notation
    s (B, G)    levels of the best observations;   y (B,) their losses
    plateau     at least TIED of y are equal, to the last digit

The loss of a learner is constant over wide regions: where it predicts one class, where it ends at the same fit whatever its
remaining settings are. A smooth surrogate overshoots beside a plateau and finds a last small promise there again and again; every
evaluation is another tie. More exploration does not help, as the promise is a feature of the model. What such a plateau belongs
to is a choice that its points share, an algorithm for instance: it is that choice that is left
(docs/decisions/008-leaving-plateaus.md).
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.space.exclusion import ANY, Exclusion

TIED = 3
"""Equal losses among the best that make a plateau."""


def shared_choice(
    program: BinaryProgram, levels: Indices, losses: Vector, rng: np.random.Generator
) -> Exclusion | None:
    """A categorical level that the best observations share, at random where they share several.

    Args:
        levels: s, shape (B, G).
        losses: y, shape (B,).

    Returns:
        What excludes that level; None: there is no plateau, or nothing that its points share.
    """
    if not len(losses) or np.unique(losses, return_counts=True)[1].max() < TIED:
        return None
    choice = np.array([not g.ordered and g.size > 1 for g in program.groups], dtype=bool)
    shared = np.all(levels == levels[0], axis=0) & (levels[0] != program.off_levels) & choice
    if not shared.any():
        return None
    g = int(rng.choice(np.flatnonzero(shared)))
    without = np.full(levels.shape[1], ANY)
    without[g] = levels[0, g]
    return Exclusion(without)
