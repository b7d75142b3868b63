"""``direction="maximize"``: the user sees the objective's own sign everywhere, and the run is that of the negative loss."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import StorageError
from mipcash.report.data.convergence import curve
from mipcash.report.data.coordinates import coordinates
from mipcash.report.data.run import Run
from mipcash.report.data.slices import slices


def space() -> mc.Space:
    found = mc.Space("hill")
    found.real("x", 0.0, 1.0)
    found.integer("n", 1, 5)
    found.rule("low", found["n"] <= 4)
    return found


def hill(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": 10.0 - (config["x"] - 0.3) ** 2 - (config["n"] - 3) ** 2, "size": config["n"] + config["x"]}


def valley(config: dict[str, Any]) -> dict[str, float]:
    return {**hill(config), "loss": -hill(config)["loss"]}


def folds(config: dict[str, Any], repeat: int = 0) -> Iterator[float]:
    for k in range(4):
        yield hill(config)["loss"] + 0.01 * math.sin(9 * k + 2 * repeat + config["x"])


def negative(config: dict[str, Any], repeat: int = 0) -> Iterator[float]:
    for value in folds(config, repeat):
        yield -value


def run(objective: Any, direction: str, budget: int = 12, **given: Any) -> mc.Result:
    return mc.minimize(objective, space(), budget, direction=direction, progress=False, **given)


def test_the_run_is_that_of_the_negative_loss_and_the_sign_is_the_users(tmp_path: Path) -> None:
    up, down = run(hill, "maximize", storage=tmp_path / "up.db"), run(valley, "minimize")
    assert [t.config for t in up.history] == [t.config for t in down.history]
    assert [t.loss for t in up.history] == [-(t.loss or 0.0) for t in down.history]
    assert up.value == max(t.loss or 0.0 for t in up.history) == -down.value > 9.5
    assert up.best.number == down.best.number  # type: ignore[union-attr]
    assert "done, value " in str(up.best)
    assert f"best value {up.value:.6g}" in str(up)
    incumbent = up.convergence().incumbent
    assert (np.diff(incumbent) >= 0).all()
    assert incumbent[-1] == up.value
    with sqlite3.connect(tmp_path / "up.db") as journal:
        stored = journal.execute("SELECT max(value) FROM evaluation WHERE output = 'loss'").fetchone()
    assert stored == (up.value,)


def test_resumed(tmp_path: Path) -> None:
    whole = run(hill, "maximize", 12)
    run(hill, "maximize", 8, storage=tmp_path / "run.db")
    resumed = run(hill, "maximize", 12, storage=tmp_path / "run.db")
    assert [t.config for t in resumed.history] == [t.config for t in whole.history]
    assert resumed.value == whole.value
    with pytest.raises(StorageError, match="direction was maximize and is minimize now"):
        run(hill, "minimize", 12, storage=tmp_path / "run.db")


def test_limits_are_on_what_the_objective_gives() -> None:
    """Also one on the value itself: at least 8.5."""
    limits, mirrored = {"size": 2.5, "loss": (8.5, None)}, {"size": 2.5, "loss": -8.5}
    up, down = run(hill, "maximize", limits=limits), run(valley, "minimize", limits=mirrored)
    assert [t.config for t in up.history] == [t.config for t in down.history]
    assert up.value == -down.value
    assert [[b.limit.output for b in up.breaks(t)] for t in up.history] == [
        [b.limit.output for b in down.breaks(t)] for t in down.history
    ]
    broken = next(b for t in up.history for b in up.breaks(t) if b.limit.output == "loss")
    assert str(broken).endswith("< 8.5")
    assert broken.value is not None
    assert 0 < broken.value < 8.5
    text = str(up.limits)
    assert "the highest value that was found" in text
    assert [row["loss"] for row in up.limits if row["output"] == "size"] == [
        -row["loss"] for row in down.limits if row["output"] == "size"
    ]
    assert up.probability() == pytest.approx(down.probability())


@pytest.mark.parametrize("racing", [True, "halving"])
def test_racing_and_finalists(racing: Any) -> None:
    up = run(folds, "maximize", 20, pruning=racing, confirm=2)
    down = run(negative, "minimize", 20, pruning=racing, confirm=2)
    assert [t.config for t in up.history] == [t.config for t in down.history]
    assert [t.steps for t in up.history] == [t.steps for t in down.history]
    assert up.n_pruned == down.n_pruned > 0
    assert up.fresh == -down.fresh
    assert [f.searched for f in up.finalists] == [-f.searched for f in down.finalists]
    lines, mirrored = str(up).splitlines(), str(down).splitlines()
    first, other = (text[text.index("finalists, evaluated again:") + 2] for text in (lines, mirrored))
    assert first.split()[0] == other.split()[0]
    assert "the answer" in first
    assert f" {up.value:.6g} " in first


def test_by_hand_and_known() -> None:
    study = mc.Study(space(), optimizer="random", direction="maximize")
    study.add({"x": 0.3, "n": 3}, 10.0)
    study.tell(study.ask(), 2.0)
    study.tell(study.ask(), 4.0)
    result = study.result
    assert result.value == 10.0
    assert result.best is not None
    assert result.best.known
    assert result.best.minimised == -10.0
    assert "best 10" in repr(study)


def test_directions_that_there_are_not() -> None:
    for given, hint in (("up", ""), ("maximise", "; did you mean 'maximize'?"), (5, "")):
        with pytest.raises(ValueError, match=r"direction must be 'minimize' or 'maximize', got .*") as error:
            run(hill, given)  # type: ignore[arg-type]
        assert str(error.value).endswith(hint)
    x = np.arange(20.0).reshape(-1, 1)
    objective = mc.CrossValidated(lambda config: None, x, [0, 1] * 10, scoring="accuracy")
    with pytest.raises(ValueError, match="gives a loss to minimize, and direction is 'maximize'; leave direction out"):
        run(objective, "maximize")


MODEL = """
import mipcash as mc

DEFAULTS = {"direction": "maximize"}
space = mc.Space("hill")
space.integer("n", 1, 9)


def objective(config):
    return 10.0 - (config["n"] - 3) ** 2
"""


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hill.py").write_text(MODEL, encoding="utf-8")

    def mipcash(*arguments: str) -> str:
        found = CliRunner().invoke(app, [*arguments])
        assert found.exit_code == 0, found.output
        return re.sub(r"\x1b\[[0-9;]*m", "", found.output)

    assert "best value 10 (trial" in mipcash("run", "hill.py", "--budget", "12", "--storage", "up.db", "--quiet")
    assert "best value 10 (trial" in mipcash("show", "up.db")
    assert "value" in mipcash("show", "up.db", "--top", "1").splitlines()[1]
    resumed = mipcash("resume", "up.db", "--budget", "13", "--model", "hill.py", "--quiet")
    assert "best value 10 (trial" in resumed
    down = ["run", "hill.py", "--budget", "12", "--direction", "minimize", "--storage", "down.db", "--quiet"]
    assert "best loss -26 (trial" in mipcash(*down)
    refused = CliRunner().invoke(app, ["run", "hill.py", "--direction", "up", "--storage", "down.db"])
    assert refused.exit_code == 2
    assert "direction must be 'minimize' or 'maximize', got 'up'" in " ".join(refused.output.split())


def test_in_the_report(tmp_path: Path) -> None:
    path, mirrored = tmp_path / "up.db", tmp_path / "down.db"
    up = run(hill, "maximize", storage=path)
    run(valley, "minimize", storage=mirrored)
    shown, other = Run.of(path, space()), Run.of(mirrored, space())
    assert shown.result.value == up.value
    assert curve(shown.result).found == curve(other.result).found
    assert curve(shown.result).step_y.tolist() == (-curve(other.result).step_y).tolist()
    best, same = coordinates(shown), coordinates(other)
    assert best.trials == same.trials
    assert best.rank.tolist() == same.rank.tolist()
    for there, here in zip(slices(shown), slices(other), strict=True):
        assert there.mean == pytest.approx(-here.mean)
        assert (there.low <= there.high).all()
        assert there.low == pytest.approx(-here.high)
        assert there.incumbent == -here.incumbent
