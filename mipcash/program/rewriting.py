"""Programs made from other programs: with additional rows, columns or products, without rules, or with other coefficients.

A program is never changed. Rewriting keeps its columns ``[base, products]`` in their order: new base columns come
after the existing base columns, new products at the end. Rows that are added only to the matrix are for solvers:
``mipcash.program.program.BinaryProgram.has_base_rows`` is False from then on, to show that the base rows are incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mipcash.modelling.rules import TOLERANCE
from mipcash.program.forms import Vector
from mipcash.program.products import Product, rlt_number, rlt_pair
from mipcash.program.program import BaseRow, BinaryProgram


def with_rows(
    program: BinaryProgram,
    added: sparse.csr_array,
    low: ArrayLike,
    high: ArrayLike,
    rules: Sequence[str] = (),
    slack: ArrayLike | None = None,
    base: Sequence[BaseRow] = (),
) -> BinaryProgram:
    """Return the program with k additional rows.

    Args:
        added: their coefficients, shape (k, n_columns).
        low, high: their bounds, shape (k,).
        rules: the names of the rules behind them; none: the structure of the space.
        slack: tolerance of each row, shape (k,); None: the default for rows without a rule.
        base: the same rows over base columns; none: the rows are for solvers only.
    """
    return replace(
        program,
        matrix=sparse.csr_array(sparse.vstack([program.matrix, added])),
        row_low=np.concatenate([program.row_low, np.asarray(low, dtype=float)]),
        row_high=np.concatenate([program.row_high, np.asarray(high, dtype=float)]),
        row_rule=program.row_rule + (tuple(rules) or ("",) * added.shape[0]),
        row_slack=np.concatenate(
            [program.row_slack, _slack(added) if slack is None else np.asarray(slack, dtype=float)]
        ),
        base_rows=program.base_rows + tuple(base),
    )


def with_columns(
    program: BinaryProgram,
    names: Collection[str],
    low: Vector,
    high: Vector,
    entries: sparse.csr_array | None = None,
    integer: ArrayLike = False,
) -> BinaryProgram:
    """Return the program with k additional base columns, inserted after the existing ones.

    Args:
        low, high: bounds, shape (k,).
        entries: their coefficients in the rows, shape (m, k); None: they are in no row.
        integer: True for those that are integer, shape (k,) or one for all.
    """
    n, k = program.n, len(names)
    entries = sparse.csr_array((program.matrix.shape[0], k)) if entries is None else entries
    matrix = sparse.hstack([program.matrix[:, :n], entries, program.matrix[:, n:]])
    return replace(
        program,
        n=n + k,
        matrix=sparse.csr_array(matrix),
        low=np.concatenate([program.low[:n], low, program.low[n:]]),
        high=np.concatenate([program.high[:n], high, program.high[n:]]),
        integer=np.concatenate(
            [program.integer[:n], np.broadcast_to(np.asarray(integer, dtype=float), k), program.integer[n:]]
        ),
        names=(*program.names[:n], *names, *program.names[n:]),
        products=tuple(replace(p, start=p.start + k) for p in program.products),
    )


def with_products(program: BinaryProgram, couplings: Iterable[tuple[int, int]]) -> BinaryProgram:
    """Return the program with product columns and their RLT rows for the given keys (``mipcash.program.products``)."""
    missing = [key for key in sorted(couplings) if key not in program.product_index]
    if not missing:
        return program
    start, blocks, products = program.n_columns, [], []
    for g, h in missing:
        left = program.groups[g].span
        if h >= 0:
            block = rlt_pair(left, program.groups[h].span, start, (g, h))
        else:
            block = rlt_number(left, -1 - h, (program.low[-1 - h], program.high[-1 - h]), start, (g, h))
        blocks.append(block)
        products.append(block.product)
        start += block.product.size
    offset = np.cumsum([0, *[b.n_rows for b in blocks]])
    rows = np.concatenate([b.rows + o for b, o in zip(blocks, offset, strict=False)])
    entries = (np.concatenate([b.values for b in blocks]), (rows, np.concatenate([b.cols for b in blocks])))
    held = program.matrix
    wide = replace(
        program,
        matrix=sparse.csr_array((held.data, held.indices, held.indptr), shape=(held.shape[0], start)),
        low=np.concatenate([program.low, *[b.low for b in blocks]]),
        high=np.concatenate([program.high, *[b.high for b in blocks]]),
        integer=np.concatenate([program.integer, np.zeros(start - program.n_columns)]),
        names=program.names + tuple(name for p in products for name in _product_names(program, p)),
        products=program.products + tuple(products),
    )
    return with_rows(
        wide,
        sparse.csr_array(entries, shape=(int(offset[-1]), start)),
        np.concatenate([b.row_low for b in blocks]),
        np.concatenate([b.row_high for b in blocks]),
    )


def with_bounds(program: BinaryProgram, low: Vector, high: Vector) -> BinaryProgram:
    """Return the program with other column bounds, shape (n_columns,)."""
    return replace(program, low=low, high=high)


def with_coefficients(
    program: BinaryProgram, matrix: sparse.csr_array, row_low: Vector, row_high: Vector
) -> BinaryProgram:
    """Return the program with other row coefficients and bounds, (m, n_columns), (m,), (m,), for solvers; base rows stay."""
    return replace(program, matrix=matrix, row_low=row_low, row_high=row_high)


def without_rules(program: BinaryProgram, dropped: Collection[str]) -> BinaryProgram:
    """Return the program without the rows of some rules."""
    keep = np.array([rule not in dropped for rule in program.row_rule], dtype=bool)
    return replace(
        program,
        matrix=sparse.csr_array(program.matrix[keep]),
        row_low=program.row_low[keep],
        row_high=program.row_high[keep],
        row_rule=tuple(r for r, k in zip(program.row_rule, keep, strict=True) if k),
        row_slack=program.row_slack[keep],
        base_rows=tuple(row for row in program.base_rows if row.rule not in dropped),
    )


def _slack(matrix: sparse.csr_array) -> Vector:
    """Return the tolerance of rows without a rule: (m, n_columns) -> (m,)."""
    slack: Vector = TOLERANCE * abs(matrix).max(axis=1).toarray().ravel()
    return slack


def _product_names(program: BinaryProgram, product: Product) -> list[str]:
    g, h = product.key
    right = program.names[program.groups[h].span] if h >= 0 else (program.names[-1 - h],)
    return [f"{a}*{b}" for a in program.names[program.groups[g].span] for b in right]
