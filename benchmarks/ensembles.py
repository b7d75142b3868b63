"""Losses of a search's results on unseen rows: the lowest loss, the recommendation, the confirmed one, an ensemble.

Half of the rows (at most ROWS of them) are searched on, 5 stratified folds, 1 - ROC AUC over the space of
:mod:`benchmarks.automl.ordered`; the other half is held out. One search of N evaluations gives all answers, at equal numbers of
evaluations:

* ``lowest loss``: of N evaluations, the luckiest,
* ``recommended``: what ``result.config`` is: by posterior mean for ``hybrid``,
* ``confirmed``: of the first N - 3 evaluations three finalists, evaluated once more on fresh folds (what ``confirm=3`` does),
* ``ensemble``: ``mipcash.ensemble`` of N, 32 steps over the best 25.

Each is fitted to the rows that were searched on and scored on the others; ``fresh`` is its cross-validated loss on folds that
nothing was chosen on. CPU seconds of this process count, since the machine is shared. The data are in the folder MIPCASH_DATA.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.automl import ordered as pipelines
from benchmarks.raw import append_line, lines
from benchmarks.records import FOLDER
from benchmarks.registry import Progress, Results, benchmark
from mipcash.integrations.sklearn.ensemble import Selected, selected
from mipcash.models._data import table
from mipcash.study.feasibility import observation
from mipcash.study.minimize import run as run_study

ANSWERS = ("lowest loss", "recommended", "confirmed", "ensemble")
OPTIMIZERS = ("hybrid", "random")
FINALISTS = 3
RUNS = FOLDER / "ensembles" / "runs.jsonl"
FRESH = 1000
"""The repeat whose folds nothing was chosen on."""
ROWS = 600
SIZES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "smoke": (("breast_cancer",), 1, 8),
    "quick": (("sonar", "heart", "ionosphere", "pima", "german", "breast_cancer"), 3, 30),
    "full": (("sonar", "heart", "ionosphere", "pima", "german", "breast_cancer", "phoneme", "spambase"), 9, 40),
}
"""Data sets, seeds, and evaluations of a search."""


def halves(name: str, seed: int, rows: int = ROWS) -> tuple[Any, Any, Any, Any]:
    """Rows to search on and rows held out, stratified: x, x, y, y."""
    from sklearn.model_selection import train_test_split

    data = table(name)
    chosen = np.random.default_rng(seed).permutation(len(data.y))[:rows]
    x, y = data.x[chosen], data.y[chosen]
    return tuple(train_test_split(x, y, test_size=0.5, random_state=seed, stratify=y))  # type: ignore[return-value]


def one(name: str, seed: int, optimizer: str, budget: int, rows: int = ROWS) -> dict[str, Any]:
    """All answers of one search."""
    from sklearn.metrics import get_scorer

    x, x_held, y, y_held = halves(name, seed, rows)
    facts = pipelines.Facts(x.shape[1], bool((x >= 0).all()), len(y) * 4 // 5 - 1, int(np.bincount(y).min()) * 4 // 5 - 1)
    objective = mc.CrossValidated(partial(pipelines.pipeline, seed=seed), x, y, scoring="roc_auc", seed=seed)
    began = time.process_time()
    with mc.Study(pipelines.declare(facts), mc.Method(optimizer, seconds_per_proposal=None), seed=seed) as study:
        result = run_study(study, objective, budget, progress=False)
        searched = time.process_time() - began
        answers = {
            "lowest loss": result.feasibility.best,
            "recommended": result.best,
            "confirmed": _confirmed(study, objective, budget - FINALISTS),
        }
        found: dict[str, Any] = {}
        for answer, trial in answers.items():
            model = objective.fit(trial.config)
            fresh = objective.evaluate(trial.config, FRESH)["loss"]
            found[answer] = {"search": trial.loss, "fresh": fresh, "trial": trial.number, "model": model}
        chosen = selected(result, objective)
        found["ensemble"] = {**_losses(chosen), "model": chosen.fit(), "members": len(chosen.members)}
    score = get_scorer("roc_auc")
    for each in found.values():
        each["held out"] = 1.0 - float(score(each.pop("model"), x_held, y_held))
    row = {"data": name, "seed": seed, "optimizer": optimizer, "rows": len(y), "evaluations": budget}
    return {**row, "cpu": searched, "failed": result.n_failed, "answers": found}


def _confirmed(study: mc.Study, objective: mc.CrossValidated, evaluations: int) -> mc.Trial:
    """The best on fresh folds of the finalists that a study had after so many evaluations."""
    history = [observation(trial) for trial in study.trials[:evaluations]]
    finalists = study.optimizer.finalists(history, (), FINALISTS)
    fresh = [objective.evaluate(o.config, 1)["loss"] for o in finalists]
    best = finalists[int(np.argmin(fresh))]
    return next(t for t, o in zip(study.trials, history, strict=False) if o is best)


def _losses(chosen: Selected) -> dict[str, float]:
    return {"search": chosen.loss(), "fresh": chosen.loss(FRESH)}


def cells(size: str) -> Iterator[tuple[str, int, str, int]]:
    """Data set, seed, optimizer and evaluations of each run."""
    names, seeds, budget = SIZES[size]
    for optimizer in OPTIMIZERS:
        for seed in range(seeds):
            for name in names:
                yield name, seed, optimizer, budget


@benchmark("ensembles", "what the answer of a search is worth on held-out rows: luckiest, recommended, confirmed, ensemble")
def run(size: str, progress: Progress) -> Results:
    """One search per data set, seed and optimizer; goes on with the runs that are kept."""
    if size != "smoke":
        for cell in cells(size):
            if cell[:3] not in {(r["data"], r["seed"], r["optimizer"]) for r in _kept()}:
                append_line(RUNS, json.dumps(_quietly(progress, *cell)))
        return collected()
    rows = [_quietly(progress, *cell, rows=120) for cell in cells(size)]
    return {"rows": rows, "runs": len(rows)}


def collected() -> Results:
    """The runs that are kept."""
    return {"rows": _kept(), "runs": len(_kept())}


def _kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(RUNS)]


def _quietly(progress: Progress, *cell: Any, **given: Any) -> dict[str, Any]:
    progress(" ".join(map(str, cell)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one(*cell, **given)


# -- the tables -----------------------------------------------------------------------------------------------------


def compared(rows: list[dict[str, Any]], answer: str, to: str = "lowest loss") -> dict[str, Any]:
    """Held-out losses of an answer beside another's, run by run."""
    from scipy.stats import wilcoxon

    pairs = np.array([(r["answers"][answer]["held out"], r["answers"][to]["held out"]) for r in rows])
    difference = pairs[:, 0] - pairs[:, 1]
    apart = np.abs(difference) > 1e-12
    p = float(wilcoxon(difference[apart]).pvalue) if apart.sum() > 5 else float("nan")
    better, worse = int((difference[apart] < 0).sum()), int((difference[apart] > 0).sum())
    return {"mean": float(difference.mean()), "better": better, "worse": worse, "equal": int((~apart).sum()), "p": p}


def markdown(results: Results) -> str:
    """Means over all runs, by optimizer; and by data set."""
    rows = results["rows"]
    lines = [
        f"{len(rows)} runs of {rows[0]['evaluations']} evaluations (5 fits each), {len({r['data'] for r in rows})} data sets, "
        f"{len({r['seed'] for r in rows})} seeds; "
        "1 - ROC AUC, lower is better. p: Wilcoxon, paired, held out, against the lowest loss.",
        "",
        "| optimizer | answer | search's folds | fresh folds | held out | better / equal / worse | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for optimizer in OPTIMIZERS:
        own = [r for r in rows if r["optimizer"] == optimizer]
        for answer in ANSWERS if own else ():
            means = [np.mean([r["answers"][answer][w] for r in own]) for w in ("search", "fresh", "held out")]
            said = "| | |"
            if answer != "lowest loss":
                c = compared(own, answer)
                said = f"| {c['better']} / {c['equal']} / {c['worse']} | {c['p']:.2g} |"
            lines.append(f"| {optimizer} | {answer} | " + " | ".join(f"{m:.4f}" for m in means) + f" {said}")
    lines += ["", "| data | optimizer | " + " | ".join(f"{a}, held out" for a in ANSWERS) + " | CPU s of a search |"]
    lines += ["|---|---|" + "---|" * (len(ANSWERS) + 1)]
    for name in dict.fromkeys(r["data"] for r in rows):
        for optimizer in OPTIMIZERS:
            own = [r for r in rows if (r["data"], r["optimizer"]) == (name, optimizer)]
            if own:
                held = (f"{np.mean([r['answers'][a]['held out'] for r in own]):.4f}" for a in ANSWERS)
                cpu = f"{np.mean([r['cpu'] for r in own]):.0f}"
                lines.append(f"| {name} | {optimizer} | " + " | ".join(held) + f" | {cpu} |")
    return "\n".join(lines)
