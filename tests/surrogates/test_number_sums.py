"""Terms of numbers that are listed, against all of them as matrices, and K + R in one product against the two apart."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.models import artificial
from mipcash.optimizers.hybrid import Hybrid
from mipcash.space.domain import Domain
from mipcash.surrogates.structured import number_sums as module
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.number_pairs import NumberPairs
from mipcash.surrogates.structured.number_sums import Side, number_sums

SWITCHED = [np.array([0, 3]), np.array([1]), np.array([2, 4])]
"""Always on; on in some points; in hardly any."""


def side(rng: np.random.Generator, n: int) -> Side:
    shares = np.array([1.0, 0.4, 0.1])
    part = (rng.random((n, 3)) < shares).astype(float)
    return Side(rng.random((n, 5)), part[:, [0, 1, 2, 0, 2]])


@pytest.mark.parametrize("sparse", [0.0, 0.3, 1.0])
def test_sums_over_numbers_do_not_hang_on_how_they_are_looked_at(
    sparse: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARSE", sparse)
    rng = np.random.default_rng(0)
    x, y, b, m = side(rng, 30), side(rng, 12), rng.random(5) + 0.5, rng.random(5) + 0.2
    terms = b * x.on[:, None] * y.on * np.exp(-0.5 * ((x.u[:, None] - y.u) / m) ** 2)
    total, squares = number_sums(SWITCHED, b, m, x, y)
    np.testing.assert_allclose(total, terms.sum(axis=2), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(squares, (terms**2).sum(axis=2), rtol=1e-12, atol=1e-15)


def test_pairs_of_observations_have_the_same_terms_and_weighed_sums() -> None:
    rng = np.random.default_rng(1)
    x, b, m = side(rng, 20), rng.random(5) + 0.5, rng.random(5) + 0.2
    rows, cols = np.tril_indices(20)
    squares = ((x.u[rows] - x.u[cols]) ** 2).T
    found = NumberPairs.of(x.on, rows, cols, squares).terms(b, m)
    terms = (b * x.on[rows] * x.on[cols]).T * np.exp(-0.5 * squares / m[:, None] ** 2)
    np.testing.assert_allclose(found.matrix(), terms, rtol=1e-12, atol=1e-15)
    total, of_squares = found.sums()
    np.testing.assert_allclose(total, terms.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(of_squares, (terms**2).sum(axis=0), rtol=1e-12)
    first, second = rng.normal(size=(2, len(rows)))
    relevance, lengths = found.weighed(first, second)
    slopes = first - terms * second
    np.testing.assert_allclose(relevance, (slopes * terms).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(lengths, (slopes * terms * squares).sum(axis=1), rtol=1e-10)


def test_both_kernels_in_one_product_over_the_levels_that_are_on() -> None:
    domain = Domain.of(artificial.space)
    structure = Hybrid(domain).surrogate.structure  # type: ignore[attr-defined]
    kernel = Kernel(structure, structure.prior[0])
    x, y = (Encoded.of(structure, domain.encode(artificial.space.sample(n, n))) for n in (20, 7))
    terms = [x.z @ kernel.level_columns(y), x.z @ kernel.level_columns(y) ** 2, x.z @ kernel.distance_columns(y)]
    assert not isinstance(x.lit, np.ndarray)  # sparse: most groups are off
    for found, expected in zip(kernel._level_sums(x, y), terms, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.whole(x, y), kernel(x, y) + kernel.residual(x, y), rtol=1e-12)
