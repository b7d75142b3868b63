"""``direction="maximize"``: the user sees the objective's own sign, and the run equals that of the negated loss."""

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


def run(objective: Any, direction: str, budget: int = 10, **given: Any) -> mc.Result:
    return mc.minimize(objective, space(), budget, direction=direction, progress=False, **given)


def both(up: mc.Result, down: mc.Result) -> None:
    assert [t.config for t in up.history] == [t.config for t in down.history]
    assert [t.loss for t in up.history] == [-(t.loss or 0.0) for t in down.history]
    assert up.value == -down.value


def test_maximising_equals_minimising_the_negated_loss_and_shows_the_users_sign(tmp_path: Path) -> None:
    path, mirrored = tmp_path / "up.db", tmp_path / "down.db"
    run(hill, "maximize", 8, storage=path)
    up, down = run(hill, "maximize", 10, storage=path), run(valley, "minimize", storage=mirrored)
    both(up, down)
    assert up.value == max(t.loss or 0.0 for t in up.history) > 9.5
    assert up.best.number == down.best.number  # type: ignore[union-attr]
    assert "done, value " in str(up.best)
    assert f"best value {up.value:.6g}" in str(up)
    incumbent = up.convergence().incumbent
    assert (np.diff(incumbent) >= 0).all()
    assert incumbent[-1] == up.value
    with sqlite3.connect(path) as journal:
        stored = journal.execute("SELECT max(value) FROM evaluation WHERE output = 'loss'").fetchone()
    assert stored == (up.value,)
    with pytest.raises(StorageError, match="direction was maximize and is minimize now"):
        run(hill, "minimize", storage=path)
    # the report shows the user's sign too
    shown, other = Run.of(path, space()), Run.of(mirrored, space())
    assert curve(shown.result).found == curve(other.result).found
    assert curve(shown.result).step_y.tolist() == (-curve(other.result).step_y).tolist()
    assert coordinates(shown).rank.tolist() == coordinates(other).rank.tolist()
    for there, here in zip(slices(shown), slices(other), strict=True):
        assert there.mean == pytest.approx(-here.mean)
        assert (there.low <= there.high).all()
        assert there.low == pytest.approx(-here.high)
        assert there.incumbent == -here.incumbent


def test_limits_apply_in_the_sign_of_the_objective() -> None:
    """Assert that limits use the objective's own sign, including a lower limit of 8.5 on the loss itself."""
    up = run(hill, "maximize", limits={"size": 2.5, "loss": (8.5, None)})
    down = run(valley, "minimize", limits={"size": 2.5, "loss": -8.5})
    both(up, down)
    broken, mirrored = ([[b.limit.output for b in r.violations(t)] for t in r.history] for r in (up, down))
    assert broken == mirrored
    violation = next(b for t in up.history for b in up.violations(t) if b.limit.output == "loss")
    assert str(violation).endswith("< 8.5")
    assert violation.value is not None
    assert 0 < violation.value < 8.5
    assert "the highest value for other bounds" in str(up.limits)
    losses, mirrored_losses = ([row["loss"] for row in r.limits if row["output"] == "size"] for r in (up, down))
    assert losses == [-loss for loss in mirrored_losses]
    assert up.probability() == pytest.approx(down.probability())


def test_pruning_and_confirmation_work_in_both_directions() -> None:
    up = run(folds, "maximize", 16, pruning=True, confirm=2)
    down = run(negative, "minimize", 16, pruning=True, confirm=2)
    both(up, down)
    assert [t.steps for t in up.history] == [t.steps for t in down.history]
    assert up.n_pruned == down.n_pruned > 0
    assert up.fresh == -down.fresh
    assert [f.searched for f in up.finalists] == [-f.searched for f in down.finalists]
    lines = str(up).splitlines()
    first = lines[lines.index("finalists, evaluated again:") + 2]
    assert "recommended" in first
    assert f" {up.value:.6g} " in first


def test_ask_tell_and_known_evaluations_keep_the_sign_of_the_objective() -> None:
    study = mc.Study(space(), optimizer="random", direction="maximize")
    study.add({"x": 0.3, "n": 3}, 10.0)
    study.tell(study.ask(), 4.0)
    result = study.result
    assert result.value == 10.0
    assert result.best is not None
    assert (result.best.known, result.best.minimised) == (True, -10.0)
    assert "best 10" in repr(study)


def test_invalid_directions_are_refused() -> None:
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


def test_the_command_line_minimises_and_maximises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hill.py").write_text(MODEL, encoding="utf-8")

    def mipcash(line: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, line.split())
        assert found.exit_code == code, found.output
        return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", found.output).split())

    given = "--optimizer random --budget 9 --quiet"
    assert "best value 10 (trial" in mipcash(f"run hill.py --storage up.db {given}")
    assert "best value 10 (trial" in mipcash("show up.db")
    assert "best value -26 (trial" in mipcash(f"run hill.py --direction minimize --storage down.db {given}")
    refused = mipcash("run hill.py --direction up --storage down.db", 2)
    assert "direction must be 'minimize' or 'maximize', got 'up'" in refused


def test_trade_offs_of_a_limit_on_a_maximised_loss_have_its_sign() -> None:
    space = mc.Space("ten")
    space.integer("a", 0, 9)
    result = mc.minimize(
        lambda c: float(c["a"]),
        space,
        10,
        direction="maximize",
        limits={"loss": 6.0},
        optimizer="random",
        progress=False,
    )
    assert result.config == {"a": 6}
    assert "loss <= 6: violated by 3 of 10 evaluations; binds: a higher value was seen" in str(result.limits)
