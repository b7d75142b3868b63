"""Screening of large batches by posteriors given fewer observations.

Notation
    B points of a batch, t observations, NEAR of which a variance is conditioned on (``mipcash.surrogates.structured.posterior``)

A batch costs O(B t) of the kernel. With many observations, the acquisition function by the posteriors given the NEAR observations
ranks it, O(B NEAR), and only the KEPT most promising points have their exact values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.inputs import AcquisitionInputs
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Posterior, Section
from mipcash.surrogates.structured.posterior import StructuredPosterior

KEPT = 64
"""Number of points of a batch whose values are exact."""


@dataclass(frozen=True)
class Screened:
    """An acquisition function whose large batches are screened.

    Attributes:
        exact: the function.
        rough: an approximation that is cheaper for a batch.
    """

    exact: Acquisition
    rough: Acquisition

    def values(self, points: Points) -> Vector:
        """Return the acquisition at the most promising points of a batch, and inf at the others: shape (B,)."""
        if len(points) <= KEPT:
            return self.exact.values(points)
        rows = np.argsort(self.rough.values(points), kind="stable")[:KEPT]
        values = np.full(len(points), np.inf)
        values[rows] = self.exact.values(points[rows])
        return values

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,)."""
        return self.exact.section(z)


def rough(inputs: AcquisitionInputs) -> AcquisitionInputs | None:
    """Return the inputs of an approximation; None if it would not be cheaper. Draws of pending outcomes are left out."""
    loss = inputs.loss
    if not isinstance(loss, StructuredPosterior) or loss.near_part is loss:
        return None
    limited = {name: replace(l, posterior=_near(l.posterior)) for name, l in inputs.limited.items()}
    return replace(inputs, loss=loss.near_part, limited=limited, fantasies=None)


def _near(posterior: Posterior) -> Posterior:
    return posterior.near_part if isinstance(posterior, StructuredPosterior) else posterior
