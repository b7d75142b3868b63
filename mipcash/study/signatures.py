"""Parameters that an objective takes in addition to its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def needs(function: Callable[..., Any], name: str) -> bool:
    """Return True if a parameter that a function takes has no default."""
    return inspect.signature(function).parameters[name].default is inspect.Parameter.empty


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return True if a function has a parameter of this name (``trial``, ``repeat``) after its first, the configuration."""
    if isinstance(function, partial) and name in function.keywords:  # a bound keyword is not passed again
        return False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return False
    beside = [p for k, p in enumerate(parameters) if k or p.kind is p.KEYWORD_ONLY]
    return any(p.name == name and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in beside)
