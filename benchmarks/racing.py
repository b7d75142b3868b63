"""Racing on and off at an equal number of fits, and what the rule saves and loses on the same evaluations.

The pipelines of :mod:`benchmarks.automl.ordered`, five folds of each data set, 1 - AUC. Two parts:

* runs: ``off``, ``on`` (c = 1.5) and, but for the size quick, ``halving``, with the same number of fits. The loss of the search's
  folds, and that of the same configuration on fresh folds, which no search has seen.
* replays: evaluations of the runs ``off`` as racing would have cut them: the share of fits that it saves, and by how much the
  best of them is worse than the best of all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.automl import ordered
from benchmarks.registry import Progress, Results, benchmark
from mipcash.display import counted
from mipcash.study.pruning import Halving, Racing, judge_of
from mipcash.study.reading import read_outcome

WAYS: dict[str, Racing | Halving | None] = {"off": None, "on": Racing(), "halving": Halving()}
RULES: dict[str, Racing | Halving] = {**{f"c = {c}": Racing(c=c) for c in (0.5, 1.0, 1.5, 2.0, 3.0)}, "halving": Halving()}
REPEATS = (1, 2)
"""Of the fresh folds."""
SHARES = (0.25, 0.5, 0.75, 1.0)
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"data": ("wine",), "metric": "log_loss", "optimizers": ("random",), "evaluations": 8, "folds": 3},
    "quick": {
        "data": ("sonar", "heart", "ionosphere"),
        "optimizers": ("hybrid", "random"),
        "evaluations": 30,
        "ways": ("off", "on"),
    },
    "full": {
        "data": ("sonar", "heart", "ionosphere", "german", "pima"),
        "optimizers": ("hybrid", "random"),
        "evaluations": 80,
        "seeds": 10,
    },
}


class Remembered:
    """An objective of which no fit is made twice: runs of one seed share what they evaluate.

    Attributes:
        seconds: CPU seconds of all fits.
    """

    def __init__(self, objective: Any) -> None:
        self._objective, self.seconds = objective, 0.0
        self._kept: dict[str, tuple[list[Mapping[str, float]], Iterator[Any]]] = {}

    def __call__(self, config: Mapping[str, Any]) -> Iterator[float]:
        key = repr(sorted(config.items()))
        fits, rest = self._kept.setdefault(key, ([], self._objective(config)))
        k = 0
        while True:
            if k == len(fits):
                began = time.process_time()
                found = next(rest, None)
                self.seconds += time.process_time() - began
                if found is None:
                    return
                fits.append(found)
            yield fits[k]["loss"]
            k += 1


def replayed(history: Sequence[mc.Trial], rule: Racing | Halving) -> tuple[float, float]:
    """The share of fits that a rule saves of whole evaluations, and how much worse the best of what it leaves is."""
    seen: list[mc.Trial] = []
    for trial in history:
        judge = judge_of(rule, seen, ())
        if judge is not None and trial.done:
            for k in range(1, len(trial.folds) + 1):
                estimates = judge([{"loss": fold} for fold in trial.folds[:k]])
                if estimates:
                    outcome = read_outcome(mc.Folds(trial.folds[:k], None, estimates))
                    trial = replace(trial, outcome=outcome)
                    break
        seen.append(trial)
    made = sum(len(t.folds) for t in history)
    best, left = (min(t.loss for t in ts if t.loss is not None and t.whole) for ts in (history, seen))
    return 1.0 - sum(len(t.folds) for t in seen) / made, left - best


def curve(history: Sequence[mc.Trial], fits: int) -> list[float | None]:
    """The lowest loss of whole evaluations after shares of the fits; None: there is none."""
    spent, best, found = 0, np.inf, []
    for trial in history:
        spent += trial.steps
        if trial.whole and trial.loss is not None:
            best = min(best, trial.loss)
        found.append((spent, best))
    ends = [min((b for s, b in found if s <= share * fits), default=np.inf) for share in SHARES]
    return [float(e) if np.isfinite(e) else None for e in ends]


def cell(data: str, seed: int, chosen: Mapping[str, Any], progress: Progress) -> Iterator[dict[str, Any]]:
    """All runs of a data set and a seed, which share their fits."""
    folds = chosen.get("folds", 5)
    space, objective = ordered.build(data=data, metric=chosen.get("metric", "roc_auc"), folds=folds, seed=seed)
    remembered, fresh = Remembered(objective), dict[str, float]()
    for optimizer in chosen["optimizers"]:
        for way in chosen.get("ways", WAYS):
            racing = WAYS[way]
            began, fitted = time.process_time(), remembered.seconds
            fits = chosen["evaluations"] * folds
            method = mc.Method(optimizer, seconds_per_proposal=None)
            result = mc.minimize(remembered, space, mc.Steps(fits), optimizer=method, seed=seed, pruning=racing, progress=False)
            asking = time.process_time() - began - (remembered.seconds - fitted)
            config = result.config or {}
            key = repr(sorted(config.items()))
            if key not in fresh:
                fresh[key] = float(np.mean([objective.evaluate(config, r)["loss"] for r in REPEATS]))
            searched = np.nan if result.best is None else result.best.loss
            row = {
                **{"data": data, "seed": seed, "optimizer": optimizer, "way": way},
                **{"fits": result.n_steps, "evaluations": result.n_evaluations, "stopped": result.n_pruned},
                **{"search": searched, "fresh": fresh[key], "curve": curve(result.history, fits), "cpu": asking},
            }
            if way == "off":
                row["replays"] = {name: replayed(result.history, rule) for name, rule in RULES.items()}
            progress(f"{data} seed {seed} {optimizer} {way}: {result.n_evaluations} evaluations, fresh {row['fresh']:.4f}")
            yield row


@benchmark("racing", "racing on and off at an equal number of fits, on real data")
def run(size: str, progress: Progress) -> Results:
    chosen = SIZES[size]
    seeds = chosen.get("seeds", 3 if size != "smoke" else 1)
    rows = [row for seed in range(seeds) for data in chosen["data"] for row in cell(data, seed, chosen, progress)]
    return {"size": size, "evaluations": chosen["evaluations"], "folds": chosen.get("folds", 5), "seeds": seeds, "runs": rows}


def markdown(results: Results) -> str:
    """Means over data sets and seeds by optimizer, differences to ``off`` of the same data and seed, and the replays."""
    rows = results["runs"]
    fits = results["evaluations"] * results["folds"]
    shares = " | ".join(f"{share:.0%} of the fits" for share in SHARES)
    seeds = {name: len({r["seed"] for r in rows if r["data"] == name}) for name in dict.fromkeys(r["data"] for r in rows)}
    said = ", ".join(f"{name} ({count} of {counted(results['seeds'], 'seed')})" for name, count in seeds.items())
    lines = [f"{fits} fits per run; {said}. Means; in brackets the standard error of the difference to off.", ""]
    lines.append(f"| | | runs | evaluations | stopped | {shares} | fresh folds | CPU s an ask |")
    lines.append("|---" * (7 + len(SHARES)) + "|")
    for optimizer in dict.fromkeys(r["optimizer"] for r in rows):
        for way in dict.fromkeys(r["way"] for r in rows):
            own = [r for r in rows if (r["optimizer"], r["way"]) == (optimizer, way)]
            off = [_off(rows, r) for r in own]
            numbers = [str(len(own)), *(f"{np.mean([r[k] for r in own]):.1f}" for k in ("evaluations", "stopped"))]
            for k in range(len(SHARES)):
                numbers.append(_mean([r["curve"][k] for r in own], [r["curve"][k] for r in off], way))
            numbers.append(_mean([r["fresh"] for r in own], [r["fresh"] for r in off], way))
            numbers.append(f"{np.mean([r['cpu'] / r['evaluations'] for r in own]):.3f}")
            lines.append(f"| {optimizer} | {way} | " + " | ".join(numbers) + " |")
    lines += ["", "The same evaluations, cut:", "", "| | rule | fits saved | best lost in | by at most |", "|---" * 5 + "|"]
    for optimizer in dict.fromkeys(r["optimizer"] for r in rows):
        own = [r["replays"] for r in rows if r["optimizer"] == optimizer and r["way"] == "off"]
        for name in RULES:
            saved, lost = np.array([r[name] for r in own]).T
            at_most = f"{lost.max():.4f}" if (lost > 0.0).any() else ""
            lines.append(f"| {optimizer} | {name} | {saved.mean():.0%} | {int((lost > 0.0).sum())} of {len(own)} | {at_most} |")
    return "\n".join(lines)


def _off(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> Mapping[str, Any]:
    same = ("data", "seed", "optimizer")
    return next(r for r in rows if r["way"] == "off" and all(r[k] == row[k] for k in same))


def _mean(values: Sequence[float | None], off: Sequence[float | None], way: str) -> str:
    pairs = [(v, o) for v, o in zip(values, off, strict=True) if v is not None and o is not None]
    if not pairs:
        return ""
    own, others = np.array(pairs, dtype=float).T
    error = np.std(own - others, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0
    return f"{own.mean():.4f}" if way == "off" else f"{own.mean():.4f} ({error:.4f})"
