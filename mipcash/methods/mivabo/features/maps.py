"""The protocol of continuous feature maps phi_c (daxberger2019, Sec. 3.1).

Notation
    u (B, D)    unit values of the numerical parameters;   phi(u) (B, q)   features;   J (q, D)   their derivatives at one point

A map is immutable: made once from its settings and a generator, it is a pure function of u. The model draws weights for its
features: a map that approximates a kernel k has phi(u) . phi(u') = k(u, u') with k(u, u) = 1. Every map is a sum of cosines here,
``amplitude_m cos(omega_m . u + phase_m)``.

    fourier     random Fourier features: any number of dimensions, error 1 / sqrt(q)
    quadrature  Gauss-Hermite quadrature: exponentially small error, m^D features
"""

from __future__ import annotations

import difflib
from typing import Protocol, runtime_checkable

from mipcash.errors import SpaceError
from mipcash.program.forms import Vector


class FeatureMap(Protocol):
    """phi_c (see the module's notation)."""

    @property
    def size(self) -> int:
        """q."""
        ...

    @property
    def ceiling(self) -> Vector:
        """Bounds of the absolute values of the features, shape (q,)."""
        ...

    def __call__(self, u: Vector) -> Vector:
        """Return the features: (B, D) -> (B, q)."""
        ...

    def gradient(self, u: Vector) -> Vector:
        """Return J at one point: (D,) -> (q, D)."""
        ...


@runtime_checkable
class CosineMap(FeatureMap, Protocol):
    """A map whose features are ``amplitude_m cos(omega_m . u + phase_m)``; a sum of several such maps has the same form."""

    @property
    def phase(self) -> Vector:
        """Shape (q,)."""
        ...

    @property
    def amplitude(self) -> Vector:
        """Shape (q,)."""
        ...

    def embedded(self, n_numbers: int) -> Vector:
        """Return omega over all numerical parameters, zero where the map does not depend on them: (q, D)."""
        ...


MAPS = ("fourier", "quadrature")
"""Kinds of maps."""


def known_map(kind: str) -> str:
    """Return the kind if there is such a map.

    Raises:
        SpaceError: there is none.
    """
    if kind not in MAPS:
        close = difflib.get_close_matches(kind, MAPS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise SpaceError(f"there are no features {kind!r}{hint} (there are {', '.join(MAPS)})")
    return kind
