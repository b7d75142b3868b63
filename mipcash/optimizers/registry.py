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
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.space.space import Space
from mipcash.text import did_you_mean, shown

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
    points = _registered().get(name, [])
    if not points:
        raise MipcashError(f"there is no optimizer {name!r}; {did_you_mean(name, optimizer_names(), 'there are')}")
    if len(points) > 1:
        which = " and ".join(f"{p.value} of {'a package' if p.dist is None else p.dist.name}" for p in points)
        raise MipcashError(f"optimizer {name!r} is registered more than once, as {which}; remove one of the packages")
    point = points[0]
    source = f"package {point.dist.name!r}" if point.dist is not None else "a package"
    try:
        found = point.load()
    except Exception as error:  # a module of another package may raise anything
        raise MipcashError(
            f"optimizer {name!r} is registered by {source} as {point.value}, which cannot be imported: "
            f"{type(error).__name__}: {error}; install the package again, or correct it"
        ) from error
    if not isinstance(found, Entry):
        raise MipcashError(
            f"optimizer {name!r} is registered by {source} as {point.value}, which is a {type(found).__name__}; it must be a "
            "mipcash.optimizers.registry.Entry"
        )
    return found


def _registered() -> dict[str, list[EntryPoint]]:
    """Return the registered entry points by name; one that a package declares twice, as an editable one may, counts once."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, {})[point.value] = point
    return {name: list(points.values()) for name, points in found.items()}


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
    if not isinstance(made, Optimizer) or not isinstance(getattr(made, "name", None), str):
        raise MipcashError(
            f"optimizer {name!r}: its Entry made {shown(made)}, which is no mipcash.optimizers.optimizer.Optimizer with a name"
        )
    return with_fidelity(made, space)


def with_fidelity(optimizer: Optimizer, space: Space) -> Optimizer:
    """Return the optimizer, which chooses a fidelity for each proposal if the space has one.

    Raises:
        MipcashError: the space has a fidelity, and the optimizer cannot search sub-spaces.
    """
    fidelity = compiled(space).declaration.fidelity
    if fidelity is None or isinstance(optimizer, MultiFidelity):
        return optimizer
    if type(optimizer).restricted is Optimizer.restricted:
        raise MipcashError(
            f"optimizer {optimizer.name!r} has no method restricted(fixed), which a space with a fidelity needs "
            f"({fidelity.label!r}); declare {fidelity.label!r} as a parameter, or take 'hybrid'"
        )
    return MultiFidelity(optimizer, getattr(optimizer, "domain", None) or Domain.of(space), fidelity)


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
