"""The benchmark of stalls in its smoke size, and what it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.peers.shape import Shape
from benchmarks.stalls import DESIGN, PATIENCE, Wells, func2c, problem, stalls


def test_the_benchmark_of_stalls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stalls.json"
    assert main(["run", "stalls", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["runs"]
    assert {row["method"] for row in rows} == {"hybrid", "random"}
    assert all(row["regret"] >= -1e-9 for row in rows)
    assert main(["report", str(out)]) == 0
    assert "wells-1" in capsys.readouterr().out


def test_evaluations_of_a_stall_are_told_apart() -> None:
    shape = Shape(Wells(1).space())
    names = [d.name for d in shape.dimensions if d.kind != "categorical"]
    best = {"kind": "k0", **dict.fromkeys(names, 0.4)}
    count = DESIGN + PATIENCE
    before = [best, *[best | {names[0]: 0.9}] * count]
    stalled = [
        best | {names[0]: 0.43},
        best | {names[0]: 0.46},
        best | {"kind": "k1"},
        best | {"kind": "k1"} | dict.fromkeys(names, 1.0),
        best | {"kind": "k2", names[1]: 0.7},
    ]
    found = stalls(shape, [*before, *stalled], [0.0, *[1.0] * (count + len(stalled))])
    assert found["visits"] == 3
    assert found["idle"] == 2
    assert found["refinements"] == 1
    assert found["stalled"] == len(stalled) + DESIGN


def test_optima_are_below_what_is_drawn() -> None:
    assert func2c({"first": "camel", "second": "camel", "x": 0.0898, "y": -0.7126}) == pytest.approx(
        problem("func2c").optimum, abs=1e-6
    )
    for name in ("wells-0", "wells-3"):
        of = problem(name)
        assert min(of.evaluate(c).loss or 0.0 for c in of.space().sample(300, 0)) > of.optimum
