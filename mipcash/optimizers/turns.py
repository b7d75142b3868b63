"""Choices that proposals leave out by turns, so that others have theirs; and how bold they are while the search stalls.

Every so many proposals: all but the least tried level of a module of the incumbent, whose other modules stay as they are. Every
second time on a plateau: a choice that is shared there.

Away from plateaus: where the best observations tie exactly, other choices than theirs have their turn.

Notation
    s (B, G)    levels of the best observations;   y (B,) their losses
    plateau     at least TIED of y are equal, to the last digit

The loss of a learner is constant over wide regions: where it predicts one class, where it ends at the same fit whatever its
remaining settings are. A smooth surrogate overshoots beside a plateau and finds a last small promise there again and again; every
evaluation is another tie. More exploration does not help, as the promise is a feature of the model. What such a plateau belongs
to is a choice that its points share, an algorithm for instance: it is that choice that is left
(docs/decisions/061-turns-of-a-stalled-search.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.acquisition.blocks import Block, least_tried
from mipcash.optimizers.data import Data
from mipcash.optimizers.model_based import Step
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
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


PATIENCE, STALL_RATE = 5, 0.1
"""Observations without a better one after which predicted deviations grow, and by how much with each."""


def boldness(data: Data, boldest: float) -> float:
    """Factor on predicted deviations: 1 while losses fall, growing with the observations since the incumbent."""
    return min(boldest, 1.0 + STALL_RATE * max(0, data.stalled() - PATIENCE))


def left_out(
    step: Step, program: BinaryProgram, blocks: Sequence[Block], every: int, best: int, awaited: Points
) -> list[Exclusion]:
    """What is left out of a proposal; nothing where it is nobody's turn.

    Args:
        every: proposals between two that take a module's least tried level; 0: none does.
        best: observations among which a plateau is looked for.
        awaited: points that are pending.
    """
    trials, rows, points = len(step.request.history), step.data.order[:best], step.data.points
    if every and trials % every == 0 and len(rows):
        tried = np.concatenate([points.levels, awaited.levels])
        if left := least_tried(program, blocks, points.levels[rows[0]], tried, step.rng):
            return left
    if trials % 2:
        return []
    choice = shared_choice(program, points.levels[rows], step.data.losses[rows], step.rng)
    return [] if choice is None else [choice]
