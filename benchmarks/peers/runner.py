"""Runner: loops over seeds, then methods and conventions, so that partial results are balanced.

Every method, seed and convention runs in a separate process. Finished runs are not repeated.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.peers import history
from benchmarks.peers.catalogue import make_method
from benchmarks.peers.convention import CONVENTIONS, PATIENCE, Convention, convention
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.history import RESULTS, History
from benchmarks.peers.method import INITIAL, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from benchmarks.suites import PEERS, suite

BUDGET = 60
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Task:
    """Run to execute."""

    method: str
    problem: str
    seed: int
    convention: str
    suite: str = PEERS


def tasks(
    methods: Sequence[str],
    problems: Sequence[str] | None,
    seeds: Sequence[int],
    conventions: Sequence[str] = CONVENTIONS,
    of: str = PEERS,
) -> list[Task]:
    """Return the runs of a suite sorted by seed, convention (runs without one first), method, problem."""
    legal = {method: make_method(method).legal for method in methods}
    picked = suite(of).chosen(list(problems) if problems else None)
    for name in conventions:
        convention(name)
    found = []
    for seed in seeds:
        for each in ("", *conventions):
            for method in methods:
                for problem in picked:
                    one = legal[method] or problem.group == "free"
                    if one == (each == ""):
                        found.append(Task(method, problem.name, seed, each, of))
    return found


def missing(wanted: Sequence[Task], budget: int = BUDGET, folder: Path = RESULTS) -> list[Task]:
    """Return the runs that are missing, shorter than the budget, or of a problem with other settings."""
    there: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for task in wanted:
        file = (task.method, task.convention)
        if file not in there:
            known = suite(task.suite).problems()
            there[file] = {h.key for h in history.read(*file, folder) if complete(h, budget, known.get(h.problem))}
    return [t for t in wanted if (t.problem, t.seed) not in there[t.method, t.convention]]


def complete(h: History, budget: int, problem: Problem | None) -> bool:
    """Return True if a run has its evaluations, on the problem in its present form."""
    if problem is not None and any(h.stamp.get(k) != v for k, v in problem.stamp.items()):
        return False
    return _over(h.losses, budget, convention(h.convention))


def initial(problem: Problem, shape: Shape, seed: int, folder: Path = RESULTS, size: int = INITIAL) -> list[dict[str, Any]]:
    """Return uniform legal samples, the same for all peers."""
    kept = history.initial_design(problem.name, seed, folder)
    if kept is None:
        drawn = shape.space.sample(size, np.random.default_rng(np.random.SeedSequence([seed, 0])))
        history.keep_initial_design(problem.name, seed, drawn, folder)
        kept = history.initial_design(problem.name, seed, folder)
        assert kept is not None
    return kept


def run_one(task: Task, budget: int = BUDGET, folder: Path = RESULTS) -> History:
    """Execute one run of one method on one problem."""
    (problem,) = suite(task.suite).chosen([task.problem])
    method = make_method(task.method)
    if problem.limits and not method.takes_limits:
        raise ValueError(f"{task.method} does not take the limits of {problem.name}")
    method.design = suite(task.suite).initial
    shape = Shape(problem.space())
    with threadpool_limits(1):
        return _run(method, problem, shape, task, budget, folder)


def _run(method: Method, problem: Problem, shape: Shape, task: Task, budget: int, folder: Path) -> History:
    rule = convention(task.convention)
    configs = [] if method.own_design else initial(problem, shape, task.seed, folder, method.design)[:budget]
    found = [problem.evaluate(c) for c in configs]
    legal, cpu = [True] * len(configs), list[float | None]([None] * len(configs))
    began = time.process_time()
    method.begin(problem, shape, task.seed, list(zip(configs, found, strict=True)), budget)
    spent = time.process_time() - began  # the start is part of the first suggestion
    while not _over([e.loss for e in found], budget, rule):
        began = time.process_time()
        config = method.suggest()
        spent += time.process_time() - began
        violations = shape.violations(config)
        legal.append(not violations)
        if violations and (method.legal or not rule.name):
            raise RuntimeError(f"{task.method} must be legal on {problem.name}, but {violations} for {config}")
        suggested, broken = config, violations
        if violations and rule.repaired:
            config, violations = shape.space.nearest(config), {}
        if violations:
            told = rule.value if rule.value is not None else penalty(problem, [e.loss for e in found])
            found.append(Evaluation(None, {}, False))
        else:
            found.append(problem.evaluate(config))
        began = time.process_time()
        if violations and not rule.told:
            method.skip(config, violations)
        else:
            method.learn(config, Evaluation(told) if violations else found[-1], violations)
        if broken and not violations:
            method.repaired(suggested, broken, found[-1])
        cpu.append(spent + time.process_time() - began)
        spent = 0.0
    stamp = method.stamp() | dict(problem.stamp)
    outputs = tuple(e.outputs for e in found) if problem.limits else ()
    losses = tuple(e.counted for e in found)
    return History(task.method, problem.name, task.seed, task.convention, losses, tuple(legal), tuple(cpu), stamp, outputs)


def _over(losses: Sequence[float | None], budget: int, rule: Convention) -> bool:
    """Return True if a run has its evaluations, or has reached the limit of its suggestions."""
    if rule.counted:
        return len(losses) >= budget
    return len(losses) - losses.count(None) >= budget or len(losses) >= PATIENCE * budget


def penalty(problem: Problem, losses: Sequence[float | None]) -> float:
    """Return the loss reported for an illegal suggestion: the problem's penalty, else the worst legal loss so far."""
    return problem.penalty if problem.penalty is not None else max(v for v in losses if v is not None)


def work(todo: Sequence[Task], progress: Callable[[str], None], budget: int = BUDGET, folder: Path = RESULTS) -> int:
    """Execute runs in this process and return the number of failed runs, which leave a message and no line."""
    failed, began, cpu = 0, time.perf_counter(), 0.0
    for done, task in enumerate(todo):
        before = time.process_time()
        label = f"{task.method} {task.convention} {task.problem} seed {task.seed}".replace("  ", " ")
        try:
            found = run_one(task, budget, folder)
        except Exception:
            failed += 1
            progress(f"FAILED {label}\n{traceback.format_exc()}")
            continue
        history.append(found, folder)
        cpu = time.process_time() - before
        left = (time.perf_counter() - began) / (done + 1) * (len(todo) - done - 1)
        progress(f"{label}: best {found.best()[-1]:.6g}, {cpu:.1f} CPU s; about {left / 60:.1f} min left of this part")
    return failed


def coordinate(
    todo: Sequence[Task], jobs: int, progress: Callable[[str], None], budget: int = BUDGET, folder: Path = RESULTS
) -> int:
    """Run a process per method, seed and convention, ``jobs`` at a time. Return the number of failed runs."""
    parts: dict[tuple[int, str, str, str], list[str]] = {}
    for t in todo:
        parts.setdefault((t.seed, t.method, t.convention, t.suite), []).append(t.problem)
    began, done = time.perf_counter(), 0

    def part(key: tuple[int, str, str, str]) -> int:
        nonlocal done
        seed, method, rule, of = key
        command = [sys.executable, "-m", "benchmarks.peers", "run", "--methods", method, "--seeds", str(seed), "--jobs", "0"]
        command += ["--problems", ",".join(parts[key]), "--budget", str(budget), "--results", str(folder)]
        command += ["--conventions", rule] if rule else []
        command += ["--suite", of] if of != PEERS else []
        status = subprocess.run(command, env=os.environ | dict.fromkeys(THREADS, "1"), check=False).returncode
        done += 1
        left = (time.perf_counter() - began) / done * (len(parts) - done) / 60
        progress(f"-- {method} {rule} seed {seed} done: {done} of {len(parts)} parts, about {left:.0f} min left")
        return int(status != 0)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return sum(pool.map(part, parts))
