"""Rules with functions and logic, drawn as plain tuples, with their meaning in mipcash and in plain Python.

number      ("value", name), ("constant", k), ("abs", e), ("max", e, f), ("min", e, f), ("sum", j, e, k, f), ("map", name)
condition   ("relation", sign, e, f), ("is", name, values), ("and" | "or" | "implies" | "xor", x, y), ("not", x)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

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
    """A function of a value that is no polynomial."""
    return abs(value) // 2 + value % 2


def numbers(names: tuple[str, ...], mapped: tuple[str, ...]) -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.tuples(st.just("value"), st.sampled_from(names)),
        st.tuples(st.just("constant"), st.integers(-2, 3)),
        st.tuples(st.just("map"), st.sampled_from(mapped)),
    )
    return st.recursive(
        leaves,
        lambda e: st.one_of(
            st.tuples(st.just("abs"), e),
            st.tuples(st.sampled_from(["max", "min"]), e, e),
            st.tuples(st.just("sum"), st.sampled_from([1, -1, 2]), e, st.sampled_from([1, -1, -2]), e),
        ),
        max_leaves=4,
    )


def conditions(
    names: tuple[str, ...], mapped: tuple[str, ...], choices: tuple[str, ...], signs: tuple[str, ...]
) -> st.SearchStrategy[Any]:
    e = numbers(names, mapped)
    relation = st.tuples(st.just("relation"), st.sampled_from(signs), e, e)
    indicator = st.sampled_from(choices).flatmap(
        lambda n: st.tuples(st.just("is"), st.just(n), st.lists(st.sampled_from(CHOICES[n]), min_size=1, unique=True))
    )
    return st.recursive(
        st.one_of(relation, indicator),
        lambda x: st.one_of(
            st.tuples(st.sampled_from(["and", "or", "implies", "xor"]), x, x), st.tuples(st.just("not"), x)
        ),
        max_leaves=3,
    )


def truth(node: Any, config: Mapping[str, Any]) -> Any:
    """What a drawn rule means at a configuration; a parameter that is not active reads as 0."""
    kind, *parts = node
    if kind == "value":
        return config.get(parts[0], 0)
    if kind == "constant":
        return parts[0]
    if kind == "map":
        return square_rest(config[parts[0]]) if parts[0] in config else 0
    if kind == "is":
        return config.get(parts[0]) in parts[1]
    if kind == "sum":
        return parts[0] * truth(parts[1], config) + parts[2] * truth(parts[3], config)
    if kind == "relation":
        return SIGNS[parts[0]](truth(parts[1], config), truth(parts[2], config))
    values = [truth(p, config) for p in parts]
    meanings: dict[str, Callable[..., Any]] = {
        "abs": abs,
        "max": max,
        "min": min,
        "and": lambda x, y: x and y,
        "or": lambda x, y: x or y,
        "implies": lambda x, y: not x or y,
        "xor": lambda x, y: x != y,
        "not": lambda x: not x,
    }
    return meanings[kind](*values)


def declared(node: Any, of: Callable[[str], Any]) -> Any:
    """The same as a user writes it, with the parameters that ``of`` gives by name."""
    kind, *parts = node
    if kind == "value":
        return of(parts[0])
    if kind == "constant":
        return parts[0]
    if kind == "map":
        return of(parts[0]).map(square_rest)
    if kind == "is":
        return of(parts[0]).is_(parts[1])
    if kind == "sum":
        return parts[0] * declared(parts[1], of) + parts[2] * declared(parts[3], of)
    if kind == "relation":
        return SIGNS[parts[0]](declared(parts[1], of), declared(parts[2], of))
    made = [declared(p, of) for p in parts]
    ways: dict[str, Callable[..., Any]] = {
        "abs": abs,
        "max": mc.maximum,
        "min": mc.minimum,
        "and": mc.all_of,
        "or": mc.any_of,
        "implies": mc.implies,
        "xor": lambda x, y: x ^ y,
        "not": lambda x: ~x,
    }
    return ways[kind](*made)
