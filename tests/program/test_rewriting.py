"""Programs made from programs admit the points that they should, and say what their base rows tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import (
    with_bounds,
    with_coefficients,
    with_columns,
    with_products,
    with_rows,
    without_rules,
)
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points


def admits(program: BinaryProgram, base: np.ndarray) -> bool:
    """Whether a point keeps the bounds and, as far as its columns follow from it, the rows."""
    columns = program.lifted(base)
    known = np.isfinite(columns)
    if np.any(columns[known] < program.low[known] - 1e-9) or np.any(columns[known] > program.high[known] + 1e-9):
        return False
    rows = np.abs(program.matrix[:, ~known]).sum(axis=1) == 0
    body = program.matrix[rows][:, known] @ columns[known]
    low, high, slack = program.row_low[rows], program.row_high[rows], program.row_slack[rows]
    return bool(np.all(body >= low - slack - 1e-9) and np.all(body <= high + slack + 1e-9))


@pytest.fixture(params=list(SPACES))
def program(request: pytest.FixtureRequest) -> BinaryProgram:
    return compiled(SPACES[request.param]()).program


def test_rows_cut_off_what_breaks_them(program: BinaryProgram) -> None:
    row = sparse.csr_array(([1.0], ([0], [0])), shape=(1, program.n_columns))
    alone = with_rows(program, row, [0.5], [np.inf])
    assert program.has_base_rows
    assert not alone.has_base_rows, "it is in the matrix alone"
    assert (alone.row_rule[-1], alone.row_slack[-1]) == ("", 1e-9)
    form = replace(QuadraticForm.zero(program.n), linear=np.eye(program.n)[0])
    told = with_rows(program, row, [0.5], [np.inf], ("first",), [0.25], [BaseRow("first", form, 0.5, np.inf, 0.25)])
    assert told.has_base_rows
    assert (told.row_rule[-1], told.row_slack[-1]) == ("first", 0.25)
    for point in all_points(program)[:60]:
        assert admits(program, point)
        assert admits(alone, point) == admits(told, point) == (point[0] == 1.0)
    assert admits(without_rules(told, {"first"}), point)
    assert without_rules(told, {"first"}).has_base_rows


def test_columns_come_after_the_base_columns(program: BinaryProgram) -> None:
    wide = with_columns(program, ("s", "t"), np.zeros(2), np.array([1.0, 3.0]), integer=True)
    assert (wide.n, wide.n_columns) == (program.n + 2, program.n_columns + 2)
    assert wide.names[program.n : wide.n] == ("s", "t")
    assert wide.integer[program.n : wide.n].tolist() == [1.0, 1.0]
    assert not wide.has_base_rows
    entries = sparse.csr_array(np.ones((program.matrix.shape[0], 2)))
    tied = with_columns(program, ("s", "t"), np.zeros(2), np.array([1.0, 3.0]), entries)
    for point in all_points(program)[:60]:
        assert admits(wide, np.append(point, [1.0, 2.0]))
        assert not admits(wide, np.append(point, [1.0, 4.0]))
        assert admits(tied, np.append(point, [0.0, 0.0]))
        assert not admits(tied, np.append(point, [1.0, 3.0])), "each group's sum is one"


def test_products_are_products(program: BinaryProgram) -> None:
    keys = {(0, h) for h in (1, 2) if h < len(program.groups)} | {(0, -1 - n.column) for n in program.numbers}
    extended = with_products(program, keys)
    assert extended.has_base_rows
    assert keys <= set(extended.product_index)
    assert with_products(extended, keys) is extended
    for point in all_points(program)[:60]:
        assert admits(extended, point)
        wrong = extended.lifted(point)
        wrong[extended.product_index[min(keys)].start] += 1.0
        known = np.isfinite(wrong)
        rows = np.abs(extended.matrix[:, ~known]).sum(axis=1) == 0
        body = extended.matrix[rows][:, known] @ wrong[known]
        assert np.any((body < extended.row_low[rows] - 1e-6) | (body > extended.row_high[rows] + 1e-6))


def test_bounds_and_coefficients(program: BinaryProgram) -> None:
    high = program.high.copy()
    high[0] = 0.0
    closed = with_bounds(program, program.low, high)
    doubled = with_coefficients(
        program, sparse.csr_array(2.0 * program.matrix), 2.0 * program.row_low, 2.0 * program.row_high
    )
    for point in all_points(program)[:60]:
        assert admits(closed, point) == (point[0] == 0.0)
        assert admits(doubled, point)
