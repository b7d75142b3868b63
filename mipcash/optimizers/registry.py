"""Optimizers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from mipcash.backends.base import Backend
from mipcash.errors import MipcashError
from mipcash.optimizers.admm.admm import Admm
from mipcash.optimizers.admm.settings import AdmmSettings
from mipcash.optimizers.admmbo.admmbo import Admmbo
from mipcash.optimizers.admmbo.settings import AdmmboSettings
from mipcash.optimizers.base import Optimizer
from mipcash.optimizers.baselines.annealing import AnnealingSettings, GPAnnealing, GPAnnealingSettings, MiVaBOAnnealing
from mipcash.optimizers.baselines.joint_gp import JointGP, JointGPSettings
from mipcash.optimizers.baselines.mutation import Mutation, MutationSettings
from mipcash.optimizers.baselines.random import RandomSearch, RandomSettings
from mipcash.optimizers.cmes import Cmes, CmesSettings
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.mivabo import MiVaBO, MiVaBOSettings
from mipcash.space.domain import Domain
from mipcash.space.space import Space


def _catalogue() -> dict[str, tuple[Callable[..., Optimizer], type, Callable[[], Any]]]:
    """Name -> constructor, type of its settings, default settings."""
    return {
        "hybrid": (Hybrid, HybridSettings, HybridSettings),
        "cmes": (Cmes, CmesSettings, CmesSettings),
        "mivabo": (MiVaBO, MiVaBOSettings, MiVaBOSettings),
        "mivabo-paper": (MiVaBO, MiVaBOSettings, MiVaBOSettings.paper),
        "mivabo-annealing": (MiVaBOAnnealing, AnnealingSettings, AnnealingSettings),
        "gp-annealing": (GPAnnealing, GPAnnealingSettings, GPAnnealingSettings),
        "joint-gp": (JointGP, JointGPSettings, JointGPSettings),
        "jopt": (JointGP, JointGPSettings, JointGPSettings.jopt),
        "admm": (Admm, AdmmSettings, AdmmSettings),
        "admmbo": (Admmbo, AdmmboSettings, AdmmboSettings),
        "mutation": (Mutation, MutationSettings, MutationSettings),
        "random": (RandomSearch, RandomSettings, RandomSettings),
    }


def optimizer_names() -> list[str]:
    """The names that ``optimizer=`` takes."""
    return list(_catalogue())


def make_optimizer(name: str, space: Space, solver: str | Backend = "auto", settings: Any = None) -> Optimizer:
    """An optimizer by name.

    Args:
        settings: the optimizer's settings dataclass, or a dict of those that differ from its defaults; None: its defaults.

    Raises:
        MipcashError: unknown name, settings of another optimizer, or one that it does not have.
        SolverError: the solver is not installed.
    """
    catalogue = _catalogue()
    if name not in catalogue:
        close = difflib.get_close_matches(name, catalogue, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise MipcashError(f"there is no optimizer {name!r}{hint} (there are {', '.join(catalogue)})")
    make, kind, default = catalogue[name]
    if isinstance(settings, Mapping):
        settings = changed(name, default(), settings)
    if settings is not None and not isinstance(settings, kind):
        owners = [other for other, (_, its, _) in catalogue.items() if isinstance(settings, its)]
        hint = f"; they belong to optimizer={owners[0]!r}" if owners else ""
        raise MipcashError(f"optimizer {name!r} takes {kind.__name__}, got {type(settings).__name__}{hint}")
    return make(Domain.of(space, solver), default() if settings is None else settings)


def changed(name: str, settings: Any, given: Mapping[str, Any]) -> Any:
    """The default settings of an optimizer, with what is given by name in their place.

    Raises:
        MipcashError: it has no such setting.
    """
    known = [field.name for field in fields(settings)]
    for setting in given:
        if setting not in known:
            close = difflib.get_close_matches(str(setting), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"
            raise MipcashError(f"optimizer {name!r} has no setting {setting!r}; {hint}")
    return replace(settings, **given)
