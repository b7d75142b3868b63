"""Names of the optimizers of this package: of the core, and of the methods, without what other packages register."""

from importlib.metadata import entry_points

from mipcash.optimizers.registry import CORE, GROUP

METHODS = sorted(p.name for p in entry_points(group=GROUP) if p.dist is not None and p.dist.name == "mipcash")
OPTIMIZERS = [*CORE, *METHODS]
