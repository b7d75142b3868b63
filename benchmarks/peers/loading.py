"""Loading of the peers' methods, whose libraries are imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from typing import Any

from benchmarks.peers.method import MissingPackageError


def loaded(name: str, module: str, kind: str) -> Any:
    """Create a method: a class of a module whose library may be missing.

    Raises:
        MissingPackageError: the library is not installed.
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


def installed(names: Iterable[str], make: Callable[[str], Any], progress: Callable[[str], None]) -> list[str]:
    """Return the methods whose libraries are installed, and report the missing ones to ``progress``.

    Args:
        make: makes a method by its name, as :func:`loaded` does.
    """
    found = []
    for name in names:
        try:
            make(name)
        except MissingPackageError as error:
            progress(f"{name} is left out: {error}")
        else:
            found.append(name)
    return found
