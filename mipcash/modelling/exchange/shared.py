"""What all converters share: the other library, found or asked for; ranges and lists as domains.

A converter is a function ``declare(declaration, theirs)``: it fills an empty :class:`~mipcash.modelling.declaration.Declaration`
with what another library declared. :mod:`mipcash.space.exchange` makes the constructors of ``Space`` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

from mipcash.errors import SpaceError
from mipcash.modelling.domains import Categorical, Integer, Ordinal, Real, Value

GRID_LIMIT = 1_000
"""Levels up to which evenly spaced reals are an ordinal."""


def package(module: str, extra: str, what: str) -> Any:
    """A module of an optional package.

    Args:
        module: dotted.
        extra: of ours that installs it.
        what: needs it, for the message.

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
) -> Real | Integer | Ordinal | Categorical:
    """The domain of a range of numbers, both ends included.

    Args:
        name: of the parameter, for messages.
        whole: integers, else reals.
        step: of reals or integers; None: all of them. Evenly spaced reals become an ordinal, since rules and models then see
            the levels there are.

    Returns:
        A single value where low == high: a constant is a list of one.

    Raises:
        SpaceError: bounds that are no range, or reals in more than ``GRID_LIMIT`` steps.
    """
    if whole:
        return Integer(int(low), int(high), 1 if step is None else int(step), log)
    if low == high:
        return Categorical([float(low)])
    if step is None:
        return Real(float(low), float(high), log)
    count = math.floor((high - low) / step + 1e-8) + 1
    if count > GRID_LIMIT:
        raise SpaceError(
            f"parameter {name!r}: {count:,} reals in steps of {step!r}, more than {GRID_LIMIT:,}; give a wider step, or none"
        )
    first, width = Decimal(str(float(low))), Decimal(str(float(step)))
    return Ordinal([float(first + k * width) for k in range(count)])  # 0.3 and not 0.1 + 2 * 0.1


def list_domain(name: str, values: Sequence[Value], *, ordered: bool = False) -> Ordinal | Categorical:
    """The domain of a list of values; ``ordered`` where neighbours are alike.

    Raises:
        SpaceError: it is empty, or lists a value twice; the message names the parameter.
    """
    try:
        return Ordinal(values) if ordered else Categorical(values)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None
