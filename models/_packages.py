"""Packages that a model needs beyond those of mipcash."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mipcash.errors import ModelError


def needed(package: str, by: str, extra: str) -> Any:
    """A module of an optional package.

    Args:
        package: what is imported, as ``torch`` or ``matplotlib.figure``.
        by: what needs it, the subject of the message.
        extra: of mipcash that installs it.

    Raises:
        ModelError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ModelError(f"{by} needs the package {name}; pip install 'mipcash[{extra}]'") from None
