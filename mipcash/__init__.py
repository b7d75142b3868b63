"""mipcash: the best configuration of an expensive black box, under rules that are known in advance.

``import mipcash`` is light: solvers, Pyomo and scikit-learn are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
"""The only place that has it: wheel, command line and journals read it here."""

_HOMES = {
    "Space": "mipcash.space.space",
    "maximum": "mipcash.modelling.operators",
    "minimum": "mipcash.modelling.operators",
    "all_of": "mipcash.modelling.formulas",
    "any_of": "mipcash.modelling.formulas",
    "implies": "mipcash.modelling.formulas",
    "Real": "mipcash.modelling.domains",
    "Integer": "mipcash.modelling.domains",
    "Ordinal": "mipcash.modelling.domains",
    "Categorical": "mipcash.modelling.domains",
    "Solution": "mipcash.space.solution",
    "Study": "mipcash.study.study",
    "Trial": "mipcash.study.trial",
    "Failed": "mipcash.study.trial",
    "CrossValidated": "mipcash.integrations.sklearn.cross_validated",
    "Folds": "mipcash.study.folds",
    "ensemble": "mipcash.integrations.sklearn.ensemble",
    "ConfirmSettings": "mipcash.study.confirm",
    "Cost": "mipcash.study.spending",
    "Fits": "mipcash.study.spending",
    "Racing": "mipcash.study.racing",
    "Halving": "mipcash.study.racing",
    "Result": "mipcash.study.result",
    "minimize": "mipcash.study.minimize",
    "AdmmSettings": "mipcash.optimizers.admm.settings",
    "AdmmboSettings": "mipcash.optimizers.admmbo.settings",
    "HybridSettings": "mipcash.optimizers.hybrid",
    "CmesSettings": "mipcash.optimizers.cmes",
    "MiVaBOSettings": "mipcash.optimizers.mivabo",
    "JointGPSettings": "mipcash.optimizers.baselines.joint_gp",
    "AnnealingSettings": "mipcash.optimizers.baselines.annealing",
    "GPAnnealingSettings": "mipcash.optimizers.baselines.annealing",
    "AlternatingSettings": "mipcash.acquisition.alternating",
    "DecompositionSettings": "mipcash.acquisition.decomposition.search",
    "PolishSettings": "mipcash.acquisition.mixed_search",
    "SolverSettings": "mipcash.backends.base",
    "FeatureSizes": "mipcash.surrogates.linear.blocks",
    "SparseSettings": "mipcash.surrogates.linear.sparse.mixture",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from mipcash.acquisition.alternating import AlternatingSettings as AlternatingSettings
    from mipcash.acquisition.decomposition.search import DecompositionSettings as DecompositionSettings
    from mipcash.acquisition.mixed_search import PolishSettings as PolishSettings
    from mipcash.backends.base import SolverSettings as SolverSettings
    from mipcash.integrations.sklearn.cross_validated import CrossValidated as CrossValidated
    from mipcash.integrations.sklearn.ensemble import ensemble as ensemble
    from mipcash.modelling.domains import Categorical as Categorical
    from mipcash.modelling.domains import Integer as Integer
    from mipcash.modelling.domains import Ordinal as Ordinal
    from mipcash.modelling.domains import Real as Real
    from mipcash.modelling.formulas import all_of as all_of
    from mipcash.modelling.formulas import any_of as any_of
    from mipcash.modelling.formulas import implies as implies
    from mipcash.modelling.operators import maximum as maximum
    from mipcash.modelling.operators import minimum as minimum
    from mipcash.optimizers.admm.settings import AdmmSettings as AdmmSettings
    from mipcash.optimizers.admmbo.settings import AdmmboSettings as AdmmboSettings
    from mipcash.optimizers.baselines.annealing import AnnealingSettings as AnnealingSettings
    from mipcash.optimizers.baselines.annealing import GPAnnealingSettings as GPAnnealingSettings
    from mipcash.optimizers.baselines.joint_gp import JointGPSettings as JointGPSettings
    from mipcash.optimizers.cmes import CmesSettings as CmesSettings
    from mipcash.optimizers.hybrid import HybridSettings as HybridSettings
    from mipcash.optimizers.mivabo import MiVaBOSettings as MiVaBOSettings
    from mipcash.space.solution import Solution as Solution
    from mipcash.space.space import Space as Space
    from mipcash.study.confirm import ConfirmSettings as ConfirmSettings
    from mipcash.study.folds import Folds as Folds
    from mipcash.study.minimize import minimize as minimize
    from mipcash.study.racing import Halving as Halving
    from mipcash.study.racing import Racing as Racing
    from mipcash.study.result import Result as Result
    from mipcash.study.spending import Cost as Cost
    from mipcash.study.spending import Fits as Fits
    from mipcash.study.study import Study as Study
    from mipcash.study.trial import Failed as Failed
    from mipcash.study.trial import Trial as Trial
    from mipcash.surrogates.linear.blocks import FeatureSizes as FeatureSizes
    from mipcash.surrogates.linear.sparse.mixture import SparseSettings as SparseSettings


if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'mipcash' has no attribute {name!r}; it has {', '.join(__all__)}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
