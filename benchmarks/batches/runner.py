"""Runs in batches: ten initial evaluations, then batches of which nothing is told before all of it is evaluated.

A run ends with the evaluation of its budget, in the middle of a batch where it comes there. An illegal suggestion is replaced
by the nearest legal configuration, which is what the method then knows as pending (the peers' convention ``repair``).

Histories are the peers' (:mod:`benchmarks.peers.history`), a folder per size of batch; what is there is not run again. One at
a time are the histories of the peers themselves, and of ours those of this runner, with the present code.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.batches.methods import BatchMethod, make_batch_method
from benchmarks.peers import history, runner
from benchmarks.peers.history import History
from benchmarks.peers.problem import problems
from benchmarks.peers.shape import Shape

RESULTS = Path(__file__).resolve().parents[1] / "results" / "batches"
BUDGET = 60
SIZES = (4, 8)
"""Evaluations in a batch; against 1."""

PROBLEMS = (
    "branin-cat",
    "nvs09-cat",
    "schoen-int",
    "synthetic",
    "contamination",
    "spring",
    "nvs09-rules",
    "gear-rules",
    "ising-rules",
    "sensors",
)
"""Five of the peers' problems without rules and five with; those on which BoTorch takes less than a minute."""


REPAIRED = ("optuna-tpe", "botorch")
"""Methods that know rules in part or not at all."""


@dataclass(frozen=True)
class BatchTask:
    """One run to do."""

    method: str
    problem: str
    seed: int
    batch: int

    @property
    def convention(self) -> str:
        return "repair" if needs_repair(self.method, self.problem) else ""


def needs_repair(method: str, problem: str) -> bool:
    """Whether a method may suggest what is illegal on a problem."""
    return method in REPAIRED and problems()[problem].group != "free"


def tasks(
    methods: Sequence[str], names: Sequence[str], seeds: Sequence[int], batches: Sequence[int]
) -> list[BatchTask]:
    """By seed, method and size, so that partial results are balanced."""
    return [BatchTask(m, p, s, b) for s in seeds for m in methods for b in batches for p in names]


def folder_of(task: BatchTask, folder: Path = RESULTS) -> Path:
    """The folder of the histories of one size of batch."""
    return folder / str(task.batch)


def missing(wanted: Sequence[BatchTask], budget: int = BUDGET, folder: Path = RESULTS) -> list[BatchTask]:
    """Those that are not there with all of their budget."""
    read = {(t.method, t.convention, t.batch): folder_of(t, folder) for t in wanted}
    there = {k: {h.key for h in history.read(k[0], k[1], f) if len(h.losses) >= budget} for k, f in read.items()}
    return [t for t in wanted if (t.problem, t.seed) not in there[t.method, t.convention, t.batch]]


def run_one(task: BatchTask, budget: int = BUDGET, initial: Path = history.RESULTS) -> History:
    """One run.

    Args:
        initial: folder of the initial designs of methods that make none of their own.
    """
    problem, method = problems()[task.problem], make_batch_method(task.method)
    shape = Shape(problem.space())
    with threadpool_limits(1):
        configs = [] if method.own_design else runner.initial(problem, shape, task.seed, initial)[:budget]
        losses = [problem.objective(c) for c in configs]
        made = _Run(method, shape, task, [True] * len(configs), [None] * len(configs))
        began = time.process_time()
        method.start(problem, shape, task.seed, list(zip(configs, losses, strict=True)), budget)
        made.spent = time.process_time() - began
        while len(losses) < budget:
            size = method.design if not losses else task.batch
            batch = made.batch(min(size, budget - len(losses)))
            told = [problem.objective(c) for c in batch]
            losses += told
            made.tell(list(zip(batch, told, strict=True)))
    stamp = method.stamp() | dict(problem.stamp)
    legal, cpu = tuple(made.legal), tuple(made.cpu)
    return History(task.method, problem.name, task.seed, task.convention, tuple(losses), legal, cpu, stamp)


@dataclass
class _Run:
    """One run under way: legal and cpu as in its history, spent: CPU seconds that belong to the next suggestion."""

    method: BatchMethod
    shape: Shape
    task: BatchTask
    legal: list[bool]
    cpu: list[float | None]
    spent: float = 0.0

    def batch(self, size: int) -> list[dict[str, Any]]:
        """The configurations to evaluate."""
        found = []
        for _ in range(size):
            began = time.process_time()
            config = self.method.suggest()
            self.spent += time.process_time() - began
            violations = self.shape.violations(config)
            if violations and self.method.legal:
                raise RuntimeError(f"{self.task} must be legal, but {violations} for {config}")
            config = self.shape.space.nearest(config) if violations else config
            began = time.process_time()
            self.method.expect(config)
            self.legal.append(not violations)
            self.cpu.append(self.spent + time.process_time() - began)
            self.spent = 0.0
            found.append(config)
        return found

    def tell(self, results: list[tuple[dict[str, Any], float]]) -> None:
        """Tell a batch; that is part of the next suggestion."""
        began = time.process_time()
        self.method.tell(results)
        self.spent = time.process_time() - began


def work(
    todo: Sequence[BatchTask],
    progress: Callable[[str], None],
    budget: int = BUDGET,
    folder: Path = RESULTS,
    initial: Path = history.RESULTS,
) -> int:
    """Do runs in this process; returns how many failed. A failed run leaves a message and no line."""
    failed = 0
    for done, task in enumerate(todo):
        began = time.process_time()
        try:
            found = run_one(task, budget, initial)
        except Exception:
            failed += 1
            progress(f"FAILED {task}\n{traceback.format_exc()}")
            continue
        history.append(found, folder_of(task, folder))
        cpu = time.process_time() - began
        left = len(todo) - done - 1
        progress(
            f"{task.method} {task.batch} {task.problem} seed {task.seed}: {found.best()[-1]:.6g}, {cpu:.1f} CPU s; {left} left"
        )
    return failed
