"""Names of a space's variables as users know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def user_name(variable: Any) -> str:
    """Return ``layers[2]`` for a level, ``lr`` for a number, ``lr.is_active()`` for its activity, otherwise the Pyomo name."""
    handle = getattr(variable.parent_component(), "handle", None)
    if handle is not None:
        return str(handle.level_text(variable))
    block = variable.parent_block()
    if block is None or block.parent_component() is not variable.model().component("parameters"):
        return str(variable.name)
    return (
        f"{block.index()}.is_active()"
        if variable.local_name.startswith(("activity", "parts_on"))
        else str(block.index())
    )


def either(variables: Sequence[Any], verb: str = "is") -> str:
    """Return ``layers is 2 or 3`` for levels of one parameter; "" for anything else."""
    handles = {id(h): h for h in (getattr(v.parent_component(), "handle", None) for v in variables)}
    handle = next(iter(handles.values()), None)
    if handle is None or len(handles) != 1:
        return ""
    if getattr(handle.domain, "values", None) is None:  # an ordering has positions
        return ""
    *first, last = [repr(handle.level_of(v)) for v in variables]
    return f"{handle.label} {verb} {', '.join(first)}{' or ' if first else ''}{last}"


def selectors_of(name: str) -> str:
    """Return the label of the block that holds the auxiliary binaries of a rule."""
    return f"{name} (auxiliary)"
