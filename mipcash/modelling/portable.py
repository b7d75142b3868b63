"""A declaration as JSON, so that a journal describes its space to a reader who has no model file, and no code is run.

    polynomial      [constant, {variable: coefficient}, [[variable, variable, coefficient], ...]]
    condition       a polynomial, or {"every": bool, "parts": [condition, ...]}
    rule            the fields of ``Rule``, with its parts as rules

Variables are named as in the live model, ``parameters[width].z[2]``, and their names follow from the declarations. What a user
changes in the live model is not described; a reader notices that by the fingerprint (``mipcash.study.records.fingerprint``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyomo.environ as pyo

from mipcash.errors import SpaceError
from mipcash.modelling.conditions import expression_of
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Categorical, Integer, Ordinal, ParameterDomain, Permutation, Real
from mipcash.modelling.expectations import NODES, Expectation
from mipcash.modelling.fidelity import Fidelity
from mipcash.modelling.formulas import ALL, ANY, Formula
from mipcash.modelling.names import selectors_of
from mipcash.modelling.parameters import ChoiceParameter, ModuleParameter
from mipcash.modelling.quadratic import Condition, Quadratic, Variable, put_together
from mipcash.modelling.rules import Rule

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Real, Integer, Ordinal, Categorical, Permutation)}
NUMPY: dict[str, Any] = {
    kind.__name__: kind for kind in (np.str_, np.bool_, np.float64, np.float32, np.int64, np.int32, np.int16, np.int8)
}
"""Types of numpy that levels may have, as in a list made by ``np.logspace``."""
WIDEST = 100_000
"""Largest number of variables, and expansion limit, that are read from data, so that a few bytes cannot fill the memory."""


def as_json(declaration: Declaration) -> dict[str, Any] | None:
    """Return a declaration as data for ``from_json``.

    Returns:
        None if the live model has components of the user's own, or a level is an object that JSON cannot hold.
    """
    model, names = declaration.model, dict[int, str]()
    if any(c.local_name not in ("parameters", "rules") for c in model.component_objects(descend_into=False)):
        return None
    try:
        parameters = {
            label: _parameter(declaration, label, names)
            for label in model.parameters  # in the order of declaration, beside the blocks of selectors
            if label in declaration.parameters or label in declaration.auxiliaries
        }
    except TypeError:
        return None
    applied = dict[str, bool]()  # a rule that always holds has no row
    for index, row in model.rules.items():
        name = index[0] if isinstance(index, tuple) else index
        applied[name] = applied.get(name, False) or row.active
    fidelity = declaration.fidelity
    return {
        "name": declaration.name,
        "expand_limit": declaration.expand_limit,
        "parameters": parameters,
        "rules": [
            {**_rule(rule, names), "selectors": len(model.parameters[at].selectors) if at in model.parameters else 0}
            for name, rule in declaration.rules.items()
            if applied.get(name, True) and (at := selectors_of(name))
        ],
        "fidelity": None if fidelity is None else [fidelity.label, fidelity.full, fidelity.power],
    }


def from_json(data: Mapping[str, Any]) -> Declaration:
    """Return the declaration that data of ``as_json`` describe.

    Raises:
        SpaceError: they describe none, or one of more than ``WIDEST`` variables.
    """
    try:
        return _read(data)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise SpaceError(f"these data describe no space ({type(error).__name__}: {error})") from error


def _read(data: Mapping[str, Any]) -> Declaration:
    _check_size(data["expand_limit"])
    declaration = Declaration(data["name"], expand_limit=data["expand_limit"])
    model, named = declaration.model, dict[str, Variable]()
    for label, each in data["parameters"].items():
        _declare(declaration, label, each, named)
        if "expected" in each:
            declaration.expectations[label] = _read_expectation(each["expected"], declaration.parameters[label].domain)
        named.update((v.name, v) for v in model.parameters[label].component_data_objects(pyo.Var))
        _check_size(len(named))
    for label, each in data["parameters"].items():
        for algorithm, own in each.get("algorithms", {}).items():
            module = declaration.parameters[label]
            module.hyperparameters[algorithm] = {name: declaration.parameters[of] for name, of in own.items()}
    for each in data["rules"]:
        _check_size(len(named) + each["selectors"])
        for _ in range(each["selectors"]):
            variable = declaration.selector(each["name"])
            named[variable.name] = variable
        rule = declaration.rules[each["name"]] = _read_rule(each, named)
        for k, part in enumerate(rule.parts):
            declaration.write(part, k)
        if not rule.parts and (math.isfinite(rule.lower) or math.isfinite(rule.upper)):
            declaration.write(rule)
        declaration.params[rule.name] = []
    if data["fidelity"] is not None:
        declaration.fidelity = Fidelity(*data["fidelity"])
    return declaration


def _check_size(number: int) -> None:
    if number > WIDEST:
        raise SpaceError(f"{number} variables are more than the {WIDEST} that are read")


def _parameter(declaration: Declaration, label: str, names: dict[int, str]) -> dict[str, Any]:
    if label in declaration.auxiliaries:
        return {"auxiliary": _domain(declaration.auxiliaries[label].domain)}
    parameter = declaration.parameters[label]
    found = {
        "domain": _domain(parameter.domain),
        "when": [_condition(c, names) for c in declaration.conditions.get(label, ())],
    }
    if isinstance(parameter, ModuleParameter):
        found["algorithms"] = {
            algorithm: {name: each.label for name, each in own.items()}
            for algorithm, own in parameter.hyperparameters.items()
        }
    if (expected := declaration.expectations.get(label)) is not None:
        default, table = expected.default, expected.table
        found["expected"] = [_level(default), None if table is None else table.tolist()]
    return found


def _declare(declaration: Declaration, label: str, data: Mapping[str, Any], named: Mapping[str, Variable]) -> None:
    if "auxiliary" in data:
        declaration.auxiliary(label, data["auxiliary"]["low"], data["auxiliary"]["high"])
        return
    given = {name: _read_level(value) for name, value in data["domain"].items()}
    domain = KINDS[given.pop("kind")](**given)
    if isinstance(domain, Permutation):
        declaration.ordering(label, domain.members)
        return
    when = [_read_condition(c, named) for c in data["when"]]
    kind = ModuleParameter if "algorithms" in data else ChoiceParameter
    with warnings.catch_warnings():  # the user has seen them
        warnings.simplefilter("ignore")
        declaration.declare(label, domain, when or None, kind)


def _read_expectation(data: Sequence[Any], domain: ParameterDomain) -> Expectation:
    default, table = _read_level(data[0]), None if data[1] is None else np.array(data[1], float)
    if default is not None:
        (value,) = default if type(default) is tuple else ()
        if problem := domain.problem(value):
            raise ValueError(f"a default: {problem}")
        default = (domain.canonical(value),)
    nodes = len(domain.values) if isinstance(domain, (Ordinal, Categorical)) else NODES
    if table is not None and (
        isinstance(domain, Permutation) or table.shape != (nodes,) or not np.isfinite(table).all()
    ):
        raise ValueError(f"a prior of {domain}")
    return Expectation(default, table)


def _domain(domain: ParameterDomain) -> dict[str, Any]:
    given = {f.name: getattr(domain, f.name) for f in fields(domain) if f.init}
    return {"kind": domain.kind, **{name: _level(value) for name, value in given.items()}}


def _level(value: Any) -> Any:
    """Return a level, or a field of a domain, as data.

    Raises:
        TypeError: it is an object that JSON cannot hold.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is tuple:
        return [_level(part) for part in value]
    if isinstance(value, np.generic) and type(value).__name__ in NUMPY:
        return {"numpy": type(value).__name__, "value": value.item()}
    raise TypeError(f"a level of type {type(value).__name__}")


def _read_level(data: Any) -> Any:
    if isinstance(data, Mapping):
        return NUMPY[data["numpy"]](data["value"])
    return tuple(map(_read_level, data)) if isinstance(data, list) else data


def _condition(condition: Condition, names: dict[int, str]) -> Any:
    if isinstance(condition, Quadratic):
        return _polynomial(condition, names)
    return {"every": condition.every, "parts": [_condition(part, names) for part in condition.parts]}


def _read_condition(data: Any, named: Mapping[str, Variable]) -> Any:
    """Return a condition as ``when=`` takes it."""
    if isinstance(data, Mapping):
        return Formula(ALL if data["every"] else ANY, tuple(_read_condition(part, named) for part in data["parts"]))
    return expression_of(_read_polynomial(data, named))


def _polynomial(body: Quadratic, names: dict[int, str]) -> list[Any]:
    for i, variable in body.variables.items():
        if i not in names:
            names[i] = variable.name  # Pyomo makes it up anew each time
    linear = {names[i]: float(c) for i, c in body.linear.items()}
    return [float(body.constant), linear, [[names[i], names[j], float(c)] for (i, j), c in body.products.items()]]


def _read_polynomial(data: Sequence[Any], named: Mapping[str, Variable]) -> Quadratic:
    constant, linear, products = data
    ones = [(named[name], c) for name, c in linear.items()]
    pairs = [(named[i], named[j], c) for i, j, c in products]
    return put_together(constant, ones, pairs, [*(v for v, _ in ones), *(v for *both, _ in pairs for v in both)])


def _rule(rule: Rule, names: dict[int, str]) -> dict[str, Any]:
    return {
        "name": rule.name,
        "body": _polynomial(rule.body, names),
        "bounds": [float(bound) if math.isfinite(bound) else None for bound in (rule.lower, rule.upper)],
        "when": [_polynomial(w, names) for w in rule.when],
        "written": rule.written,
        "scale": float(rule.scale),
        "parts": [_rule(part, names) for part in rule.parts],
    }


def _read_rule(data: Mapping[str, Any], named: Mapping[str, Variable]) -> Rule:
    low, high = data["bounds"]
    return Rule(
        data["name"],
        _read_polynomial(data["body"], named),
        -math.inf if low is None else low,
        math.inf if high is None else high,
        tuple(_read_polynomial(w, named) for w in data["when"]),
        data["scale"],
        data["written"],
        tuple(_read_rule(part, named) for part in data["parts"]),
    )
