"""Solvers by name or by path: a profile (``solvers/NAME.toml``) describes a solver and how it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module, metadata, resources
from importlib.util import find_spec
from pathlib import Path

from mipcash.backends.profiles import SolverProfile, parse_profile, read_profile
from mipcash.backends.task import Backend
from mipcash.errors import SolverError
from mipcash.text import did_you_mean

DEFAULT = "auto"
"""The default solver."""


@dataclass(frozen=True)
class SolverInfo:
    """Main entries of a solver's profile, and whether the solver is installed.

    Attributes:
        name: value of ``solver=`` and ``--solver``.
        installed: whether its Python package can be imported.
        version: of the package; "" if not installed.
        licence: what the licence allows.
        install: how to install it.
    """

    name: str
    installed: bool
    version: str
    licence: str
    install: str


def solvers() -> list[SolverInfo]:
    """Return all solvers whose profiles come with mipcash, the default first."""
    return [solver_info(name) for name in solver_names()]


def solver_names() -> list[str]:
    """Return the names of the profiles that come with mipcash, the default first."""
    names = [
        f.name.removesuffix(".toml") for f in resources.files("mipcash.solvers").iterdir() if f.name.endswith(".toml")
    ]
    return sorted(names, key=lambda n: (n != DEFAULT, n))


def solver_info(name: str) -> SolverInfo:
    """Return the information on one solver.

    Raises:
        SolverError: there is no such profile, or it is invalid.
    """
    profile = find_profile(name)
    installed = _installed(profile.module)
    version = ""
    if installed:
        try:
            version = metadata.version(profile.package)
        except metadata.PackageNotFoundError:
            version = "unknown"
    return SolverInfo(profile.name, installed, version, profile.licence, profile.install)


def make_backend(name: str, options: Mapping[str, str] | None = None) -> Backend:
    """Make a backend from the name of its solver or the path of a profile.

    Args:
        name: ``auto``, ``highs``, ``gurobi``, ... or a path that ends in ``.toml``; options may follow, ``"gurobi MIPFocus=1"``.
        options: the solver's own options, as text; they override those in ``name``.

    Raises:
        SolverError: the solver is unknown or not installed, or rejects an option.
    """
    name, named = split_options(name)
    options = {**named, **(options or {})}
    for option, value in options.items():
        if option.lower().endswith("file"):
            _check_file(name, option, value)
    profile = find_profile(name)
    if not _installed(profile.module):
        raise SolverError(f"solver {profile.name!r} is not installed; {profile.install}")
    if not profile.backend:
        from mipcash.backends.pyomo.backend import PyomoBackend

        return PyomoBackend(profile, options)
    module, _, attribute = profile.backend.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SolverError(
            f"solver profile {profile.name!r}: backend {profile.backend!r} cannot be imported: {error}"
        ) from error
    try:
        backend: Backend = kind(options=options)
    except TypeError as error:
        raise SolverError(
            f"solver profile {profile.name!r}: backend {profile.backend!r} cannot be made of options: {error}"
        ) from error
    return backend


def split_options(solver: str) -> tuple[str, dict[str, str]]:
    """Split a solver's name and options: ``"gurobi MIPFocus=1 Cuts=2"`` -> ``("gurobi", {"MIPFocus": "1", "Cuts": "2"})``.

    Raises:
        SolverError: there is no name, or a part after the name is not KEY=VALUE.
    """
    if not solver.strip():
        raise SolverError(
            f"solver is {solver!r} and contains no name of a solver; there are {', '.join(solver_names())}"
        )
    head, *rest = solver.split()
    if not any("=" in part for part in rest):
        return solver, {}
    pairs = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise SolverError(f"solver {solver!r}: {part!r} is not an option of the form KEY=VALUE")
        pairs[key] = value
    return head, pairs


def _check_file(solver: str, option: str, value: str) -> None:
    """Check that a solver can open the file named by an option: some solvers end the process if they cannot.

    Raises:
        SolverError: the file cannot be opened.
    """
    path = Path(value)
    message = f"solver {solver!r}: option {option}={value}"
    if not value or value.isdecimal():  # a number, as in CPLEX' option for the location of node files
        return
    if path.is_dir():
        raise SolverError(f"{message} names a folder; give a file, such as {option}={path / 'solver.log'}")
    if option.lower().startswith("read"):
        if not (path.is_file() and os.access(path, os.R_OK)):
            raise SolverError(f"{message} names a file that does not exist or cannot be read; give another")
    elif not path.parent.is_dir():
        raise SolverError(f"{message}: the folder {path.parent} does not exist; create it (mkdir -p {path.parent})")
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SolverError(f"{message} names a file that cannot be written to; check permissions, or give another")


def find_profile(name: str) -> SolverProfile:
    """Return the profile with a name, or at a path that ends in ``.toml``.

    Raises:
        SolverError: there is no such profile, or it is invalid.
    """
    if name.endswith(".toml"):
        return read_profile(Path(name))
    file = resources.files("mipcash.solvers").joinpath(f"{name}.toml")
    if not file.is_file():
        hint = did_you_mean(name, [*solver_names(), "or the path of a profile"], "there are")
        raise SolverError(f"there is no solver {name!r}; {hint}")
    profile = parse_profile(file.read_text(encoding="utf-8"), f"solvers/{name}.toml")
    if profile.name != name:
        raise SolverError(f"solver profile 'solvers/{name}.toml': 'name' is {profile.name!r}; call the file after it")
    return profile


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
