"""Repeatable compilation: equal declarations give equal programs, independent of memory addresses."""

from __future__ import annotations

import numpy as np

import mipcash as mc
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled


def declared() -> mc.Space:
    space = mc.Space("products")
    x = [space.real(f"x{k}", 0.0, 1.0 + k) for k in range(6)]
    n = space.integer("n", 1, 4)
    space.rule("reals", x[3] * x[0] + x[1] * x[5] + x[4] * x[2] <= 2)
    space.rule("mixed", n * x[5] + x[2] * n + x[0] <= 9)
    return space


def written(program: BinaryProgram) -> list[bytes]:
    m = program.matrix
    arrays = (m.data, m.indices, m.indptr, program.low, program.high, program.row_low, program.row_high)
    return [np.asarray(a).tobytes() for a in arrays] + ["|".join(program.names).encode()]


def test_a_program_does_not_depend_on_addresses() -> None:
    rng = np.random.default_rng(0)
    first, litter = written(compiled(declared()).program), []
    for _ in range(25):
        # leave holes in memory, so that the variables of the next space lie in another order
        litter.append([object() for _ in range(int(rng.integers(1, 5000)))])
        spaces = [declared() for _ in range(2)]
        del litter[int(rng.integers(len(litter)))], spaces[0]
        assert written(compiled(spaces[0]).program) == first
