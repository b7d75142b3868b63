"""Numbers behind the figures: shares of the variance, the legal share, slices and seconds of work."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tinyrun
from reported import RUNS, conditional, plain, told

import mipcash as mc
from mipcash.errors import MipcashError, StorageError
from mipcash.optimizers.outcome import Outcome
from mipcash.report.data.box import Box
from mipcash.report.data.convergence import at_work, axis_limits
from mipcash.report.data.coordinates import coordinates, nice
from mipcash.report.data.effects import effects
from mipcash.report.data.run import Run
from mipcash.report.data.slices import slices
from mipcash.report.data.solving import best_as_code
from mipcash.report.predictions import importances
from mipcash.space.domain import Domain
from mipcash.study.result import Result


def test_shares_of_the_variance_are_those_of_sobol() -> None:
    """Check 2 x + y + 4 (z - 1/2) (w - 1/2), all uniform, with variances 4/12, 1/12 and 16/144. v has no effect."""
    space = mc.Space("sum")
    for name in "xyzwv":
        space.real(name, 0.0, 1.0)

    def value(c: dict[str, Any]) -> float:
        return 2 * c["x"] + c["y"] + 4 * (c["z"] - 0.5) * (c["w"] - 0.5)

    found = effects(Run.of(told(space, [value] * 70)))
    assert found is not None
    total = 4 / 12 + 1 / 12 + 16 / 144
    alone = {"x": 4 / 12, "y": 1 / 12, "z": 0.0, "w": 0.0, "v": 0.0}
    whole = {"x": 4 / 12, "y": 1 / 12, "z": 16 / 144, "w": 16 / 144, "v": 0.0}
    for p in found.parameters:
        assert p.alone.middle == pytest.approx(alone[p.label] / total, abs=0.06)
        assert p.whole.middle == pytest.approx(whole[p.label] / total, abs=0.08)
        assert 0.0 <= p.whole.low <= p.whole.middle <= p.whole.high <= 1.0
    assert found.labels[0] == "x"
    assert found.labels[-1] == "v"
    strongest = found.pairs[0]
    assert {strongest.first, strongest.second} == {"z", "w"}
    assert strongest.share.middle == pytest.approx(16 / 144 / total, abs=0.06)
    assert all(p.share.middle < 0.02 for p in found.pairs[1:])


def test_shares_of_an_additive_function_sum_to_one() -> None:
    """Check x + w_c, with variances 1/12 and 0.1713, and a number that is active for one category only."""
    space, levels = mc.Space("additive"), {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.01}
    space.real("x", 0.0, 1.0)
    space.categorical("c", list(levels))
    found = effects(Run.of(told(space, [lambda c: c["x"] + levels[c["c"]]] * 60)))
    assert found is not None
    variances = {"x": 1 / 12, "c": float(np.var(list(levels.values())))}
    for p in found.parameters:
        share = variances[p.label] / sum(variances.values())
        assert p.alone.middle == pytest.approx(share, abs=0.02)
        assert p.whole.middle == pytest.approx(share, abs=0.02)


def test_the_legal_share_of_the_box_is_near_the_truth() -> None:
    space = mc.Space("half")
    x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
    space.categorical("c", ["a", "b"])
    space.rule("sum", x + y <= 1)
    box = Box.drawn(Domain.of(space), np.random.default_rng(1))
    low, high = box.interval
    assert low < 0.5 < high
    assert high - low < 0.05
    assert box.share == pytest.approx(0.5, abs=0.03)
    none = replace(box, legal=np.zeros(100, dtype=bool), latent=box.latent[:100])
    assert none.interval[0] == 0.0
    assert 0.01 < none.interval[1] < 0.05
    orders = Box.drawn(Domain.of(conditional()), np.random.default_rng(1), 200)
    assert orders.share == pytest.approx(0.75, abs=0.1)  # but linear without a scaler


def test_slices_go_through_the_incumbent_and_mark_illegal_values() -> None:
    run = Run.of(RUNS["some"]())
    best = run.result.best
    assert best is not None
    assert run.place is not None
    for s in slices(run):
        assert s.values[s.at] == best.config[s.label]
        legal = [run.place.space.is_legal({**best.config, s.label: v}) for v in s.values]
        assert s.legal.tolist() == legal
        assert (s.low <= s.mean).all()
        assert (s.mean <= s.high).all()
        assert s.low[s.at] - 0.2 <= s.incumbent <= s.high[s.at] + 0.2
    found = slices(Run.of(RUNS["maximised"]()))
    assert found
    assert all((s.low <= s.high).all() and s.word == "value" for s in found)


def test_parallel_coordinates_leave_gaps_for_inactive_parameters() -> None:
    run = Run.of(RUNS["conditional"]())
    shown = coordinates(run)
    axis = next(a for a in shown.axes if a.label == "scaler.range.low")
    configs = [run.result.history[n].config for n in shown.trials]
    assert [math.isnan(p) for p in axis.places] == ["scaler.range.low" not in c for c in configs]
    assert shown.best == len(shown.trials) - 1
    assert shown.rank[shown.best] == 0.0


def test_whole_numbers_that_rules_forbid_are_no_part_of_the_range_and_ties_share_a_rank() -> None:
    space = mc.Space("holes")
    n = space.integer("n", 0, 9)
    space.rule("outside", (n <= 2) | (n >= 7))
    shown = coordinates(Run.of(told(space, [1.0, 1.0, 1.0, 0.0])))
    np.testing.assert_allclose(shown.axes[0].legal, [(0.0, 2 / 9), (7 / 9, 1.0)])
    assert sorted(shown.rank.tolist()) == pytest.approx([0.0, 2 / 3, 2 / 3, 2 / 3])


def test_pauses_and_overlaps_do_not_count_as_work() -> None:
    spans = [(100.0, 2.0), (101.0, 2.0), (1000.0, 1.0)]  # the first two overlap; the third follows a resumed run
    trials = [
        mc.Trial(k, {}, "done", Outcome.of(1.0), started=s, finished=s + d, duration=d, seconds={"ask": 0.5})
        for k, (s, d) in enumerate(spans)
    ]
    assert at_work(Result(tuple(trials), "work")).tolist() == pytest.approx([2.5, 3.5, 5.0])


def test_axes_are_logarithmic_if_losses_span_several_decades() -> None:
    assert axis_limits(np.geomspace(1e-4, 1.0, 30))[2]
    assert not axis_limits(np.linspace(-1.0, 1.0, 30))[2]
    assert np.isfinite(axis_limits(np.array([1e-310, 1e-300, 1e100]))).all()
    assert not axis_limits(np.array([*np.linspace(1.0, 2.0, 20), 1e9]))[2]
    assert nice(0.0, 1.0, False, 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert nice(1e-3, 1e3, True, 3) == pytest.approx([1e-3, 1e-1, 1e1, 1e3])


def test_code_is_python_that_gives_the_configuration() -> None:
    for name in ("some", "conditional", "categories"):
        run, scope = Run.of(RUNS[name]()), dict[str, Any]()
        exec(best_as_code(run), scope)
        assert scope["config"] == run.result.config


def test_a_journal_is_read_with_a_given_space_or_the_one_it_describes(tmp_path: Path) -> None:
    result = tinyrun.started(tmp_path / "run.db", 6)
    bare, whole = Run.of(tmp_path / "run.db"), Run.of(str(tmp_path / "run.db"), tinyrun.space())
    assert bare.place is not None
    assert bare.model is not None
    assert importances(bare) == importances(whole)
    assert whole.result.config == result.config == bare.result.config
    with pytest.raises(StorageError, match=r"was written for another space: .*parameter 'kind' is new"):
        Run.of(tmp_path / "run.db", plain())
    with pytest.raises(MipcashError, match="a report is of a result, a study or the path of a journal; got int 3"):
        Run.of(3)
