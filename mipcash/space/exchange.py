"""Spaces of other libraries as constructors of ``Space``; the converters are in :mod:`mipcash.modelling.exchange`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration
from mipcash.modelling.exchange.configspace import declare_configspace
from mipcash.modelling.exchange.optuna import declare_distributions, distributions_of
from mipcash.modelling.exchange.sklearn import declare_param_distributions
from mipcash.modelling.exchange.to_configspace import configspace_of

DEFAULTS = 16
"""Legal configurations that are tried as the default of a space of ConfigSpace."""


class Exchanged:
    """What ``Space`` makes of other libraries' spaces, and of itself for them. Libraries are imported where they are needed."""

    _declaration: Declaration

    @classmethod
    def from_optuna(cls, distributions: Mapping[str, Any], name: str = "space") -> Self:
        """A space of Optuna's distributions; add rules to it as to any other.

        Args:
            distributions: name -> ``FloatDistribution | IntDistribution | CategoricalDistribution``.

        Raises:
            SpaceError: see :func:`mipcash.modelling.exchange.optuna.declare_distributions`.
        """
        space = cls._empty(name)
        declare_distributions(space._declaration, distributions)
        return space

    def to_optuna(self) -> dict[str, Any]:
        """Optuna's distributions of the parameters.

        Raises:
            SpaceError: the space has rules or conditions, which they cannot say; the message names them.
        """
        return distributions_of(self._declaration)

    @classmethod
    def from_sklearn(
        cls, param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]], name: str = "space"
    ) -> Self:
        """A space of what ``RandomizedSearchCV`` or ``GridSearchCV`` would search; add rules to it as to any other.

        Args:
            param_distributions: name -> list of values, ``scipy.stats`` distribution (uniform, loguniform, randint) or ``mc.Real``
                ...; or a list of such dicts, of which one is active.

        Raises:
            SpaceError: see :func:`mipcash.modelling.exchange.sklearn.declare_param_distributions`.
        """
        space = cls._empty(name)
        declare_param_distributions(space._declaration, param_distributions)
        return space

    @classmethod
    def from_configspace(cls, space: Any, name: str | None = None) -> Self:
        """A ``ConfigSpace.ConfigurationSpace``, its conditions as ``when=`` and its forbidden clauses as rules.

        Args:
            name: None: that of the space.

        Raises:
            SpaceError: see :func:`mipcash.modelling.exchange.configspace.declare_configspace`.
        """
        made = cls._empty(name or getattr(space, "name", None) or "space")
        declare_configspace(made._declaration, space)
        return made

    def to_configspace(self) -> Any:
        """A ``ConfigSpace.ConfigurationSpace`` of the same configurations, its default a legal one.

        Raises:
            SpaceError: a rule, a condition or an ordering that it cannot say, by name.
            InfeasibleSpaceError: the space is empty.
        """
        return configspace_of(self._declaration, (each for n in (1, DEFAULTS) for each in self._some(n)))

    def _some(self, n: int) -> list[Configuration]:
        """Legal configurations."""
        raise NotImplementedError

    @classmethod
    def _empty(cls, name: str) -> Self:
        return cls(name)  # type: ignore[call-arg]
