"""Analytic stand-ins for expensive objectives: reproducible losses in microseconds for any space."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from itertools import combinations
from typing import Any

import mipcash as mc


def proxy(space: mc.Space, seed: int = 0) -> Callable[[dict[str, Any]], float]:
    """Return a random function of a space: effects of every parameter, and of one pair of parameters in six.

    Effects are drawn by hashing (seed, names, values), so that they depend neither on the order of evaluation nor on
    the process; numbers contribute a parabola and a slope on their unit scale. An inactive parameter contributes
    nothing.
    """
    domains = {name: p.domain for name, p in space.parameters.items()}

    def unit(*key: object) -> float:
        return zlib.crc32(repr((seed, *key)).encode()) / 2**32 * 2.0 - 1.0

    def term(name: str, value: Any) -> tuple[object, float]:
        domain = domains[name]
        if domain.kind in ("real", "integer"):
            u = domain.to_unit(value)  # type: ignore[union-attr]
            return None, unit(name, "slope") * u + 2.0 * (u - 0.5 - 0.5 * unit(name, "best")) ** 2
        return value, unit(name, value)

    def loss(config: dict[str, Any]) -> float:
        total = 0.0
        parts = {name: term(name, value) for name, value in config.items()}
        for _, effect in parts.values():
            total += effect
        for a, b in combinations(sorted(parts), 2):
            if unit("coupled", a, b) > 2.0 / 3.0:
                total += unit(a, parts[a][0], b, parts[b][0]) * (0.5 + math.tanh(parts[a][1]) * math.tanh(parts[b][1]))
        return total

    return loss
