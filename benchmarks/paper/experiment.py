"""What an experiment of the paper is, and what its histories come to: curves, tables, violations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import history
from benchmarks.peers.history import History
from benchmarks.peers.suite import Suite

Key = tuple[str, int]


@dataclass(frozen=True)
class Group:
    """Problems whose runs are averaged.

    Attributes:
        name: a word, for files.
        title: for people.
        problems: names in the suite.
        methods: compared ones.
        scaled: how it is smaller than in the paper, for the table; empty where it is not.
        paper: what the paper reports, Markdown.
    """

    name: str
    title: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    scaled: str = ""
    paper: str = ""


@dataclass(frozen=True)
class Experiment:
    """One benchmark of the paper.

    Attributes:
        at: numbers of evaluations that the table shows.
        value: (problem, loss) -> what is averaged.
        unit: of that value, for axes and headings.
        seeds: size -> seeds; smoke has one.
        evaluations: CPU hours of evaluations, by a word for them.
    """

    name: str
    title: str
    suite: Suite
    groups: tuple[Group, ...]
    at: tuple[int, ...]
    unit: str
    seeds: Mapping[str, Sequence[int]]
    value: Callable[[str, float], float] = field(default=lambda problem, loss: loss)
    evaluations: Callable[[], dict[str, float]] = dict


@dataclass
class Row:
    """A method under a convention.

    Attributes:
        runs: number of runs.
        mean, deviation: of the best value after each number of legal evaluations, shape (budget,).
        told: the same after each number of suggestions, illegal ones included; None where there were none.
        violations: illegal suggestions until each number of legal evaluations of ``at``, mean and standard deviation.
        short: runs that ended with fewer legal evaluations than the budget.
        cpu: median CPU seconds of a suggestion.
    """

    method: str
    convention: str
    runs: int
    mean: list[float]
    deviation: list[float]
    counted: list[float] | None
    violations: list[tuple[float, float]]
    short: int
    cpu: float


def rows(experiment: Experiment, group: Group, folder: Path | None = None, budget: int | None = None) -> list[Row]:
    """What the histories in a folder come to; methods and conventions without a run are left out."""
    folder, budget = folder or experiment.suite.folder, budget or experiment.suite.budget
    found = []
    for convention in ("", *experiment.suite.conventions):
        for method in group.methods:
            runs = [h for h in history.read(method, convention, folder) if _done(h, group, budget)]
            if runs:
                found.append(_row(experiment, runs, method, convention, budget))
    return sorted(found, key=lambda r: r.mean[-1])


def shown(experiment: Experiment, budget: int) -> list[int]:
    """The numbers of evaluations that the table shows."""
    return [n for n in experiment.at if n <= budget] or [budget]


def _done(h: History, group: Group, budget: int) -> bool:
    return h.problem in group.problems and len(h.losses) >= budget


def _row(experiment: Experiment, runs: list[History], method: str, convention: str, budget: int) -> Row:
    curves = np.array([_curve(experiment, h.problem, h.solutions(), budget) for h in runs])
    illegal = any(None in h.losses for h in runs)
    counted = [_curve(experiment, h.problem, h.best(), budget) for h in runs] if illegal else []
    spent = [c for h in runs for c in h.cpu if c is not None]
    violations = [[violations_until(h, n) for h in runs] for n in shown(experiment, budget)]
    return Row(
        method,
        convention,
        len(runs),
        curves.mean(axis=0).tolist(),
        _deviation(curves).tolist(),
        np.mean(counted, axis=0).tolist() if counted else None,
        [(float(np.mean(v)), float(_deviation(np.array(v)))) for v in violations],
        sum(len(h.solutions()) < budget for h in runs),
        float(np.median(spent)) if spent else math.nan,
    )


def _curve(experiment: Experiment, problem: str, losses: Sequence[float], budget: int) -> np.ndarray:
    """Best value after each evaluation, shape (budget,); a shorter run stays at its last."""
    values = [experiment.value(problem, v) for v in losses[:budget]]
    best = np.minimum.accumulate(values)
    return np.concatenate([best, np.full(budget - len(best), best[-1])])


def _deviation(values: np.ndarray) -> np.ndarray:
    """Standard deviation over the runs (the first axis); nan for one run."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], math.nan)


def violations_until(h: History, solutions: int) -> int:
    """Illegal suggestions before the given number of legal evaluations was reached (all of them where it never is)."""
    legal = 0
    for k, loss in enumerate(h.losses):
        legal += loss is not None
        if legal == solutions:
            return k + 1 - legal
    return len(h.losses) - legal


def summary(experiment: Experiment, folder: Path | None = None, budget: int | None = None) -> dict[str, Any]:
    """All groups as plain data, with the CPU seconds that proposals took and the stamps of their histories."""
    folder = folder or experiment.suite.folder
    budget = budget or experiment.suite.budget
    groups = [
        {"name": g.name, "rows": [_plain(vars(r)) for r in rows(experiment, g, folder, budget)]}
        for g in experiment.groups
    ]
    runs = [h for g in experiment.groups for h in _all(experiment, g, folder)]
    stamps: dict[str, list[Any]] = {}
    for h in runs:
        for package, value in h.stamp.items():
            stamps.setdefault(package, [])
            if value not in stamps[package]:
                stamps[package].append(value)
    return {
        "experiment": experiment.name,
        "budget": budget,
        "at": shown(experiment, budget),
        "seeds": sorted({h.seed for h in runs}),
        "runs": len(runs),
        "cpu_hours": {"proposals": sum(c for h in runs for c in h.cpu if c is not None) / 3600}
        | experiment.evaluations(),
        "stamps": stamps,
        "groups": groups,
    }


def _plain(value: Any) -> Any:
    """For JSON: what is not a number becomes None."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _all(experiment: Experiment, group: Group, folder: Path) -> list[History]:
    conventions = ("", *experiment.suite.conventions)
    return [
        h for c in conventions for m in group.methods for h in history.read(m, c, folder) if h.problem in group.problems
    ]
