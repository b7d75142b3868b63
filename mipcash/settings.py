"""Settings for experts: ``mc.settings.HybridSettings(n_initial=8)``. Each is a frozen dataclass, imported at first use.

There is one class per core optimizer, for the argument ``settings=``, which also takes a dict of the fields that differ from the
defaults. The other classes are types of their fields. Settings of a published method are in the module of that method:
``from mipcash.methods.admm import AdmmSettings``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipcash.lazy import attributes_of

_HOMES = {
    "AlternatingSettings": "mipcash.acquisition.alternating",
    "HybridSettings": "mipcash.optimizers.hybrid",
    "MutationSettings": "mipcash.optimizers.mutation",
    "LocalSearchSettings": "mipcash.acquisition.mixed_search",
    "RandomSettings": "mipcash.optimizers.random",
    "SolverSettings": "mipcash.backends.task",
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from mipcash.acquisition.alternating import AlternatingSettings as AlternatingSettings
    from mipcash.acquisition.mixed_search import LocalSearchSettings as LocalSearchSettings
    from mipcash.backends.task import SolverSettings as SolverSettings
    from mipcash.optimizers.hybrid import HybridSettings as HybridSettings
    from mipcash.optimizers.mutation import MutationSettings as MutationSettings
    from mipcash.optimizers.random import RandomSettings as RandomSettings


if not TYPE_CHECKING:  # type checkers use the imports above and report unknown names themselves
    __getattr__ = attributes_of(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(_HOMES)
