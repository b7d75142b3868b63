"""Registry entries of the rivals."""

from __future__ import annotations

from benchmarks.rivals.annealing import AnnealingSettings, GPAnnealing, GPAnnealingSettings, MiVaBOAnnealing
from benchmarks.rivals.constraints import AdaptivePercentile, AugmentedLagrangian, LowerBound, Penalty, RivalSettings
from benchmarks.rivals.joint_gp import JointGP, JointGPSettings
from mipcash.optimizers.registry import Entry

ADAPTIVE_PERCENTILE = Entry(AdaptivePercentile, RivalSettings)
AUGMENTED_LAGRANGIAN = Entry(AugmentedLagrangian, RivalSettings)
GP_ANNEALING = Entry(GPAnnealing, GPAnnealingSettings)
JOINT_GP = Entry(JointGP, JointGPSettings)
LOWER_BOUND = Entry(LowerBound, RivalSettings)
MIVABO_ANNEALING = Entry(MiVaBOAnnealing, AnnealingSettings)
PENALTY = Entry(Penalty, RivalSettings)
