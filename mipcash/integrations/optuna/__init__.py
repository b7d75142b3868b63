"""Optuna: a sampler whose proposals obey the rules of a space, and trials of Optuna as known data.

Read in this order:

sampler          the sampler
search           its proposals
history, ranges  trials and distributions of Optuna, as the library has them
notes            proposals in Optuna's storage
known            trials as known evaluations
"""

from __future__ import annotations

from mipcash.integrations.optuna.known import known_from
from mipcash.integrations.optuna.sampler import MipcashSampler

__all__ = ["MipcashSampler", "known_from"]
