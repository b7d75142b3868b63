"""Things that share ids, gathered: the connected components of rules, rows or whatever else names what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TypeVar

T = TypeVar("T")


def clusters(items: Iterable[tuple[Set[int], T]]) -> list[tuple[set[int], list[T]]]:
    """Items with the ids that each depends on -> clusters that share no id, each with its ids and its items in their order."""
    found: list[tuple[set[int], list[T]]] = []
    for ids, item in items:
        joined, members = set(ids), [item]
        rest = []
        for other, others in found:
            if other & joined:
                joined |= other
                members = others + members
            else:
                rest.append((other, others))
        found = [*rest, (joined, members)]
    return found
