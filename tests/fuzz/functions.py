"""Random rules with functions and logic as plain tuples, and their meaning in mipcash and in plain Python.

Numbers are ("value", name), ("constant", k), ("map", name), ("abs", e), ("max", e, f) and ("min", e, f).
The number ("sum", j, e, k, f) is j e + k f.

Conditions are ("relation", sign, e, f), ("is", name, levels), ("not", x), and ("and", x, y), where "and" may also be
"or", "implies" or "xor".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import mipcash as mc

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "!=": operator.ne,
}
CHOICES = {"c": ("p", "q", "r"), "a": (-2, 0, 3)}


def square_rest(value: float) -> float:
    """Return a value for a map of a parameter; as a function it is not a polynomial."""
    return abs(value) // 2 + value % 2


def conditions(
    count: int,
    seed: int,
    names: Sequence[str],
    mapped: Sequence[str],
    choices: Sequence[str],
    signs: Sequence[str],
) -> Iterator[Any]:
    """Yield ``count`` different random conditions."""
    rng = np.random.default_rng(seed)

    def one(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    def number(depth: int) -> Any:
        kind = (
            one(("value", "constant", "map")) if not depth or rng.random() < 0.4 else one(("abs", "max", "min", "sum"))
        )
        if kind in ("value", "map"):
            return kind, one(names if kind == "value" else mapped)
        if kind == "constant":
            return kind, int(rng.integers(-2, 4))
        if kind == "sum":
            return kind, one((1, -1, 2)), number(depth - 1), one((1, -1, -2)), number(depth - 1)
        return (kind, *(number(depth - 1) for _ in range(1 if kind == "abs" else 2)))

    def condition(depth: int) -> Any:
        if not depth or rng.random() < 0.4:
            if rng.random() < 0.5:
                return "relation", one(signs), number(2), number(2)
            name = one(choices)
            return "is", name, rng.permutation(len(CHOICES[name])).tolist()[: one((1, 2, 3))]
        kind = one(("and", "or", "implies", "xor", "not"))
        return (kind, *(condition(depth - 1) for _ in range(1 if kind == "not" else 2)))

    seen: set[str] = set()
    while len(seen) < count:
        node = condition(2)
        if repr(node) not in seen:
            seen.add(repr(node))
            yield node


def evaluated(node: Any, leaves: Mapping[str, Callable[..., Any]], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the value of a node, given the meaning of its leaves and its functions."""
    kind, *parts = node
    if kind in leaves:
        return leaves[kind](*parts)
    if kind == "constant":
        return parts[0]
    made = [evaluated(p, leaves, functions) if isinstance(p, tuple) else p for p in parts]
    if kind == "sum":
        return made[0] * made[1] + made[2] * made[3]
    return SIGNS[made[0]](*made[1:]) if kind == "relation" else functions[kind](*made)


def truth(node: Any, config: Mapping[str, Any]) -> Any:
    """Return the value of a drawn rule at a configuration; an inactive parameter reads as 0."""
    leaves = {
        "value": lambda n: config.get(n, 0),
        "map": lambda n: square_rest(config[n]) if n in config else 0,
        "is": lambda n, levels: config.get(n) in [CHOICES[n][l] for l in levels],
    }
    functions = {
        "abs": abs,
        "max": max,
        "min": min,
        "and": lambda x, y: x and y,
        "or": lambda x, y: x or y,
        "implies": lambda x, y: not x or y,
        "xor": operator.ne,
        "not": operator.not_,
    }
    return evaluated(node, leaves, functions)


def declared(node: Any, of: Callable[[str], Any]) -> Any:
    """Return the rule as a user writes it; ``of`` returns a parameter by name."""
    leaves = {
        "value": of,
        "map": lambda n: of(n).map(square_rest),
        "is": lambda n, levels: of(n).is_([CHOICES[n][l] for l in levels]),
    }
    functions = {
        "abs": abs,
        "max": mc.maximum,
        "min": mc.minimum,
        "and": mc.all_of,
        "or": mc.any_of,
        "implies": mc.implies,
        "xor": operator.xor,
        "not": operator.invert,
    }
    return evaluated(node, leaves, functions)
