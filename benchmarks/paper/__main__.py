"""``python -m benchmarks.paper --size small --methods hybrid,random``: best networks trained again, and their reconstructions.

To run parts of an experiment: ``python -m benchmarks.peers run --suite paper-vae --methods .. --seeds ..``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks.paper import final, vae
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.peers.__main__ import names
from benchmarks.registry import timed
from mipcash.errors import ModelError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("--size", choices=list(vae.OPTIONS), required=True)
    parser.add_argument("--methods", type=names, help="default: all that have runs")
    parser.add_argument("--samples", type=int, default=final.SAMPLES, help="importance samples per test image")
    parser.add_argument("--epochs", type=int, help="of training; default: as in the runs (the paper: 3,280)")
    options = parser.parse_args(arguments)
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


if __name__ == "__main__":
    sys.exit(main())
