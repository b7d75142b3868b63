"""Catalogue of methods by name: peers, peers for outcome constraints, and our own optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError

from benchmarks.peers.method import Method, MissingPackageError
from benchmarks.peers.methods.ours import our_method
from mipcash.optimizers.registry import optimizer_names

OURS = "hybrid"
"""Method that peers are compared with by default."""


def _module(name: str) -> str:
    return "benchmarks.peers.methods." + name


PEERS: dict[str, tuple[str, str]] = {
    "random": (_module("simple"), "RandomMethod"),
    "mutation": (_module("simple"), "MutationMethod"),
    "optuna-tpe": (_module("optuna_samplers"), "TPEMethod"),
    "optuna-gp": (_module("optuna_samplers"), "GPMethod"),
    "botorch": (_module("botorch_mixed"), "BotorchMethod"),
    "smac": (_module("smac_facade"), "SmacMethod"),
    "hyperopt": (_module("hyperopt_tpe"), "HyperoptMethod"),
}
"""Name -> module and class. A name in neither catalogue is one of our own optimizers, see
:mod:`benchmarks.peers.methods.ours`."""

LIMITED: dict[str, tuple[str, str]] = {
    "botorch-constrained": ("benchmarks.limits.methods.botorch_constrained", "ConstrainedBotorchMethod"),
    "optuna-tpe-constrained": ("benchmarks.limits.methods.optuna_constrained", "ConstrainedTPEMethod"),
    "optuna-gp-constrained": ("benchmarks.limits.methods.optuna_constrained", "ConstrainedGPMethod"),
    "smac-penalty": ("benchmarks.limits.methods.smac_penalty", "PenalisedSmacMethod"),
}
"""Peers for problems with outcome constraints."""


def make_method(name: str) -> Method:
    """Create a method by name.

    Raises:
        MissingPackageError: its library is not installed.
        ValueError: there is no such method.
    """
    known = PEERS | LIMITED
    if name not in known:
        if name.partition(":")[0] in optimizer_names():
            return our_method(name)
        raise ValueError(
            f"there is no method {name!r}; there are {', '.join(known)}, and of our own {', '.join(optimizer_names())}"
        )
    module, kind = known[name]
    try:
        made: Method = getattr(import_module(module), kind)()
        made.stamp()
    except (ImportError, PackageNotFoundError) as error:
        raise MissingPackageError(
            f"method {name!r} needs a package that is not installed ({error}); pip install 'mipcash[peers]'"
        ) from error
    made.name = name
    return made


def installed(names: Iterable[str], progress: Callable[[str], None]) -> list[str]:
    """Return the methods whose libraries are installed, and report the missing ones."""
    found = []
    for name in names:
        try:
            make_method(name)
        except MissingPackageError as error:
            progress(f"{name} is left out: {error}")
        else:
            found.append(name)
    return found
