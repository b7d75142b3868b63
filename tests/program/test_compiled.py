"""Compiled programs of small spaces, row by row, against ``golden/programs.txt``: what each part of the language becomes.

After an intended change of the compiler, ``python tests/program/test_compiled.py`` writes the file again; read its difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import mipcash as mc
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled

GOLDEN = Path(__file__).parent / "golden" / "programs.txt"


def choices(space: mc.Space) -> None:
    """A conditional choice, with a rule over two choices."""
    a, b = space.categorical("a", ["p", "q", "r"]), space.integer("b", 1, 2)
    space.ordinal("c", [1, 4], when=a["p"] & b.is_(2))
    space.rule("r", 3 * b + 2 * a["q"] <= 4)


def products_of_choices(space: mc.Space) -> None:
    """Products of the levels of two choices, also under a condition."""
    a, b = space.integer("a", 0, 2), space.ordinal("b", [1, 3])
    k = space.categorical("k", ["p", "q"])
    space.rule("two", a * b <= 3)
    space.rule("conditional", a * k["p"] >= 1, when=b.is_(3))


def a_conditional_number(space: mc.Space) -> None:
    """Numbers under conditions, in a rule and in a product with a choice."""
    k = space.categorical("k", ["p", "q", "r"])
    x = space.real("x", 0.5, 2, when=k["p"])
    y = space.integer("y", 1, 20, when=~(k["p"] | k["q"]))
    z = space.real("z", 0.001, 0.01, when=k["q"])
    space.rule("beside", x + 2 * y + 100 * z <= 30)
    n = space.integer("n", 0, 1)
    space.rule("sum", x + n <= 1.75)
    space.rule("product", x * n >= -1 + 2 * k["p"])


def numbers_in_bits(space: mc.Space) -> None:
    """The number with fewer values is written in bits, whichever comes first."""
    a, b, c = space.integer("a", 0, 900), space.integer("b", 10, 15), space.real("c", -1, 2)
    space.rule("product", a * b <= 1000)
    space.rule("square", b * b >= 110)
    space.rule("with a real", b * c <= 5)


def steps_and_reals(space: mc.Space) -> None:
    """A real with a step, and products of two reals."""
    x, y, z = space.real("x", 0.5, 2, step=0.25), space.real("y", -1, 2), space.real("z", 1, 3)
    space.rule("stepped", 2 * x + y == 1.5)
    space.rule("product", y * z <= 2)
    space.rule("square", y * y >= 0.25)


def a_conditional_number_with_a_step(space: mc.Space) -> None:
    """A real with a step that is active under one of two conditions, in a product with a real."""
    k, n = space.categorical("k", ["p", "q", "r"]), space.integer("n", 0, 1)
    w = space.real("w", 0.5, 2.25, step=0.25, when=~k["p"])
    u = space.real("u", 1.5, 4, step=0.5, when=k["p"] & n.is_(1))
    y = space.real("y", -1, 2)
    space.rule("product", w * y <= 2)
    space.rule("other", u * y + w <= 2.5)


def an_ordering(space: mc.Space) -> None:
    """An ordering with a precedence."""
    a, b, c = (space.categorical(name, ["on", "off"]) for name in "abc")
    order = space.ordering("o", [a, b, c])
    space.rule("first", order.position(a) <= order.position(c))


def auxiliary_variables(space: mc.Space) -> None:
    """Rules over an auxiliary variable, and functions."""
    x, y = space.integer("x", 0, 9), space.integer("y", 0, 9)
    h = space.auxiliary("h", 0, 4)
    space.rule("even", x == 2 * h)
    space.rule("distance", abs(x - y) <= 3)
    space.rule("apart", abs(x - y) >= 1)
    space.rule("largest", mc.maximum(x, y) + h == 8)


def logic(space: mc.Space) -> None:
    """Implications and alternatives of rules."""
    a, x = space.categorical("a", ["p", "q", "r"]), space.real("x", 0, 1)
    b = space.integer("b", 0, 3)
    space.rule("implied", mc.implies(a["p"], x + b <= 2))
    space.rule("either", (b >= 2) | a["q"])
    space.rule("not both", ~((x >= 0.5) & (b <= 1)))


def products_under_conditions(space: mc.Space) -> None:
    """Products with coefficients, under conditions, in alternatives and of conditional numbers."""
    a, b, k = space.integer("a", 0, 3), space.integer("b", 1, 3), space.categorical("k", ["p", "q"])
    space.rule("either", (3 * a * b >= 6) | k["p"])
    space.rule("both ends", mc.implies(k["q"], 2 * a * b - b <= 7))
    x, y = space.real("x", -1, 2, when=k["p"]), space.real("y", 0.5, 3, when=a >= 1)
    space.rule("of numbers", 4 * x * y + a <= 6)
    space.rule("square", 2 * y * y - x >= 1, when=a >= 1)


SPACES: tuple[Callable[[mc.Space], None], ...] = (
    choices,
    products_of_choices,
    a_conditional_number,
    numbers_in_bits,
    steps_and_reals,
    a_conditional_number_with_a_step,
    an_ordering,
    auxiliary_variables,
    logic,
    products_under_conditions,
)


def text_of(program: BinaryProgram) -> list[str]:
    """Columns and rows of a program, one per line."""
    matrix = program.matrix.toarray()
    names = [f"c{k}" for k in range(matrix.shape[1])]
    pairs = zip(program.low, program.high, program.integer, strict=True)
    known = list(program.names) + [""] * (len(names) - len(program.names))
    lines = [
        f"  {n} in [{low:.9g}, {high:.9g}]{' integer' if whole else ''}  {of}"
        for n, (low, high, whole), of in zip(names, pairs, known, strict=True)
    ]
    for row, low, high, slack, rule in zip(
        matrix, program.row_low, program.row_high, program.row_slack, program.row_rule, strict=True
    ):
        terms = " ".join(f"{c:+.9g} {n}" for c, n in zip(row, names, strict=True) if c)
        lines.append(f"  {low + 0.0:.9g} <= {terms} <= {high + 0.0:.9g}  within {slack:.3g}  {rule}")
    for base in program.base_rows:
        form = base.form
        terms = [f"{c:+.9g} {n}" for c, n in zip(form.linear, names, strict=False) if c]
        terms += [f"{v:+.9g} {names[i]} {names[j]}" for i, j, v in zip(form.rows, form.cols, form.values, strict=True)]
        lines.append(f"  base: {base.low + 0.0:.9g} <= {' '.join(terms)} <= {base.high + 0.0:.9g}  {base.rule}")
    return lines


def programs() -> str:
    """All programs, one after the other."""
    lines = []
    for declare in SPACES:
        space = mc.Space(declare.__name__, expand_limit=4)
        declare(space)
        program = compiled(space).program
        lines += [
            f"{declare.__name__}: {declare.__doc__}",
            *text_of(program),
            f"  {program.n} of {program.n_columns} columns",
        ]
        assert np.all(program.low <= program.high)
    return "\n".join(lines) + "\n"


def test_programs_are_those_of_the_file() -> None:
    assert programs() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(programs(), encoding="utf-8")
