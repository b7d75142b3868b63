"""Grouping of items that share ids: the connected components of rules, rows or anything else with a set of ids."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

T = TypeVar("T")


def clusters(items: Iterable[tuple[Set[int], T]]) -> list[tuple[set[int], list[T]]]:
    """Group items with their ids into clusters that share no id, each with its ids and its items in their order.

    Clusters come in the order of their last items.
    """
    held = list(items)
    if len(held) < 2:
        return [(set(ids), [item]) for ids, item in held]
    node: dict[int, int] = {}  # node of each id; the nodes of the items come first
    for ids, _ in held:
        for i in ids:
            node.setdefault(i, len(held) + len(node))
    ends = np.array([(k, node[i]) for k, (ids, _) in enumerate(held) for i in ids], dtype=np.int64).reshape(-1, 2)
    n = len(held) + len(node)
    _, label = connected_components(csr_array((np.ones(len(ends)), ends.T), shape=(n, n)), directed=False)
    found: dict[int, tuple[set[int], list[T]]] = {}
    for (ids, item), cluster in zip(held, label.tolist(), strict=False):
        known, members = found.pop(cluster, (set(), []))
        found[cluster] = (known | ids, [*members, item])
    return list(found.values())
