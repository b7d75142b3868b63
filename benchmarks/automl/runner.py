"""Runner: loops over seeds, then sets, then methods, so that partial results are balanced."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.automl import record
from benchmarks.automl.data import ROWS, SOURCES, USUAL_SETS, is_there, split
from benchmarks.automl.programs import PROGRAMS, run_program
from benchmarks.automl.programs import is_installed as is_program
from benchmarks.automl.record import FOLDER, Run
from benchmarks.automl.searches import run_search
from benchmarks.automl.spaces import SPACES, USUAL
from benchmarks.peers import catalogue
from benchmarks.peers.catalogue import PEERS

EVALUATIONS = 40
"""Configurations of a run, each fitted on five folds."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """Run to execute."""

    method: str
    data: str
    seed: int


def installed(methods: Sequence[str], progress: Progress) -> list[str]:
    """Return the methods whose packages are installed, and report the missing ones."""
    found = []
    for method in methods:
        if method not in PROGRAMS:
            found += catalogue.installed([method], progress) if method in PEERS else [method]
        elif is_program(method):
            found.append(method)
        else:
            progress(f"{method} is left out: MIPCASH_AUTOML_PYTHON names no interpreter that has it")
    return found


def tasks(methods: Sequence[str], data: Sequence[str] | None, seeds: Sequence[int], space: str | None = None) -> list[Task]:
    """Return the runs in their order, without sets that are missing or that the space does not support.

    Args:
        space: name in :data:`SPACES`; None selects the space of each task.
    """
    there = [name for name in data or USUAL_SETS if is_there(name)]
    fits = SPACES[space].tasks if space is not None else tuple(USUAL)
    return [Task(m, name, seed) for seed in seeds for name in there for m in methods if m in PROGRAMS or SOURCES[name][0] in fits]


def missing(wanted: Sequence[Task], evaluations: int = EVALUATIONS, folder: Path = FOLDER) -> list[Task]:
    """Return the runs that are not recorded or are too short."""
    there = {
        (m, *key)
        for m in {t.method for t in wanted}
        for key, run in record.read(m, folder).items()
        if run.stamp.get("evaluations", 0) >= evaluations
    }
    return [t for t in wanted if (t.method, t.data, t.seed) not in there]


def run_one(task: Task, evaluations: int = EVALUATIONS, space: str | None = None, rows: int = ROWS) -> Run:
    """Execute one run."""
    data = split(task.data, task.seed, rows)
    if task.method in PROGRAMS:
        return run_program(task.method, data, evaluations)
    with threadpool_limits(1):
        return run_search(task.method, data, evaluations, space or USUAL[data.task])


def work(
    todo: Sequence[Task],
    progress: Progress,
    evaluations: int = EVALUATIONS,
    space: str | None = None,
    folder: Path = FOLDER,
    rows: int = ROWS,
) -> int:
    """Execute runs in this process and return the number of failed runs, which leave a message and no line."""
    failed, began = 0, time.perf_counter()
    for done, task in enumerate(todo):
        label = f"{task.method} {task.data} seed {task.seed}"
        try:
            run = run_one(task, evaluations, space, rows)
        except Exception:
            failed += 1
            progress(f"FAILED {label}\n{traceback.format_exc()}")
            continue
        record.append(run, folder)
        left = (time.perf_counter() - began) / (done + 1) * (len(todo) - done - 1)
        told = ", ".join(f"{name} {a.search:.4f} -> {a.fresh:.4f}" for name, a in run.answers.items())
        progress(f"{label}: {told}; {run.seconds['search']:.1f} CPU s; about {left / 60:.0f} min left")
    return failed
