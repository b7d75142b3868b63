"""Activity of groups at given levels, which changes when a move changes the level of a group that they depend on.

Notation
    s (B, G)    levels, off if a group is inactive;   latent (B, G) a level of every group, which it takes when it is active

Most groups have one condition, over one other group. These are looked up in tables, layer by layer, starting with groups whose
parents are always active.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.program.forms import Booleans, Indices
from mipcash.program.program import BinaryProgram, Condition, Indicator


@dataclass(frozen=True)
class Activity:
    """The conditions under which one group is active.

    Attributes:
        group: its index.
        off: its off level.
        lookups: indicators: the parent, and which of the parent's levels satisfy the indicator.
        general: the compound conditions.
    """

    group: int
    off: int
    lookups: tuple[tuple[int, Booleans], ...]
    general: tuple[Condition, ...]


@dataclass(frozen=True)
class _Layer:
    """k groups with one lookup each: their off levels, where their truth values begin, and their parents, (k,) each."""

    groups: Indices
    off: Indices
    first: Indices
    parents: Indices


class GroupActivity:
    """The activities of all conditional groups of a program."""

    def __init__(self, program: BinaryProgram) -> None:
        self.program = program
        self.activities = [_activity(program, g) for g, group in enumerate(program.groups) if group.conditions]

    @cached_property
    def _in_layers(self) -> tuple[Booleans, list[_Layer], list[Activity]]:
        """Truth values of all lookups in layers, concatenated; the layers; and the activities that are in no layer."""
        simple = {a.group: a for a in self.activities if len(a.lookups) == 1 and not a.general}
        on = {g for g, group in enumerate(self.program.groups) if not group.conditions}
        truths, layers, count = [np.zeros(0, dtype=bool)], list[_Layer](), 0
        while layer := [a for a in simple.values() if a.group not in on and a.lookups[0][0] in on]:
            sizes = [len(a.lookups[0][1]) for a in layer]
            first = count + np.cumsum([0, *sizes[:-1]])
            groups, off, parents = (
                np.array(column, dtype=np.int64)
                for column in zip(*((a.group, a.off, a.lookups[0][0]) for a in layer), strict=True)
            )
            layers.append(_Layer(groups, off, first, parents))
            truths += [a.lookups[0][1] for a in layer]
            on.update(a.group for a in layer)
            count += sum(sizes)
        return np.concatenate(truths), layers, [a for a in self.activities if a.group not in on]

    def effective(self, latent: Indices) -> Indices:
        """Return levels with every group off whose conditions fail: (B, G) latent levels -> (B, G)."""
        truths, layers, rest = self._in_layers
        levels = latent.copy()
        for layer in layers:
            active = truths[layer.first + levels[:, layer.parents]]
            levels[:, layer.groups] = np.where(active, np.minimum(latent[:, layer.groups], layer.off - 1), layer.off)
        for each in rest:
            active = np.ones(len(levels), dtype=bool)
            for parent, table in each.lookups:
                active &= table[levels[:, parent]]
            for condition in each.general:
                active &= condition.holds(self.program.one_hot(levels))
            levels[:, each.group] = np.where(active, np.minimum(latent[:, each.group], each.off - 1), each.off)
        return levels


def _activity(program: BinaryProgram, g: int) -> Activity:
    """Return the activity of a group: its conditions as lookups and compound conditions."""
    lookups, general = list[tuple[int, Booleans]](), list[Condition]()
    for condition in program.groups[g].conditions:
        if isinstance(condition, Indicator):
            lookups.append((int(program.group_of[condition.columns[0]]), program.held(condition)))
        else:
            general.append(condition)
    return Activity(g, program.groups[g].size - 1, tuple(lookups), tuple(general))


def group_activity(program: BinaryProgram) -> GroupActivity:
    """Return the activities of a program, cached in it."""
    if "group activity" not in program.derived:
        program.derived["group activity"] = GroupActivity(program)
    found: GroupActivity = program.derived["group activity"]
    return found
