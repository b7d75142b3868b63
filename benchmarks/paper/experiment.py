"""Experiment of the paper, and the results of its histories: curves, tables, violations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.history import History, Reader, reader
from benchmarks.peers.runner import complete
from benchmarks.peers.suite import Suite

Key = tuple[str, int]
Runs = Mapping[tuple[str, str], list[History]]
"""(method, convention) -> runs."""
OURS = "hybrid"
"""Method that is compared with each of the other methods."""


@dataclass(frozen=True)
class Group:
    """Problems whose runs are averaged.

    Attributes:
        name: short name for files.
        title: heading of its table.
        problems: names in the suite.
        methods: compared ones.
        scaled: how it is smaller than in the paper, for the table; empty if it is not.
        paper: results of the paper, in Markdown.
        conventions: for illegal suggestions; None: those of the suite.
        points: numbers of the paper for a panel beside the figure: method -> its name there and, by the number of
            evaluations, mean and standard deviation.
        needs: raises ``mipcash.errors.ModelError`` if data or a package is missing.
    """

    name: str
    title: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    scaled: str = ""
    paper: str = ""
    conventions: tuple[str, ...] | None = None
    points: Mapping[str, tuple[str, Mapping[int, tuple[float, float]]]] = field(default_factory=dict)
    needs: Callable[[], None] = field(default=lambda: None)

    def conventions_of(self, suite: Suite) -> tuple[str, ...]:
        return suite.conventions if self.conventions is None else self.conventions


@dataclass(frozen=True)
class Experiment:
    """Benchmark of the paper.

    Attributes:
        at: numbers of evaluations that the table shows.
        value: (problem, loss) -> averaged value.
        unit: of that value, for axes and headings.
        seeds: size -> seeds; smoke has one. Runs of other seeds are not reported.
        evaluations: CPU hours of evaluations, by their name.
        machines: machines of the evaluations.
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
    machines: Callable[[], list[str]] = list


@dataclass
class Row:
    """Method under a convention for illegal suggestions.

    Attributes:
        runs: number of runs.
        mean, deviation: of the best value after each number of legal evaluations, shape (budget,).
        counted: the mean after each number of suggestions, illegal ones included; None if there were none.
        violations: illegal suggestions until each number of legal evaluations of ``at``, mean and standard deviation.
        short: runs that ended with fewer legal evaluations than the budget; their last value is used for the rest.
        cpu: median CPU seconds of a suggestion.
        ours: numbers of runs in which ``hybrid`` ends lower, in which it ends higher, and that both methods have.
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
    ours: tuple[int, int, int] | None = None


def runs_of(experiment: Experiment, group: Group, read: Reader, budget: int) -> Runs:
    """Return the complete runs of a group on the seeds of the experiment, without methods that have none."""
    found, seeds = {}, {s for of in experiment.seeds.values() for s in of}
    for convention in ("", *group.conventions_of(experiment.suite)):
        for method in group.methods:
            done = completed(experiment.suite, group.problems, method, convention, read, budget)
            runs = [h for h in done if h.seed in seeds]
            if runs:
                found[method, convention] = runs
    return found


def rows(experiment: Experiment, runs: Runs, budget: int) -> list[Row]:
    """Return the results of runs, sorted by their last mean."""
    found = [_row(experiment, of, method, convention, budget) for (method, convention), of in runs.items()]
    ends = {key: {h.key: min(h.solutions()[:budget]) for h in of} for key, of in runs.items()}
    for row in found:
        if row.method != OURS and (OURS, "") in ends:
            row.ours = duel(ends[OURS, ""], ends[row.method, row.convention])
    return sorted(found, key=lambda r: r.mean[-1])


def completed(suite: Suite, names: Sequence[str], method: str, convention: str, read: Reader, budget: int) -> list[History]:
    """Return the complete runs of a method on some problems of a suite."""
    known = suite.problems()
    return [h for h in read(method, convention) if h.problem in names and complete(h, budget, known.get(h.problem))]


def duel(ours: Mapping[Key, float], other: Mapping[Key, float]) -> tuple[int, int, int]:
    """Return the numbers of common runs in which ours is lower, in which it is higher, and of all common runs."""
    shared = [(ours[k], other[k]) for k in ours.keys() & other.keys()]
    return sum(a < b for a, b in shared), sum(a > b for a, b in shared), len(shared)


def shown(experiment: Experiment, budget: int) -> list[int]:
    """Return the numbers of evaluations that the table shows."""
    return [n for n in experiment.at if n <= budget] or [budget]


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
    """Return the best value after each evaluation, shape (budget,). A short run is extended by its last value."""
    values = [experiment.value(problem, v) for v in losses[:budget]]
    best = np.minimum.accumulate(values)
    return np.concatenate([best, np.full(budget - len(best), best[-1])])


def _deviation(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation over the runs (the first axis), or nan for one run."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], math.nan)


def violations_until(h: History, solutions: int) -> int:
    """Return the illegal suggestions before a number of legal evaluations (or all of them if it is never reached)."""
    legal = 0
    for k, loss in enumerate(h.losses):
        legal += loss is not None
        if legal == solutions:
            return k + 1 - legal
    return len(h.losses) - legal


def summary(experiment: Experiment, folder: Path | None = None, budget: int | None = None) -> dict[str, Any]:
    """Return all groups as plain data, with the CPU seconds of proposals and the stamps of their histories."""
    read = reader(folder or experiment.suite.folder)
    budget = budget or experiment.suite.budget
    complete_runs = [runs_of(experiment, g, read, budget) for g in experiment.groups]
    groups = [
        {"name": g.name, "rows": [_plain(vars(r)) for r in rows(experiment, found, budget)]}
        for g, found in zip(experiment.groups, complete_runs, strict=True)
    ]
    runs = [h for found in complete_runs for of in found.values() for h in of]
    stamps: dict[str, list[Any]] = {}
    known = experiment.suite.problems()
    for h in runs:
        for package in h.stamp.keys() - known[h.problem].stamp.keys():
            value = h.stamp[package]
            if value not in stamps.setdefault(package, []):
                stamps[package].append(value)
    return {
        "experiment": experiment.name,
        "budget": budget,
        "at": shown(experiment, budget),
        "seeds": sorted({h.seed for h in runs}),
        "runs": len(runs),
        "cpu_hours": {"proposals": sum(c for h in runs for c in h.cpu if c is not None) / 3600} | experiment.evaluations(),
        "stamps": {k: sorted(v) for k, v in sorted(stamps.items())},
        "machines": experiment.machines(),
        "groups": groups,
    }


def _plain(value: Any) -> Any:
    """Convert a value for JSON, with None for a number that is not finite."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
