"""The ablation in its smoke size, and its table: on which side a part counts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.ablation import FAMILIES, FLOOR, markdown, ratios


def test_the_ablation_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ablation.json"
    assert main(["run", "ablation", "--size", "smoke", "--out", str(out), "--markdown"]) == 0
    rows = json.loads(out.read_text())["results"]["runs"]
    assert {(r["family"], r["variant"]) for r in rows} == {(f, v) for f in FAMILIES for v in ("default", "no warp")}
    assert "| no warp |" in capsys.readouterr().out


def test_a_part_that_helps_counts_on_the_side_of_the_default() -> None:
    def row(variant: str, seed: int, best: float) -> dict[str, object]:
        return {"family": "rules", "variant": variant, "seed": seed, "best": best, "first": 1.0, "cpu": 0.1}

    rows = [row("default", 0, 0.0), row("no warp", 0, 0.1), row("default", 1, 0.2), row("no warp", 1, 0.0)]
    found = ratios(rows, "no warp", "rules")
    assert found == pytest.approx([math.log((0.1 + FLOOR) / FLOOR), math.log(FLOOR / (0.2 + FLOOR))])
    assert "| no warp | | 1 / 1" in markdown({"evaluations": 1, "seeds": 2, "runs": rows}).replace("|  |", "| |")
