"""Methods of the peers' libraries, loaded by name when they are asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError
from typing import Any

from benchmarks.peers.method import MissingPackageError


def loaded(name: str, module: str, kind: str) -> Any:
    """A fresh method under a name: a class of a module, whose library may not be installed.

    Raises:
        MissingPackageError: it is not.
    """
    try:
        method = getattr(import_module(module), kind)()
        method.stamp()
    except (ImportError, PackageNotFoundError) as error:
        raise MissingPackageError(
            f"method {name!r} needs a package that is not installed ({error}); pip install 'mipcash[peers]'"
        ) from error
    method.name = name
    return method
