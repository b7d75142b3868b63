"""Runs: seeds in turn, in each seed all sets, on each set all methods, so that partial results are balanced."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.automl import record
from benchmarks.automl.data import SOURCES, is_there, split
from benchmarks.automl.programs import PROGRAMS, run_program
from benchmarks.automl.programs import is_installed as is_program
from benchmarks.automl.record import FOLDER, Run
from benchmarks.automl.searches import run_search
from benchmarks.automl.spaces import SPACES, USUAL
from benchmarks.peers.catalogue import PEERS, make_method
from benchmarks.peers.method import MissingPackageError

EVALUATIONS = 40
"""Configurations of a run, each fitted on five folds."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One run to do."""

    method: str
    data: str
    seed: int


def installed(methods: Sequence[str], progress: Progress) -> list[str]:
    """The methods whose packages are there; says which are not."""
    found = []
    for method in methods:
        if method in PROGRAMS:
            there, why = is_program(method), "MIPCASH_AUTOML_PYTHON names no interpreter that has it"
        else:
            there, why = _is_there(method)
        if there:
            found.append(method)
        else:
            progress(f"{method} is left out: {why}")
    return found


def _is_there(method: str) -> tuple[bool, str]:
    if method not in PEERS:
        return True, ""
    try:
        make_method(method)
    except MissingPackageError as error:
        return False, str(error)
    return True, ""


def tasks(methods: Sequence[str], data: Sequence[str] | None, seeds: Sequence[int], space: str | None = None) -> list[Task]:
    """All runs in their order; sets that are not there, or that the space is not for, are left out.

    Args:
        space: of :data:`SPACES`; None: that of each task.
    """
    there = [name for name in data or SOURCES if is_there(name)]
    fits = SPACES[space].tasks if space is not None else tuple(USUAL)
    return [Task(m, name, seed) for seed in seeds for name in there for m in methods if m in PROGRAMS or SOURCES[name].task in fits]


def missing(wanted: Sequence[Task], evaluations: int = EVALUATIONS, folder: Path = FOLDER) -> list[Task]:
    """The runs that are not in the records, or were shorter."""
    there = {
        (m, *key)
        for m in {t.method for t in wanted}
        for key, run in record.read(m, folder).items()
        if run.stamp.get("evaluations", 0) >= evaluations
    }
    return [t for t in wanted if (t.method, t.data, t.seed) not in there]


def run_one(task: Task, evaluations: int = EVALUATIONS, space: str | None = None) -> Run:
    """One run."""
    rows = split(task.data, task.seed)
    if task.method in PROGRAMS:
        return run_program(task.method, rows, evaluations)
    with threadpool_limits(1):
        return run_search(task.method, rows, evaluations, space or USUAL[rows.task])


def work(
    todo: Sequence[Task], progress: Progress, evaluations: int = EVALUATIONS, space: str | None = None, folder: Path = FOLDER
) -> int:
    """Do runs in this process; returns how many failed. A failed run leaves a message and no line."""
    failed, began = 0, time.perf_counter()
    for done, task in enumerate(todo):
        label = f"{task.method} {task.data} seed {task.seed}"
        try:
            run = run_one(task, evaluations, space)
        except Exception:
            failed += 1
            progress(f"FAILED {label}\n{traceback.format_exc()}")
            continue
        record.append(run, folder)
        left = (time.perf_counter() - began) / (done + 1) * (len(todo) - done - 1)
        told = ", ".join(f"{name} {a.search:.4f} -> {a.fresh:.4f}" for name, a in run.answers.items())
        progress(f"{label}: {told}; {run.seconds['search']:.1f} CPU s; about {left / 60:.0f} min left")
    return failed
