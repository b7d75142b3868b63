"""Choices that proposals leave out by turns, so that others have theirs; and how bold they are while the search stalls.

Every so many proposals: all but the least tried level of a module of the incumbent, whose other modules stay as they are. Every
second time on a plateau: a choice that is shared there (:mod:`mipcash.acquisition.plateau`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.acquisition.blocks import Block, least_tried
from mipcash.acquisition.plateau import shared_choice
from mipcash.optimizers.data import Data
from mipcash.optimizers.model_based import Step
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.space.exclusion import Exclusion

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
