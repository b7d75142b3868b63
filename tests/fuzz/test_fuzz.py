"""A sample of the spaces of ``python -m tests.fuzz``: the library agrees with brute force on all of them."""

from __future__ import annotations

import pytest

from tests.fuzz.engine import Plan, examine
from tests.fuzz.kinds import KINDS

PARTS, SPACES_PER_PART = 4, 4
"""Together 16 spaces; each part is a test of its own so that workers share them. The whole is ``python -m tests.fuzz``."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_disagreement(part: int) -> None:
    records = [examine(Plan(), k) for k in range(part * SPACES_PER_PART, (part + 1) * SPACES_PER_PART)]
    assert not "\n".join(str(d) for r in records for d in r.disagreements)
    assert all(r.asked["default"] >= 5 for r in records)


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_disagreement_on_a_space_of_each_kind(kind: str) -> None:
    record = examine(Plan(seed=1, kinds=(kind,)), 0)
    assert not "\n".join(map(str, record.disagreements))
