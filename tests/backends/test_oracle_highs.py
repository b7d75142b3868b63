"""The benchmark of HiGHS' accelerations, in its smoke size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.oracle_highs import CANDIDATES, markdown


def test_every_candidate_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "highs.json"
    assert main(["run", "oracle-highs", "--size", "smoke", "--out", str(out)]) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]["rows"]
    assert {r["family"] for r in rows} >= {"bits", "cash", "vae", "sklearn_pipeline", "cardinality", "ordering"}
    proven = [r for r in rows if r["seconds"]["present"] is not None]
    assert all(set(r["seconds"]) == {"present", *CANDIDATES} for r in proven)
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    table = capsys.readouterr().out.strip()
    assert table == markdown(json.loads(out.read_text(encoding="utf-8"))["results"])
    assert all(name in table for name in CANDIDATES)
