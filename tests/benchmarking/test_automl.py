"""The benchmarks of pipelines on rows that no search sees: rows, records, statistics, tables, and both in their smoke size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from benchmarks import admm_real
from benchmarks.__main__ import main
from benchmarks.automl import data, record, report, runner, searches
from benchmarks.automl.data import split
from benchmarks.automl.programs import INTERPRETER, PROGRAMS
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.spaces import SPACES, Pipelines, fold_numbers, objective_of
from benchmarks.automl.statistics import compared, signed_ranks


def rows_of(array: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(array)}


@pytest.mark.parametrize("name", ["wine", "breast_cancer", "friedman-value"])
def test_fresh_rows_are_never_searched_on(name: str) -> None:
    x, _ = data.SOURCES[name].load()
    tested: list[bytes] = []
    for seed in range(data.OUTER):
        made = split(name, seed)
        assert not rows_of(made.x) & rows_of(made.x_fresh)
        assert len(made.y) == len(made.x) <= data.ROWS
        tested += sorted(rows_of(made.x_fresh))
    assert sorted(tested) == sorted(rows_of(x))  # every row once


def test_other_programs_are_given_the_folds_of_the_objective() -> None:
    made = split("wine", 1)
    fold = fold_numbers(made)
    for k, (_, held_out) in enumerate(objective_of(made, "bundled").splits()):
        assert set(np.flatnonzero(fold == k)) == set(held_out)


def test_losses() -> None:
    y = np.array([0, 0, 1, 1])
    assert data.loss("binary", y, np.array([0.1, 0.4, 0.35, 0.8])) == pytest.approx(0.25)
    assert data.loss("regression", np.arange(4.0), np.arange(4.0)) == 0.0
    assert data.loss("multiclass", np.array([0, 1, 2]), np.eye(3)) == 0.0
    with pytest.raises(ValueError, match="there is no data set 'nope'; there are sonar"):
        split("nope", 0)


def test_peers_are_told_a_failure_as_the_worst_so_far() -> None:
    assert searches.told(0.3, [None, 7.0]) == 0.3
    assert searches.told(None, [None, 7.0, 0.2]) == 7.0  # 1 - R2: 1 would look better than what works
    assert searches.told(None, [0.4]) == searches.told(None, []) == 1.0


def test_ranks_and_paired_differences() -> None:
    keys = [(s, k) for s in "abcdef" for k in range(3)]
    ours = {key: 0.1 for key in keys}
    equal = dict(ours)
    worse = {key: 0.2 + 0.01 * k for k, key in enumerate(keys)}
    some = {key: 0.05 if key[0] == "a" else 0.9 for key in keys} | {("g", 0): 0.0}  # a run that others lack
    found = {c.name: c for c in compared({"ours": ours, "equal": equal, "worse": worse, "some": some}, "ours")}
    assert list(found) == ["ours", "equal", "worse", "some"]
    assert found["ours"].rank == pytest.approx((1.5 * 15 + 2.5 * 3) / 18)
    assert found["ours"].rank == found["equal"].rank
    assert (found["worse"].better, found["worse"].worse, found["worse"].ties) == (18, 0, 0)
    assert (found["some"].better, found["some"].worse) == (15, 3)
    assert (found["equal"].ties, found["equal"].wilcoxon_runs, found["equal"].sign) == (18, 1.0, 1.0)
    assert found["worse"].wilcoxon_sets == pytest.approx(2 / 2**6)  # six sets, all of one sign
    assert found["worse"].wilcoxon_runs < found["worse"].wilcoxon_sets  # seeds of a set are no new pairs
    assert found["worse"].gain == pytest.approx(0.185)
    assert signed_ranks(np.zeros(5)) == 1.0


RUN = Run(
    "hybrid", "wine", 0, "bundled", {"best": Answer(0.2, 0.3, 0.25), "ensemble": Answer(0.1, 0.2)},
    (0.5, None, 0.2), 3, 10, {"search": 2.0, "asks": 0.5}, (1.0, 1.5, 2.0), stamp={"evaluations": 3},
)  # fmt: skip


def test_records_are_kept_and_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    record.append(replace(RUN, losses=(0.7,)), tmp_path)
    record.append(RUN, tmp_path)
    assert record.read("hybrid", tmp_path) == {("wine", 0): RUN}  # the last counts
    assert (RUN.best_after(1), RUN.best_after(3)) == (0.5, 0.2)
    wanted = runner.tasks(["hybrid", "random"], ["wine"], [0])
    assert [t.method for t in runner.missing(wanted, 3, tmp_path)] == ["random"]
    assert [t.method for t in runner.missing(wanted, 4, tmp_path)] == ["hybrid", "random"]  # it was shorter


def test_programs_that_are_not_there_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER, raising=False)
    said: list[str] = []
    assert runner.installed([*PROGRAMS, "random"], said.append) == ["random"]
    assert len(said) == len(PROGRAMS)
    assert INTERPRETER in said[0]
    wanted = runner.tasks(
        ["tpot", "random"], ["diabetes", "wine"], [0], "bundled"
    )  # a space for classes; TPOT for both
    assert {(t.method, t.data) for t in wanted} == {("tpot", "diabetes"), ("tpot", "wine"), ("random", "wine")}
    assert len(runner.tasks(["random"], ["diabetes", "wine"], [0])) == 2


def test_the_papers_space_predicts_numbers() -> None:
    made = split("diabetes", 0)
    run = searches.run_search("random", made, 3, "a3")
    assert run.fits == 15
    assert 0.0 < run.answers["ensemble"].search <= run.answers["best"].search
    assert 0.0 < run.answers["ensemble"].fresh < 1.5


def test_a_pipeline_that_fails_is_told_and_costs_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.naive_bayes import GaussianNB

    def declare(_: Any) -> mc.Space:
        space = mc.Space("two")
        space.categorical("kind", ["works", "fails"])
        space.real("smoothing", 1e-9, 1e-1, log=True)
        return space

    def build(_: Any, config: Any) -> Any:
        if config["kind"] == "fails":
            raise RuntimeError("it does not fit")
        return GaussianNB(var_smoothing=config["smoothing"])

    monkeypatch.setitem(SPACES, "two", Pipelines(("multiclass",), declare, build))
    for method in ("random", "hybrid"):
        run = searches.run_search(method, split("wine", 0), 12, "two")
        assert run.evaluations == len(run.losses) == len(run.clock) == 12
        failed = run.losses.count(None)
        assert 0 < failed < 12
        assert run.fits == 5 * (12 - failed) + failed  # a failed pipeline ends at its first fold
        assert 0.0 < run.seconds["asks"] < run.seconds["search"]
        assert (
            run.answers["ensemble"].search <= run.answers["best"].search == min(v for v in run.losses if v is not None)
        )
        assert ("recommended" in run.answers) == (method == "hybrid")


def test_the_papers_way_of_counting(tmp_path: Path) -> None:
    joint = replace(RUN, method="jopt", losses=(0.5, 0.4, 0.4, 0.2), clock=(1.0, 2.0, 4.0, 8.0), evaluations=4)
    split_up = replace(joint, method="admm", losses=(0.3, 0.2, 0.1, 0.1), clock=(0.5, 1.0, 2.0, 3.0))
    never = replace(joint, method="random", losses=(0.9, 0.9, 0.9, 0.3))
    for run in (joint, split_up, never, replace(joint, method="hybrid")):
        record.append(run, tmp_path)
    results = json.loads(
        json.dumps(admm_real.collected(tmp_path, (("hybrid", "admm", "jopt", "random"), ("admm", "jopt"))))
    )
    rows = {r["name"]: r["against"] for r in results["tables"][0]["rows"]}
    assert rows["admm"] == {"reached": 1.0, "evaluations": 2.0, "seconds": 8.0, "improved": 0.5}
    assert rows["random"]["reached"] == rows["random"]["evaluations"] == 0.0
    assert rows["hybrid"]["evaluations"] == 1.0
    assert rows["jopt"] == {}
    assert [t["reference"] for t in results["tables"]] == ["hybrid", "admm"]
    assert "| `admm` | 100% | 2 | 8 | 50.0% |" in admm_real.markdown(results)


def test_tables_hold_the_runs_that_all_have() -> None:
    tpot = replace(RUN, method="tpot", answers={"best": Answer(0.1, 0.4)})
    runs = {"hybrid": {("wine", 0): RUN, ("wine", 1): RUN}, "tpot": {("wine", 0): tpot}}
    made = report.table(runs, [report.DEFAULT, report.TPOT, report.SMAC])
    assert (made["runs"], made["reference"]) == (1, report.DEFAULT.label)
    text = "\n".join([*report.markdown("Title", made), *report.sets_markdown(made)])
    assert "| TPOT | 2.00 ± 0.00 | 0 | 0.4000 | 0.1000 | 0.2000 ± 0.0000 | 1 / 0 / 0 |" in text
    assert "| wine | **0.2000** | 0.4000 |" in text
    assert report.table(runs, [report.SMAC, report.TPOT]) == {}


def test_the_benchmark_automl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "automl.json"
    assert main(["run", "automl", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert (results["failed"], results["runs"]) == (0, 2)
    assert results["tables"]["The default and the others as they come"]["runs"] == 1
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| random |" in capsys.readouterr().out


def test_the_benchmark_admm_real(tmp_path: Path) -> None:
    out = tmp_path / "admm-real.json"
    assert main(["run", "admm-real", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert (results["failed"], results["tables"][0]["pairs"]) == (0, 1)
    assert "| `random` |" in admm_real.markdown(results)
