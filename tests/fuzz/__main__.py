"""Command line ``python -m tests.fuzz``: compare the library with brute force on random spaces.

The exit code is 1 if any answer is wrong. ``--only K`` tests space K only and prints a program that declares it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from tests.fuzz.described import source
from tests.fuzz.engine import Plan, examine_all
from tests.fuzz.kinds import KINDS, draw
from tests.fuzz.record import COMPARED, MEGABYTES, SECONDS, SOLVERS, Record

EVERY = 20.0
"""Seconds between progress lines."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = _parser().parse_args(arguments)
    plan = Plan(options.seed, options.kinds, options.solvers, not options.no_runs)
    numbers = [options.only] if options.only is not None else list(range(options.first, options.first + options.spaces))
    if options.only is not None:
        case = draw(plan.seed, options.only, plan.kinds)
        print(f"# space {options.only}: {case.kind}, {int(case.truth.legal_configs.sum())} legal configurations")
        print(source(case.drawn), flush=True)
    began = time.monotonic()
    deadline = began + options.seconds if options.seconds else None
    processes = 0 if options.only is not None else options.processes
    kept = _kept(options.keep)
    left = [k for k in numbers if k not in kept]
    records = [kept[k] for k in numbers if k in kept]
    records += _watch(examine_all(plan, left, processes, deadline), len(left), began, options.keep)
    page = table(records) + "\n\n" + summary(records, plan, time.monotonic() - began)
    wrong = any(r.disagreements for r in records)
    print("\n" + page)
    if options.out is not None:
        listed = sorted((d for r in records for d in r.disagreements), key=lambda d: d.k)
        text = page + ("\n\n```\n" + "\n".join(map(str, listed)) + "\n```" if listed else "")
        options.out.write_text(text + "\n", encoding="utf-8")
    return 1 if wrong or not records else 0


def _kept(path: Path | None) -> dict[int, Record]:
    """Return the records of an earlier run, and remove an incomplete last line from its file."""
    if path is None or not path.exists():
        return {}
    whole = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    path.write_text("".join(whole), encoding="utf-8")
    return {record.k: record for record in map(Record.from_json, whole)}


def _watch(records: Iterable[Record], total: int, began: float, keep: Path | None) -> list[Record]:
    """Collect and save records. Print disagreements at once, and progress every ``EVERY`` seconds."""
    done: list[Record] = []
    told = time.monotonic()
    for record in records:
        done.append(record)
        if keep is not None:
            with keep.open("a", encoding="utf-8") as file:
                file.write(record.to_json() + "\n")
        for disagreement in record.disagreements:
            print(disagreement, flush=True)
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            wrong = sum(len(r.disagreements) for r in done)
            line = f"[{told - began:6.0f} s] {len(done)} of {total} spaces, {wrong} disagreements"
            print(line, file=sys.stderr, flush=True)
    return done


COLUMNS = {
    "spaces": lambda r: 1,
    "empty": lambda r: r.left == 0,
    "of these hidden": lambda r: r.hidden,
    "1 to 5 left": lambda r: 1 <= r.left <= 5,
    "redrawn rules": lambda r: r.knives,
    "asked": lambda r: r.asked.total(),
    "refused": lambda r: r.refused.total(),
    "wrong answers": lambda r: len(r.disagreements),
    "spaces with one": lambda r: bool(r.disagreements),
    "hangs": lambda r: r.hangs,
    "over 1 GB": lambda r: r.megabytes > MEGABYTES,
}


def table(records: Sequence[Record]) -> str:
    """Return a Markdown table of counts by kind of space and by construct."""
    constructs = Counter(f for r in records for f in r.features)
    rows = {kind: [r for r in records if r.kind == kind] for kind in KINDS} | {"all": list(records)}
    rows |= {f"with {f}": [r for r in records if f in r.features] for f, _ in constructs.most_common()}
    cells = [("construct", *COLUMNS), ("---",) * (len(COLUMNS) + 1)]
    cells += [(name, *(f"{sum(map(of, mine)):,}" for of in COLUMNS.values())) for name, mine in rows.items() if mine]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def summary(records: Sequence[Record], plan: Plan, seconds: float) -> str:
    """Return a summary of the run and the command that repeats it."""
    wrong = sum(len(r.disagreements) for r in records)
    drawn, asked = (sum(r.seconds[i] for r in records) for i in (0, 1))
    first = min((r.k for r in records), default=0)
    refused: Counter[str] = sum((r.refused for r in records), Counter())
    unproven: Counter[str] = sum((r.unproven for r in records), Counter())
    longest = sorted(records, key=lambda r: -r.seconds[1])[:5]
    kinds = f' --kinds "{",".join(plan.kinds)}"' if plan.kinds else ""
    return "\n".join(
        (
            f"spaces: {len(records):,}; disagreements: {wrong:,} in {sum(bool(r.disagreements) for r in records):,} spaces",
            f"hidden: empty, though no two of the rules, clauses and disjunctions contradict each other; hang: over {SECONDS} s",
            f"refused and unproven by solver: {dict(refused)}, {dict(unproven)}",
            f"longest: {', '.join(f'{r.k} ({r.seconds[1]:.0f} s, {r.megabytes:,} MB)' for r in longest)}",
            f"{seconds:.0f} s of wall-clock time; {drawn:.0f} s of drawing and brute force, {asked:.0f} s of questions",
            f"repeat: python -m tests.fuzz --spaces {len(records)} --seed {plan.seed} --first {first} "
            f"--solvers {','.join(plan.solvers)}{kinds}; one space: --only K",
        )
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--spaces", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="number of the first space")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="K", help="space K alone, printed as a program")
    parser.add_argument("--kinds", type=_names(KINDS), default=(), help=", ".join(KINDS))
    parser.add_argument("--solvers", type=_names(SOLVERS), default=COMPARED, help=", ".join(SOLVERS))
    parser.add_argument("--no-runs", action="store_true", help="leave out runs to the last configuration")
    parser.add_argument("--seconds", type=float, help="begin no new space after so many seconds")
    parser.add_argument("--processes", type=int, default=2, help="0: in this process")
    parser.add_argument("--keep", type=Path, help="keep what is done in this file, and go on from what is in it")
    parser.add_argument("--out", type=Path, help="write the table here too, as Markdown")
    return parser


def _names(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
