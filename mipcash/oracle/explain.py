"""Why a space is empty: a smallest set of named rules in conflict, by a deletion filter.

Drop one rule at a time; if the rest is still infeasible the rule is not needed for the conflict, else it stays. What is
left is irreducible: each of its rules is needed (Chinneck 2008, Alg. 6.2, over rules instead of rows).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from scipy import sparse

from mipcash.backends.base import Backend, SolverSettings, Task
from mipcash.backends.solution import INFEASIBLE
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram


def without_rules(program: BinaryProgram, dropped: Collection[str]) -> BinaryProgram:
    """The program without the rows of some rules."""
    keep = np.array([rule not in dropped for rule in program.row_rule], dtype=bool)
    return replace(
        program,
        matrix=sparse.csr_array(program.matrix[keep]),
        row_low=program.row_low[keep],
        row_high=program.row_high[keep],
        row_rule=tuple(r for r, k in zip(program.row_rule, keep, strict=True) if k),
    )


def is_empty(program: BinaryProgram, backend: Backend, settings: SolverSettings) -> bool:
    """Whether no legal configuration exists (proven within the limits)."""
    return backend.solve(Task(program, QuadraticForm.zero(program.n)), settings).status == INFEASIBLE


def conflict(program: BinaryProgram, backend: Backend, settings: SolverSettings) -> tuple[str, ...]:
    """An irreducible set of rules that cannot hold together, in the order of declaration; () if there is none."""
    if not is_empty(program, backend, settings):
        return ()
    names = [name for name in dict.fromkeys(program.row_rule) if name]
    needed = list(names)
    # halving first: forty rules with three in conflict then cost some twenty solves instead of forty
    width = max(1, len(needed) // 2)
    while width >= 1:
        k = 0
        while k < len(needed):
            trial = needed[:k] + needed[k + width :]
            if is_empty(without_rules(program, set(names) - set(trial)), backend, settings):
                needed = trial
            else:
                k += width
        width = width // 2 if width > 1 else 0
    return tuple(needed)
