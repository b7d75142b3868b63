"""Drop the products that cannot matter much, and say by how much they could.

Notation
    q(z) = constant + l.z + sum_{g < h} z_g' Q_gh z_h     a folded form; exactly one level of each group is 1
    Q_gh = r 1' + 1 c' + R_gh,  R_gh with zero means of rows and columns: r and c are linear in z, for free

Dropping R_gh for some pairs leaves a form q' with fewer product columns and, for every legal z,

    q'(z) + sum_dropped min R_gh  <=  q(z)  <=  q'(z) + sum_dropped max R_gh.

A bound on q' is therefore a bound on q, after the first sum is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BinaryProgram


@dataclass(frozen=True)
class Pruned:
    """A form with fewer products.

    Attributes:
        form: q', over the same columns.
        below: what a bound on q' must be shifted by (<= 0) to be one on q; 0 where nothing was dropped.
    """

    form: QuadraticForm
    below: float


def prune(form: QuadraticForm, program: BinaryProgram, product_columns: int) -> Pruned:
    """Keep the pairs of groups with the widest range, as long as their product columns fit.

    Args:
        form: folded; its terms in numbers are kept.
        product_columns: budget; 0 drops every pair.
    """
    in_z = (form.rows < program.n_z) & (form.cols < program.n_z)
    dense = np.triu(form.symmetric()[: program.n_z, : program.n_z], k=1)
    linear, blocks = form.linear.copy(), []
    for g, left in enumerate(program.groups):
        a = slice(left.start, left.stop)
        coupled = np.unique(program.group_of[np.flatnonzero(np.any(dense[a] != 0.0, axis=0))])
        for h in coupled.tolist():
            right = program.groups[h]
            b = slice(right.start, right.stop)
            block = dense[a, b]
            rows, cols, mean = block.mean(axis=1), block.mean(axis=0), float(block.mean())
            linear[a] += rows - mean
            linear[b] += cols
            residual = block - rows[:, None] - cols + mean
            blocks.append((float(np.ptp(residual)), g, h, residual))
    blocks.sort(key=lambda b: (-b[0], b[1], b[2]))
    matter = [b for b in blocks if b[0] > 1e-12]
    fitting = set(program.fitting([(g, h) for _, g, h, _ in matter], product_columns))
    kept, below = np.zeros_like(dense), 0.0
    for _, g, h, residual in matter:
        if (g, h) not in fitting:
            below += float(residual.min())
            continue
        left, right = program.groups[g], program.groups[h]
        kept[left.start : left.stop, right.start : right.stop] = residual
    return Pruned(_assembled(form, linear, kept, in_z), below)


def _assembled(
    form: QuadraticForm, linear: Vector, kept: Vector, in_z: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> QuadraticForm:
    rows, cols = np.nonzero(kept)
    return QuadraticForm(
        form.constant,
        linear,
        np.concatenate([rows.astype(np.int64), form.rows[~in_z]]),
        np.concatenate([cols.astype(np.int64), form.cols[~in_z]]),
        np.concatenate([kept[rows, cols], form.values[~in_z]]),
    )
