"""Drop the products that matter little, and bound the error.

Notation
    q(z) = constant + l.z + sum_{g < h} z_g' Q_gh z_h     a folded form; exactly one level of each group is 1.
    Q_gh = r 1' + 1 c' + R_gh,  R_gh with zero means of rows and columns: r and c are linear in z and need no products

Dropping R_gh for some pairs leaves a form q' with fewer product columns and, for every legal z,

    q'(z) + sum_dropped min R_gh  <=  q(z)  <=  q'(z) + sum_dropped max R_gh.

A bound on q' plus the first sum is therefore a bound on q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipcash.backends.reductions.reduction import Reduced
from mipcash.backends.task import Task
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BinaryProgram


@dataclass(frozen=True)
class Pruned(Reduced):
    """A task whose objective has fewer products.

    Attributes:
        below: shift of a bound on q' that makes it a bound on q (<= 0); 0 if nothing was dropped.
    """

    below: float

    def bound(self, bound: float) -> float:
        """See ``mipcash.backends.reductions.reduction.Reduced.bound``."""
        return bound + self.below


class PrunedProducts:
    """Keeps the pairs of groups with the widest range, within a budget of product columns.

    Args:
        product_columns: budget; 0 drops every pair.
    """

    def __init__(self, product_columns: int) -> None:
        self.product_columns = product_columns

    def accepts(self, task: Task) -> bool:
        """Return True if the program has groups."""
        return bool(task.program.groups)

    def apply(self, task: Task) -> Pruned:
        """See ``mipcash.backends.reductions.reduction.Reduction.apply``; terms in numerical parameters are kept."""
        form, program = task.form, task.program
        in_z = (form.rows < program.n_z) & (form.cols < program.n_z)
        dense = form.symmetric()[: program.n_z, : program.n_z]
        residual, moved = _centred(dense, program)
        low, high = (_by_pair(residual, program, ufunc) for ufunc in (np.minimum, np.maximum))
        left, right = np.triu_indices(len(program.groups), k=1)
        spread = (high - low)[left, right]
        order = np.argsort(-spread, kind="stable")
        order = order[spread[order] > 1e-12]
        pairs = [(int(left[k]), int(right[k])) for k in order]
        kept = np.zeros((len(program.groups),) * 2, dtype=bool)
        for g, h in program.fitting(pairs, self.product_columns):
            kept[g, h] = True
        below = float(sum(low[g, h] for g, h in pairs if not kept[g, h]))
        mask = kept[program.group_of][:, program.group_of]
        linear = form.linear.copy()
        linear[: program.n_z] += moved
        return Pruned(replace(task, form=_assembled(form, linear, np.where(mask, residual, 0.0), in_z)), below)


def _centred(dense: Vector, program: BinaryProgram) -> tuple[Vector, Vector]:
    """Return R_gh of all pairs and the linear terms that r and c add: symmetric (n_z, n_z) -> (n_z, n_z), (n_z,).

    Row and column means both contain the mean of the block, so it is subtracted from r: r_a + c_b + R_ab = Q_ab.
    """
    rows = np.add.reduceat(dense, program.starts, axis=1) / program.sizes
    means = np.add.reduceat(rows, program.starts, axis=0) / program.sizes[:, None]
    of = program.group_of
    residual = dense - rows[:, of] - rows[:, of].T + means[of][:, of]
    # the mean is subtracted from the earlier of the two groups
    later = np.triu(np.ones_like(means), k=1)
    return residual, rows.sum(axis=1) - (means * later).sum(axis=1)[of]


def _by_pair(matrix: Vector, program: BinaryProgram, ufunc: np.ufunc) -> Vector:
    """Return the minimum or maximum of every block: (n_z, n_z) -> (G, G)."""
    return np.asarray(ufunc.reduceat(ufunc.reduceat(matrix, program.starts, axis=0), program.starts, axis=1))


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
