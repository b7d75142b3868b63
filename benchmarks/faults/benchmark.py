"""Runs that are killed, and faults of machines and objectives: how many are survived."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path

from benchmarks.faults.kills import Killing, Survival, clustered, compare, ended, forked, run
from benchmarks.faults.mishaps import mishaps
from benchmarks.faults.runs import KINDS, Kind
from benchmarks.registry import Progress, Results, benchmark
from mipcash.study.storage.registry import read_study

KILLS = {"smoke": 2, "quick": 10, "full": 90}
"""Of each kind of run."""
PRINTED = {"smoke": 1 << 20, "quick": 100 << 20, "full": 1 << 30}
"""Bytes that an objective prints."""
SMOKE = ("sequential", "sqlite")


def killed_runs(kind: Kind, least: int, server: str, progress: Progress) -> Results:
    """Kill runs of a kind until there are at least ``least`` kills.

    A run survives if it ends, each trial that it told is kept at every instant, each outcome is the one that its objective logged,
    none is counted twice, and it is equal to an unbroken run if it has one worker.
    """
    faults: Counter[str] = Counter()
    row: Results = {"kind": kind.called, "runs": 0, "survived": 0, "repeated": 0, "problems": []}
    with ExitStack() as stack:
        cluster, seed = stack.enter_context(clustered(kind)), 0
        while faults.total() < least:
            if seed and kind.cluster == "dask":  # after some kills its nannies give up their workers for good
                stack.close()
                cluster = stack.enter_context(clustered(kind))
            survival = killed_run(kind, seed, server, cluster)
            faults += survival.faults
            row["runs"] += 1
            row["survived"] += not survival.problems
            row["repeated"] += survival.repeated
            row["problems"] += [f"seed {seed}: {text}" for text in survival.problems]
            progress(f"{kind.called}: {dict(faults)}, {len(row['problems'])} problems")
            seed += 1
    return {**row, "faults": dict(faults)}


def killed_run(kind: Kind, seed: int, server: str, cluster: tuple[str, int]) -> Survival:
    """Run once unbroken and once with kills, and compare."""
    with tempfile.TemporaryDirectory(prefix="mipcash-faults-", ignore_cleanup_errors=True) as made:

        def place(name: str) -> tuple[Path, str]:
            folder = Path(made) / name
            folder.mkdir()
            return folder, kind.address.format(folder=folder, server=server, study=f"{name}{seed}{'work' * kind.command}")

        (quiet, unbroken), (folder, address) = place("unbroken"), place("killed")
        began = time.monotonic()
        code = ended(forked(lambda: run(kind, quiet, unbroken, seed, cluster[0]), quiet / "output"), 120.0)
        assert code == 0, (quiet / "output").read_text(encoding="utf-8")
        survival = Killing(kind, folder, address, seed, time.monotonic() - began, cluster)()
        survival.repeated, problems = compare(kind, folder, read_study(address)[1], read_study(unbroken)[1])
        survival.problems += problems
        if survival.repeated > survival.faults.total() * kind.workers:
            survival.problems.append(f"{survival.repeated} evaluations were repeated")
        return survival


@benchmark("faults", "kills at random instants, and faults of machines and objectives")
def run_all(size: str, progress: Progress) -> Results:
    from tests import servers

    named = os.environ.get("MIPCASH_KINDS", "")  # some kinds only
    kinds = {n: k for n, k in KINDS.items() if n in (named.split(",") if named else SMOKE if size == "smoke" else KINDS)}
    served = any("{server}" in kind.address for kind in kinds.values())
    with servers.postgres() if served else nullcontext("") as server:
        rows = [killed_runs(kind, KILLS[size], server, progress) for kind in kinds.values()]
    others = [] if named else list(mishaps(PRINTED[size]).items())[: 2 if size == "smoke" else None]
    return {"rows": rows, "others": [misbehaved(name, call, progress) for name, call in others]}


def misbehaved(name: str, call: Callable[[Path], str], progress: Progress) -> Results:
    """Return whether a fault that is no kill was survived."""
    with tempfile.TemporaryDirectory(prefix="mipcash-faults-", ignore_cleanup_errors=True) as folder:
        problem = call(Path(folder))
    progress(f"{name}: {problem or 'survived'}")
    return {"fault": name, "problem": problem}


def markdown(results: Results) -> str:
    """The table for the page of results."""
    lines = ["| run | faults | runs that survived | evaluations repeated |", "|---|---|---|---|"]
    for row in results["rows"]:
        faults = ", ".join(f"{n} {fault}" for fault, n in row["faults"].items())
        lines.append(f"| {row['kind']} | {faults} | {row['survived']} of {row['runs']} | {row['repeated']} |")
    lines += [f"| {row['fault']} | 1 | {'no' if row['problem'] else '1 of 1'} | |" for row in results["others"]]
    return "\n".join(lines)
