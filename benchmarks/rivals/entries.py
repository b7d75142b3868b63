"""Registry entries of the rivals."""

from __future__ import annotations

from benchmarks.rivals.adaptive_percentile import AdaptivePercentile, PercentileSettings
from benchmarks.rivals.joint_gp import JointGP, JointGPSettings
from mipcash.optimizers.registry import Entry

ADAPTIVE_PERCENTILE = Entry(AdaptivePercentile, PercentileSettings)
JOINT_GP = Entry(JointGP, JointGPSettings)
