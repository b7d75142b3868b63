"""`mipcash show` says where a space fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.report.failures import failing


def space() -> mc.Space:
    made = mc.Space("fails")
    made.module("how", {"plain": {}, "tuned": {"rate": mc.Real(1e-3, 1.0, log=True)}})
    made.categorical("kind", ["a", "b", "c"])
    made.real("x", 0.0, 1.0)
    return made


def objective(config: dict[str, Any]) -> float:
    if config["how"] == "tuned" and config["x"] > 0.5:
        raise MemoryError
    if config["kind"] == "c":
        return float("nan")
    return float(config["x"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.db"
    mc.minimize(objective, space(), 110, optimizer="random", seed=3, storage=path, progress=False)
    return path


@pytest.fixture
def journal(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(run, tmp_path / "run.db"))


def shown(path: Path) -> str:
    done = CliRunner().invoke(app, ["show", str(path), "--top", "1"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_groups_failures_by_kind_with_the_settings_that_go_with_them(journal: Path) -> None:
    text = shown(journal)
    with mc.Study(space(), "random", storage=journal, seed=3) as study:
        out_of_memory, nan = failing(study.record.listing, study.trials)
        assert {out_of_memory.name, nan.name} == {"out of memory", "nan"}
        if nan.name != "nan":
            out_of_memory, nan = nan, out_of_memory
        trials = study.trials
    share = nan.settings[0]
    under = [t for t in trials if t.config["kind"] == "c"]
    failed = sum(t.failed and "nan" in t.message for t in under)
    assert share.setting == "kind = 'c'"
    assert (share.under, share.evaluations) == (failed, len(under))
    assert (share.elsewhere, share.others) == (0, 110 - len(under))
    assert {s.setting.split()[0].split(".")[0] for s in out_of_memory.settings} == {"how", "x"}
    for part in ("out of memory", "where it fails", str(share)):
        assert part in text


def test_show_says_nothing_of_failures_where_nothing_failed(tmp_path: Path) -> None:
    mc.minimize(lambda c: c["x"], space(), 4, optimizer="random", storage=tmp_path / "run.db", progress=False)
    text = shown(tmp_path / "run.db")
    assert "failures" not in text
