"""How far outputs lie outside their limits, on the scale on which limits are learned.

Notation
    t observations, m limits
    W (t, m)    violations: how far output m lies outside its limit, 0 where it keeps it, inf where it is not known
                (:mod:`mipcash.surrogates.limit_scale`)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.optimizers.optimizer import History, Limit
from mipcash.optimizers.outcome import PRESENT
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.limit_scale import LimitScale


def present(told: History, output: str) -> tuple[Indices, Vector]:
    """Where an output is known, and its values there: rows (k,), increasing, and (k,)."""
    outputs = [o.outcome[output] for o in told]
    rows = np.array([k for k, o in enumerate(outputs) if o.status == PRESENT], dtype=np.int64)
    return rows, np.array([outputs[k].value for k in rows], dtype=float)


def violations(told: History, limits: Sequence[Limit]) -> tuple[Vector, dict[str, LimitScale]]:
    """W, and the scales of the limited outputs that are known somewhere, by name."""
    apart, scales = np.full((len(told), len(limits)), np.inf), dict[str, LimitScale]()
    for m, limit in enumerate(limits):
        rows, values = present(told, limit.output)
        if len(rows):
            scale = scales[limit.output] = LimitScale.of(limit.low, limit.high, values)
            apart[rows, m] = scale.violation(values)
    return apart, scales
