"""Formulas of pruning and of finalists on drawn numbers, against other implementations of the same formulas."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from mipcash.optimizers.optimizer import LOSS, Limit, Observation
from mipcash.study.confirm import warn_of_identical
from mipcash.study.finalists import Difference, Finalist, best_of, estimate_of, violated_by
from mipcash.study.minimize import _settled
from mipcash.study.pruning import FinalLossEstimator, HalvingJudge, RacingJudge, Reference, _reference, expected, so_far
from mipcash.study.spending import Spending
from mipcash.study.trial import Trial

SEEDS = pytest.mark.parametrize("seed", range(12))


# -- learning curves ---------------------------------------------------------------------------------------------------


@SEEDS
def test_the_final_loss_of_a_curve_is_isotonic_in_its_value(seed: int) -> None:
    """Within the values, scikit-learn's regression; below them the least, one for one above them, or at the mean slope."""
    rng = np.random.default_rng(seed)
    values, ends = np.round(rng.uniform(0, 4, 7), int(rng.integers(0, 3))), rng.uniform(0, 4, 7)
    pairs = sorted(zip(values.tolist(), ends.tolist(), strict=True))
    known = IsotonicRegression(out_of_bounds="clip").fit(values, ends)
    for v in np.linspace(values.min() - 1, values.max(), 30):
        assert expected(float(v), pairs) == pytest.approx(float(known.predict([v])[0]), abs=1e-9)
    low, high = known.predict([values.min(), values.max()])
    slope = (high - low) / np.ptp(values) if np.ptp(values) else 1.0
    assert expected(float(values.max()) + 0.5, pairs) == pytest.approx(high + 0.5 * slope)


@SEEDS
@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_the_variance_of_a_final_loss_is_that_of_curves_left_out(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(float(v), float(e)) for v, e in rng.uniform(0, 1, (count, 2))]
    found = FinalLossEstimator.of(pairs)
    assert found.pairs == tuple(sorted(pairs))
    assert found(0.4) == expected(0.4, sorted(pairs))
    left = [e - expected(v, sorted([p for p in pairs if p != (v, e)])) for v, e in pairs]
    wanted = np.mean(np.square(left)) if count > 2 else np.var([e for _, e in pairs])
    assert found.variance == pytest.approx(wanted)


@SEEDS
def test_the_variance_of_a_racing_reference_is_pooled_over_paired_folds(seed: int) -> None:
    """With ``d`` the differences to the incumbent: s^2 (1/k - 1/K), s^2 their variance within each of the other evaluations."""
    rng = np.random.default_rng(seed)
    count, n = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    folds = rng.normal(size=(n, count))
    best = int(rng.integers(n))
    reference = _reference([(float(f.mean()), so_far(f.tolist(), True), f.tolist()) for f in folds], best, None)
    apart = np.delete(folds, best, axis=0) - folds[best]
    pooled = float(np.mean(np.var(apart, axis=1, ddof=1)))
    assert reference.variances == pytest.approx([pooled * (1 / k - 1 / count) for k in range(1, count + 1)])
    assert reference.value == pytest.approx(folds[best].mean())
    assert reference.averaged
    for k in range(1, count):
        new = rng.normal(size=k).tolist()
        assert reference.difference(new) == pytest.approx(np.mean(new) - folds[best, :k].mean())
        value, variance = reference.estimate(new)
        assert (value, variance) == pytest.approx(
            (folds[best].mean() + reference.difference(new), pooled * (1 / k - 1 / count))
        )
        judge = RacingJudge({LOSS: reference}, 1.3)
        stopped = judge([{LOSS: v} for v in new])
        assert bool(stopped) == (reference.difference(new) > 1.3 * math.sqrt(reference.variances[k - 1]))
    assert RacingJudge({LOSS: reference}, 1e-9)([{LOSS: 99.0}] * count) == {}


@SEEDS
def test_halving_lets_the_best_part_of_a_rung_go_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor, others = int(rng.integers(2, 5)), sorted(rng.integers(0, 9, int(rng.integers(0, 12))).tolist())
    outlook = FinalLossEstimator.of([(0.0, 0.0), (9.0, 5.0)])
    judge = HalvingJudge(
        {LOSS: Reference(0.0, (0.0,) * 4, outlooks={2: outlook})}, factor, {2: tuple(map(float, others))}
    )
    for value in range(10):
        better = sum(o < value for o in others)
        goes_on = better < (len(others) + 1) // factor or len(others) + 1 < factor
        found = judge([{LOSS: 7.0}, {LOSS: float(value)}])
        assert (found == {}) == goes_on
        assert goes_on or found[LOSS] == (outlook(float(value)), outlook.variance)
        assert judge([{LOSS: 99.0}]) == {}, "no rung"


# -- finalists -----------------------------------------------------------------------------------------------------------


def shrunk(means: np.ndarray, chosen: int, noise: float) -> float:
    share = min(1.0, noise / np.var(means, ddof=1))
    return float(means[chosen] + share * (means.mean() - means[chosen]))


@SEEDS
@pytest.mark.parametrize("paired", [True, False])
def test_the_estimate_of_a_finalist_is_shrunk_by_the_residual_variance(seed: int, paired: bool) -> None:
    """Of an analysis of variance: of finalists and repeats where all have the same ones, else of finalists alone."""
    rng = np.random.default_rng(seed)
    n, counts = int(rng.integers(2, 6)), rng.integers(1, 6, 6)
    counts = np.full(n, max(2, counts[0])) if paired else np.append(np.arange(1, n), 3)[:n]
    losses = [rng.normal(size=c) + 2 * rng.normal() for c in counts.tolist()]
    able = [Finalist(k, 0.0, tuple(x.tolist()), ((),) * len(x)) for k, x in enumerate(losses)]
    means = np.array([x.mean() for x in losses])
    left_out = Finalist(9, 0.0, (50.0, 70.0), ((), ()), "repeat 1 failed: no memory")
    if len(set(counts.tolist())) == 1:
        table = np.array(losses)
        rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + table.mean()
        residual = float((rest**2).sum() / ((n - 1) * (counts[0] - 1)))
    else:
        within = sum(float(((x - x.mean()) ** 2).sum()) for x in losses)
        residual = within / (sum(counts.tolist()) - n)
    for chosen, finalist in enumerate(able):
        wanted = shrunk(means, chosen, residual / len(losses[chosen]))
        assert estimate_of([*able, left_out], finalist) == pytest.approx(wanted)
    assert estimate_of([*able, left_out], left_out) == pytest.approx(60.0)
    assert best_of([left_out]) is None
    enough = [k for k in range(n) if 2 * counts[k] >= counts.max()]
    best = best_of([*able, left_out])
    assert best is not None
    assert best.number == min(enough, key=lambda k: means[k])


@SEEDS
def test_finalists_with_one_repeat_are_shrunk_by_the_search_s_losses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 2 + seed % 4
    searched, fresh = rng.normal(size=n), rng.normal(size=n) * 2
    able = [Finalist(k, float(s), (float(f),), ((),)) for k, (s, f) in enumerate(zip(searched, fresh, strict=True))]
    for chosen, finalist in enumerate(able):
        noise = np.var(fresh - searched, ddof=1) / 2
        wanted = fresh[chosen] if n < 3 else shrunk(fresh, chosen, float(noise))
        assert estimate_of(able, finalist) == pytest.approx(wanted)


@SEEDS
@pytest.mark.parametrize("folds", [1, 2, 5])
def test_differences_have_the_standard_error_of_their_folds_or_repeats(seed: int, folds: int) -> None:
    """Folds overlap: their variance counts 1/n + 1/(K - 1) times (Nadeau and Bengio 2003); repeats do not."""
    rng = np.random.default_rng(seed)
    repeats = 1 + seed % 3
    a, b = rng.normal(size=(2, repeats, folds))
    one, other = (
        Finalist(k, 0.0, tuple(x.mean(axis=1).tolist()), tuple(tuple(row) for row in x.tolist()))
        for k, x in enumerate((a, b))
    )
    found = Difference.of(one, other)
    assert found.mean == pytest.approx((a - b).mean())
    apart, overlap = ((a - b).ravel(), 1 / (folds - 1)) if folds > 1 else ((a - b).mean(axis=1), 0.0)
    if len(apart) < 2:
        assert math.isnan(found.error)
    else:
        assert found.error == pytest.approx(math.sqrt(np.var(apart, ddof=1) * (1 / len(apart) + overlap)))
    nothing = Difference.of(one, Finalist(1, 0.0, (), ()))
    assert math.isnan(nothing.mean)
    assert math.isnan(nothing.error)


@SEEDS
def test_limits_hold_for_the_means_of_repeats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = [Limit("ms", high=2.0), Limit("auc", low=0.5)]
    rows = [{"ms": Fraction(m, 4), "auc": Fraction(a, 8)} for m, a in rng.integers(0, [13, 9], (3, 2)).tolist()]
    repeats = [
        Observation({"k": 0}, "done", 1.0, {name: float(v) for name, v in row.items()}, repeat=r + 1)
        for r, row in enumerate(rows)
    ]
    means = {name: sum(row[name] for row in rows) / 3 for name in rows[0]}
    found = {v.limit.output: v for v in violated_by(repeats, limits)}
    assert ("ms" in found) == (means["ms"] > 2)
    assert ("auc" in found) == (means["auc"] < Fraction(1, 2))
    for name, each in found.items():
        assert each.value == pytest.approx(float(means[name]))


@pytest.mark.parametrize(("evaluated", "cost"), [((), 7.0), (("loss",), 5.0), (("ms", "auc"), 2.0), (("auc",), 0.0)])
def test_an_output_without_a_cost_costs_nothing(evaluated: tuple[str, ...], cost: float) -> None:
    spending = Spending(20.0, {"loss": 5.0, "ms": 2.0})
    trial = Trial(0, {"a": 1}, evaluate=evaluated)
    assert spending.of(trial) == cost
    assert spending.spent([trial]) == 0.0, "it is pending"
    assert [spending.admits(c) for c in (20.0, 20.0 + 1e-9, 20.1)] == [True, True, False]


@pytest.mark.parametrize(
    ("ms", "loss", "settled"),
    [(5.4, None, True), (5.0, None, False), (None, 2.0, True), (None, 0.5, False), (4.0, 0.5, True), (5.1, 0.1, True)],
)
def test_a_configuration_is_settled_if_nothing_more_can_make_it_the_best(
    ms: float | None, loss: float | None, settled: bool
) -> None:
    """It violates a limit, by however little; or its loss is known, and all limits are, or it is no better than the best."""
    outcome = Observation({"a": 1}, "done", loss, {} if ms is None else {"ms": ms}).outcome
    assert _settled(outcome, [Limit("ms", high=5.0)], 1.0) == settled


@pytest.mark.parametrize(("fresh", "warned"), [((1.0, 1.0), 1), ((0.9, 1.0), 0), ((0.9, 0.8), 0), ((1.1, 1.2), 0)])
def test_only_repeats_with_exactly_the_first_loss_are_warned_of(fresh: tuple[float, ...], warned: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_identical([Finalist(0, 1.0, fresh, ((), ()))])
        warn_of_identical([])
    assert len(caught) == warned
