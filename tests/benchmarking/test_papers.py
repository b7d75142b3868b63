"""The page of the papers' claims: intervals, verdicts, and that the page is what the records give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers.benchmark import NOT_RUN, PAGE, page, position, row, run
from benchmarks.papers.claims import CLAIMS, Claim
from benchmarks.papers.effects import (
    ALL,
    BETTER,
    CHANCE,
    DIFFERENCE,
    EQUAL,
    MEDIAN,
    REFUTED,
    REPRODUCED,
    SHARE,
    TIMES,
    Effect,
    estimate,
    verdict,
    wilson,
)


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    for kind, truth, draw in (
        (DIFFERENCE, 0.5, lambda: rng.normal(0.5, 1.0, 30)),
        (TIMES, 2.0, lambda: np.exp(rng.normal(math.log(2.0), 1.0, 30))),
        (MEDIAN, 0.5, lambda: rng.normal(0.5, 1.0, 31)),
        (SHARE, 0.7, lambda: (rng.random(30) < 0.7).astype(float)),
    ):
        found = [estimate(draw(), kind) for _ in range(200)]
        covered = np.mean([e.low <= truth <= e.high for e in found])
        assert 0.88 <= covered <= 1.0, kind
        assert all(e.low <= e.value <= e.high and e.n in (30, 31) for e in found)


def test_wilson_as_printed() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "claimed", "low", "high", "expected"),
    [
        (DIFFERENCE, BETTER, 0.1, 0.4, REPRODUCED),
        (DIFFERENCE, BETTER, -0.4, -0.1, REFUTED),
        (DIFFERENCE, BETTER, -0.1, 0.4, CHANCE),
        (TIMES, BETTER, 1.1, 4.0, REPRODUCED),
        (TIMES, BETTER, 0.1, 0.9, REFUTED),
        (MEDIAN, BETTER, 0.5, 1.5, CHANCE),
        (TIMES, EQUAL, 0.85, 1.2, REPRODUCED),
        (TIMES, EQUAL, 0.7, 1.2, CHANCE),
        (TIMES, EQUAL, 1.3, 2.0, REFUTED),
        (TIMES, EQUAL, 0.5, 0.7, REFUTED),
    ],
)
def test_an_effect_confirms_or_contradicts_a_claim(
    kind: str, claimed: str, low: float, high: float, expected: str
) -> None:
    assert verdict(Effect((low + high) / 2, low, high, 10), kind, claimed) == expected


@pytest.mark.parametrize(("successes", "expected"), [(40, REPRODUCED), (39, CHANCE), (20, REFUTED)])
def test_a_claim_of_every_run(successes: int, expected: str) -> None:
    effect = estimate([1.0] * successes + [0.0] * (40 - successes), SHARE)
    assert verdict(effect, SHARE, ALL) == expected


def test_a_claim_without_two_runs_was_not_run() -> None:
    for values in (None, list, lambda: [1.0]):
        assert row(Claim("liu2020", "Fig. 1", "something", "curves", values))["verdict"] == NOT_RUN  # type: ignore[arg-type]


def test_right_of_the_line_is_the_direction_of_the_paper() -> None:
    assert position(2.0, {"kind": TIMES}) > 0 > position(0.5, {"kind": TIMES})
    assert position(0.2, {"kind": DIFFERENCE}) > 0 > position(-0.2, {"kind": DIFFERENCE})
    assert position(1.0, {"kind": SHARE}) == 0 > position(0.9, {"kind": SHARE})
    assert math.isfinite(position(0.0, {"kind": MEDIAN}))


def test_the_page_is_what_the_records_give() -> None:
    """If this fails, run ``python -m benchmarks run papers --size full``."""
    results = run("smoke", lambda text: None)
    assert page(results) == PAGE.read_text(encoding="utf-8")
    assert len(results["rows"]) == len(CLAIMS)
    assert all(r["n"] > 1 for r in results["rows"] if r["verdict"] != NOT_RUN)
    assert all(r["note"] for r in results["rows"])
