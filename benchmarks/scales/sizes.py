"""Rows of the benchmark ``scale``: thousands of levels, and hundreds of parameters."""

from __future__ import annotations

from collections.abc import Callable

import mipcash as mc
from benchmarks.scales.row import Asks, Sized

LEVELS: Sized = {"smoke": 600, "quick": 5000, "full": 5000}
PARAMETERS: Sized = {"smoke": 120, "quick": 500, "full": 500}
OBSERVATIONS: Sized = {"smoke": 6, "quick": 6, "full": 6}
PROPOSALS: Sized = {"smoke": 2, "quick": 10, "full": 54}


def levels(kind: str) -> Callable[[str], mc.Space]:
    """One category or ordinal beside three reals under a rule."""

    def space(size: str) -> mc.Space:
        made, count = mc.Space(f"{kind} levels"), LEVELS[size]
        if kind == "ordinal":
            made.ordinal("level", list(range(count)))
        else:
            made.categorical("level", [f"level {k}" for k in range(count)])
        made.rule("together", sum(made.real(name, 0, 1) for name in "xyz") <= 2)
        return made

    return space


def alike(kind: str, declare: Callable[[mc.Space, int], object]) -> Callable[[str], mc.Space]:
    """So many parameters of one kind, each declared with its number."""

    def space(size: str) -> mc.Space:
        made = mc.Space(kind)
        for k in range(PARAMETERS[size]):
            declare(made, k)
        return made

    return space


reals = alike("reals", lambda space, k: space.real(f"x{k}", 0, 1))
categories = alike("categories", lambda space, k: space.categorical(f"c{k}", list("abcd")))
integers = alike("integers", lambda space, k: space.integer(f"n{k}", 0, 10))


def mixed(size: str) -> mc.Space:
    """Half reals, half categories, under eleven linear rules."""
    space, half = mc.Space("mixed"), PARAMETERS[size] // 2
    c = [space.categorical(f"c{k}", list("abcd")) for k in range(half)]
    x = [space.real(f"x{k}", 0, 1) for k in range(half)]
    for r in range(5):
        space.rule(f"few {r}", sum(c[k]["a"] for k in range(r, half, 5)) <= half // 10)
        space.rule(f"room {r}", sum(x[k] for k in range(r, half, 5)) <= half / 10)
    space.rule("both", sum(x[:10]) + 2 * c[0]["a"] <= 7)
    return space


ROWS = (
    Asks("5,000 categories", levels("category"), OBSERVATIONS, PROPOSALS, 2.0, 10.0),
    Asks("5,000 ordinal levels", levels("ordinal"), OBSERVATIONS, PROPOSALS, 2.0, 10.0),
    Asks("500 reals", reals, OBSERVATIONS, PROPOSALS, 2.0, 10.0),
    Asks("500 categories of 4", categories, OBSERVATIONS, PROPOSALS, 2.0, 10.0),
    Asks("250 categories, 250 reals", mixed, OBSERVATIONS, PROPOSALS, 2.0, 10.0),
    Asks("500 integers of 11", integers, OBSERVATIONS, PROPOSALS, 2.0, 10.0),
)
