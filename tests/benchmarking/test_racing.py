"""The benchmark of racing in its smoke size, and its replays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mipcash as mc
from benchmarks.__main__ import main
from benchmarks.racing import RULES, WAYS, Remembered, replayed
from mipcash.study.pruning import Racing


def test_the_benchmark_of_racing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "racing.json"
    assert main(["run", "racing", "--size", "smoke", "--out", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    rows = {row["way"]: row for row in results["runs"]}
    assert list(rows) == list(WAYS)
    assert rows["off"]["evaluations"] == 8
    assert rows["on"]["stopped"] > 0
    assert rows["on"]["fits"] < 3 * rows["on"]["evaluations"]
    assert max(row["fits"] for row in rows.values()) <= 24
    assert set(rows["off"]["replays"]) == set(RULES)
    assert main(["report", str(out)]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(WAYS) + len(RULES)


def test_a_replay_saves_what_a_run_would_save() -> None:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    calls: list[int] = []

    def objective(config):  # type: ignore[no-untyped-def]
        for k in range(5):
            calls.append(k)
            yield {"loss": abs(config["x"] - 0.4) + 0.3 * k + 0.02 * ((7919 * config["x"]) % 1.0) * (k % 3)}

    remembered = Remembered(objective)
    whole = mc.minimize(remembered, space, 30, optimizer="random", progress=False)
    raced = mc.minimize(remembered, space, 30, optimizer="random", progress=False, pruning=True)
    assert len(calls) == 150  # what was fitted is not fitted again
    saved, lost = replayed(whole.history, Racing())
    assert saved == pytest.approx(1.0 - raced.n_steps / whole.n_steps)
    assert raced.best is not None
    assert whole.best is not None
    assert lost == raced.best.loss - whole.best.loss >= 0.0
