"""Optuna: a sampler whose proposals obey the rules of a space, and trials of Optuna as known data."""

from __future__ import annotations

from mipcash.integrations.optuna.known import known_from
from mipcash.integrations.optuna.sampler import MipcashSampler

__all__ = ["MipcashSampler", "known_from"]
