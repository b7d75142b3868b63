"""Smoke runs of all benchmarks with their tables, and the results page generated from the kept records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import histories, records
from benchmarks.__main__ import main
from benchmarks.peers.problem import problems
from benchmarks.raw import append_line, lines, pack, replace
from benchmarks.registry import benchmark, benchmarks
from tests.named import OPTIMIZERS

ROWS = {
    "ablation": ("| no warp |",),
    "admm-artificial": ("| random, legal | 1 |",),
    "admm-real": ("| `random` |",),
    "admmbo": ("| (17) | admmbo, apart | 1 |", "| (17) | random, together | 1 |"),
    "automl": ("| random |",),
    "cmes": ("| cMES |", "| cMES real |", "| random |"),
    "faults": ("| one at a time | ", "| full disk | 1 | 1 of 1 |"),
    "fair-pipelines": ("| random, legal, filtered |",),
    "load": ("| trials in a journal | 100 | run ", "| rules over 100 integers | 50 | declare "),
    "limits": ("first kept", "| hybrid |", "| random |"),
    "many-workers": ("| `hybrid` | 8 |",),
    "paper-synthetic": ("| hybrid |", "| random | 1 |"),
    "paper-vae": ("| hybrid | 1 |", "| random | 1 |"),
    "paper-xgboost": ("| hybrid | 1 |", "| random | 1 |"),
    "papers": ("MiVaBO is first of SMAC",),
    "wide": ("| labs |", "| svm under rules |"),
    "peers": ("**all, repair**: 2 problems", "| mutation |", "| hybrid |"),
}
"""Rows of the printed tables."""


@pytest.mark.parametrize("name", ROWS)
def test_smoke(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    assert main(["run", name, "--size", "smoke", "--out", str(out)]) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert (record["benchmark"], record["results"].get("failed", 0)) == (name, 0)
    assert record["versions"]["mipcash"]
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert [row for row in ROWS[name] if row not in printed] == []
    tables = record["results"].get("tables", []) if name in ("limits", "peers") else []
    for row in (r for t in tables for r in t.get("rows", [])):
        assert row["illegal"] == 0 or row["method"] == "mutation"


def test_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in benchmarks())
    assert set(benchmarks()) == {*ROWS}
    with pytest.raises(ValueError, match="registered twice"):
        benchmark("load", "another")(lambda size, progress: {})
    for arguments in (["run", "nothing"], ["collect", "load"]):
        with pytest.raises(SystemExit):
            main(arguments)
    kept = {n for n, b in benchmarks().items() if b.collected}
    assert kept >= {"admm-artificial", "admmbo", "admm-real", "automl", "limits"}


def test_the_results_page_matches_the_kept_records(tmp_path: Path) -> None:
    """Assert this for the committed page. If the test fails, run `python -m benchmarks report`."""
    folder = tmp_path / "results"
    shutil.copytree(records.FOLDER, folder, ignore=shutil.ignore_patterns("*.gz", "paper-*.md", records.PAGE))
    text = records.page(benchmarks(), folder).read_text(encoding="utf-8")
    assert text == (records.FOLDER / records.PAGE).read_text(encoding="utf-8")


def test_packed_and_appended_lines_are_read_alike(tmp_path: Path) -> None:
    folder = tmp_path / "peers"
    plain, nested = folder / "a.jsonl", folder / "4" / "a.jsonl"
    append_line(plain, '{"x": 1e-05}')
    append_line(nested, '{"x":"é"}')
    assert pack(folder) == folder / "peers.jsonl.gz"
    assert list(folder.rglob("*.jsonl")) == []
    append_line(plain, '{"x": 2}')
    assert lines(plain) == ['{"x": 1e-05}', '{"x": 2}']
    bytes_before = pack(folder).read_bytes()
    assert pack(folder).read_bytes() == bytes_before
    replace(plain, lines(plain)[1:])
    assert (lines(plain), lines(nested)) == (['{"x": 2}'], ['{"x":"é"}'])
    assert lines(folder / "none.jsonl") == []


def test_kept_runs_are_packed() -> None:
    assert list(records.FOLDER.rglob("*.jsonl")) == []
    assert len(lines(records.FOLDER / "peers" / "hybrid.jsonl")) >= 210


def test_the_same_code_writes_the_same_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    for path in (first, second):
        one = ["--optimizers", "random", "--problems", "ising,branin-cat", "--budget", "3"]
        assert histories.main(["--out", str(path), *one]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert histories.main(["--compare", str(first), str(second)]) == 0
    same = "2 with the same discrete decisions, 2 of them with numbers to 1e-9"
    assert capsys.readouterr().out == f"2 runs equal, 0 different, 0 in one file alone; {same}\n"
    changed: dict[str, Any] = json.loads(second.read_text(encoding="utf-8").splitlines()[0])
    changed["losses"][1] += 1e-12
    second.write_text(json.dumps(changed) + "\n", encoding="utf-8")
    assert histories.main(["--compare", str(first), str(second)]) == 1
    told = capsys.readouterr().out
    assert "random on ising: trial 1" in told
    assert "0 runs equal, 1 different, 1 in one file alone; 1 with the same discrete decisions, 1 of them" in told
    listed = histories.planned(OPTIMIZERS)
    assert {optimizer for optimizer, *_ in listed} == set(OPTIMIZERS)
    assert [problem for optimizer, problem, _ in listed if optimizer == "hybrid"] == list(problems())
    with pytest.raises(SystemExit):
        histories.main(["--out", str(first), "--optimizers", "nobody"])
