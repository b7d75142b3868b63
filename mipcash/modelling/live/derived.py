"""Rules that the live model states by other components than constraints, written as constraints so that all code can read them.

Special ordered sets, domains with holes, fixed ``BooleanVar``s and bounds narrowed on the live model each become rows of
``model.rules`` under the name that the user knows, with their own auxiliary variables if needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from mipcash.errors import RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import is_bool
from mipcash.modelling.live.parts import Derived
from mipcash.modelling.names import selectors_of
from mipcash.modelling.rules import make_rule


def auxiliary_block(declaration: Declaration, name: str) -> Any:
    """Return a new block for the auxiliary variables of derived rules."""
    parameters: Any = declaration.model.parameters
    index = selectors_of(name)
    if index in parameters:
        del parameters[index]
    return parameters[index]


def write(declaration: Declaration, name: str, key: Hashable, relations: Sequence[Any]) -> None:
    """Replace the rules derived under ``name`` by ``relations``.

    Raises:
        RuleError: a relation that no value satisfies.
    """
    auxiliaries, rules = selectors_of(name) in declaration.model.parameters, declaration.model.rules
    erase(declaration, name, keep_auxiliaries=auxiliaries)
    made = []
    for k, relation in enumerate(relations):
        if is_bool(relation):
            if not relation:
                erase(declaration, name)
                raise RuleError(f"{name!r} cannot hold with the bounds and fixed values of its variables; widen them")
            continue
        rules[name, k] = relation
        made.append(make_rule(name, relation, constant=True))
    declaration.parts.derived[name] = Derived(key, tuple(made))


def erase(declaration: Declaration, name: str, *, keep_auxiliaries: bool = False) -> None:
    """Delete the rules derived under a name, and their auxiliary variables unless ``keep_auxiliaries``."""
    declaration.parts.derived.pop(name, None)
    rules, parameters = declaration.model.rules, declaration.model.parameters
    for index in [i for i in rules if isinstance(i, tuple) and i[0] == name and isinstance(i[1], int)]:
        del rules[index]
    auxiliaries = selectors_of(name)
    if not keep_auxiliaries and auxiliaries in parameters:
        del parameters[auxiliaries]
