"""Registered benchmarks: ``python -m benchmarks run paper-synthetic | paper-xgboost | paper-vae``.

Smoke runs two methods on at most two problems, in seconds, in a temporary folder. Quick and full resume the runs in
``benchmarks/results/paper/``, and write the record and the figures there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.paper import report
from benchmarks.paper.experiment import Experiment, Group, summary
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.suites import FOLDER
from benchmarks.peers import runner
from benchmarks.peers.catalogue import installed
from benchmarks.registry import benchmark
from mipcash.errors import ModelError

SMOKE = {"paper-synthetic": ["a1-gaussian-0", "a2-cardinality-0"], "paper-xgboost": ["monks-table"], "paper-vae": ["vae-proxy"]}
"""Problems of the smoke size, whose trainings take seconds."""
BUDGET = 12
SLOW = ("laptop", "paper", "paper-mnist")
"""Groups of the full size only."""
GPU = ("paper", "paper-mnist")
"""Groups that take days without a GPU."""


def _run(experiment: Experiment, size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        return _smoke(experiment, progress)
    groups = _feasible(experiment, size, progress)
    suite = experiment.suite
    wanted = [
        task
        for seed in experiment.seeds[size]  # seeds in the outer loop, so that partial results are balanced
        for group, methods in groups
        for task in runner.tasks(methods, group.problems, [seed], group.conventions_of(suite), suite.name)
    ]
    todo = runner.missing(wanted, suite.budget, suite.folder)
    progress(f"{len(todo)} of {len(wanted)} runs are missing")
    failed = runner.coordinate(todo, 1, progress, suite.budget, suite.folder)
    return {"failed": failed, **write(experiment, progress=progress)}


def _feasible(experiment: Experiment, size: str, progress: Callable[[str], None]) -> list[tuple[Group, tuple[str, ...]]]:
    """Return the groups that this size and machine can run, with the installed methods."""
    found = []
    for group in experiment.groups:
        if group.name in SLOW and size != "full":
            continue
        if group.name in GPU and not _cuda():
            progress(f"{group.title}: left out, there is no GPU")
            continue
        try:
            group.needs()
        except ModelError as error:
            progress(f"{group.title}: left out, {error}")
            continue
        found.append((group, tuple(installed(group.methods, progress))))
    return found


def _cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def _smoke(experiment: Experiment, progress: Callable[[str], None]) -> dict[str, Any]:
    names = SMOKE[experiment.name]
    with tempfile.TemporaryDirectory() as folder:
        failed = 0
        if names:
            wanted = runner.tasks(["random", "hybrid"], names, [0], experiment.suite.conventions, experiment.suite.name)
            failed = runner.work(wanted, progress, BUDGET, Path(folder))
        return {"failed": failed, **summary(experiment, Path(folder), BUDGET)}


def write(experiment: Experiment, folder: Path = FOLDER, progress: Callable[[str], None] = print) -> dict[str, Any]:
    """Collect the histories, write the figures (if matplotlib is installed), and return the results."""
    results = summary(experiment)
    try:
        report.draw(experiment, results, folder / "figures")
    except ModuleNotFoundError as error:
        progress(f"no figures: {error}; pip install 'mipcash[plots]'")
    return results


def _registered(name: str, summary: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return benchmark(name, summary, FOLDER / f"{name}.json", partial(write, EXPERIMENTS[name]))


@_registered("paper-synthetic", "Daxberger et al., Appendix A: random functions of bits and reals")
def run_synthetic(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    return _run(EXPERIMENTS["paper-synthetic"], size, progress)


@_registered("paper-xgboost", "Daxberger et al., Section 4 (a): gradient boosting")
def run_xgboost(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    return _run(EXPERIMENTS["paper-xgboost"], size, progress)


@_registered("paper-vae", "Daxberger et al., Section 4 (b): a variational autoencoder under rules")
def run_vae(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    return _run(EXPERIMENTS["paper-vae"], size, progress)


def markdown(results: dict[str, Any], figures: str = "") -> str:
    """Return the tables of one experiment."""
    return report.markdown(EXPERIMENTS[results["experiment"]], results, figures)
