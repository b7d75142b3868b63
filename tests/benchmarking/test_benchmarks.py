"""Benchmarks run in their smoke size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.registry import benchmark, benchmarks


def test_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "asks" in capsys.readouterr().out
    assert "asks" in benchmarks()
    with pytest.raises(ValueError, match="registered twice"):
        benchmark("asks", "another")(lambda size, progress: {})
    with pytest.raises(SystemExit):
        main(["run", "nothing"])
    with pytest.raises(SystemExit):
        main(["collect", "asks"])
    assert {n for n, b in benchmarks().items() if b.collected} >= {
        "admm-artificial",
        "admmbo",
        "admm-real",
        "automl",
        "limits",
    }


def test_the_benchmark_of_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "asks.json"
    assert main(["run", "asks", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]
    assert {(r["space"], r["losses"]) for r in rows} == {
        (space, losses) for space in ("sklearn_pipeline", "artificial") for losses in ("structured", "noise")
    }
    assert all(min(r["cpu"]) > 0 for r in rows)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| sklearn_pipeline | noise | 20 |" in capsys.readouterr().out


def test_the_benchmark_of_starting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "startup.json"
    assert main(["run", "startup", "--size", "smoke", "--out", str(out)]) == 0
    rows = {r["line"]: r for r in json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]}
    assert rows["`import mipcash`"]["median"] < rows["`import mipcash`"]["wanted"] == 0.2
    assert main(["report", str(out)]) == 0
    assert "| `mipcash --help` |" in capsys.readouterr().out


def test_the_benchmark_of_several_objectives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fronts.json"
    assert main(["run", "fronts", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]
    assert {r["problem"] for r in rows} == {"network", "vessel", "beam"}
    assert all(0.0 < r["last"] <= 1.0 for r in rows)
    assert main(["report", str(out)]) == 0
    assert "| network | hybrid | 1 |" in capsys.readouterr().out
