"""Callbacks that log each evaluation to MLflow or to Weights & Biases.

Logged are the configuration, the loss and further numbers, the partial results of steps, texts, and the files that texts name:
``{"loss": 0.1, "model": Path("model.bin")}`` uploads the file as an artifact. mlflow and wandb are no dependencies of mipcash.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mipcash.display import value_text
from mipcash.errors import MipcashError
from mipcash.optimizers.outcome import LOSS

if TYPE_CHECKING:
    from mipcash.study.study import Study
    from mipcash.study.trial import Trial


class MLflowCallback:
    """Log each evaluation as a run of the active MLflow experiment, nested in the active run if there is one.

    Args:
        tags: further tags of each run.

    Raises:
        MipcashError: mlflow is not installed.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.integrations.trackers import MLflowCallback
        >>> def tuned(train, space):
        ...     return mc.minimize(train, space, 20, callbacks=MLflowCallback(tags={"team": "vision"}))
    """

    def __init__(self, tags: Mapping[str, str] | None = None) -> None:
        self._mlflow, self._tags = _package("mlflow"), dict(tags or {})

    def __call__(self, study: Study, trial: Trial) -> None:
        mlflow, facts = self._mlflow, {"space": study.space.name, "origin": trial.origin, "status": trial.status}
        nested = mlflow.active_run() is not None
        mlflow.start_run(run_name=f"trial {trial.number}", nested=nested, tags={**facts, **self._tags})
        try:
            mlflow.log_params({_key(name): _plain(value) for name, value in trial.config.items()})
            mlflow.log_metrics({_key(name): value for name, value in _numbers(trial).items()})
            for name, output in trial.outcome.outputs.items():
                for step, value in enumerate(output.folds):
                    mlflow.log_metric(_key(f"{name} by step"), value, step=step)
            texts = {"message": trial.message, **trial.texts} if trial.message else trial.texts
            mlflow.set_tags({_key(name): text for name, text in texts.items()})
            for name, place, path in _files(trial):
                mlflow.log_artifact(path, f"{name}/{place}" if place else None)
        finally:
            mlflow.end_run("FAILED" if trial.failed else "FINISHED")


class WandbCallback:
    """Log each evaluation to the active Weights & Biases run, or to a new one.

    Each evaluation is one step. ``best`` is the best value so far, and ``trial`` the number of the trial.

    Args:
        settings: arguments of ``wandb.init`` for a new run, such as ``project="tuning"``.

    Raises:
        MipcashError: wandb is not installed.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.integrations.trackers import WandbCallback
        >>> def tuned(train, space):
        ...     return mc.minimize(train, space, 20, callbacks=WandbCallback(project="tuning"))
    """

    def __init__(self, **settings: Any) -> None:
        self._wandb, self._settings = _package("wandb"), settings

    def __call__(self, study: Study, trial: Trial) -> None:
        run = self._wandb.run or self._wandb.init(**self._settings)
        row: dict[str, Any] = {f"config/{name}": _plain(value) for name, value in trial.config.items()}
        row |= {**_numbers(trial), **trial.texts, "trial": trial.number, "status": trial.status}
        best = study.result.value
        run.log({**row, "best": best} if math.isfinite(best) else row)
        for name, place, path in _files(trial):
            called = f"trial-{trial.number}-{name}" + (f"-{place}" if place else "")
            run.log_artifact(path, name=re.sub(r"[^\w.-]", "-", called), type=name)


def _key(name: str) -> str:
    """Return a name without the characters that MLflow refuses, such as the brackets of a unit."""
    return re.sub(r"[^\w.:/ -]", "_", name, flags=re.ASCII)


def _package(name: str) -> Any:
    """Import a package.

    Raises:
        MipcashError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MipcashError(f"this callback needs the package {name}; pip install {name}") from error


def _numbers(trial: Trial) -> dict[str, float]:
    """Return the loss and the further numbers that are finite, by name."""
    found = {LOSS: trial.loss, **trial.values}
    return {name: value for name, value in found.items() if value is not None and math.isfinite(value)}


def _files(trial: Trial) -> list[tuple[str, str, str]]:
    """Return the outputs that are paths of files, or lists or dicts of them: output, place or key in it (empty: none), path."""
    found = list[tuple[str, str, Any]]()
    for name, text in trial.texts.items():
        try:
            several = json.loads(text)
        except ValueError:
            several = None
        places = (
            several.items() if isinstance(several, dict) else enumerate(several) if isinstance(several, list) else ()
        )
        found += [(name, "", text), *((name, str(place), path) for place, path in places)]
    return [(name, place, path) for name, place, path in found if isinstance(path, str) and os.path.isfile(path)]


def _plain(value: Any) -> Any:
    """Return a number or a text for a value of a configuration."""
    return value if isinstance(value, (int, float, str)) else value_text(value)
