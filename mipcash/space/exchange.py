"""Conversion of other libraries' spaces to and from ``Space``; the converters are in ``mipcash.integrations.spaces``.

It also exports the compiled program as a file for other solvers.
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
from mipcash.space.compiled import CompiledSpace


def export(space: CompiledSpace, path: str | os.PathLike[str], suffix: str) -> Path:
    """Write the program, without an objective.

    The solver writes to a temporary folder, because a solver that cannot open a file may end the process without a message.

    Args:
        path: the file; the suffix is added if it is missing.
        suffix: ``.lp`` or ``.mps``.

    Returns:
        The file that was written.

    Raises:
        SolverError: the file cannot be written, or rules multiply reals. The message names path, cause and cure.
        TypeError: ``path`` is not a path.
    """
    from mipcash.backends.highs import program_text

    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"the path of a program is a str or a Path, such as 'space{suffix}', got {path!r}")
    if space.program.bilinear:
        product = space.program.names[space.program.bilinear[0].column]
        raise SolverError(
            f"the program cannot be written to {str(path)!r}: its rules multiply reals ({product}), which the rows of this "
            "format do not hold; take discrete values for one factor (step=), or solve it by mipcash"
        )
    names = [re.sub(r"[^A-Za-z0-9_]+", "_", name) for name in space.program.names]
    text = program_text(space.program, [f"{name}_{k}" for k, name in enumerate(names)], suffix)
    try:
        target = Path(path).expanduser()
        target = target if target.suffix.lower() == suffix else target.with_name(target.name + suffix)
        target.write_bytes(text)
    except (OSError, RuntimeError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise SolverError(
            f"the program cannot be written to {str(path)!r}: {cause}; give another file, such as 'space{suffix}', in a folder "
            "that exists and can be written to"
        ) from error
    return target


def _converter(name: str) -> Any:
    """Import a module of ``mipcash.integrations.spaces``, which the core refers to only by name."""
    return import_module(f"mipcash.integrations.spaces.{name}")


class ExchangeMixin:
    """Constructors of ``Space`` from other libraries' spaces, and exports to them. Converters are imported when they are used."""

    _declaration: Declaration

    @classmethod
    def from_optuna(cls, distributions: Mapping[str, Any], name: str = "space") -> Self:
        """Return a space with the parameters of Optuna's distributions; rules can be added as to any other space.

        Args:
            distributions: name -> ``FloatDistribution | IntDistribution | CategoricalDistribution``.
            name: title of the space.

        Returns:
            The space.

        Raises:
            SpaceError: Optuna is missing, ``distributions`` is no dict, a value is no distribution, or choices are listed
                twice or not finite.
        """
        space = cls._empty(name)
        _converter("optuna_distributions").declare_distributions(space._declaration, distributions)
        return space

    def to_optuna(self) -> dict[str, Any]:
        """Return the parameters as Optuna distributions.

        Returns:
            Name -> distribution.

        Raises:
            SpaceError: the space has rules or conditions, which distributions cannot express; the message names them.
        """
        found: dict[str, Any] = _converter("optuna_distributions").distributions_of(self._declaration)
        return found

    @classmethod
    def from_sklearn(
        cls, param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]], name: str = "space"
    ) -> Self:
        """Return the space that ``RandomizedSearchCV`` or ``GridSearchCV`` would search; rules can be added as to any other space.

        Args:
            param_distributions: name -> list of values, ``scipy.stats`` distribution (uniform, loguniform, randint) or ``mc.Real``
                ...; or a list of such dicts, of which one is active.
            name: title of the space.

        Returns:
            The space. For a list of dicts it has a module or a parameter that chooses between them.

        Raises:
            SpaceError: neither a dict nor a list of dicts, an empty list of values, or a distribution without bounds or of
                another kind.
        """
        space = cls._empty(name)
        _converter("param_distributions").declare_param_distributions(space._declaration, param_distributions)
        return space

    @classmethod
    def from_configspace(cls, space: Any, name: str | None = None) -> Self:
        """Return a space from a ``ConfigSpace.ConfigurationSpace``: conditions become ``when=``, forbidden clauses become rules.

        Args:
            space: a ``ConfigurationSpace``. Its priors are dropped, with a warning.
            name: title of the space; None takes the name of the given space.

        Returns:
            The space.

        Raises:
            SpaceError: ConfigSpace is missing, ``space`` is no ``ConfigurationSpace``, or a condition has a parent that is
                not a list of at most 1,000 values.
        """
        made = cls._empty(name or getattr(space, "name", None) or "space")
        _converter("from_configspace").declare_configspace(made._declaration, space)
        return made

    @classmethod
    def _empty(cls, name: str) -> Self:
        return cls(name)  # type: ignore[call-arg]
