"""Spaces of other libraries as constructors of ``Space``; the converters are in :mod:`mipcash.integrations.spaces`.

The compiled program as a file that other solvers read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from mipcash.errors import SolverError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration
from mipcash.space.compiled import CompiledSpace


def export(space: CompiledSpace, path: str | os.PathLike[str], suffix: str) -> Path:
    """Write the program, without an objective.

    The solver writes to a folder of its own: one that cannot open a file may end the process, without a word.

    Args:
        path: the file; without the suffix it is added.
        suffix: ``.lp`` or ``.mps``.

    Returns:
        The file that was written.

    Raises:
        SolverError: it cannot be written; path, cause and cure.
        TypeError: it is no path.
    """
    from mipcash.backends.highs import program_text

    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"the path of a program is a str or a Path, such as 'space{suffix}', got {path!r}")
    if not os.fspath(path):
        raise SolverError(f"the program cannot be written: the path is empty; give a file, such as 'space{suffix}'")
    target = _target(Path(path), suffix)
    names = [re.sub(r"[^A-Za-z0-9_]+", "_", name) for name in space.program.names]
    text = program_text(space.program, [f"{name}_{k}" for k, name in enumerate(names)], suffix)
    try:
        target.write_bytes(text)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise SolverError(
            f"the program cannot be written to {str(target)!r}: {cause}; check its permissions and the space on the disk, "
            "or give another file"
        ) from error
    return target


def _target(given: Path, suffix: str) -> Path:
    """The file to write, after a look at the place.

    Raises:
        SolverError: it can be seen that it cannot be written.
    """
    try:
        path = given.expanduser()
        target = path if path.suffix.lower() == suffix else path.with_name(path.name + suffix) if path.name else path
        taken = path if path.is_dir() else target if target.is_dir() else None
        missing = None if target.parent.is_dir() else target.parent
    except (OSError, RuntimeError, ValueError) as error:
        raise SolverError(
            f"the program cannot be written to {str(given)!r}: the path leads to no file ({error}); give another file"
        ) from error
    if taken is not None:
        example = taken / f"space{suffix}"
        raise SolverError(
            f"the program cannot be written to {str(taken)!r}: it is a folder; give a file, such as {str(example)!r}"
        )
    if missing is not None:
        what = (
            "is no folder; give another file" if missing.exists() else f"does not exist; create it (mkdir -p {missing})"
        )
        raise SolverError(f"the program cannot be written to {str(target)!r}: the folder {str(missing)!r} {what}")
    return target


DEFAULTS = 16
"""Legal configurations that are tried as the default of a space of ConfigSpace."""


def _converter(name: str) -> Any:
    """Import a module of :mod:`mipcash.integrations.spaces`, which the core finds by name alone."""
    return import_module(f"mipcash.integrations.spaces.{name}")


class Exchanged:
    """Constructors of ``Space`` from other libraries' spaces, and the way back. Converters are imported when they are used."""

    _declaration: Declaration

    @classmethod
    def from_optuna(cls, distributions: Mapping[str, Any], name: str = "space") -> Self:
        """A space of Optuna's distributions; add rules to it as to any other.

        Args:
            distributions: name -> ``FloatDistribution | IntDistribution | CategoricalDistribution``.

        Raises:
            SpaceError: see :func:`mipcash.integrations.spaces.optuna_distributions.declare_distributions`.
        """
        space = cls._empty(name)
        _converter("optuna_distributions").declare_distributions(space._declaration, distributions)
        return space

    def to_optuna(self) -> dict[str, Any]:
        """Optuna's distributions of the parameters.

        Raises:
            SpaceError: the space has rules or conditions, which they cannot say; the message names them.
        """
        found: dict[str, Any] = _converter("optuna_distributions").distributions_of(self._declaration)
        return found

    @classmethod
    def from_sklearn(
        cls, param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]], name: str = "space"
    ) -> Self:
        """A space of what ``RandomizedSearchCV`` or ``GridSearchCV`` would search; add rules to it as to any other.

        Args:
            param_distributions: name -> list of values, ``scipy.stats`` distribution (uniform, loguniform, randint) or ``mc.Real``
                ...; or a list of such dicts, of which one is active.

        Raises:
            SpaceError: see :func:`mipcash.integrations.spaces.param_distributions.declare_param_distributions`.
        """
        space = cls._empty(name)
        _converter("param_distributions").declare_param_distributions(space._declaration, param_distributions)
        return space

    @classmethod
    def from_configspace(cls, space: Any, name: str | None = None) -> Self:
        """A ``ConfigSpace.ConfigurationSpace``, its conditions as ``when=`` and its forbidden clauses as rules.

        Args:
            name: None: that of the space.

        Raises:
            SpaceError: see :func:`mipcash.integrations.spaces.from_configspace.declare_configspace`.
        """
        made = cls._empty(name or getattr(space, "name", None) or "space")
        _converter("from_configspace").declare_configspace(made._declaration, space)
        return made

    def to_configspace(self) -> Any:
        """A ``ConfigSpace.ConfigurationSpace`` of the same configurations, its default a legal one.

        Raises:
            SpaceError: a rule, a condition or an ordering that it cannot say, by name.
            InfeasibleSpaceError: the space is empty.
        """
        legal = (each for n in (1, DEFAULTS) for each in self._some(n))
        return _converter("to_configspace").configspace_of(self._declaration, legal)

    def _some(self, n: int) -> list[Configuration]:
        """Legal configurations."""
        raise NotImplementedError

    @classmethod
    def _empty(cls, name: str) -> Self:
        return cls(name)  # type: ignore[call-arg]
