"""Constrained max-value entropy search (Perrone et al. 2019). Read ``cmes`` first, then ``entropy_search``."""

from mipcash.methods.cmes.cmes import Cmes, CmesSettings
from mipcash.optimizers.registry import Entry

__all__ = ["CMES", "Cmes", "CmesSettings"]

CMES = Entry(Cmes, CmesSettings)
