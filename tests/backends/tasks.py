"""Small programs with every kind of column and row, random forms over them, and their optima by enumeration."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.backends.task import Cut, Task
from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BinaryProgram
from tests.fuzz import points
from tests.spaces import conv_net

layers = partial(conv_net, small=True)
"""Space with product rules, an auxiliary variable and conditional groups."""


def wide() -> mc.Space:
    """Space of wide integers, one conditional, in linear and quadratic rules, and a product of auxiliary variables."""
    space = mc.Space("wide", expand_limit=4)
    a, kind = space.integer("a", 0, 11), space.categorical("kind", ["x", "y", "z"])
    b = space.integer("b", -2, 9, when=kind.is_("x", "y"))
    u, v = space.auxiliary("u", 0, 4), space.auxiliary("v", 1, 3)
    space.rule("linear", 0.1 * a + 0.3 * b + 0.7 * kind["z"] <= 2.5)
    space.rule("product", a * kind["x"] + u * v >= 3)
    space.rule("helpers", u + v <= 5)
    return space


def ordered() -> mc.Space:
    """Space with an ordering of three modules and a rule on positions."""
    space = mc.Space("ordered")
    modules = [space.module(f"m{k}", {"none": {}, "some": {"n": mc.Integer(1, 3)}}) for k in range(3)]
    order = space.ordering("order", modules)
    space.rule("first before last", order.position(modules[0]) + 1 <= order.position(modules[2]))
    return space


def bits(n: int) -> mc.Space:
    """Space of n bits without rules."""
    space = mc.Space("bits")
    for k in range(n):
        space.integer(f"b{k}", 0, 1)
    return space


SPACES = {"layers": layers, "wide": wide, "ordered": ordered}


def random_form(program: BinaryProgram, rng: np.random.Generator, coupling: float = 0.6) -> QuadraticForm:
    """Random folded form: linear terms, dense blocks between some groups, some products with auxiliary variables."""
    rows: list[int] = []
    cols: list[int] = []
    for g, h in itertools.combinations(program.groups, 2):
        if rng.random() < coupling:
            rows += np.repeat(np.arange(g.start, g.stop), h.size).tolist()
            cols += list(range(h.start, h.stop)) * g.size
    for column in range(program.n_z, program.n):
        group = program.groups[rng.integers(len(program.groups))]
        if program.integer[column] and rng.random() < coupling:
            rows += range(group.start, group.stop)
            cols += [column] * group.size
    linear = rng.normal(size=program.n) * (program.integer[: program.n] > 0)
    at = (np.array(rows, dtype=np.int64), np.array(cols, dtype=np.int64))
    return program.folded(QuadraticForm(float(rng.normal()), linear, *at, rng.normal(size=len(rows))))


def all_points(program: BinaryProgram) -> np.ndarray:
    """Return the base columns of every legal point, shape (N, n)."""
    found, _ = points.points(program)
    return np.asarray(found)[:, : program.n]


def optimum(task: Task, legal: np.ndarray) -> float:
    """Return the least value of the task among the legal points; inf if no point satisfies its fixings and cuts."""
    keep = np.ones(len(legal), dtype=bool)
    for column, value in task.fixed.items():
        keep &= np.abs(legal[:, column] - value) < 1e-9
    for cut in task.cuts:
        body = legal[:, cut.columns] @ cut.values
        keep &= (body >= cut.low - 1e-9) & (body <= cut.high + 1e-9)
    form, left = task.form, legal[keep]
    values = form.constant + left @ form.linear + (left[:, form.rows] * left[:, form.cols]) @ form.values
    return float(values.min()) if len(values) else float("inf")


def no_good(program: BinaryProgram, columns: Any) -> Cut:
    """Return a cut that excludes the levels of these columns."""
    at = np.flatnonzero(columns[: program.n_z] > 0.5)
    return Cut(at, np.ones(len(at)), -np.inf, len(at) - 1.0)


def form_of(constant: float, linear: np.ndarray, upper: np.ndarray) -> QuadraticForm:
    """Return ``constant + linear.v + v' upper v`` for a strictly upper triangular matrix."""
    rows, cols = np.nonzero(upper)
    return QuadraticForm(constant, linear, rows, cols, upper[rows, cols])
