"""Names of a package that are imported at first use, so that ``import mipcash`` stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attributes_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names live elsewhere.

    Args:
        package: its name; a name that was asked for once is kept there.
        homes: name -> module.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(homes))}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
