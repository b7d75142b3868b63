"""What the variables behind a space are called where a user reads of them."""

from __future__ import annotations

from typing import Any

from mipcash.modelling.indicators import Indicator


def user_name(variable: Any) -> str:
    """``layers[2]`` for a level, ``lr`` for a number, ``lr.is_active()`` for its activity; else the Pyomo name."""
    if isinstance(variable, Indicator):
        return str(variable)
    block = variable.parent_block()
    if block is None or block.parent_component() is not variable.model().component("parameters"):
        return str(variable.name)
    return f"{block.index()}.is_active()" if variable.local_name.startswith("conjunction") else str(block.index())
