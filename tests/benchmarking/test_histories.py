"""Histories as text: the same code writes the same file, and a difference is told with its first trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.histories import main, planned
from benchmarks.peers.problem import problems
from tests.named import OPTIMIZERS

ONE = ["--optimizers", "random", "--problems", "ising,branin-cat", "--budget", "3"]


def test_the_same_code_writes_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    for path in (first, second):
        assert main(["--out", str(path), *ONE]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert main(["--compare", str(first), str(second)]) == 0
    assert capsys.readouterr().out == "2 runs equal, 0 different, 0 in one file alone\n"

    lines = [json.loads(line) for line in second.read_text(encoding="utf-8").splitlines()]
    lines[0]["losses"][1] += 1e-12
    second.write_text(json.dumps(lines[0]) + "\n", encoding="utf-8")
    assert main(["--compare", str(first), str(second)]) == 1
    told = capsys.readouterr().out
    assert "random on ising: trial 1" in told
    assert "0 runs equal, 1 different, 1 in one file alone" in told
    lines[0]["optimizer"] = "hybrid"
    second.write_text(json.dumps(lines[0]) + "\n", encoding="utf-8")
    assert main(["--compare", str(first), str(second)]) == 1, "nothing was compared"


def test_every_optimizer_is_run(tmp_path: Path) -> None:
    listed = planned(OPTIMIZERS)
    assert {optimizer for optimizer, *_ in listed} == set(OPTIMIZERS)
    assert [problem for optimizer, problem, _ in listed if optimizer == "hybrid"] == list(problems())
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "no.jsonl"), "--optimizers", "nobody"])
