"""Configurations, solutions and settings as JSON text that decodes to the same Python objects.

A configuration is written twice: readable (for people and tables) and exact. In the exact form a listed value is its
index in ``domain.values``, so ``None``, ``True``, tuples and objects come back as the very values that were declared;
real values are JSON floats, which Python writes with the shortest digits that read back exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from mipcash.backends.solution import Solution
from mipcash.errors import StorageError
from mipcash.space.declaration import Declaration
from mipcash.space.domains import Categorical, Configuration, Domain, Integer, Ordinal, Permutation, Value, same_value

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def encode_config(space: Declaration, config: Configuration) -> str:
    """The exact form of a legal configuration of ``space``."""
    return json.dumps({label: _code(space.parameters[label].domain, value) for label, value in config.items()})


def decode_config(space: Declaration, text: str) -> Configuration:
    """The configuration that :func:`encode_config` wrote, in the order in which it was written.

    Raises:
        StorageError: the text names parameters or levels that ``space`` does not have.
    """
    config: Configuration = {}
    for label, code in json.loads(text).items():
        try:
            config[label] = _value(space.parameters[label].domain, code)
        except (KeyError, IndexError, TypeError) as error:
            raise StorageError(
                f"the journal holds {label!r}: {code!r}, which space {space.name!r} does not have; it belongs to "
                "another space or was edited. Open it with the space that wrote it"
            ) from error
    return config


def readable_config(config: Mapping[str, Value]) -> str:
    """JSON for people: values as they are where JSON has them, else as Python writes them."""
    return json.dumps(plain(config), ensure_ascii=False)


def encode_solution(space: Declaration, solution: Solution) -> str:
    """A solution with its configuration in the exact form."""
    record = {f.name: getattr(solution, f.name) for f in fields(solution) if f.name != "config"}
    exact = None if solution.config is None else encode_config(space, solution.config)
    return json.dumps({**plain(record), "config": exact})


def decode_solution(space: Declaration, text: str) -> Solution:
    record = json.loads(text)
    exact = record.pop("config")
    return Solution.from_dict({**record, "config": None if exact is None else decode_config(space, exact)})


def plain(value: Any) -> Any:
    """The nearest thing that JSON can hold: dataclasses become dicts, numpy scalars numbers, objects stable text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    return stable_text(value)


def stable_text(value: Any) -> str:
    """``repr`` without memory addresses, so that it is the same in every process."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    return _ADDRESS.sub("", repr(value))


def _code(domain: Domain, value: Value) -> Any:
    if isinstance(domain, (Ordinal, Categorical)):
        return next(l for l, v in enumerate(domain.values) if same_value(v, value))
    if isinstance(domain, Permutation):
        return list(value)
    return int(value) if isinstance(domain, Integer) else float(value)


def _value(domain: Domain, code: Any) -> Value:
    if isinstance(domain, (Ordinal, Categorical)):
        return domain.values[code]
    if isinstance(domain, Permutation):
        return tuple(code)
    return int(code) if isinstance(domain, Integer) else float(code)
