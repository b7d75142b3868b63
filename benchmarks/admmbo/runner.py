"""Runs of the problems: sequential evaluations of one output or of all outputs, with one line of JSON for each run.

The budget counts evaluations of single outputs; a joint evaluation counts N + 1. As in the paper, a configuration
counts as found once any of its outputs is evaluated. The tables then use its true loss and constraint values.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.admmbo.problems import PROBLEMS, Problem, kept
from benchmarks.raw import append_line, lines
from mipcash.methods.admmbo.admmbo import Admmbo
from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import History, Observation, Optimizer, Request
from mipcash.optimizers.random import RandomSearch
from mipcash.space.domain import Domain

APART, TOGETHER, HYBRID, RANDOM = "admmbo, apart", "admmbo, together", "hybrid, together", "random, together"
METHODS = (APART, TOGETHER, HYBRID, RANDOM)
SHORTER = {HYBRID: 100}
"""Evaluations of single outputs of a method without a stopping rule, if fewer than the paper's budget."""


@dataclass(frozen=True)
class Task:
    """Run to execute.

    Attributes:
        settings: of ADMMBO, where they are not the paper's.
    """

    problem: str
    method: str
    seed: int
    settings: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return json.dumps([self.problem, self.method, self.seed, sorted(self.settings.items())])


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        found: for each new lowest feasible loss, the evaluations of single outputs until then and the loss.
        spent: evaluations of single outputs in all.
        stopped: reason for which the optimizer requested a stop, else empty.
        answer: loss and feasibility of the recommendation; None if there is none.
        asks: number of proposals.
        cpu: CPU seconds of the proposals.
    """

    task: Task
    found: list[tuple[int, float]]
    spent: int
    stopped: str
    answer: tuple[float, bool] | None
    asks: int
    cpu: float

    def at(self, budget: float) -> float:
        """Return the least feasible loss after a number of evaluations, or inf if there is none."""
        return min((best for spent, best in self.found if spent <= budget), default=math.inf)

    @property
    def feasible(self) -> float:
        """Return the evaluations until a point was feasible, or inf if none was."""
        return self.found[0][0] if self.found else math.inf

    def as_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_line(cls, line: str) -> Run:
        read = json.loads(line)
        answer = None if read["answer"] is None else (float(read["answer"][0]), bool(read["answer"][1]))
        found = [(int(spent), float(best)) for spent, best in read["found"]]
        return cls(**{**read, "task": Task(**read["task"]), "answer": answer, "found": found})


def made(task: Task, problem: Problem) -> Optimizer:
    """Return the optimizer of a task."""
    domain = Domain.of(problem.space())
    if task.method == HYBRID:
        return Hybrid(domain)
    if task.method == RANDOM:
        return RandomSearch(domain)
    return Admmbo(domain, AdmmboSettings.paper(**task.settings))


def run_one(task: Task, budget: int | None = None) -> Run:
    """Execute a run from two random points whose outputs are all known.

    Args:
        budget: evaluations of single outputs; None: the paper's, or SHORTER.
    """
    problem = PROBLEMS[task.problem]
    budget = budget or min(problem.budget, SHORTER.get(task.method, problem.budget))
    optimizer, costs = made(task, problem), dict.fromkeys(problem.outputs, 1.0) if task.method == APART else {}
    history: list[Observation] = []
    found: list[tuple[int, float]] = []
    spent, state, stopped, cpu, asks = 0, dict[str, Any](), "", 0.0, 0

    def evaluated(config: Any, outputs: Sequence[str]) -> int:
        values = problem.values(config)
        told = {name: values[name] for name in outputs}
        history.append(Observation(config, "done", told.pop("loss", None), told))
        after = spent + len(outputs)
        if kept(values) and values["loss"] < min((b for _, b in found), default=math.inf):
            found.append((after, values["loss"]))
        return after

    for config in problem.start(task.seed):
        spent = evaluated(config, problem.outputs)
    with threadpool_limits(1):
        while spent < budget and not stopped:
            began = time.process_time()
            rng = np.random.default_rng([task.seed, len(history)])
            proposal = optimizer.ask(Request(history, rng, state, limits=problem.wanted, costs=costs))
            cpu, asks, state = cpu + time.process_time() - began, asks + 1, json.loads(json.dumps(dict(proposal.state)))
            spent = evaluated(proposal.config, proposal.outputs or problem.outputs)
            stopped = proposal.stop
        return Run(task, found, spent, stopped, _answer(optimizer, history, problem), asks, cpu)


def _answer(optimizer: Optimizer, history: History, problem: Problem) -> tuple[float, bool] | None:
    answer = optimizer.recommend(history, problem.wanted)
    if answer is None:
        return None
    values = problem.values(answer.config)
    return values["loss"], kept(values)


def read(path: Path) -> list[Run]:
    """Return the runs of a file; empty if there is no file."""
    return [Run.of_line(line) for line in lines(path)]


def work(todo: Iterable[Task], path: Path, progress: Callable[[str], None], budget: int | None = None) -> list[Run]:
    """Execute the runs that are not in a file, append them to it, and return all requested runs."""
    there = {r.task.key: r for r in read(path)}
    found = []
    for task in todo:
        if task.key not in there:
            run = run_one(task, budget)
            append_line(path, run.as_line())
            progress(
                f"({task.problem}) {task.method} {task.settings or ''} start {task.seed}: {run.at(math.inf):.5f} after "
                f"{run.spent}, {run.cpu:.1f} CPU s {run.stopped}"
            )
            there[task.key] = run
        found.append(there[task.key])
    return found
