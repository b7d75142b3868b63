"""What the variables behind a space are called where a user reads of them."""

from __future__ import annotations

from mipcash.modelling.declared import Declared
from mipcash.modelling.quadratic import Variable


def user_name(declaration: Declared, variable: Variable) -> str:
    """``layers[2]`` for a level, ``lr`` for a number, ``lr.is_active()`` for its activity; else the Pyomo name."""
    block = variable.parent_block()
    if block is None or block.parent_component() is not variable.model().component("parameters"):
        return str(variable.name)
    for group in declaration.groups:
        for value, level in zip(group.values, group.variables, strict=True):
            if level is variable:
                of = f"{group.parameter}.at({group.label[len(group.parameter) + 1 :]!r}, {value!r})"
                return of if group.kind == "ordering" else f"{group.label}[{value!r}]"
    return f"{block.index()}.is_active()" if variable.local_name.startswith("conjunction") else str(block.index())
