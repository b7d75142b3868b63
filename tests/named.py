"""Names of the installed optimizers of this package: the core, and the methods if they are installed."""

import os
from importlib.metadata import entry_points
from importlib.util import find_spec

from mipcash.optimizers.registry import CORE, GROUP

WITH_METHODS = find_spec("mipcash.methods") is not None
"""False in the tests of the core alone, which run without the methods."""
_OWN = [p.name for p in entry_points(group=GROUP) if p.dist is not None and p.dist.name == "mipcash"]
METHODS = sorted(_OWN) if WITH_METHODS else []
OPTIMIZERS = os.environ.get("MIPCASH_OPTIMIZERS", "").split() or [*CORE, *METHODS]
"""Optimizers that the conformance tests run on; of another package by the variable ``MIPCASH_OPTIMIZERS``."""


def installed(*names: str) -> list[str]:
    """Return the given optimizers that are installed."""
    return [name for name in names if name in OPTIMIZERS]
