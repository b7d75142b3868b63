"""The benchmarks of ADMM: what runs come to on both axes, and what is run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.admm import benchmark, report
from benchmarks.admm.runs import tasks, work
from benchmarks.admm.suite import INSTANCES, problems
from benchmarks.peers.catalogue import make_method
from benchmarks.peers.history import History, append
from mipcash.models import artificial


def history(method: str, instance: int, losses: list[float], cpu: list[float | None]) -> History:
    return History(method, f"artificial-{instance}", instance, "", tuple(losses), (True,) * len(losses), tuple(cpu), {})


SLOW = history("slow", 0, [4.0, 3.0, 2.0, 2.0], [None, 1.0, 1.0, 1.0])
FAST = history("fast", 0, [4.0, 2.0, 1.0, 1.0, 0.5], [None, 0.1, 0.1, 0.1, 0.1])


def test_tracks() -> None:
    track = report.Track.of(SLOW)
    assert [track.after(t) for t in (1, 3)] == [4.0, 2.0]
    assert math.isnan(track.after(5))
    assert track.reaches(3.0) == (2, 1.0)
    assert track.reaches(1.0) == (math.inf, math.inf)
    assert [track.within(s) for s in (0.0, 1.5, 2.5)] == [4.0, 3.0, 2.0]
    assert math.isnan(track.within(9.0))  # it had ended
    assert len(report.Track.of(SLOW, 2).best) == 2


def test_what_is_drawn_together_is_charged_evenly() -> None:
    drawn = history("random", 0, [4.0, 3.0, 2.0], [None, 1.0, 0.0])
    assert report.Track.of(drawn).cpu.tolist() == [0.0, 0.5, 1.0]
    assert report.Track.of(history("other", 0, [4.0, 3.0, 2.0], [None, 1.0, 0.0])).cpu.tolist() == [0.0, 1.0, 1.0]


def test_pairs_and_speedups() -> None:
    runs = {"slow": {"artificial-0": SLOW}, "fast": {"artificial-0": FAST}, "short": {"artificial-1": FAST}}
    (pair,) = report.pairs(runs, "slow", 4)
    assert (pair["method"], pair["wins"], pair["losses"]) == ("fast", 1, 0)
    assert pair["ratio"] == pytest.approx(0.5, rel=1e-2)
    (row,) = report.speedups(runs, "slow", 4)
    assert row["evaluations"] == pytest.approx(3 / 2)
    assert row["cpu"] == pytest.approx(2.0 / 0.1)
    assert row["lower"] == pytest.approx(0.5)
    assert row["lower_at_equal_cpu"] == pytest.approx(0.75)  # it had gone on to 0.5
    (back,) = report.speedups(runs, "fast", 5)
    assert (back["reached"], back["evaluations"], back["lower"]) == (0, 0.0, None)


def test_the_suite_is_the_model() -> None:
    problem = problems()["artificial-3"]
    config = problem.space().sample(1, seed=0)[0]
    assert problem.objective(config) == artificial.build(instance=3)[1](config)
    assert len(problems()) == INSTANCES >= 13
    assert [(t.problem, t.seed) for t in tasks(["random"], [2, 5])] == [("artificial-2", 2), ("artificial-5", 5)]


def test_every_method_of_ours_is_one() -> None:
    for name in benchmark.LABELS:
        if name not in ("skopt", "optuna-tpe", "smac"):
            make_method(name)


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        assert work(["random", "nothing-of-the-kind"][:1], [0], lambda _: 12, tmp_path, said.append) == 0
    assert sum("best" in line for line in said) == 1
    assert work(["random"], [0, 1], lambda _: 12, tmp_path, said.append, seconds=-1.0) == 0
    assert "the time is up" in said[-1]


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    assert main(["run", "admm-artificial", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert (results["failed"], results["runs"]) == (0, 3)
    assert main(["report", str(out)]) == 0
    assert "| method |" in capsys.readouterr().out


def test_tables_of_whatever_there_is(tmp_path: Path) -> None:
    losses = [5.0 / (t + 1) for t in range(100)]
    for method, cpu in (("jopt", 0.03), ("admm", 0.02), ("skopt", 1.0), ("hybrid", 0.1)):
        for k in range(3):
            append(history(method, k, [v * (k + 1) for v in losses], [None] * 10 + [cpu] * 90), tmp_path)
    results = benchmark.collected(tmp_path)
    assert results["runs"] == 12
    text = benchmark.markdown(results)
    assert "140 times" in text
    assert "| JOPT(BO), sound: `jopt` | 3 |" in text
