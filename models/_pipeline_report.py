"""Report of a search of pipelines: its recommendation and an ensemble next to usual models, on its own and on fresh folds."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.models._data import Table
from mipcash.study.reading import describe_error
from mipcash.text import one_line

FRESH = 1000
"""The repeat whose folds are used: beyond those that finalists are chosen on."""
ENDING = "The search chose the best on its own folds, so that scores there are optimistic; nothing was chosen on the fresh ones."


def compared(
    result: Any,
    models: Mapping[str, Any],
    objective_of: Callable[[Callable[[Mapping[str, Any]], Any]], CrossValidated],
    held: Table | None = None,
) -> list[str]:
    """Lines of a table: the models, the first of which is the answer, and after it the ensemble.

    Args:
        models: by name, unfitted.
        objective_of: what cross-validates what a function of a configuration builds.
        held: rows that were held out.
    """
    measured = {name: objective_of(partial(_clone, model)) for name, model in models.items()}
    lines = [f"  {name:<46} {_scores(each, held)}" for name, each in measured.items()]
    lines[1:1] = _of_ensemble(result, held)
    first = next(iter(measured.values()))
    apart = "" if held is None else "   held out"
    unfair = "   disparity" if getattr(first.finish, "grouped", None) is not None else ""
    columns = f"the search's folds   fresh folds{apart}   latency_ms{unfair}"
    return [f"{first.folds}-fold cross-validated {first.scoring.name}      {columns}", *lines, ENDING]


def share_predictions(objective: CrossValidated) -> None:
    """Let the processes that evaluate bring their out-of-fold predictions back, for the ensemble; they go with the objective."""
    folder = Path(tempfile.gettempdir()) / f"mipcash-{uuid.uuid4().hex}"
    objective.keep_predictions(folder)
    weakref.finalize(objective, shutil.rmtree, folder, ignore_errors=True)


def _scores(measured: CrossValidated, held: Table | None) -> str:
    try:
        searched, fresh = (measured.evaluate({}, repeat) for repeat in (0, FRESH))
        apart = _on_held(measured, held, lambda: measured.build({}).fit(measured.x, measured.y))
    except Exception as error:  # of any model, for any reason
        return f"fails: {one_line(describe_error(error), 80)}"
    scores = (measured.scoring.perfect - outputs["loss"] for outputs in (searched, fresh))
    said = f"{next(scores):>12.4f} {next(scores):>13.4f}{apart} {searched['latency_ms']:>12.2f}"
    return f"{said} {searched['disparity']:>11.4f}" if "disparity" in searched else said


def _on_held(measured: CrossValidated, held: Table | None, fitted: Callable[[], Any]) -> str:
    """The column of the score on held-out rows; empty if there are none."""
    return "" if held is None else f" {measured.scoring.scorer(fitted(), held.x, held.y):>10.4f}"


def _of_ensemble(result: Any, held: Table | None) -> list[str]:
    """A line about the ensemble of what the search left behind; none where the result brings no objective, or too little."""
    if getattr(result, "objective", None) is None or result.n_done < 2:
        return []
    from mipcash.integrations.sklearn.ensemble import ensemble, selected

    chosen = selected(result)
    name = f"ensemble of {len(chosen.members)}, mipcash.ensemble(result)"
    try:
        scores = [chosen.objective.scoring.perfect - chosen.loss(repeat) for repeat in (0, FRESH)]
        apart = _on_held(chosen.objective, held, lambda: ensemble(result))
    except Exception as error:
        return [f"  {name:<46} fails: {one_line(describe_error(error), 80)}"]
    return [f"  {name:<46} {scores[0]:>12.4f} {scores[1]:>13.4f}{apart}"]


def _clone(model: Any, config: Mapping[str, Any]) -> Any:
    from sklearn.base import clone

    return clone(model)
