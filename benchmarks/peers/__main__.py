"""``python -m benchmarks.peers run``: the peers benchmark in parts; ``python -m benchmarks collect peers`` makes its tables.

run --methods optuna-tpe,hybrid:samples=4 --problems ising,spring --seeds 0-9 --jobs 1
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for _name in THREADS:  # set before numpy and torch are loaded
    os.environ.setdefault(_name, "1")


def numbers(text: str) -> list[int]:
    """Parse ``0-9`` or ``0,3,5-7`` into a list."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def names(text: str) -> list[str]:
    """Split comma-separated names, whose settings may contain commas: ``a,b:x=1,y=2,c``."""
    found: list[str] = []
    for part in text.split(","):
        if "=" in part and ":" not in part and found:
            found[-1] += "," + part
        else:
            found.append(part)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    from benchmarks.peers.catalogue import PEERS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("--methods", type=names, default=list(PEERS))
    run.add_argument("--problems", type=names)
    run.add_argument("--seeds", type=numbers, default=numbers("0-9"))
    run.add_argument("--suite", default="peers", help="peers, limits, artificial, paper-synthetic, paper-xgboost or paper-vae")
    run.add_argument("--conventions", type=names, help="default: those of the suite")
    run.add_argument("--budget", type=int, help="default: that of the suite")
    run.add_argument("--jobs", type=int, default=1, help="processes at a time; 0: all in this one")
    run.add_argument("--fresh", action="store_true", help="run again what is there, as after a change of the method")
    run.add_argument("--results", type=Path, help="default: the folder of the suite")
    options = parser.parse_args(arguments)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    from benchmarks.peers import history, runner
    from benchmarks.peers.method import MissingPackageError
    from benchmarks.registry import timed
    from benchmarks.suites import suite

    progress = timed()
    try:
        of = suite(options.suite)
        conventions = options.conventions or of.conventions
        wanted = runner.tasks(options.methods, options.problems, options.seeds, conventions, of.name)
    except (MissingPackageError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    budget, folder = options.budget or of.budget, options.results or of.folder
    if options.fresh:
        for file in {(t.method, t.convention) for t in wanted}:
            keys = [(t.problem, t.seed) for t in wanted if (t.method, t.convention) == file]
            history.drop(*file, keys, folder)
    todo = runner.missing(wanted, budget, folder)
    progress(f"{len(todo)} of {len(wanted)} runs are missing")
    if options.jobs:
        return int(runner.coordinate(todo, options.jobs, progress, budget, folder) > 0)
    return int(runner.work(todo, progress, budget, folder) > 0)


if __name__ == "__main__":
    sys.exit(main())
