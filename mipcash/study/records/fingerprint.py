"""Identity of a space: domains, conditions, rules with their numbers, and the active parts of the Pyomo model.

The listing is readable, entry by entry, so that a mismatch can be explained (``mipcash.study.storage.listings``). A rule is listed
as it was written and with its numerical coefficients, because the text of ``layers <= p`` does not show the value of the mutable
Param ``p``. The order of declarations is also listed, because proposals depend on it.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_mutable_parameters
from pyomo.gdp import Disjunct, Disjunction

from mipcash.errors import RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Categorical, Ordinal, ParameterDomain
from mipcash.modelling.live.components import check_live_model
from mipcash.modelling.portable import as_json
from mipcash.modelling.quadratic import Quadratic
from mipcash.modelling.rules import Rule, make_rule
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Limit, Optimizer
from mipcash.space.compiled import PublicSpace, declaration_of
from mipcash.space.live_model import active_rules
from mipcash.space.space import Space
from mipcash.study.method import Method
from mipcash.study.records.encoding import plain
from mipcash.study.records.limits import stored_limits
from mipcash.study.storage.listings import DETAIL, LATER, NUMBERS, ORDER, PRIOR, fingerprint
from mipcash.study.storage.protocol import FIDELITY, OBJECTIVES, StudyRecord
from mipcash.text import stable_text


def record_of(
    space: Space,
    optimizer: Optimizer,
    method: Method,
    seed: int,
    limits: Sequence[Limit],
    model: str | None,
    options: Mapping[str, str] | None,
    objectives: Objectives = MINIMISED,
) -> StudyRecord:
    """Return the row of a new study, with everything that its proposals depend on. Arguments as for ``mipcash.Study``.

    Args:
        optimizer: made by the method.
    """
    entries = listing(space)
    # The effective settings rather than the given ones: a default that changes between versions changes the proposals.
    effective = plain(getattr(optimizer, "settings", method.settings))
    stored = effective if effective is None or isinstance(effective, dict) else {"settings": effective}
    if objectives.each != MINIMISED.each:
        stored = {
            **(stored or {}),
            OBJECTIVES: [[objective.output, objective.direction] for objective in objectives.each],
        }
    if objectives.fidelity is not None:
        stored = {**(stored or {}), FIDELITY: list(astuple(objectives.fidelity))}
    return StudyRecord(
        id=uuid.uuid4().hex,
        space=space.name,
        fingerprint=fingerprint(entries),
        listing=entries,
        seed=seed,
        optimizer=method.name,
        solver=method.solver if isinstance(method.solver, str) else method.solver.name,
        settings=stored,
        limits=stored_limits(limits),
        model=model,
        options=dict(options or {}),
        declaration=as_json(declaration_of(space)),
    )


def listing(space: PublicSpace) -> dict[str, str]:
    """Return a dict from entry name (``parameter 'lr'``, ``rule 'memory'`` ...) to its text, which is the same in every process."""
    declaration = declaration_of(space)
    check_live_model(declaration)  # components other than constraints become rules only when inspected
    entries = {"the expansion limit of integers": str(declaration.expand_limit)}
    for label, parameter in declaration.parameters.items():
        entries[f"parameter {label!r}"] = _domain_text(parameter.domain) + _condition(declaration, label)
    if (fidelity := declaration.fidelity) is not None:
        entries[f"parameter {fidelity.label!r}"] += f", fidelity of power {fidelity.power!r}"
    for label, expected in declaration.expectations.items():
        if expected.table is not None:
            entries[f"{PRIOR}{label!r}"] = ", ".join(f"{weight:.6g}" for weight in expected.table)
    for label, auxiliary in declaration.auxiliaries.items():
        entries[f"auxiliary {label!r}"] = _domain_text(auxiliary.domain)
    active = {_rule_name(index) for index, row in declaration.model.rules.items() if row.active}
    numbers = _numbers_in_use(declaration)
    for name, rule in declaration.rules.items():
        if name in active:
            entries[f"rule {name!r}"] = str(rule)
            entries[f"{NUMBERS}rule {name!r}"] = "; ".join(map(_relation, numbers.get(name, [rule])))
    for name, derived in declaration.parts.derived.items():
        entries[f"{NUMBERS}{name!r} on the model"] = "; ".join(map(_relation, derived.rules))
    foreign = dict(_foreign(declaration))
    entries.update(foreign)
    entries[ORDER + "parameters"] = _names([*declaration.parameters, *declaration.auxiliaries])
    entries[ORDER + "rules"] = _names([n for n in declaration.rules if n in active])
    entries[ORDER + "constraints"] = ", ".join(n for n in foreign if not n.startswith(LATER))
    return entries


def _names(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _numbers_in_use(space: Declaration) -> dict[str, list[Rule]]:
    """Return the rules by name, with the numerical values that validation and the program use now; declared rules come first."""
    found: dict[str, list[Rule]] = {}
    for rule in active_rules(space):
        parts = len(space.rules[rule.name].parts) if rule.name in space.rules else 0
        if len(found.setdefault(rule.name, [])) < max(1, parts):
            found[rule.name].append(rule)
    return found


def _relation(rule: Rule) -> str:
    """Return the text ``lower <= body <= upper`` with all digits, with the values of Params and fixed variables."""
    body = " + ".join(f"{c!r}*{name}" for name, c in sorted(_terms(rule.body)))
    low = f"{rule.lower!r} <= " if math.isfinite(rule.lower) else ""
    high = f" <= {rule.upper!r}" if math.isfinite(rule.upper) else ""
    when = " and ".join(map(_affine_text, rule.when))
    return f"{low}{body or '0'}{high}" + (f" when {when}" if when else "")


def _terms(body: Quadratic) -> Iterator[tuple[str, float]]:
    named = {i: v.name for i, v in body.variables.items()}
    if body.constant:
        yield "1", float(body.constant)
    yield from ((named[i], float(c)) for i, c in body.linear.items())
    for (i, j), c in body.products.items():
        yield "*".join(sorted((named[i], named[j]))), float(c)


def _domain_text(domain: ParameterDomain) -> str:
    """Return ``str(domain)``, but with all digits and without memory addresses."""
    if isinstance(domain, (Ordinal, Categorical)):
        return f"{domain.kind} [{', '.join(map(stable_text, domain.values))}]"
    return repr(domain)


def _condition(space: Declaration, label: str) -> str:
    block = space.model.parameters[label]
    rows = block.component("on_rows")
    if rows is not None:
        return " when " + " and ".join(row.expr.to_string() for row in rows.values())
    on = getattr(block, "on_expression", 1)
    # to_string: names by Pyomo, which are the same in every version of mipcash
    return "" if isinstance(on, (int, float)) else f" when {getattr(on, 'expr', on).to_string()}"


def _affine_text(polynomial: Quadratic) -> str:
    terms = sorted((polynomial.variables[i].name, c) for i, c in polynomial.linear.items())
    return " + ".join(
        [f"{c:g}*{name}" for name, c in terms] + ([f"{polynomial.constant:g}"] if polynomial.constant else [])
    )


def _rule_name(index: Any) -> Any:
    return index[0] if isinstance(index, tuple) else index


def _foreign(space: Declaration) -> Iterator[tuple[str, str]]:
    """Yield direct changes of the live model: fixings, bounds, constraints, logical constraints, disjunctions."""
    yield from _variables(space)
    kinds = (pyo.Constraint, pyo.LogicalConstraint, Disjunction)
    for row in space.model.component_data_objects(ctype=kinds, active=True, descend_into=(pyo.Block, Disjunct)):
        owner = row.parent_component()
        if owner is space.model.rules or space.model.parameters in _ancestors(row):
            continue
        if owner.ctype is Disjunction:
            yield f"disjunction {row.name!r}", ", ".join(d.name for d in row.disjuncts if d.active)
            yield f"{DETAIL}disjunction {row.name!r}", "exactly one of them" if row.xor else "at least one of them"
        else:
            name = f"{owner.ctype.__name__} {row.name!r}"
            yield name, row.expr.to_string()
            yield NUMBERS + name, _numbers(owner.ctype, row)


def _variables(space: Declaration) -> Iterator[tuple[str, str]]:
    inside = (pyo.Block, Disjunct)
    for variable in space.model.component_data_objects(pyo.Var, descend_into=inside):
        if variable.fixed:
            yield f"the fixing of {variable.name!r}", str(variable.value)
        elif variable.bounds != (0, 1):
            yield f"the bounds of {variable.name!r}", str(variable.bounds)
        if space.model.parameters not in _ancestors(variable):
            yield f"{DETAIL}variable {variable.name!r}", str(variable.domain)
    for boolean in space.model.component_data_objects(pyo.BooleanVar, descend_into=inside):
        if boolean.fixed:
            yield f"{DETAIL}fixed {boolean.name!r}", str(boolean.value)


def _numbers(kind: Any, row: Any) -> str:
    """Return the numbers of a constraint; if it is no polynomial (e.g. logic), the values of its Params."""
    if kind is pyo.Constraint:
        try:
            return _relation(make_rule(row.name, row.expr, constant=True))
        except RuleError:  # the compiler reports the error when the space is first used
            pass
    params = sorted({(p.name, repr(p.value)) for p in identify_mutable_parameters(row.expr)})
    return ", ".join(f"{name} = {value}" for name, value in params)


def _ancestors(row: Any) -> list[Any]:
    found, block = [], row.parent_block()
    while block is not None:
        found.append(block.parent_component())
        block = block.parent_block()
    return found
