"""Sums over groups in wide spaces, where no matrix over pairs of levels is formed: only what is observed has a column.

Notation
    t points y_i;   c (B, G) the binaries that are one at B points
    table (n_z, t)  what each level has with the levels of the y_i: a_g k_g(l, l_i), its square, or w_g d_g(l, l_i)
    sum_g table[c_g, i]   a sum over groups, shape (B, t)

Neighbours of one point differ from each other in a group or two: their sums are those of one of them, with what differs
exchanged, O(B t) for B of them instead of O(B G t).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mipcash.program.forms import Indices, Vector

CHUNK = 1024
"""Points at a time."""
ALIKE = 0.05
"""Share of the groups in which the points of a chunk may differ from its first one for it to be worth while."""


def level_sums(columns: Indices, tables: Sequence[Vector]) -> list[Vector]:
    """The sums of several tables: (B, G), tables of shape (n_z, t) -> (B, t) each."""
    sums = [np.zeros((len(columns), table.shape[1])) for table in tables]
    for a in range(0, len(columns), CHUNK):
        part, at = columns[a : a + CHUNK], slice(a, a + CHUNK)
        differ = np.flatnonzero(part != part[0])
        rows, groups = np.divmod(differ, max(1, part.shape[1]))
        if len(rows) > ALIKE * part.size:
            for total, table in zip(sums, tables, strict=True):
                for column in part.T:
                    total[at] += table[column]
            continue
        now, first = part[rows, groups], part[0][groups]
        exchanged = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(part), len(rows)))
        for total, table in zip(sums, tables, strict=True):
            total[at] = table[part[0]].sum(axis=0) + exchanged @ (table[now] - table[first])
    return sums
