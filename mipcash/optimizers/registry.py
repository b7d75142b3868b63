"""Optimizers by name: those of the core, and those that installed packages register as entry points.

A package adds an optimizer by an entry point of the group ``mipcash.optimizers``, whose object is an ``Entry``:

    [project.entry-points."mipcash.optimizers"]
    mine = "my_package.optimizer:ENTRY"

The published methods (``mipcash.methods``) are registered in this way. An entry point is imported on first use of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mipcash.backends.task import Backend
from mipcash.errors import MipcashError
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.multi_fidelity import MultiFidelity
from mipcash.optimizers.mutation import Mutation, MutationSettings
from mipcash.optimizers.optimizer import Optimizer
from mipcash.optimizers.random import RandomSearch, RandomSettings
from mipcash.space.domain import Domain
from mipcash.space.space import Space
from mipcash.text import did_you_mean

GROUP = "mipcash.optimizers"


@dataclass(frozen=True)
class Entry:
    """Registry entry of an optimizer, which a package declares as an entry point of the group ``mipcash.optimizers``.

    Args:
        make: makes the optimizer from a domain and settings.
        settings: the dataclass of its settings.
        default: makes its default settings; None: ``settings()``.

    Examples:
        >>> from mipcash.optimizers.random import RandomSearch, RandomSettings
        >>> from mipcash.optimizers.registry import Entry
        >>> Entry(RandomSearch, RandomSettings).defaults()
        RandomSettings(attempts=8)
    """

    make: Callable[..., Optimizer]
    settings: type
    default: Callable[[], Any] | None = None

    def defaults(self) -> Any:
        """Return the default settings.

        Returns:
            An object of the class ``settings``.
        """
        return (self.default or self.settings)()


CORE: Mapping[str, Entry] = {
    "hybrid": Entry(Hybrid, HybridSettings),
    "mutation": Entry(Mutation, MutationSettings),
    "random": Entry(RandomSearch, RandomSettings),
}


def optimizer_names() -> list[str]:
    """Return the names accepted by ``optimizer=``."""
    return [*CORE, *sorted(_registered().keys() - CORE.keys())]


def entry_of(name: str) -> Entry:
    """Return an optimizer's entry.

    Raises:
        MipcashError: there is no such optimizer, or the package that registers it cannot be imported.
    """
    if name in CORE:
        return CORE[name]
    point = _registered().get(name)
    if point is None:
        raise MipcashError(f"there is no optimizer {name!r}; {did_you_mean(name, optimizer_names(), 'there are')}")
    source = f"package {point.dist.name!r}" if point.dist is not None else "a package"
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise MipcashError(
            f"optimizer {name!r} is registered by {source} as {point.value}, which cannot be imported: {error}; install the "
            "package again"
        ) from error
    if not isinstance(found, Entry):
        raise MipcashError(
            f"optimizer {name!r} is registered by {source} as {point.value}, which is a {type(found).__name__}; it must be a "
            "mipcash.optimizers.registry.Entry"
        )
    return found


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def make_optimizer(name: str, space: Space, solver: str | Backend = "auto", settings: Any = None) -> Optimizer:
    """Make an optimizer by name.

    Args:
        settings: the optimizer's settings dataclass, or a dict of the settings that differ from its defaults; None for its
            defaults.

    Raises:
        MipcashError: the name is unknown, or the settings belong to another optimizer or do not exist.
        SolverError: the solver is not installed.
    """
    entry = entry_of(name)
    if isinstance(settings, Mapping):
        settings = changed(name, entry.defaults(), settings)
    if settings is not None and not isinstance(settings, entry.settings):
        owner = _owner(settings)
        hint = f"; they belong to optimizer={owner!r}" if owner else ""
        raise MipcashError(f"optimizer {name!r} takes {entry.settings.__name__}, got {type(settings).__name__}{hint}")
    domain = Domain.of(space, solver)
    made = entry.make(domain, entry.defaults() if settings is None else settings)
    fidelity = domain.declaration.fidelity
    return made if fidelity is None else MultiFidelity(made, domain, fidelity)


def _owner(settings: Any) -> str:
    """Return the name of an optimizer with settings of this type, or "" if there is none."""
    for name in optimizer_names():
        try:
            if isinstance(settings, entry_of(name).settings):
                return name
        except MipcashError:  # an import error of another package does not belong in this message
            continue
    return ""


def changed(name: str, settings: Any, given: Mapping[str, Any]) -> Any:
    """Return the settings of an optimizer, updated with those given by name.

    Raises:
        MipcashError: the optimizer has no such setting.
    """
    known = [field.name for field in fields(settings)]
    for setting in given:
        if setting not in known:
            raise MipcashError(f"optimizer {name!r} has no setting {setting!r}; {did_you_mean(setting, known)}")
    return replace(settings, **given)
