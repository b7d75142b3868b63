"""ADMMBO (Ariafar et al. 2019). Read ``admmbo`` first, then ``state`` and ``models``.

settings has the paper's values, coordinates the vectors of points.
"""

from mipcash.methods.admmbo.admmbo import Admmbo
from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.optimizers.registry import Entry

__all__ = ["ADMMBO", "Admmbo", "AdmmboSettings"]

ADMMBO = Entry(Admmbo, AdmmboSettings)
