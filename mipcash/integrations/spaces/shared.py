"""The common part of all converters: the import of the other library; ranges and lists as domains.

A converter is a function ``declare(declaration, theirs)``: it fills an empty ``Declaration``
with the declarations of another library. ``mipcash.space.exchange`` makes constructors of ``Space`` from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from mipcash.errors import SpaceError
from mipcash.modelling.domains import Categorical, Integer, Ordinal, Real, Value


def package(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: dotted.
        extra: the extra of mipcash that installs it.
        what: the feature that needs it, for the message.

    Raises:
        SpaceError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SpaceError(
            f"{what} needs the package {error.name or module}, which is not installed; pip install 'mipcash[{extra}]'"
        ) from error


def number_domain(
    name: str, low: float, high: float, *, whole: bool, log: bool = False, step: float | None = None
) -> Real | Integer | Categorical:
    """Return the domain of a range of numbers, both ends included.

    Args:
        name: of the parameter, for messages.
        whole: integers, else reals.
        step: of reals or integers; None: all of them.

    Returns:
        A categorical with a single value for reals with low == high.

    Raises:
        SpaceError: bounds that are no range, or a step that does not fit; the message names the parameter.
    """
    if low == high and not whole:
        return Categorical([float(low)])
    try:
        if whole:
            return Integer(int(low), int(high), 1 if step is None else int(step), log)
        return Real(float(low), float(high), log, step)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None


def list_domain(name: str, values: Sequence[Value], *, ordered: bool = False) -> Ordinal | Categorical:
    """Return the domain of a list of values; ``ordered`` if neighbours are similar.

    Raises:
        SpaceError: it is empty, or lists a value twice; the message names the parameter.
    """
    try:
        return Ordinal(values) if ordered else Categorical(values)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None
