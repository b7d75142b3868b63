"""``python -m benchmarks.paper final | collect``: best networks, and records of the existing runs.

final --size small --methods hybrid,random       train the best networks again, draw reconstructions
collect paper-vae

To run parts of an experiment: ``python -m benchmarks.peers run --suite paper-vae --methods .. --seeds ..``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.paper import final, vae
from benchmarks.paper.benchmark import out, write
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.peers.__main__ import names
from benchmarks.records import keep_part
from benchmarks.registry import timed
from mipcash.errors import ModelError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    last = commands.add_parser("final", help="train the best network of each method again, test it well, draw pictures")
    last.add_argument("--size", choices=list(vae.OPTIONS), required=True)
    last.add_argument("--methods", type=names, help="default: all that have runs")
    last.add_argument("--samples", type=int, default=final.SAMPLES, help="importance samples per test image")
    last.add_argument("--epochs", type=int, help="of training; default: as in the runs (the paper: 3,280)")
    collect = commands.add_parser("collect", help="write record, table and figures of the histories that are there")
    collect.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}; default: all of them")
    options = parser.parse_args(arguments)
    if options.command == "collect":
        unknown = [n for n in options.names if n not in EXPERIMENTS]
        if unknown:
            parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
        return _collect(options.names or list(EXPERIMENTS))
    if min(options.samples, options.epochs or 1) < 1:
        parser.error("--samples and --epochs must be at least 1")
    try:
        return _final(options, timed())
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2


def _final(options: argparse.Namespace, progress: Callable[[str], None]) -> int:
    experiment = EXPERIMENTS["paper-vae"]
    group = next(g for g in experiment.groups if g.name == options.size)
    methods = options.methods or group.methods
    chosen = final.bests(options.size, experiment.suite, methods, group.conventions_of(experiment.suite))
    final.make(options.size, chosen, progress, options.samples, options.epochs)
    print(final.markdown(options.size) or "no method has a run yet")
    return 0


def _collect(names: Sequence[str]) -> int:
    for name in names:
        keep_part(name, partial(write, EXPERIMENTS[name]), out(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
