"""ADMM for CASH (Liu et al. 2020; Ram et al. 2020) and JOPT. Read ``admm`` first, then ``state``, ``theta_min`` and ``z_min``."""

from mipcash.methods.admm.admm import Admm
from mipcash.methods.admm.jopt import Jopt, JoptSettings
from mipcash.methods.admm.settings import AdmmSettings
from mipcash.optimizers.registry import Entry

__all__ = ["ADMM", "JOPT", "Admm", "AdmmSettings", "Jopt", "JoptSettings"]

ADMM = Entry(Admm, AdmmSettings)
JOPT = Entry(Jopt, JoptSettings)
