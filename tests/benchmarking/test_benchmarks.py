"""Benchmarks run in their smoke size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import fair_pipelines, network, scale
from benchmarks.__main__ import main
from benchmarks.oracle import markdown
from benchmarks.registry import benchmark, benchmarks


def test_the_oracle_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "oracle.json"
    assert main(["run", "oracle", "--size", "smoke", "--out", str(out)]) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["benchmark"] == "oracle"
    assert record["versions"]["highspy"]
    rows = record["results"]["rows"]
    assert {r["family"] for r in rows} >= {"bits", "cash", "vae", "sklearn_pipeline"}
    for row in rows:
        proven = [s["value"] for s in row["solvers"].values() if s["seconds"] is not None]
        assert all(v == pytest.approx(row["optimum"], abs=1e-4, rel=1e-4) for v in proven)
        assert row["optimum"] is None or row["incumbent"] >= row["optimum"] - 1e-6
    assert len(record["results"]["goals"]) == 4
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().out.strip() == markdown(record["results"])


def test_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "oracle" in capsys.readouterr().out
    assert "oracle" in benchmarks()
    with pytest.raises(ValueError, match="registered twice"):
        benchmark("oracle", "another")(lambda size, progress: {})
    with pytest.raises(SystemExit):
        main(["run", "nothing"])


def test_the_scale_benchmark(tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    assert main(["run", "scale", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    rows = {r["space"]: r for r in results["rows"]}
    assert set(rows) >= {"vae", "sklearn_pipeline", "binaries", "shapes"}
    assert rows["binaries"]["binaries"] == 40
    for row in results["rows"]:
        assert min(row["cpu"]) > 0
        assert min(row["wall"]) > 0
    assert len(scale.markdown(results).splitlines()) == 2 + len(results["rows"])


def test_the_benchmark_of_asks_under_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "limit_asks.json"
    assert main(["run", "limit_asks", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]
    assert [r["limits"] for r in rows] == [0, 1, 4, 11]
    assert all(min(r["cpu"]) > 0 for r in rows)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| 20 | 0 |" in capsys.readouterr().out


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


def test_the_workers_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "workers.json"
    assert main(["run", "workers", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]
    assert {(r["kind"], r["workers"]) for r in rows} == {
        (kind, workers) for kind in ("sleep", "numpy", "python", "limited") for workers in (1, 2)
    }
    assert all(r["wall"] >= r["evaluating"] / r["workers"] > 0 and len(r["asks"]) == 4 for r in rows)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| sleeps, in threads | 2 |" in capsys.readouterr().out


def test_the_benchmark_of_fair_pipelines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fair.json"
    assert main(["run", "fair-pipelines", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [(r["optimizer"], bool(r["limits"])) for r in results["rows"]] == [
        *[("random", False), ("hybrid", False)],
        *[("hybrid", True)] * 2,
    ]
    for row in results["rows"]:
        assert len(row["evaluations"]) == 3
        for found in row["bests"]:
            kept = [e["loss"] for e in row["evaluations"] if fair_pipelines.keeps(e, found["limits"])]
            assert (found["fresh"] is None) == (not kept)
            if kept:
                assert row["evaluations"][found["number"]]["loss"] == min(kept)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| 5 | 0.05 | `hybrid`, filtered |" in capsys.readouterr().out


def test_kept_runs_of_fair_pipelines_are_of_one_version_of_code_and_data(monkeypatch: pytest.MonkeyPatch) -> None:
    version = fair_pipelines.version
    made = fair_pipelines._file("quick", fair_pipelines.STAND_IN, "hybrid", None, 0)
    assert version() in made.parent.name
    before = version()
    version.cache_clear()
    monkeypatch.setenv("MIPCASH_DATA", "elsewhere")
    assert version() != before
    monkeypatch.setattr(fair_pipelines.metadata, "version", lambda name: "99")
    now = version()
    version.cache_clear()
    assert version() != now
    version.cache_clear()


def test_the_network_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "network.json"
    assert main(["run", "network", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [r["method"] for r in results["rows"]] == ["hybrid", "random", "hybrid, limit not told"]
    for row in results["rows"]:
        kept = [e["loss"] for e in row["evaluations"] if e["latency_ms"] <= results["limit"]]
        assert row["best"] == min(kept, default=None)
        assert row["violating"] == pytest.approx(1 - len(kept) / 3)
        assert (row["again_ms"] is None) == (row["best"] is None)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "| hybrid, limit not told | 1 | 3 |" in capsys.readouterr().out


def test_the_network_benchmark_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "find_spec", lambda package: None)
    results = network.run("smoke", print)
    assert results["rows"] == []
    assert "pip install 'mipcash[torch]'" in network.markdown(results)


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
