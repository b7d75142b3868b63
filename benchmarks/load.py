"""Load: CPU seconds and peak memory against the number of trials, observations, pending trials, parameters and rules.

Each case runs in a fresh process, which the megabytes are of; the seconds of a command are of its process, the import included.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, Results, benchmark
from mipcash.models import artificial
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import DONE, PENDING
from mipcash.optimizers.registry import make_optimizer

Seconds = dict[str, float]
AFTER = 12
"""Finished trials beside those that are pending."""


@contextmanager
def clock(seconds: Seconds, what: str) -> Iterator[None]:
    """Add the CPU seconds of this process and of its children to ``seconds``."""
    began = time.process_time() + _children()
    yield
    seconds[what] = time.process_time() + _children() - began


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def network() -> mc.Space:
    """Return the space of the README."""
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    width = space.ordinal("width", [16, 32, 64, 128])
    act = space.categorical("activation", ["relu", "tanh", "selu"])
    space.real("lr", 1e-4, 1e-1, log=True)
    space.real("drop", 0.0, 0.5, when=layers.is_(2, 3))
    space.rule("memory", layers * width <= 200)
    space.rule("selu only when deep", act["selu"] <= layers / 3)
    return space


def loss(config: Any) -> float:
    return float((config["lr"] - 0.01) ** 2 + 1 / (config["layers"] * config["width"]))


def journal(size: int, seconds: Seconds) -> None:
    """A journal of ``random``: its run, its opening by a program, and the commands that show and report it."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "run.db", Path(folder) / "run.html"
        with clock(seconds, "run"):
            mc.minimize(loss, network(), size, optimizer="random", storage=path, progress=False)
        with clock(seconds, "open"), mc.Study(network(), optimizer="random", storage=path) as study:
            assert len(study.trials) == size
        for command in (["show", path], ["report", path, "--output", page]):
            with clock(seconds, str(command[0])):
                subprocess.run([sys.executable, "-m", "mipcash", *map(str, command)], check=True, capture_output=True)
        seconds["MB of the report"] = page.stat().st_size / 1e6


def short(size: int, seconds: Seconds) -> None:
    """A run of ``hybrid`` with an objective of a millisecond."""

    def objective(config: Any) -> float:
        time.sleep(0.001)
        return loss(config)

    with clock(seconds, "run"):
        mc.minimize(objective, network(), size, progress=False)


def asks(space: mc.Space, history: list[Observation], seconds: Seconds) -> None:
    """The first proposal of ``hybrid``, which fits from scratch, and the next."""
    optimizer, state = make_optimizer("hybrid", space), dict[str, Any]()
    for k, what in enumerate(("first ask", "next ask")):
        with clock(seconds, what):
            proposal = optimizer.ask(Request(history, np.random.default_rng(k), state))
        state = dict(proposal.state)
        history = [*history, Observation(proposal.config, DONE, float(k))]


def observations(size: int, seconds: Seconds) -> None:
    space, rng = artificial.space, np.random.default_rng(0)
    asks(space, [Observation(c, DONE, float(rng.normal())) for c in space.sample(size, 0)], seconds)


def pending(size: int, seconds: Seconds) -> None:
    space, rng = network(), np.random.default_rng(0)
    configs = space.sample(AFTER + size, 0)
    done = [Observation(c, DONE, float(rng.normal())) for c in configs[:AFTER]]
    asks(space, [*done, *(Observation(c, PENDING, None) for c in configs[AFTER:])], seconds)


def parameters(size: int, seconds: Seconds) -> None:
    """Reals under one sum."""
    with clock(seconds, "declare"):
        space = mc.Space("many parameters")
        space.rule("sum", sum(space.real(f"x{i}", 0, 1) for i in range(size)) <= size / 2)
    asks(space, _observed(space), seconds)


def rules(size: int, seconds: Seconds) -> None:
    """Sums of three of a hundred integers."""
    rng = np.random.default_rng(0)
    with clock(seconds, "declare"):
        space = mc.Space("many rules")
        x = [space.integer(f"x{i}", 0, 9) for i in range(100)]
        for k in range(size):
            a, b, c = rng.choice(100, 3, replace=False)
            space.rule(f"rule {k}", x[a] + x[b] + x[c] <= 22)
    asks(space, _observed(space), seconds)


def _observed(space: mc.Space) -> list[Observation]:
    return [Observation(c, DONE, float(k)) for k, c in enumerate(space.sample(AFTER, 0))]


CASES: dict[str, tuple[Callable[[int, Seconds], None], tuple[int, ...]]] = {
    "trials in a journal": (journal, (100, 1000, 3000, 10_000)),
    "trials of a millisecond": (short, (100, 1000, 3000)),
    "observations": (observations, (20, 100, 300, 1000, 3000)),
    "pending trials": (pending, (10, 100, 500, 1000)),
    "reals under a sum": (parameters, (10, 100, 300, 1000)),
    "rules over 100 integers": (rules, (50, 500, 1500, 5000)),
}
COUNT = {"smoke": 1, "quick": 3, "full": None}
"""Number of sizes of each case, the smallest first."""


def measured(case: str, size: int) -> Results:
    """Return the seconds by what they are of, and the megabytes of the process."""
    seconds: Seconds = {}
    CASES[case][0](size, seconds)
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # ru_maxrss begins with the parent's
    peak = next(float(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"case": case, "size": size, "seconds": seconds, "mb": peak / 1e3}


@benchmark("load", "CPU seconds and memory against the number of trials, parameters, rules")
def run(size: str, progress: Progress) -> Results:
    rows, fresh = [], None if size == "smoke" else 1
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=fresh) as pool:
        for case, (_, sizes) in CASES.items():
            for number in sizes[: COUNT[size]]:
                rows.append(pool.submit(measured, case, number).result())
                progress(f"{number} {case}: {rows[-1]['seconds']}")
    return {"rows": rows}


def markdown(results: Results) -> str:
    """The table for the page of results."""
    lines = ["| case | size | CPU s | MB |", "|---|---|---|---|"]
    for row in results["rows"]:
        seconds = "; ".join(f"{what} {value:.2g}" for what, value in row["seconds"].items())
        lines.append(f"| {row['case']} | {row['size']:,} | {seconds} | {row['mb']:.0f} |")
    return "\n".join(lines)


def draw(record: Path, figure: Path) -> None:
    """Draw seconds and megabytes of a record against size, on logarithmic axes."""
    from matplotlib.figure import Figure

    rows = json.loads(record.read_text(encoding="utf-8"))["results"]["rows"]
    drawn = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = drawn.subplots(1, 2)
    for case in CASES:
        mine = [row for row in rows if row["case"] == case]
        sizes = [row["size"] for row in mine]
        what = next(each for each in ("open", "next ask", "run") if each in mine[0]["seconds"])
        left.loglog(sizes, [row["seconds"][what] for row in mine], marker=".", label=f"{case}: {what}")
        right.loglog(sizes, [row["mb"] for row in mine], marker=".")
    left.set(xlabel="number", ylabel="CPU seconds")
    right.set(xlabel="number", ylabel="MB of the process")
    left.legend(frameon=False, fontsize=8)
    drawn.savefig(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
