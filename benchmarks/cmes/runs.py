"""Runs of a method on a problem with a seed. All methods start from the same random configurations of the seed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.cmes.methods import HIDDEN, METHODS, REAL, Method, with_design
from benchmarks.cmes.problems import PROBLEMS, Problem
from benchmarks.raw import append_line, lines
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import DONE, FAILED, Outcome
from mipcash.optimizers.registry import make_optimizer

START = 5
"""Number of random configurations at the start."""
LIMITED = "value"


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        method, problem, seed: what was run.
        losses: of every evaluation.
        kept: True for evaluations that satisfy the constraint.
        cpu: seconds of proposals after the start.
    """

    method: str
    problem: str
    seed: int
    losses: list[float]
    kept: list[bool]
    cpu: float

    @property
    def key(self) -> tuple[str, str, int]:
        return self.method, self.problem, self.seed

    @property
    def best(self) -> list[float]:
        """Return the least feasible loss after each evaluation, or inf if there is none."""
        allowed = np.where(self.kept, self.losses, math.inf)
        return np.minimum.accumulate(allowed).tolist()


def told(of: Method, loss: float, value: float, problem: Problem) -> tuple[str, Outcome]:
    """Return the status and outcome that a method receives for an evaluation."""
    broken = value > problem.threshold
    values = {LIMITED: value if of.told == REAL else (1.0 if broken else -1.0)}
    if of.told == HIDDEN and broken:
        return FAILED, Outcome.failure("the limit is broken", values)
    return DONE, Outcome.of(loss, values)


def run(name: str, problem: Problem, seed: int, budget: int) -> Run:
    """Run a method for a number of evaluations, including the random ones at the start."""
    of, space = METHODS[name], problem.space()
    optimizer = make_optimizer(of.optimizer, space, settings=with_design(of, START))
    limit = Limit(LIMITED, high=problem.threshold if of.told == REAL else 0.0)
    start = space.sample(START, seed)
    history: list[Observation] = []
    state: dict[str, object] = {}
    losses, kept, cpu = list[float](), list[bool](), 0.0
    for k in range(budget):
        if k < START:
            config = start[k]
        else:
            began = time.process_time()
            request = Request(history, np.random.default_rng([seed, k]), state, limits=(limit,))
            proposal = optimizer.ask(request)
            cpu += time.process_time() - began
            config, state = proposal.config, dict(proposal.state)
        loss, value = problem.evaluate(config)
        status, outcome = told(of, loss, value, problem)
        history.append(Observation(config, status, outcome.loss, outcome.values, outcome))
        losses.append(loss)
        kept.append(value <= problem.threshold)
    return Run(name, problem.name, seed, losses, kept, cpu)


def work(
    names: Sequence[str],
    seeds: Iterable[int],
    budget: int,
    progress: Callable[[str], None],
    path: Path | None = None,
    problems: Sequence[Problem] = PROBLEMS,
) -> list[Run]:
    """Execute the runs seed by seed, so that an interruption leaves complete seeds and a part of one.

    Args:
        path: file of runs to resume, with a line for each; None keeps no runs.
    """
    done = read(path) if path else []
    there = {r.key for r in done}
    for seed in seeds:
        for problem in problems:
            for name in names:
                if (name, problem.name, seed) in there:
                    continue
                progress(f"seed {seed}, {problem.name}, {name}")
                done.append(run(name, problem, seed, budget))
                if path:
                    append_line(path, json.dumps(asdict(done[-1])))
    return done


def read(path: Path) -> list[Run]:
    """Return the runs of a file; empty if there is no file."""
    return [Run(**json.loads(line)) for line in lines(path)]
