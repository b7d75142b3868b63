"""Residuals of an ADMM optimizer, as recorded in the traces of its proposals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.study.result import Result

NAMES = {"primal": "primal residual", "dual": "dual residual", "outside": "residual of the outcome constraints"}
"""Entry of a trial's trace -> its name in pictures."""
COLORS = {"primal": "#2f7d4f", "dual": "#c77f1a", "outside": "#c0392b"}
LEAST = 1e-6
"""Smaller residuals are drawn at this value, because the axis is logarithmic."""


@dataclass(frozen=True)
class Residuals:
    """Residuals of a run.

    Attributes:
        x: (n,) evaluations from 1.
        values: by name, (n,), nan if a trial has none.
    """

    x: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, result: Result) -> Residuals | None:
        """Return the residuals of a run; None if its optimizer reports none."""
        x = np.array([t.number + 1.0 for t in result.history])
        values = {name: np.array([_number(t.trace.get(name)) for t in result.history], dtype=float) for name in NAMES}
        reported = {name: v for name, v in values.items() if np.any(np.isfinite(v)) and np.nanmax(v) > 0.0}
        return cls(x, reported) if reported else None


def _number(value: Any) -> float:
    """Return a residual as a float; nan for any other content of the journal."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
    return float(value) if known else float("nan")


def draw_residuals(axes: Any, residuals: Residuals) -> None:
    """Draw the residuals as steps by evaluation, on a logarithmic scale."""
    for name, values in residuals.values.items():
        known = np.isfinite(values)
        kept = np.maximum(values[known], LEAST)
        axes.step(residuals.x[known], kept, where="post", color=COLORS[name], linewidth=1.4, label=NAMES[name])
    axes.set_yscale("log")
