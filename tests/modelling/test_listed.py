"""Listed domains: a value is found by its hash, however it is spelt, and listed once."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.errors import SpaceError
from mipcash.modelling.domains import Categorical, Ordinal, Value, same_value

VALUES: list[Value] = [True, 1, "1", 2.5, (1, 2), [1, 2], None, {"a": 1}, b"1", 0, False]


def test_a_level_is_what_comparing_with_every_value_finds() -> None:
    domain = Categorical(VALUES)
    asked = [*VALUES, np.int64(1), np.float64(2.5), np.bool_(True), 1.0, [1, 2], (1, 2), "2", [3], {"a": 1}, 7]
    for value in asked:
        expected = next((l for l, v in enumerate(VALUES) if same_value(v, value)), None)
        assert domain.level(value) == expected
        assert (domain.problem(value) is None) == (expected is not None)


@pytest.mark.parametrize("twice", [1.0, np.int64(1), [1, 2], "1", True])
def test_a_value_is_listed_once_however_it_is_spelt(twice: Value) -> None:
    with pytest.raises(SpaceError, match="twice"):
        Categorical([*VALUES, twice])


def test_thousands_of_values_are_compared_with_few() -> None:
    compared = 0

    class Counted:
        def __init__(self, k: int) -> None:
            self.k = k

        def __hash__(self) -> int:
            return self.k

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return isinstance(other, Counted) and other.k == self.k

    domain = Ordinal([Counted(k) for k in range(3000)])
    assert [domain.level(Counted(k)) for k in range(0, 3000, 100)] == list(range(0, 3000, 100))
    assert compared < 10 * len(domain)
