"""Versions on which the proposals of a run depend, as a text that a study keeps: ``0.1.0 (python 3.11, numpy 2.4.6, ...)``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from mipcash import __version__

PACKAGES = ("numpy", "scipy", "highspy", "gurobipy", "cplex", "pyscipopt", "pytoulbar2")
"""Packages whose rounding decides between equal proposals, and the solvers that a study may ask."""


def versions() -> str:
    """Return the versions of mipcash, of Python, and of those of PACKAGES that are installed."""
    python = ".".join(platform.python_version_tuple()[:2])
    others = [f"{name} {found}" for name in PACKAGES if (found := _installed(name))]
    return f"{__version__} ({', '.join([f'python {python}', *others])})"


def _installed(package: str) -> str:
    """Return the version of a package; empty if it was installed without this information."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def changed(then: str, now: str) -> list[str]:
    """Return the differences between two texts of ``versions``; a text with fewer packages says nothing of the others."""
    before, after = _parsed(then), _parsed(now)
    return [
        f"{name} {before[name]} (now {number})" for name, number in after.items() if before.get(name, number) != number
    ]


def _parsed(text: str) -> dict[str, str]:
    own, _, others = text.partition(" (")
    pairs = (each.rpartition(" ") for each in [f"mipcash {own}", *others.rstrip(")").split(", ")] if each)
    return {name: number for name, _, number in pairs}
