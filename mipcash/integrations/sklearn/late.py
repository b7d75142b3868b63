"""An objective that is made when it is first called, so that a model can be declared without loading its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from mipcash.integrations.sklearn.cross_validated import CrossValidated


class Late:
    """A :class:`CrossValidated` that ``make`` gives at the first call; in another process it is made there again.

    Args:
        make: takes nothing; to be importable where the objective is to be pickled.
    """

    def __init__(self, make: Callable[[], CrossValidated]) -> None:
        self.make = make

    @cached_property
    def cross_validated(self) -> CrossValidated:
        """The objective itself."""
        return self.make()

    def __getstate__(self) -> dict[str, Any]:
        return {"make": self.make}

    def __call__(self, config: Mapping[str, Any], repeat: int = 0) -> Iterator[dict[str, float]]:
        """A generator, see :class:`CrossValidated`."""
        return self.cross_validated(config, repeat)

    def evaluate(self, config: Mapping[str, Any], repeat: int = 0) -> dict[str, float]:
        """See :meth:`CrossValidated.evaluate`."""
        return self.cross_validated.evaluate(config, repeat)


def cross_validated_of(objective: Any) -> CrossValidated | None:
    """The cross-validated objective that an objective is or holds; None: it is another."""
    found = objective if isinstance(objective, CrossValidated) else getattr(objective, "cross_validated", None)
    return found if isinstance(found, CrossValidated) else None
