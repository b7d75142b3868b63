"""Interacting parameters: pairs of names declared by the user, as pairs of groups and numerical parameters of the program.

Notation
    g, h    groups of the program, indices 0 .. G - 1;   d, e   tuned numerical parameters of the scale, indices 0 .. D - 1
    (g, h)  a pair whose products are discrete features phi_d
    (g, d)  a pair whose products are mixed features phi_m
    (d, e)  numerical parameters that share a continuous feature phi_c

The interaction graph of a generalised additive model (daxberger2019, Sec. 3.1): only declared pairs may be multiplied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from mipcash.errors import SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale
from mipcash.text import did_you_mean

Pair = tuple[int, int]
NameTuple = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Interactions:
    """The pairs that may interact (see the module's notation).

    Attributes:
        groups: (g, h) with g < h. Groups of one parameter, an ordering, always interact.
        mixed: (g, d).
        numbers: (d, e) with d < e.
    """

    groups: frozenset[Pair]
    mixed: frozenset[Pair]
    numbers: frozenset[Pair]


def named(pairs: Iterable[Sequence[str]]) -> NameTuple:
    """Return pairs of names as tuples, the form in which settings store them.

    Raises:
        SpaceError: an entry is not a pair of names.
    """
    made = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise SpaceError(f"an interaction is a pair of parameter names, such as ('lr', 'layers'); got {pair!r}")
        made.append((pair[0], pair[1]))
    return tuple(made)


def resolve(
    declaration: Declaration,
    program: BinaryProgram,
    scale: UnitScale,
    interactions: Iterable[Sequence[str]] | None,
) -> Interactions:
    """Return the declared pairs of names as pairs of groups and numerical parameters.

    Args:
        declaration: the space, for its parameters' names.
        program: the space compiled.
        scale: the tuned numerical parameters.
        interactions: pairs of parameter names, in either order; None: all pairs.

    Raises:
        SpaceError: a name is not a parameter (the nearest is suggested), or a parameter is paired with itself.
    """
    n_groups, n_numbers = len(program.groups), len(scale)
    if interactions is None:
        return Interactions(
            frozenset(combinations(range(n_groups), 2)),
            frozenset((g, d) for g in range(n_groups) for d in range(n_numbers)),
            frozenset(combinations(range(n_numbers), 2)),
        )
    groups_of: dict[str, list[int]] = {}
    for g, group in enumerate(program.groups):
        groups_of.setdefault(group.parameter, []).append(g)
    number_of = {label: d for d, label in enumerate(scale.labels)}
    groups = {pair for members in groups_of.values() for pair in combinations(members, 2)}
    mixed: set[Pair] = set()
    numbers: set[Pair] = set()
    for a, b in named(interactions):
        for name in (a, b):
            _known(name, declaration)
        if a == b:
            raise SpaceError(
                f"interactions: parameter {a!r} is paired with itself; name two parameters (one alone needs no entry)"
            )
        groups |= {(min(g, h), max(g, h)) for g in groups_of.get(a, ()) for h in groups_of.get(b, ())}
        for discrete, number in ((a, b), (b, a)):
            if number in number_of:
                mixed |= {(g, number_of[number]) for g in groups_of.get(discrete, ())}
        if a in number_of and b in number_of:
            d, e = number_of[a], number_of[b]
            numbers.add((min(d, e), max(d, e)))
    return Interactions(frozenset(groups), frozenset(mixed), frozenset(numbers))


def _known(name: str, declaration: Declaration) -> None:
    if name in declaration.parameters:
        return
    if name in declaration.auxiliaries:
        raise SpaceError(
            f"interactions: {name!r} is an auxiliary variable of space {declaration.name!r} and no part of a configuration; "
            "name the parameters that decide it"
        )
    hint = did_you_mean(name, declaration.parameters)
    raise SpaceError(f"interactions: space {declaration.name!r} has no parameter {name!r}; {hint}")
