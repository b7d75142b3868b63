"""Solvers by name: a profile (``solvers/NAME.toml``) says what it is, how to install it and what its licence allows."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from importlib import import_module, metadata, resources
from importlib.util import find_spec

from mipcash.backends.base import Backend
from mipcash.errors import SolverError


@dataclass(frozen=True)
class SolverInfo:
    """What a profile says, and whether the solver is here.

    Attributes:
        name: the flag's value.
        installed: whether its Python package can be imported.
        version: of the package; "" if not installed.
        licence: what the licence allows.
        install: how to install it.
        usable: whether this version of mipcash can drive it.
    """

    name: str
    installed: bool
    version: str
    licence: str
    install: str
    usable: bool


def solvers() -> list[SolverInfo]:
    """All solvers with a profile, the default first."""
    names = [f.name.removesuffix(".toml") for f in resources.files("mipcash.solvers").iterdir() if f.name.endswith(".toml")]
    return [solver_info(name) for name in sorted(names, key=lambda n: (n != "highs", n))]


def solver_info(name: str) -> SolverInfo:
    """One solver's profile.

    Raises:
        SolverError: there is no such profile.
    """
    profile = _profile(name)
    installed = find_spec(profile["module"]) is not None
    version = ""
    if installed:
        try:
            version = metadata.version(profile["package"])
        except metadata.PackageNotFoundError:
            version = "unknown"
    return SolverInfo(name, installed, version, profile["licence"], profile["install"], "backend" in profile)


def make_backend(name: str) -> Backend:
    """A backend by the name of its solver.

    Raises:
        SolverError: unknown, not installed, or not driven by this version.
    """
    info, profile = solver_info(name), _profile(name)
    if not info.usable:
        raise SolverError(f"solver {name!r} has a profile but no backend in this version of mipcash; use solver='highs'")
    if not info.installed:
        raise SolverError(f"solver {name!r} is not installed; {info.install}")
    module, _, attribute = profile["backend"].partition(":")
    backend: Backend = getattr(import_module(module), attribute)()
    return backend


def _profile(name: str) -> dict[str, str]:
    folder = resources.files("mipcash.solvers")
    file = folder.joinpath(f"{name}.toml")
    if not file.is_file():
        names = sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"
        raise SolverError(f"there is no solver {name!r}{hint}")
    return dict(tomllib.loads(file.read_text(encoding="utf-8")))
