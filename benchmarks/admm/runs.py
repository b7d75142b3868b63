"""List of the runs, and execution of the missing ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.admm.suite import NAME
from benchmarks.peers import runner
from benchmarks.peers.catalogue import make_method
from benchmarks.peers.loading import installed
from benchmarks.peers.runner import Task


def tasks(methods: Sequence[str], instances: Sequence[int]) -> list[Task]:
    """Return the runs sorted by instance, then by method, so that partial results are balanced."""
    return [Task(method, f"{NAME}-{k}", k, "", NAME) for k in instances for method in methods]


def work(
    methods: Sequence[str],
    instances: Sequence[int],
    budget: Callable[[str], int],
    folder: Path,
    progress: Callable[[str], None],
    seconds: float = math.inf,
) -> int:
    """Execute the missing runs in this process and return the number of failed runs.

    Args:
        budget: evaluations of a method's runs.
        seconds: after which no further run starts.
    """
    began, failed = time.perf_counter(), 0
    for task in tasks(installed(methods, make_method, progress), instances):
        if time.perf_counter() - began > seconds:
            progress("the time is up; run it again to go on")
            break
        todo = runner.missing([task], budget(task.method), folder)
        failed += runner.work(todo, progress, budget(task.method), folder)
    return failed
