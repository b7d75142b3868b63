"""``python -m benchmarks.batches run | collect``: the benchmark ``batches`` in parts.

run --methods hybrid,optuna-tpe,botorch --batches 1,4,8 --problems branin-cat,sensors --seeds 0-4
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.__main__ import names, numbers

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy and torch are loaded
    os.environ.setdefault(_name, "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    from benchmarks.batches import runner

    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing, in this process")
    run.add_argument("--methods", type=names, default=["hybrid", "optuna-tpe", "botorch"])
    run.add_argument("--problems", type=names, default=list(runner.PROBLEMS))
    run.add_argument("--seeds", type=numbers, default=numbers("0-4"))
    run.add_argument("--batches", type=numbers, default=list(runner.SIZES))
    run.add_argument("--results", type=Path, default=runner.RESULTS)
    commands.add_parser("collect", help="write the record of the histories that are there")
    options = parser.parse_args(arguments)
    if options.command == "collect":
        from benchmarks.batches.benchmark import OUT, collected
        from benchmarks.records import keep_part

        keep_part("batches", collected, OUT)
        return 0

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    wanted = runner.tasks(options.methods, options.problems, options.seeds, options.batches)
    todo = runner.missing(wanted, folder=options.results)
    progress(f"{len(todo)} of {len(wanted)} runs are missing")
    return int(runner.work(todo, progress, folder=options.results) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
