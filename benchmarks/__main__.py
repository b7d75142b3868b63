"""``python -m benchmarks list | run NAME --size smoke|quick|full | report [FILE.json ...] | collect NAME | pack``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.raw import pack
from benchmarks.records import FOLDER, keep_part, page, stamped
from benchmarks.registry import SIZES, Benchmark, Results, benchmarks, timed


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names and summaries")
    run = commands.add_parser("run", help="run one benchmark")
    run.add_argument("name")
    run.add_argument("--size", choices=SIZES, default="smoke")
    run.add_argument("--out", type=Path, help="where the results go, as JSON; default: benchmarks/results, for quick and full")
    run.add_argument("--markdown", action="store_true", help="print the table too")
    report = commands.add_parser("report", help="print the tables of results; without files: write benchmarks/results/REPORT.md")
    report.add_argument("files", nargs="*", type=Path)
    gathered = commands.add_parser("collect", help="write the record of the runs of a benchmark that are there")
    gathered.add_argument("name", help="a benchmark that keeps its runs")
    commands.add_parser("pack", help="move raw runs (*.jsonl) below benchmarks/results into one compressed file per benchmark")
    options = parser.parse_args(arguments)
    known = benchmarks()
    if options.command == "list":
        for each in known.values():
            print(f"{each.name:12} {each.summary}")
    elif options.command == "collect":
        found = known.get(options.name)
        if found is None or found.collected is None:
            parser.error(f"{options.name!r} keeps no runs; {', '.join(n for n, b in known.items() if b.collected)} do")
        keep_part(found.name, found.collected, found.out or FOLDER / f"{found.name}.json")
    elif options.command == "pack":
        for folder in sorted(f for f in FOLDER.iterdir() if f.is_dir()):
            print(pack(folder))
    elif options.command == "report" and not options.files:
        print(page(known))
    elif options.command == "report":
        for file in options.files:
            record = json.loads(file.read_text(encoding="utf-8"))
            print(known[record["benchmark"]].markdown(record["results"]) + "\n")
    else:
        if options.name not in known:
            parser.error(f"there is no benchmark {options.name!r}; there are {', '.join(known)}")
        record = measured(known[options.name], options.size)
        kept = known[options.name].out or FOLDER / f"{options.name}.json"
        out = options.out or (None if options.size == "smoke" else kept)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if options.markdown or options.out is None:
            print(known[options.name].markdown(record["results"]))
    return 0


def measured(each: Benchmark, size: str) -> Results:
    """Run a benchmark and return its results together with the machine and versions."""
    began = time.perf_counter()
    results = each.run(size, timed())
    return stamped(each.name, size, time.perf_counter() - began, results)


if __name__ == "__main__":
    sys.exit(main())
