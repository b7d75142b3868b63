"""Histories of one seed per optimizer as text. Two commits with equal proposals have equal histories.

python -m benchmarks.histories --out F [--optimizers a,b] [--problems x,y] [--budget n] [--solver s]   # a line of JSON per run
python -m benchmarks.histories --compare A B                                                           # status 1: they differ

Compare files of one machine only. Another processor or library may round differently and break ties differently.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from ast import literal_eval
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import mipcash as mc
from benchmarks.peers.problem import problems
from mipcash.optimizers.registry import optimizer_names

SEED = 7
SOLVER = "auto solver=highs"
"""Fixed solver, independent of other installed solvers."""
PLAN: dict[str, tuple[int | None, int]] = {"hybrid": (None, 24), "mivabo": (5, 16), "joint-gp": (4, 14), "random": (8, 14)}
"""Optimizer -> number of problems of the peers benchmark (None: all), evaluations of a run; minutes in total."""
OTHERS = (3, 14)
"""The same for optimizers that PLAN does not name."""

Run = dict[str, Any]
"""``optimizer``, ``problem``, and for each trial ``configs`` (as text), ``losses``, ``origins``."""


def run(optimizer: str, problem: str, budget: int, solver: str) -> Run:
    """Run an optimizer on a problem by name."""
    of = problems()[problem]
    result = mc.minimize(
        of.objective,
        of.space(),
        budget=budget,
        optimizer=mc.Method(optimizer, solver=solver, seconds_per_proposal=None),
        seed=SEED,
        progress=False,
    )
    return {
        "optimizer": optimizer,
        "problem": problem,
        "configs": [repr(sorted(t.config.items())) for t in result.history],
        "losses": [t.loss for t in result.history],
        "origins": [t.origin for t in result.history],
    }


def planned(optimizers: Sequence[str], names: Sequence[str] = (), budget: int = 0) -> list[tuple[str, str, int]]:
    """Return ``(optimizer, problem, budget)`` of each run. Unless named, the problems are spread over the list."""
    known, found = list(problems()), []
    for optimizer in optimizers:
        count, usual = PLAN.get(optimizer, OTHERS)
        count = len(known) if count is None else count
        chosen = names or known[:: max(1, len(known) // count)][:count]
        found += [(optimizer, name, budget or usual) for name in chosen]
    return found


def read(path: Path) -> dict[tuple[str, str], Run]:
    """Return the runs of a file by optimizer and problem."""
    runs = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(r["optimizer"], r["problem"]): r for r in runs}


def differences(first: Run, second: Run) -> list[str]:
    """Return the first difference between two runs of the same optimizer on the same problem, as lines; empty if they are equal."""
    for number, (a, b) in enumerate(zip(_trials(first), _trials(second), strict=False)):
        if a != b:
            return [f"trial {number}", *(f"  {sign} {' '.join(map(str, t))}" for sign, t in (("-", a), ("+", b)))]
    lengths = [len(r["configs"]) for r in (first, second)]
    return [] if lengths[0] == lengths[1] else [f"{lengths[0]} trials and {lengths[1]}"]


def _trials(run: Run) -> list[tuple[Any, ...]]:
    return list(zip(run["origins"], run["losses"], run["configs"], strict=True))


def alike(first: Run, second: Run, tolerance: float | None) -> bool:
    """Return True if two runs have the same discrete decisions, and numbers within a relative tolerance, unless it is None."""
    pairs = [list(literal_eval(text)) for run in (first, second) for text in run["configs"]]
    half = len(first["configs"])
    if len(pairs) != 2 * half:
        return False
    for mine, theirs in zip(pairs[:half], pairs[half:], strict=True):
        for (name, x), (other, y) in zip_longest(mine, theirs, fillvalue=(None, None)):
            number = isinstance(x, float) and isinstance(y, float)
            same = tolerance is None or math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance) if number else x == y
            if name != other or not same:
                return False
    return True


def compare(first: Path, second: Path) -> int:
    """Print the differences between two files. Return 0 if their common runs are equal, else 1."""
    a, b = read(first), read(second)
    both = [key for key in a if key in b]
    different = 0
    for key in both:
        said = differences(a[key], b[key])
        different += bool(said)
        if said:
            print(f"{' on '.join(key)}: {said[0]}", *said[1:], sep="\n")
    alone = len(a) + len(b) - 2 * len(both)
    discrete, near = (sum(map(alike, map(a.get, both), map(b.get, both), [tolerance] * len(both))) for tolerance in (None, 1e-9))
    print(
        f"{len(both) - different} runs equal, {different} different, {alone} in one file alone; {discrete} with the same discrete "
        f"decisions, {near} of them with numbers to 1e-9"
    )
    return int(different > 0 or not both)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.histories", description=__doc__)
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--out", type=Path, help="run, and write the histories here")
    does.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"))
    parser.add_argument("--optimizers", type=lambda text: text.split(","), default=list(optimizer_names()))
    parser.add_argument("--problems", type=lambda text: text.split(","), default=[])
    parser.add_argument("--budget", type=int, default=0)
    parser.add_argument("--solver", default=SOLVER)
    options = parser.parse_args(arguments)
    if options.compare:
        return compare(*options.compare)
    for kind, given, known in (("optimizer", options.optimizers, optimizer_names()), ("problem", options.problems, problems())):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"there is no {kind} {', '.join(unknown)}; there are {', '.join(known)}")
    with options.out.open("w", encoding="utf-8") as file:
        for each in planned(options.optimizers, options.problems, options.budget):
            began = time.perf_counter()
            file.write(json.dumps(run(*each, options.solver)) + "\n")
            file.flush()
            print(f"{each[0]} on {each[1]}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # warnings do not matter in a comparison of proposals
    sys.exit(main())
