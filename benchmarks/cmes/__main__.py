"""``python -m benchmarks.cmes run --seeds 0-3 | collect ``: parts of the benchmark."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from benchmarks.cmes.benchmark import BUDGET, collected
from benchmarks.cmes.methods import METHODS, method
from benchmarks.cmes.runs import read, work
from benchmarks.records import FOLDER, keep_part


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cmes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="go on with the runs of a file")
    run.add_argument("runs", type=Path)
    run.add_argument("--methods", help="names, semicolons between them; all of them where nothing is said")
    run.add_argument("--seeds", default="0-3", help="first and last, as 0-3")
    run.add_argument("--budget", type=int, default=BUDGET["quick"])
    run.add_argument("--seconds", type=float, default=math.inf, help="after which no further run starts")
    collect = commands.add_parser("collect", help="write benchmarks/results/cmes.json from a file of runs")
    collect.add_argument("runs", type=Path)
    collect.add_argument("--out", type=Path, default=FOLDER / "cmes.json")
    options = parser.parse_args()
    if options.command == "run":
        names = options.methods.split(";") if options.methods else list(METHODS)
        first, last = map(int, options.seeds.split("-"))
        seeds = range([method(name) for name in names] and first, last + 1)
        work(names, seeds, options.budget, lambda text: print(text, flush=True), options.runs, seconds=options.seconds)
    else:
        keep_part("cmes", lambda: collected(read(options.runs)), options.out)


if __name__ == "__main__":
    sys.exit(main())
