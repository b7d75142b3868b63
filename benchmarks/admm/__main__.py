"""``python -m benchmarks.admm run | collect``: parts of the benchmark ``admm-artificial``.

run --methods random,jopt --instances 0-12 --budget 100 --seconds 600
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time

from benchmarks.peers.__main__ import THREADS, names, numbers


def main() -> int:
    for name in THREADS:
        os.environ.setdefault(name, "1")
    from benchmarks.admm.runs import work
    from benchmarks.admm.suite import FOLDER

    parser = argparse.ArgumentParser(prog="python -m benchmarks.admm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("--methods", type=names, required=True)
    run.add_argument("--instances", type=numbers, default=numbers("0-12"))
    run.add_argument("--budget", type=int, default=100)
    run.add_argument("--seconds", type=float, default=math.inf, help="after which no further run starts")
    commands.add_parser("collect", help="write the record of the runs that are there")
    options = parser.parse_args()
    if options.command == "collect":
        return collect()
    began = time.perf_counter()

    def progress(text: str) -> None:
        print(f"[{time.perf_counter() - began:8.1f} s] {text}", file=sys.stderr, flush=True)

    return int(
        work(options.methods, options.instances, lambda _: options.budget, FOLDER, progress, options.seconds) > 0
    )


def collect() -> int:
    from benchmarks.admm import benchmark
    from benchmarks.records import keep_part

    keep_part("admm-artificial", benchmark.collected, benchmark.OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
