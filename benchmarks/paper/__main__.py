"""``python -m benchmarks.paper table``: tables of real evaluations of XGBoost.

table --problem monks --rows 20000 --jobs 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.paper import table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("table", help="train what a table lacks")
    make.add_argument("--problem", choices=list(table.DATA), required=True)
    make.add_argument("--rows", type=int, default=20_000)
    make.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    began = time.perf_counter()

    def progress(text: str) -> None:
        print(f"[{time.perf_counter() - began:8.1f} s] {text}", file=sys.stderr, flush=True)

    made = table.make(options.problem, options.rows, options.jobs, progress)
    print(f"{len(made)} rows of {made.stamp['trainings']} trainings, errors {made.errors.min():.4f} to {made.errors.max():.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
