"""Portfolio of first proposals for the usual space, and its benefit on data sets that were not used to build it.

On every set of :mod:`benchmarks.automl.data` (at most 400 rows, five folds, 1 - AUC or 1 - R2) ``hybrid`` searches the
usual space, starting from scikit-learn's defaults. The best FINALISTS of each search are candidates. All candidates and
defaults are evaluated on all sets of their task. A loss counts on the scale of its set: 0 is the lowest loss of all, 1
the lowest loss of a default. A loss above every default counts as 1. The portfolio is greedy: each step adds the
candidate that most lowers the mean over the sets of the lowest loss (auto-sklearn 2, Feurer et al. 2022, Section 3.2).

Leave one out: each set is searched under another split of its rows. The comparison uses the fresh loss of the pipeline
with the lowest cross-validated loss. The methods are ``defaults``, ``portfolio`` (defaults, then the portfolio of all
*other* sets), and ``random``.

Every evaluation is a line of RUNS, so an interrupted run can be resumed. The bundled searches have no portfolio, since
it is no better than chance after the defaults (decision 069).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mipcash as mc
from benchmarks.automl.data import REGRESSION, USUAL_SETS, Split, is_there, split
from benchmarks.automl.searches import evaluated, fresh_loss
from benchmarks.automl.spaces import SPACES, objective_of, pipelines_of
from benchmarks.automl.statistics import compared
from benchmarks.peers.methods.ours import commit
from benchmarks.raw import append_line, lines
from benchmarks.records import FOLDER
from benchmarks.registry import Progress, Results, benchmark

Config = dict[str, Any]
RUNS = FOLDER / "portfolio" / "evaluations.jsonl"
FINALISTS, MOST = 2, 8
"""Number of candidates per set, and length of a portfolio."""
WAYS = ("defaults", "portfolio", "random")
BUDGETS = (10, 20, 40)
SIZES: dict[str, tuple[Sequence[str], int, tuple[int, ...]]] = {
    "smoke": (("wine", "steps"), 11, (1,)),
    "quick": (USUAL_SETS, 30, (1,)),
    "full": (USUAL_SETS, 40, (1, 2)),
}
"""Sets, evaluations of a search, and seeds of the comparison. Seed 0 builds the portfolio."""
SPACE = "usual"


class Set:
    """Data set under a seed, with its space and a file of evaluated losses."""

    def __init__(self, name: str, seed: int, runs: Path) -> None:
        self.name, self.seed, self.runs = name, seed, runs
        self.rows: Split = split(name, seed)
        self.pipelines = pipelines_of(SPACE, self.rows)
        self.space = SPACES[SPACE].declare(self.rows)
        self.objective = objective_of(self.rows, SPACE)
        self.known = {key: value for n, s, key, value in map(json.loads, lines(runs)) if (n, s) == (name, seed)}

    @property
    def defaults(self) -> list[Config]:
        """Return scikit-learn's defaults that are legal on the set."""
        return [c for c in self.pipelines.defaults if not self.space.validate(c)]

    def legal(self, config: Config) -> Config:
        """Return the configuration, or the nearest legal one."""
        return dict(config) if not self.space.validate(config) else dict(self.space.nearest(config))

    def loss(self, config: Mapping[str, Any]) -> float:
        """Return the cross-validated loss, or infinity if the evaluation fails."""
        key = json.dumps(config, sort_keys=True)
        if key not in self.known:
            value = evaluated(self.objective, dict(config))
            self.known[key] = value
            append_line(self.runs, json.dumps([self.name, self.seed, key, value]))
        return np.inf if self.known[key] is None else float(self.known[key])

    def search(self, budget: int, way: str, first: Sequence[Config]) -> list[tuple[float, Config]]:
        """Return the losses and configurations of a search in the order of evaluation."""

        def told(config: Config) -> float | mc.Failed:
            value = self.loss(config)
            return value if np.isfinite(value) else mc.Failed("no score")

        method = mc.Method("random" if way == "random" else "hybrid", seconds_per_proposal=None)
        with mc.Study(self.space, method, seed=self.seed) as study:
            for config in first[:budget]:
                study.enqueue(config)
            while len(study.trials) < budget or any(t.pending for t in study.trials):
                trial = study.ask()
                study.tell(trial, told(trial.config))
            return [(np.inf if t.loss is None else t.loss, dict(t.config)) for t in study.trials]


def chosen(table: Mapping[str, Sequence[float]], defaults: int, most: int = MOST) -> list[int]:
    """Return the columns of a greedy portfolio that extends the first ``defaults`` columns.

    Args:
        table: losses of the same candidates by set, the defaults first.
    """
    losses = np.array([table[name] for name in table])
    best = losses.min(axis=1, keepdims=True)
    usual = losses[:, :defaults].min(axis=1, keepdims=True)
    scaled = np.minimum((losses - best) / np.maximum(usual - best, 1e-12), 1.0)
    held, found = scaled[:, :defaults].min(axis=1), list[int]()
    while len(found) < most:
        after = np.minimum(scaled, held[:, None]).mean(axis=0)
        k = int(after.argmin())
        if held.mean() - after[k] < 0.01:
            break
        found.append(k)
        held = np.minimum(held, scaled[:, k])
    return found


def portfolio(sets: Sequence[Set], candidates: Mapping[str, Sequence[Config]]) -> list[Config]:
    """Return the portfolio of the given sets of one task, chosen from the candidates of their searches."""
    defaults = sets[0].pipelines.defaults
    pool = [*defaults, *(c for s in sets for c in candidates[s.name])]
    table = {s.name: [s.loss(s.legal(c)) for c in pool] for s in sets}
    return [pool[k] for k in chosen(table, len(defaults))]


@benchmark("portfolio", "first proposals from experience, leaving out the set that is searched", FOLDER / "portfolio.json")
def run(size: str, progress: Progress) -> Results:
    """Run all searches, build the portfolios and compare them. A smoke run keeps no evaluation."""
    with TemporaryDirectory() as folder:
        return compare(size, progress, RUNS if size != "smoke" else Path(folder) / RUNS.name)


def compare(size: str, progress: Progress, runs: Path) -> Results:
    """Run the benchmark with evaluations stored in a file."""
    names, budget, seeds = SIZES[size]
    there = [name for name in names if is_there(name)]
    began = time.process_time()
    with threadpool_limits(1):
        sets = {name: Set(name, 0, runs) for name in there}
        candidates = {}
        for name, each in sets.items():
            found = each.search(budget, "defaults", each.defaults)
            usual = list(map(repr, each.defaults))
            best = sorted((t for t in found if repr(t[1]) not in usual), key=lambda t: t[0])
            candidates[name] = [config for value, config in best[:FINALISTS] if np.isfinite(value)]
            progress(f"{name}: {best[0][0]:.4f} beside {min(map(each.loss, each.defaults)):.4f} of the defaults")
        tasks = {name: sets[name].rows.task == REGRESSION for name in there}
        portfolios = {}
        for regression in sorted(set(tasks.values())):
            of_task = [sets[name] for name in there if tasks[name] == regression]
            portfolios["regression" if regression else "classification"] = portfolio(of_task, candidates)
            progress(f"portfolio: {len(portfolios['regression' if regression else 'classification'])} pipelines")
        rows = []
        for seed in seeds:
            for name in there:
                others = [sets[n] for n in there if tasks[n] == tasks[name] and n != name]
                here = Set(name, seed, runs)
                first = {"defaults": here.defaults, "random": []}
                first["portfolio"] = [*here.defaults, *map(here.legal, portfolio(others, candidates) if others else [])]
                for way in WAYS:
                    found = here.search(budget, way, first[way])
                    fitted = cache(lambda key, here=here: fresh_loss(here.objective.fit(json.loads(key)), here.rows))
                    for after in (*(b for b in BUDGETS if b < budget), budget):
                        value, config = min(found[:after], key=lambda t: t[0])
                        row = {"set": name, "seed": seed, "way": way, "after": after, "search": value}
                        rows.append({**row, "fresh": fitted(json.dumps(config))})
                    progress(f"{name} seed {seed} {way}: {rows[-1]['search']:.4f} -> {rows[-1]['fresh']:.4f}")
    return {"portfolios": portfolios, "rows": rows, "sets": there, "cpu_seconds": time.process_time() - began, **commit()}


def markdown(results: Results) -> str:
    """Return ranks and paired differences on fresh rows, by the number of evaluations."""
    lines = [
        f"{len(results['sets'])} sets, lowest cross-validated pipeline, loss on fresh rows; a portfolio never saw the set "
        "that it is used on. Reference: portfolio.",
        "",
        "| evaluations | first proposals | mean rank | loss | worse by | portfolio better / worse / equal | p, sets |",
        "|---|---|---|---|---|---|---|",
    ]
    for after in sorted({row["after"] for row in results["rows"]}):
        losses: dict[str, dict[tuple[str, int], float]] = {way: {} for way in WAYS}
        for row in results["rows"]:
            if row["after"] == after:
                losses[row["way"]][row["set"], row["seed"]] = row["fresh"]
        for each in compared(losses, "portfolio"):
            told = ["", "", ""]
            if each.name != "portfolio":
                told = [f"{each.gain:.4f} ± {each.gain_error:.4f}", f"{each.better} / {each.worse} / {each.ties}"]
                told += [f"{each.wilcoxon_sets:.2g}"]
            lines.append(
                f"| {after} | {each.name} | {each.rank:.2f} ± {each.rank_error:.2f} | {each.loss:.4f} | " + " | ".join(told) + " |"
            )
    return "\n".join(lines)
