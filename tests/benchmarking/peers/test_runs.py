"""Runner and report: resumption, damaged files, and tables of made-up histories with known ranks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.__main__ import main as benchmarks_main
from benchmarks.peers import benchmark, comparisons, history, report, runner
from benchmarks.peers.__main__ import main, names, numbers
from benchmarks.peers.figures import draw
from benchmarks.peers.history import History
from benchmarks.peers.methods import ours


def silent(text: str) -> None:
    assert "FAILED" not in text, text


def test_runs_are_resumed(tmp_path: Path) -> None:
    wanted = runner.tasks(["random", "mutation"], ["branin-cat", "sensors"], [0, 1])
    assert [t.seed for t in wanted] == [0] * 4 + [1] * 4
    assert runner.work(wanted[:3], silent, 12, tmp_path) == 0
    assert runner.missing(wanted, 12, tmp_path) == wanted[3:]
    file = tmp_path / "random.jsonl"
    before = file.read_bytes()
    with file.open("ab") as damaged:
        damaged.write(b'{"problem":"branin-cat","seed":1,"los')  # a kill in the middle of a line
    assert runner.missing(wanted, 12, tmp_path) == wanted[3:]
    assert runner.work(wanted[3:], silent, 12, tmp_path) == 0
    assert runner.missing(wanted, 12, tmp_path) == []
    assert file.read_bytes().startswith(before)
    assert len(history.read("random", "", tmp_path)) == 4
    # peers share their initial design, which is kept
    a, b = (history.read(m, "", tmp_path)[0].losses[:10] for m in ("random", "mutation"))
    assert a == b
    history.drop("random", "", [("sensors", 0)], tmp_path)
    assert [t.problem for t in runner.missing(wanted, 12, tmp_path)] == ["sensors"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--methods", "random", "--problems", "branin-cat", "--seeds", "0", "--budget", "11"]
    assert main([*run, "--jobs", "1", "--results", str(tmp_path)]) == 0
    assert main(["report", "--methods", "random", "--budget", "11", "--results", str(tmp_path)]) == 0
    assert "| random | 1.00 |" in capsys.readouterr().out
    assert main([*run, "--methods", "nothing", "--results", str(tmp_path)]) == 2
    assert main(["problems"]) == 0
    assert numbers("0-2,5") == [0, 1, 2, 5]
    assert names("a,mivabo:x=1,y=2,b") == ["a", "mivabo:x=1,y=2", "b"]


def test_a_record_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = ["random", "mutation"]
    assert runner.work(runner.tasks(methods, ["branin-cat", "ising-rules"], [0, 1]), silent, 60, tmp_path) == 0
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmark, "OUT", tmp_path / "peers.json")
    assert main(["collect", "--methods", "random,mutation", "--seeds", "0-1"]) == 0
    record = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    assert (record["size"], record["results"]["runs"], record["results"]["seeds"]) == ("part", 8, [0, 1])
    text = benchmark.markdown(record["results"], "figures")
    assert "**all, repair**: 2 problems, n = 4 runs" in text
    assert "![average rank after each evaluation, repair](figures/rank-repair.svg)" in text
    assert (tmp_path / "figures" / "rank-repair.svg").is_file()
    assert "![" not in benchmark.markdown(record["results"])


def test_smoke(tmp_path: Path) -> None:
    out = tmp_path / "peers.json"
    assert benchmarks_main(["run", "peers", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert results["failed"] == 0
    table = next(t for t in results["tables"] if (t["convention"], t["group"]) == ("repair", "all"))
    assert {r["method"] for r in table["rows"]} == {"random", "mutation", "hybrid"}
    assert table["problems"] == 2


def test_runs_of_another_commit_are_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "commit", lambda: {"commit": "abc"})
    wanted = runner.tasks(["random", "mivabo"], ["branin-cat"], [0, 1])
    for seed, stamp in enumerate(({"commit": "abc"}, {"revision": 1})):
        for method in ("random", "mivabo"):
            losses = (1.0,) * 12
            history.append(History(method, "branin-cat", seed, "", losses, (True,) * 12, losses, dict(stamp)), tmp_path)
    assert [(t.method, t.seed) for t in runner.older(wanted, tmp_path)] == [("mivabo", 1)]
    monkeypatch.setattr(ours, "commit", dict)  # outside a repository nothing is known
    assert runner.older(wanted, tmp_path) == []


def made(method: str, problem: str, seed: int, losses: list[float | None], convention: str = "") -> History:
    flags = tuple(v is not None for v in losses)
    return History(method, problem, seed, convention, tuple(losses), flags, (0.5,) * len(losses), {"revision": 1})


def fill(folder: Path) -> None:
    """Ours is best on ising-rules in both seeds, level with ``random`` on labs, and needs two evaluations of four."""
    for seed in (0, 1):
        for h in (
            made("mivabo", "ising-rules", seed, [9.0, 6.0, 6.0, 6.0]),
            made("random", "ising-rules", seed, [10.0, 9.0, 8.0, 8.0]),
            made("optuna-tpe", "ising-rules", seed, [10.0, None, 7.0, 7.0], "penalty"),
            made("optuna-tpe", "ising-rules", seed, [10.0, 9.0, 5.5, 5.5], "repair"),
            made("mivabo", "labs", seed, [-2.0, -3.0, -4.0, -4.0]),
            made("random", "labs", seed, [-1.0, -4.0, -4.0, -4.0]),
            made("optuna-tpe", "labs", seed, [-1.0, -2.0, -2.0, -2.0]),
        ):
            history.append(h, folder)
    history.append(made("mivabo", "labs", 2, [-1.0] * 4), folder)  # a seed that the others lack


def test_known_ranks(tmp_path: Path) -> None:
    fill(tmp_path)
    found = report.collect(["mivabo", "random", "optuna-tpe"], budget=4, read=history.reader(tmp_path))
    summary = report.summarise(found, "mivabo", 4)
    tables = {(t.convention, t.group): t for t in summary["tables"]}
    everything = tables["penalty", "all"]
    assert (everything.pairs, everything.problems) == (4, 2)
    ranks = {r.method: r.rank for r in everything.rows}
    assert ranks == {"mivabo": 1.25, "random": 2.25, "optuna-tpe": 2.5}
    rules = {r.method: r for r in tables["penalty", "rules"].rows}
    assert rules["optuna-tpe"].illegal == 1
    assert (rules["random"].wins, rules["random"].losses, rules["random"].ties) == (2, 0, 0)
    assert rules["random"].p == pytest.approx(0.5)
    assert rules["random"].match == 2
    optimum = 5.15160864931033
    assert rules["mivabo"].regret == pytest.approx((6 - optimum) / (8 - optimum))
    assert rules["random"].regret == 1.0
    repaired = {r.method: r for r in tables["repair", "rules"].rows}
    assert repaired["optuna-tpe"].rank == 1.0
    assert repaired["optuna-tpe"].match == math.inf
    free = {r.method: r for r in tables["repair", "free"].rows}
    assert free["mivabo"].rank == free["random"].rank == 1.5
    assert free["random"].ties == 2
    text = report.markdown(summary)
    assert "| optuna-tpe | 1.00 ± 0.00 |" in text
    assert "> 4" in text
    paths = draw(found, tmp_path / "figures", 4)
    assert len(paths) == 4
    assert all(p.stat().st_size > 1000 for p in paths)


def test_lines_keep_what_matters(tmp_path: Path) -> None:
    h = made("random", "labs", 3, [1.23456789012, None, -4.0])
    history.append(h, tmp_path)
    (again,) = history.read("random", "", tmp_path)
    assert again.losses == (1.2345679, None, -4.0)
    assert again.legal == (True, False, True)
    assert again.best() == [1.2345679, 1.2345679, -4.0]
    assert history.path_of("mivabo:a=1,b=x", "", tmp_path).name == "mivabo_a_1_b_x.jsonl"


def test_further_comparisons_in_one_record(tmp_path: Path) -> None:
    for seed in (0, 1):
        for method, last in (("hybrid", 6.0), (comparisons.SIX, 6.0), ("mutation", 7.0), ("random", 8.0)):
            history.append(made(method, "branin-cat", seed, [9.0] * 19 + [last] * 41), tmp_path)
    found = comparisons.collected([0, 1], history.reader(tmp_path))
    assert found["comparisons"] == []  # no set of methods is whole
    (problems,) = found["problems"]
    assert problems["duels"].keys() == {"mutation"}
    assert (problems["duels"]["mutation"]["wins"], problems["duels"]["mutation"]["losses"]) == (2, 0)
    text = comparisons.markdown(found)
    assert "| branin-cat | - | - | 2 / 0 | - | - | - |" in text
    for method in ("botorch", "optuna-tpe", "smac", "hyperopt"):
        history.append(made(method, "branin-cat", 1, [8.5] * 60), tmp_path)
    first, *_ = comparisons.collected([0, 1], history.reader(tmp_path))["comparisons"]
    assert [(t["group"], t["pairs"]) for t in first["tables"]] == [("all", 1), ("free", 1)]
    assert "### All problems, every peer but GPSampler" in comparisons.markdown({"comparisons": [first]})
    assert comparisons.markdown({}) == ""
