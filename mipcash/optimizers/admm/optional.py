"""Packages that solvers of subproblems may need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mipcash.errors import MipcashError


def needed(module: str, solver: str, extra: str) -> Any:
    """An optional module.

    Raises:
        MipcashError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MipcashError(
            f"{solver} needs the package {error.name or module}, which is not installed; pip install 'mipcash[{extra}]'"
        ) from error
