"""ADMM for CASH (Liu et al. 2020; Ram et al. 2020) and JOPT. Read ``admm`` first, then ``state``, ``theta_min`` and ``z_min``.

settings has the papers' values and the rewards, variables the split into z and theta, matern the process of the sub-solvers,
augmented the black-box part of the Lagrangian, legal the rules in the subproblems, jopt the joint optimization.
"""

from mipcash.methods.admm.admm import Admm
from mipcash.methods.admm.jopt import Jopt, JoptSettings
from mipcash.methods.admm.settings import AdmmSettings
from mipcash.optimizers.registry import Entry

__all__ = ["ADMM", "JOPT", "Admm", "AdmmSettings", "Jopt", "JoptSettings"]

ADMM = Entry(Admm, AdmmSettings)
JOPT = Entry(Jopt, JoptSettings)
