"""Callbacks for MLflow and Weights & Biases: recorders of their calls, and the packages themselves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.integrations.trackers import MLflowCallback, WandbCallback

SPACE = mc.Space("net")
SPACE.integer("layers", 1, 4)
SPACE.categorical("act", ["relu", None])
SPACE.ordering("order", [SPACE.module("scale", ["none", "unit"]), SPACE.module("select", ["all", "best"])])


def run(folder: Path, callback: Any) -> mc.Result:
    """Return a run of three evaluations, of which the second fails and each of the others writes a file."""

    def objective(config: dict[str, Any]) -> Any:
        made.append(config)
        if len(made) == 2:
            raise mc.Failed("diverged", values={"ms": 9.0})
        path = folder / f"model {len(made)}.bin"
        path.write_text("weights")
        return {"loss": float(config["layers"]), "ms": 2.0, "note": "a\nb", "model": path}

    made: list[Any] = []
    return mc.minimize(objective, SPACE, 3, optimizer="random", callbacks=callback, progress=False)


class MLflow:
    """Recorder of calls: one dict per run."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def active_run(self) -> None:
        return None

    def start_run(self, **given: Any) -> None:
        self.runs.append(given)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **given: self.runs[-1].setdefault(name, []).append((*args, *given.values()))


def test_mlflow_gets_a_run_for_each_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = MLflow()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    result = run(tmp_path, MLflowCallback({"team": "vision"}))
    assert [r["run_name"] for r in recorder.runs] == ["trial 0", "trial 1", "trial 2"]
    first, second, _ = recorder.runs
    assert first["tags"] == {"space": "net", "origin": result.history[0].origin, "status": "done", "team": "vision"}
    assert first["log_params"][0][0].keys() == {"layers", "act", "scale", "select", "order"}
    assert [r["end_run"] for r in recorder.runs] == [[("FINISHED",)], [("FAILED",)], [("FINISHED",)]]
    assert first["log_metrics"] == [({"loss": result.history[0].loss, "ms": 2.0},)]
    assert first["log_artifact"] == [(str(tmp_path / "model 1.bin"), None)]
    assert second["log_metrics"] == [({"ms": 9.0},)]
    assert second["set_tags"] == [({"message": "diverged"},)]
    assert "log_artifact" not in second


def test_wandb_gets_a_step_for_each_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, files, settings = list[Any](), list[Any](), list[Any]()
    run_ = SimpleNamespace(log=rows.append, log_artifact=lambda path, **kind: files.append((path, kind)))

    def init(**given: Any) -> Any:
        settings.append(given)
        wandb.run = run_
        return run_

    wandb = SimpleNamespace(run=None, init=init)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    result = run(tmp_path, WandbCallback(project="tuning"))
    assert settings == [{"project": "tuning"}]
    assert [row["trial"] for row in rows] == [0, 1, 2]
    assert [row.get("loss") for row in rows] == [t.loss for t in result.history]
    assert rows[-1]["best"] == result.value
    assert all(isinstance(v, (int, float, str)) for row in rows for v in row.values())
    assert [kind for _, kind in files] == [{"name": f"trial-{k}-model", "type": "model"} for k in (0, 2)]


def test_files_in_lists_and_dicts_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in ("weights.bin", "curve.csv", "best.bin")]
    for path in paths:
        path.write_text("content")

    def objective(config: dict[str, Any]) -> Any:
        return {"loss": 1.0, "artifacts": [*paths[:2], "absent.bin", 3], "models": {"fold 1": paths[2]}}

    recorder = MLflow()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    mc.minimize(objective, SPACE, 1, optimizer="random", callbacks=MLflowCallback(), progress=False)
    places = ("artifacts/0", "artifacts/1", "models/fold 1")
    assert recorder.runs[0]["log_artifact"] == [(str(path), place) for path, place in zip(paths, places, strict=True)]
    files = list[Any]()
    log = SimpleNamespace(log=lambda row: None, log_artifact=lambda path, **kind: files.append(kind))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=log))
    mc.minimize(objective, SPACE, 1, optimizer="random", callbacks=WandbCallback(), progress=False)
    assert files[-1] == {"name": "trial-0-models-fold-1", "type": "models"}


def test_steps_are_logged_to_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = MLflow()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)

    def folds(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        yield from ({"loss": loss, "latency [ms]": 2.0} for loss in (1.0, 3.0))

    mc.minimize(folds, SPACE, 1, optimizer="random", callbacks=MLflowCallback(), progress=False)
    assert recorder.runs[0]["log_metric"][:2] == [("loss by step", 1.0, 0), ("loss by step", 3.0, 1)]
    assert recorder.runs[0]["log_metrics"][0][0]["latency _ms_"] == 2.0  # MLflow refuses brackets


@pytest.mark.parametrize(("callback", "package"), [(MLflowCallback, "mlflow"), (WandbCallback, "wandb")])
def test_a_missing_package_is_named(callback: type, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MipcashError, match=f"needs the package {package}; pip install {package}"):
        callback()


def test_mlflow_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    result = run(tmp_path, MLflowCallback())
    found = mlflow.MlflowClient().search_runs(["0"])
    assert sorted(r.info.run_name for r in found) == ["trial 0", "trial 1", "trial 2"]
    losses = {r.info.run_name: r.data.metrics.get("loss") for r in found}
    assert losses == {f"trial {t.number}": t.loss for t in result.history}
    assert sorted(r.info.status for r in found) == ["FAILED", "FINISHED", "FINISHED"]
    assert len(list((tmp_path / "runs").rglob("*.bin"))) == 2


def test_wandb_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb: Any = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    result = run(tmp_path, WandbCallback(project="tuning", dir=str(tmp_path)))
    summary = dict(wandb.run.summary)
    wandb.finish()
    assert summary["best"] == result.value
    assert json.loads(json.dumps(summary["trial"])) == 2
