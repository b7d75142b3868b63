"""Names of the optimizers of this package: of the core, and of the methods where they are installed."""

from importlib.metadata import entry_points
from importlib.util import find_spec

from mipcash.optimizers.registry import CORE, GROUP

WITH_METHODS = find_spec("mipcash.methods") is not None
"""The core's tests run without them, too."""
_OWN = [p.name for p in entry_points(group=GROUP) if p.dist is not None and p.dist.name == "mipcash"]
METHODS = sorted(_OWN) if WITH_METHODS else []
OPTIMIZERS = [*CORE, *METHODS]


def installed(*names: str) -> list[str]:
    """Return those of some optimizers that are there."""
    return [name for name in names if name in OPTIMIZERS]
