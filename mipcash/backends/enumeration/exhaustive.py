"""The legal levels of a small program, all of them: an exact answer where rules are more than pairs and linear rows.

Notation
    s (S, G)    all legal level vectors;   c_g = starts[g] + s_g  the column that group g sets to one
    q(s)        constant + sum_g l[c_g] + sum_{g < h} (Q + Q')[c_g, c_h]

A rule over three groups that leaves thousands of combinations is no pairwise network; as long as all groups together have few
joint levels, looking at each takes milliseconds where a solver takes tenths of a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mipcash.backends.base import CUT_SLACK, Cut
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality, legality_at
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent

KEPT_LISTINGS = 16
LISTED = 20_000
"""Joint levels of all groups, legal or not, up to which a program is listed."""


@dataclass(frozen=True)
class LegalLevels:
    """See the module's notation.

    Attributes:
        levels: shape (S, G), every legal level vector once.
    """

    program: BinaryProgram
    levels: Indices

    def values(self, form: QuadraticForm) -> Vector:
        """q of a folded form over the binaries, shape (S,)."""
        columns, matrix = self.program.starts + self.levels, form.symmetric()
        found: Vector = form.constant + form.linear[columns].sum(axis=1)
        for g in range(1, columns.shape[1]):
            found += matrix[columns[:, :g], columns[:, g, None]].sum(axis=1)
        return found

    def admitted(self, cuts: Sequence[Cut]) -> NDArray[np.bool_]:
        """Which of the level vectors satisfy further rows over the binaries, shape (S,)."""
        columns, admitted = self.program.starts + self.levels, np.ones(len(self.levels), dtype=bool)
        for cut in cuts:
            body = cut.weights(self.program.n_z)[columns].sum(axis=1)
            admitted &= (body >= cut.low - CUT_SLACK) & (body <= cut.high + CUT_SLACK)
        return admitted


def make_legal_levels(legality: Legality, allowed: NDArray[np.bool_]) -> LegalLevels | None:
    """The legal levels of a program; None where it would be too long or legality cannot be told without a solver.

    Args:
        legality: at the numbers that are fixed.
        allowed: columns that may be one, shape (n_z,).
    """
    if not legality.complete:
        return None
    program = legality.program
    kept: Recent[Indices | None] = program.derived.setdefault("levels listed", Recent(KEPT_LISTINGS))
    levels = kept.get(allowed.tobytes(), lambda: _legal_at_some_numbers(program, allowed))
    return None if levels is None else LegalLevels(program, levels[legality.check(levels, free=False)])


def _legal_at_some_numbers(program: BinaryProgram, allowed: NDArray[np.bool_]) -> Indices | None:
    """The level vectors that break no rule without numbers, shape (S, G); None where there are too many to look at."""
    choices = [np.flatnonzero(allowed[x.start : x.stop]) for x in program.groups]
    if math.prod(map(len, choices)) > LISTED:
        return None
    grid = np.meshgrid(*choices, indexing="ij")
    levels: Indices = np.stack([axis.ravel() for axis in grid], axis=1)
    free = legality_at(program, None)
    levels = levels[np.all(free.effective(levels) == levels, axis=1)]
    return levels[free.check(levels)]
