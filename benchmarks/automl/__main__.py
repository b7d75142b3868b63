"""``python -m benchmarks.automl run``: the benchmarks of pipelines in parts.

run --methods flaml,tpot,hybrid --data sonar,heart --seeds 0-2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.__main__ import names, numbers  # import this before numpy, as it sets BLAS to one thread


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    from benchmarks.automl import runner
    from benchmarks.automl.data import ALL, ROWS
    from benchmarks.automl.record import FOLDER
    from benchmarks.automl.spaces import SPACES
    from benchmarks.registry import timed

    parser = argparse.ArgumentParser(prog="python -m benchmarks.automl", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("--methods", type=names, required=True)
    run.add_argument("--data", type=names)
    run.add_argument("--seeds", type=numbers, default=numbers("0-2"))
    run.add_argument("--evaluations", type=int, default=runner.EVALUATIONS)
    run.add_argument("--space", choices=list(SPACES), help="default: bundled, and a3 for numbers")
    run.add_argument("--rows", type=int, default=ROWS, help=f"to search on, at most; {ALL}: all")
    run.add_argument("--results", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)

    progress = timed()
    methods = runner.installed(options.methods, progress)
    wanted = runner.tasks(methods, options.data, options.seeds, options.space)
    todo = runner.missing(wanted, options.evaluations, options.results)
    progress(f"{len(todo)} of {len(wanted)} runs are missing")
    return int(runner.work(todo, progress, options.evaluations, options.space, options.results, options.rows) > 0)


if __name__ == "__main__":
    sys.exit(main())
