"""Configurations, solutions and settings as JSON text that decodes to the same Python objects.

A configuration is written twice, in a readable form (for people and tables) and in an exact form. In the exact form a discrete
value is its index in ``domain.values``, so ``None``, ``True``, tuples and objects are restored as the declared values. Real values
are JSON floats, which Python writes with the shortest digits that read back exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from mipcash.modelling.domains import (
    Categorical,
    Configuration,
    Integer,
    Ordinal,
    ParameterDomain,
    Permutation,
    Value,
    same_value,
)
from mipcash.space.solution import Solution
from mipcash.text import stable_text, storable

if TYPE_CHECKING:  # Pyomo takes a second to import, which a journal that is only shown does without
    from mipcash.space.space import Space


def encode_config(space: Space, config: Configuration) -> str:
    """Return the exact form of a legal configuration of ``space``."""
    return json.dumps({label: _code(space.parameters[label].domain, value) for label, value in config.items()})


def decode_config(space: Space, text: str) -> Configuration:
    """Return the configuration that ``encode_config`` wrote, in the order in which it was written."""
    return {label: _value(space.parameters[label].domain, code) for label, code in json.loads(text).items()}


def misplaced(space: Space, config: Any) -> str:
    """Return what is wrong with a configuration, rules aside; empty if it can be encoded.

    That includes parameters that are unknown, missing, or inactive, and values outside their domains.
    """
    from mipcash.modelling.validation import check
    from mipcash.space.compiled import compiled

    return "; ".join(map(str, check(compiled(space).declaration, config, ()).violations))


def readable_config(config: Mapping[str, Value]) -> str:
    """Return JSON for people. Values without a JSON type are texts, as Python writes them."""
    return storable(json.dumps(plain(config), ensure_ascii=False))


def encode_solution(space: Space, solution: Solution) -> str:
    """Return a solution as JSON, its configuration in the exact form."""
    record = {f.name: getattr(solution, f.name) for f in fields(solution) if f.name != "config"}
    exact = None if solution.config is None else encode_config(space, solution.config)
    return json.dumps({**plain(record), "config": exact})


def decode_solution(space: Space, text: str) -> Solution:
    """Return the solution that ``encode_solution`` wrote."""
    record = json.loads(text)
    exact = record.pop("config")
    return Solution.from_dict({**record, "config": None if exact is None else decode_config(space, exact)})


def plain(value: Any) -> Any:
    """Convert a value to JSON types: dataclasses to dicts, numpy scalars to numbers, other objects to stable text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    return stable_text(value)


def _code(domain: ParameterDomain, value: Value) -> Any:
    if isinstance(domain, (Ordinal, Categorical)):
        return next(l for l, v in enumerate(domain.values) if same_value(v, value))
    if isinstance(domain, Permutation):
        return list(value)
    return int(value) if isinstance(domain, Integer) else float(value)


def _value(domain: ParameterDomain, code: Any) -> Value:
    """Return the value of a code that ``_code`` gave."""
    if isinstance(domain, (Ordinal, Categorical)):
        return domain.values[code]
    return tuple(code) if isinstance(domain, Permutation) else code
