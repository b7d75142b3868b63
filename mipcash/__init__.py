"""mipcash: the best configuration of an expensive black box, under rules that are known in advance.

``import mipcash`` is light: solvers, Pyomo and scikit-learn are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Space": "mipcash.oracle.space",
    "Real": "mipcash.space.domains",
    "Integer": "mipcash.space.domains",
    "Ordinal": "mipcash.space.domains",
    "Categorical": "mipcash.space.domains",
    "Solution": "mipcash.backends.solution",
    "Study": "mipcash.study.study",
    "Trial": "mipcash.study.trial",
    "Failed": "mipcash.study.trial",
    "Result": "mipcash.study.result",
    "minimize": "mipcash.study.minimize",
    "HybridSettings": "mipcash.optimizers.hybrid",
    "MiVaBOSettings": "mipcash.optimizers.mivabo",
    "JointGPSettings": "mipcash.optimizers.joint_gp",
    "AnnealingSettings": "mipcash.optimizers.annealing",
    "GPAnnealingSettings": "mipcash.optimizers.annealing",
    "AlternatingSettings": "mipcash.acquisition.alternating",
    "DecompositionSettings": "mipcash.acquisition.decomposition",
    "PolishSettings": "mipcash.acquisition.polish",
    "SolverSettings": "mipcash.backends.base",
    "FeatureSizes": "mipcash.surrogates.models",
    "SparseSettings": "mipcash.surrogates.scales",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from mipcash.acquisition.alternating import AlternatingSettings as AlternatingSettings
    from mipcash.acquisition.decomposition import DecompositionSettings as DecompositionSettings
    from mipcash.acquisition.polish import PolishSettings as PolishSettings
    from mipcash.backends.base import SolverSettings as SolverSettings
    from mipcash.backends.solution import Solution as Solution
    from mipcash.optimizers.annealing import AnnealingSettings as AnnealingSettings
    from mipcash.optimizers.annealing import GPAnnealingSettings as GPAnnealingSettings
    from mipcash.optimizers.hybrid import HybridSettings as HybridSettings
    from mipcash.optimizers.joint_gp import JointGPSettings as JointGPSettings
    from mipcash.optimizers.mivabo import MiVaBOSettings as MiVaBOSettings
    from mipcash.oracle.space import Space as Space
    from mipcash.space.domains import Categorical as Categorical
    from mipcash.space.domains import Integer as Integer
    from mipcash.space.domains import Ordinal as Ordinal
    from mipcash.space.domains import Real as Real
    from mipcash.study.minimize import minimize as minimize
    from mipcash.study.result import Result as Result
    from mipcash.study.study import Study as Study
    from mipcash.study.trial import Failed as Failed
    from mipcash.study.trial import Trial as Trial
    from mipcash.surrogates.models import FeatureSizes as FeatureSizes
    from mipcash.surrogates.scales import SparseSettings as SparseSettings


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mipcash' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
