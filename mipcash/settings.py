"""Settings for experts: ``mc.settings.HybridSettings(n_initial=8)``. Each is a frozen dataclass, imported at first use.

One per optimizer, which ``settings=`` takes (or a dict of those that differ from the defaults), and those that they consist of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipcash.lazy import attributes_of

_HOMES = {
    "AdmmSettings": "mipcash.optimizers.admm.settings",
    "AdmmboSettings": "mipcash.optimizers.admmbo.settings",
    "AlternatingSettings": "mipcash.acquisition.alternating",
    "AnnealingSettings": "mipcash.optimizers.baselines.annealing",
    "CmesSettings": "mipcash.optimizers.cmes",
    "DecompositionSettings": "mipcash.acquisition.decomposition.search",
    "FeatureSizes": "mipcash.surrogates.linear.blocks",
    "GPAnnealingSettings": "mipcash.optimizers.baselines.annealing",
    "HybridSettings": "mipcash.optimizers.hybrid",
    "JointGPSettings": "mipcash.optimizers.baselines.joint_gp",
    "MiVaBOSettings": "mipcash.optimizers.mivabo",
    "MutationSettings": "mipcash.optimizers.baselines.mutation",
    "PolishSettings": "mipcash.acquisition.mixed_search",
    "RandomSettings": "mipcash.optimizers.baselines.random",
    "SolverSettings": "mipcash.backends.base",
    "SparseSettings": "mipcash.surrogates.linear.sparse.mixture",
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from mipcash.acquisition.alternating import AlternatingSettings as AlternatingSettings
    from mipcash.acquisition.decomposition.search import DecompositionSettings as DecompositionSettings
    from mipcash.acquisition.mixed_search import PolishSettings as PolishSettings
    from mipcash.backends.base import SolverSettings as SolverSettings
    from mipcash.optimizers.admm.settings import AdmmSettings as AdmmSettings
    from mipcash.optimizers.admmbo.settings import AdmmboSettings as AdmmboSettings
    from mipcash.optimizers.baselines.annealing import AnnealingSettings as AnnealingSettings
    from mipcash.optimizers.baselines.annealing import GPAnnealingSettings as GPAnnealingSettings
    from mipcash.optimizers.baselines.joint_gp import JointGPSettings as JointGPSettings
    from mipcash.optimizers.baselines.mutation import MutationSettings as MutationSettings
    from mipcash.optimizers.baselines.random import RandomSettings as RandomSettings
    from mipcash.optimizers.cmes import CmesSettings as CmesSettings
    from mipcash.optimizers.hybrid import HybridSettings as HybridSettings
    from mipcash.optimizers.mivabo import MiVaBOSettings as MiVaBOSettings
    from mipcash.surrogates.linear.blocks import FeatureSizes as FeatureSizes
    from mipcash.surrogates.linear.sparse.mixture import SparseSettings as SparseSettings


if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__ = attributes_of(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(_HOMES)
