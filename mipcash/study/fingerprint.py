"""What makes two spaces the same: parameter domains, conditions, rules, and the active constraints of the Pyomo model.

The listing is readable, entry by entry, so that a mismatch can name what differs; the fingerprint is its hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from mipcash.space.declaration import Declaration
from mipcash.space.domains import Categorical, Domain, Ordinal
from mipcash.space.quadratic import Quadratic
from mipcash.study.encoding import stable_text


def listing(space: Declaration) -> dict[str, str]:
    """Entry name (``parameter 'lr'``, ``rule 'memory'`` ...) -> what it says, the same text in every process."""
    entries = {"the expansion limit of integers": str(space.expand_limit)}
    for label, parameter in space.parameters.items():
        entries[f"parameter {label!r}"] = _domain_text(parameter.domain) + _condition(space, label)
    for label, auxiliary in space.auxiliaries.items():
        entries[f"auxiliary {label!r}"] = _domain_text(auxiliary.domain)
    active = {_rule_name(index) for index, row in space.model.rules.items() if row.active}
    for name, rule in space.rules.items():
        if name in active:
            when = " and ".join(_affine_text(w) for w in rule.when)
            entries[f"rule {name!r}"] = rule.text + (f" when {when}" if when else "")
    entries.update(_foreign(space))
    return entries


def fingerprint(entries: Mapping[str, str]) -> str:
    """SHA-256 of a listing; the order of the entries does not matter."""
    return hashlib.sha256(json.dumps(sorted(entries.items())).encode()).hexdigest()


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Sentences that name what differs between two listings, in the order of the declarations."""
    found = [f"{name} is gone" for name in then if name not in now]
    for name, text in now.items():
        if name not in then:
            found.append(f"{name} is new")
        elif then[name] != text:
            before, after = _contrast(then[name], text)
            found.append(f"{name} was {before} and is {after} now")
    return found


def _domain_text(domain: Domain) -> str:
    """As ``str(domain)``, but with all digits and with values that do not print their memory address."""
    if isinstance(domain, (Ordinal, Categorical)):
        return f"{domain.kind} [{', '.join(map(stable_text, domain.values))}]"
    return repr(domain)


def _condition(space: Declaration, label: str) -> str:
    block = space.model.parameters[label]
    only_if = block.component("on_only_if")
    if only_if is not None:
        return " when " + " and ".join(str(row.expr) for row in only_if.values())
    on = getattr(block, "on_expression", 1)
    return "" if isinstance(on, (int, float)) else f" when {getattr(on, 'expr', on)}"


def _affine_text(polynomial: Quadratic) -> str:
    terms = sorted((polynomial.variables[i].name, c) for i, c in polynomial.linear.items())
    return " + ".join(
        [f"{c:g}*{name}" for name, c in terms] + ([f"{polynomial.constant:g}"] if polynomial.constant else [])
    )


def _rule_name(index: Any) -> Any:
    return index[0] if isinstance(index, tuple) else index


def _foreign(space: Declaration) -> Iterator[tuple[str, str]]:
    """What was done to the live model directly: fixings, bounds, constraints, logical constraints, disjunctions."""
    kinds = (pyo.Constraint, pyo.LogicalConstraint, Disjunction)
    for variable in space.model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if variable.fixed:
            yield f"the fixing of {variable.name!r}", str(variable.value)
        elif variable.bounds != (0, 1):
            yield f"the bounds of {variable.name!r}", str(variable.bounds)
    for row in space.model.component_data_objects(ctype=kinds, active=True, descend_into=(pyo.Block, Disjunct)):
        owner = row.parent_component()
        blocks = _ancestors(row)
        if owner is space.model.rules or space.model.parameters in blocks:
            continue
        if owner.ctype is Disjunction:
            yield f"disjunction {row.name!r}", ", ".join(d.name for d in row.disjuncts if d.active)
        else:
            yield f"{owner.ctype.__name__} {row.name!r}", str(row.expr)


def _ancestors(row: Any) -> list[Any]:
    found, block = [], row.parent_block()
    while block is not None:
        found.append(block.parent_component())
        block = block.parent_block()
    return found


def _contrast(before: str, after: str, limit: int = 120) -> tuple[str, str]:
    """Two texts, shortened around the place where they first differ."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    start = 0 if max(len(before), len(after)) <= limit else max(0, same - limit // 2)
    return _window(before, start, limit), _window(after, start, limit)


def _window(text: str, start: int, limit: int) -> str:
    cut = text[start : start + limit]
    return ("..." if start else "") + cut + ("..." if start + limit < len(text) else "")
