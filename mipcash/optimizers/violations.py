"""Violations of outcome constraints, on the scale on which the outputs are modelled.

Notation
    t observations, m outcome constraints
    W (t, m)    violations: distance of output m from its bounds on the scale, 0 if feasible, inf if the output is not known
                (``mipcash.surrogates.limit_scale``)

A configuration that was measured several times violates a constraint if the mean of its measurements does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipcash.optimizers.optimizer import History, Limit
from mipcash.optimizers.outcome import PRESENT
from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.limit_scale import LimitScale


def present(reported: History, output: str) -> tuple[Indices, Vector]:
    """Return the rows at which an output is known, (k,), increasing, and its values there, (k,)."""
    outputs = [o.outcome[output] for o in reported]
    rows = np.array([k for k, o in enumerate(outputs) if o.status == PRESENT], dtype=np.int64)
    return rows, np.array([outputs[k].value for k in rows], dtype=float)


def violations(reported: History, limits: Sequence[Limit]) -> tuple[Vector, dict[str, LimitScale]]:
    """Return W, and by name the scales of the constrained outputs that are known at least once."""
    apart, scales = np.full((len(reported), len(limits)), np.inf), dict[str, LimitScale]()
    numbers = dict[str, int]()
    configs = np.array([numbers.setdefault(repr(o.config), len(numbers)) for o in reported if limits], dtype=np.int64)
    for m, limit in enumerate(limits):
        rows, values = present(reported, limit.output)
        if len(rows):
            scale = scales[limit.output] = LimitScale.of(limit.low, limit.high, values)
            if len(numbers) < len(reported):
                of = configs[rows]
                values = (np.bincount(of, values) / np.maximum(1, np.bincount(of)))[of]
            apart[rows, m] = scale.violation(values)
    return apart, scales
