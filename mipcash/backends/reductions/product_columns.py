"""A quadratic objective as a linear one: its products become columns (``mipcash.program.products``).

With y[a, b] = z[a] z[b] and w[a] = z[a] v as columns, ``l . v + sum Q_ij v_i v_j`` is ``cost . [v, y, w]``. The rows that define
the products hold at integer points exactly, and their relaxation is the convex hull of each pair (RLT).
"""

from __future__ import annotations

from dataclasses import replace

from mipcash.backends.reductions.reduction import KEPT_PROGRAMS, Reduced
from mipcash.backends.task import Task
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent
from mipcash.program.rewriting import with_products


class ProductColumns:
    """Adds columns for the products of the objective; the program is cached by its set of products."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[BinaryProgram, BinaryProgram]] = Recent(KEPT_PROGRAMS)

    def accepts(self, task: Task) -> bool:
        """Return True if the objective has products."""
        return len(task.form.rows) > 0

    def apply(self, task: Task) -> Reduced:
        """See ``mipcash.backends.reductions.reduction.Reduction.apply``."""
        missing = frozenset(missing_products(task))
        if not missing:
            return Reduced(task)
        made = self._kept.get((id(task.program), missing), lambda: (task.program, with_products(task.program, missing)))
        return Reduced(replace(task, program=made[1]))


def missing_products(task: Task) -> set[tuple[int, int]]:
    """Return the keys of the objective's products for which the program has no columns."""
    return task.program.couplings(task.form) - task.program.product_index.keys()
