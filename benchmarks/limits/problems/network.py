"""The network under limits of size, see :mod:`benchmarks.limits.network_size`."""

from __future__ import annotations

from benchmarks.limits import network_size as size
from benchmarks.peers.problem import Config, Problem

_known: dict[str, dict[str, float]] = {}


def network(config: Config) -> dict[str, float]:
    """Configurations are remembered."""
    key = repr(sorted(config.items()))
    if key not in _known:
        _known[key] = size.objective(config)
    return _known[key]


PROBLEMS = (
    Problem(
        name="network",
        space=size.space,
        objective=network,
        group="rules",
        optimum=0.17177941,
        reference=0.6067,
        certificate="best known",
        source="digits of scikit-learn, a network trained by NumPy; parameters and multiply-adds counted",
        limits=size.LIMITS,
        tolerance=1e-9,
    ),
)
