"""Names of a package that are imported at first use, so that ``import mipcash`` stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attributes_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports its names from other modules at first use.

    Args:
        package: name of the package. An imported object is stored as its attribute, so it is imported only once.
        homes: name of an object -> module that defines it.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(homes))}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
