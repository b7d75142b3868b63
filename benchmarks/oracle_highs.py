"""HiGHS alone, candidate by candidate: what each of its accelerations is worth on the oracle's instances.

Every candidate is measured against the present state with one thing changed: taken out where it is kept, put in where it
is not. Processor seconds of one thread to proof (other processes disturb them less
than wall-clock time; ``parallel`` is told in wall-clock time too), the median of three, from local search's incumbent.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.oracle import incumbent
from benchmarks.oracle_instances import Instance, instances, ruled_instances
from benchmarks.registry import Progress, benchmark
from mipcash.backends.highs import HighsBackend
from mipcash.backends.task import OPTIMAL, SolverSettings, Task

HEURISTICS = {
    "mip_heuristic_effort": "0.05",
    "mip_heuristic_run_feasibility_jump": "true",
    "mip_heuristic_run_rins": "true",
    "mip_heuristic_run_rens": "true",
    "mip_heuristic_run_root_reduced_cost": "true",
}
RESTARTS = {"mip_allow_restart": "true"}
"""HiGHS' own defaults."""


@dataclass(frozen=True)
class Candidate:
    """One change of the present state.

    Attributes:
        kept: whether the present state has it; then it is measured by taking it out.
        options: HiGHS' options of the changed state.
        start: whether the changed state starts from an incumbent.
        cutoff: whether the changed state has the incumbent's value as objective cutoff.
        threads: of the changed state.
    """

    kept: bool
    options: Mapping[str, str] = field(default_factory=dict)
    start: bool = True
    cutoff: bool = False
    threads: int = 1


CANDIDATES = {
    "start from the incumbent": Candidate(True, start=False),
    "objective cutoff beside the start": Candidate(False, cutoff=True),
    "objective cutoff instead of the start": Candidate(False, start=False, cutoff=True),
    "dominated levels closed": Candidate(True, {"dominated_levels": "off"}),
    "rows times levels": Candidate(True, {"rlt_rows": "off"}),
    "no heuristics beside the start": Candidate(True, HEURISTICS),
    "presolve": Candidate(True, {"presolve": "off"}),
    "parallel tree search, 2 threads": Candidate(False, {"parallel": "on"}, threads=2),
    "reliability branching with 1 look": Candidate(False, {"mip_pscost_minreliable": "1"}),
    "no restarts beside the start": Candidate(True, RESTARTS),
    "all of the kept ones but presolve": Candidate(
        True, {"dominated_levels": "off", "rlt_rows": "off", **HEURISTICS, **RESTARTS}, start=False
    ),
}
LIMITS = {"smoke": 0.3, "quick": 5.0, "full": 60.0}
REPEATS = {"smoke": 1, "quick": 3, "full": 3}
FAMILIES = {"surrogate draws": ("vae", "sklearn_pipeline"), "rules": ("cardinality", "ordering")}
"""Names of groups of instances; the others are ``random weights``."""
SHIFT = 0.01
"""Seconds added within geometric means."""


@benchmark("oracle-highs", "HiGHS alone: what each of its accelerations is worth")
def run(size: str, progress: Progress) -> dict[str, Any]:
    rows = []
    for instance in _all(size):
        row = measure(instance, size)
        rows.append(row)
        told = ", ".join(f"{name} {seconds}" for name, seconds in row["seconds"].items())
        progress(f"{row['family']}, {row['name']}: {told}")
    return {"limit": LIMITS[size], "rows": rows}


def _all(size: str) -> Iterator[Instance]:
    yield from instances(size)
    yield from ruled_instances(size)


def measure(instance: Instance, size: str) -> dict[str, Any]:
    """Processor and wall-clock seconds of the present state and of every candidate; None without a proof."""
    levels, value = incumbent(instance)
    base = np.full(instance.program.n, np.nan)
    base[: instance.program.n_z] = instance.program.one_hot(levels)
    task = Task(instance.program, instance.form, instance.fixed, (), base)
    found = {"present": _seconds(Candidate(True), task, value, size)}
    if found["present"][0] is not None:
        for name, candidate in CANDIDATES.items():
            found[name] = _seconds(candidate, task, value, size)
    return {
        "family": instance.family,
        "name": instance.name,
        "seconds": {name: processor for name, (processor, _) in found.items()},
        "wall": {name: wall for name, (_, wall) in found.items()},
    }


def _seconds(candidate: Candidate, task: Task, value: float, size: str) -> tuple[float | None, float | None]:
    options = dict(candidate.options)
    if candidate.cutoff:
        options["objective_bound"] = repr(value + 1e-6 * max(1.0, abs(value)))
    backend = HighsBackend(options)
    task = task if candidate.start else replace(task, start=None)
    backend.solve(task, SolverSettings(time_limit=0.02, threads=candidate.threads))  # the model is built
    times = []
    for _ in range(REPEATS[size]):
        processor, wall = time.process_time(), time.perf_counter()
        answer = backend.solve(task, SolverSettings(time_limit=LIMITS[size], threads=candidate.threads))
        times.append((time.process_time() - processor, time.perf_counter() - wall))
        if answer.status != OPTIMAL:
            return None, None
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def markdown(results: dict[str, Any]) -> str:
    """Geometric means on and off per group of instances, over those that both states prove."""
    rows = [row for row in results["rows"] if row["seconds"]["present"] is not None]
    kinds = [*FAMILIES, "random weights"]
    head = "| candidate | kept | " + " | ".join(f"{kind}: on / off" for kind in kinds) + " | proofs: on / off |"
    lines = [head, "|---" * (len(kinds) + 3) + "|"]
    for name, candidate in CANDIDATES.items():
        cells = []
        for kind in kinds:
            pairs = [
                (row["seconds"]["present"], row["seconds"][name])
                for row in rows
                if _kind(row["family"]) == kind and row["seconds"][name] is not None
            ]
            present, changed = (_mean([pair[k] for pair in pairs]) for k in (0, 1))
            on, off = (present, changed) if candidate.kept else (changed, present)
            cells.append(f"{on:.3f} / {off:.3f} s" if pairs else "no proof")
        proofs = len(rows), sum(row["seconds"][name] is not None for row in rows)
        on_proofs, off_proofs = proofs if candidate.kept else proofs[::-1]
        kept = "yes" if candidate.kept else "no"
        lines.append(f"| {name} | {kept} | " + " | ".join(cells) + f" | {on_proofs} / {off_proofs} |")
    return "\n".join(lines)


def _kind(family: str) -> str:
    return next((kind for kind, families in FAMILIES.items() if family in families), "random weights")


def _mean(seconds: list[float]) -> float:
    """Shifted geometric mean."""
    return math.exp(statistics.fmean(math.log(s + SHIFT) for s in seconds)) - SHIFT if seconds else math.nan
