"""Wall-clock time of 1, 2 and 4 workers on an objective that sleeps for a second.

The workers are threads, processes, Dask workers, and programs that share a study in PostgreSQL. The start of pools,
clusters and the server is not measured. The exception is ``mipcash work``, whose workers are separate programs that
import mipcash. Its time is reported twice: from the start of the programs, and from the first proposal to the last
outcome, as recorded by the study.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import mipcash as mc
from benchmarks.registry import benchmark
from mipcash.study.storage.registry import read_study

EVALUATIONS = {"smoke": 4, "quick": 16, "full": 48}
SECONDS = {"smoke": 0.02, "quick": 1.0, "full": 1.0}
WORKERS = {"smoke": (2,), "quick": (1, 2, 4), "full": (1, 2, 4)}
KINDS = {
    "smoke": ("threads", "processes"),
    "quick": ("threads", "processes", "dask", "sqlite", "postgres"),
    "full": ("threads", "processes", "dask", "sqlite", "postgres"),
}
CALLED = {
    "threads": "threads, `workers=`",
    "processes": "`ProcessPoolExecutor`",
    "dask": "Dask, `Client.get_executor()`",
    "sqlite": "`mipcash work run.db`, one program each",
    "postgres": "`mipcash work postgresql://...`, one program each",
}

MODEL = """from benchmarks.scale_out import Asleep, network
space = network()
objective = Asleep({seconds})
"""


class Asleep:
    """Objective with a known loss that sleeps for some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, config: Mapping[str, Any]) -> float:
        time.sleep(self.seconds)
        size = config["layers"] * config["width"]
        return float((config["lr"] - 0.01) ** 2 + 1 / size + 0.1 * config.get("drop", 0.3))


def network() -> mc.Space:
    """Return the space of the README."""
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    width = space.ordinal("width", [16, 32, 64, 128])
    act = space.categorical("activation", ["relu", "tanh", "selu"])
    space.real("lr", 1e-4, 1e-1, log=True)
    space.real("drop", 0.0, 0.5, when=layers.is_(2, 3))
    space.rule("memory", layers * width <= 200)
    space.rule("selu only when deep", act["selu"] <= layers / 3)
    return space


@contextmanager
def pool(kind: str, workers: int) -> Iterator[Any]:
    """Yield an executor with started workers. None selects threads of the run itself."""
    if kind == "threads":
        yield None
    elif kind == "processes":
        with ProcessPoolExecutor(workers, mp_context=get_context("forkserver")) as processes:
            list(processes.map(_loaded, range(workers)))
            yield processes
    else:
        from distributed import Client, LocalCluster

        options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 60}
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
            client.run(_loaded)
            yield client.get_executor()


def _loaded(_: int = 0) -> None:
    """Import, before the measurement, the modules that a worker imports for its first evaluation."""
    import mipcash.study.evaluating.pool  # noqa: F401

    time.sleep(0.5)  # long enough for every worker to get one task


def run_in_a_pool(kind: str, workers: int, evaluations: int, seconds: float) -> dict[str, Any]:
    """Measure one run of one program."""
    with pool(kind, workers) as executor:
        load, began = os.getloadavg()[0], time.perf_counter()
        result = mc.minimize(
            Asleep(seconds), network(), evaluations, execution=mc.Execution(workers=workers, executor=executor), progress=False
        )
        wall = time.perf_counter() - began
    assert result.n_done == evaluations, result.problem()
    return row(kind, workers, evaluations, wall, None, load, result.history)


def run_programs(kind: str, address: str, workers: int, evaluations: int, seconds: float) -> dict[str, Any]:
    """Measure several programs, one per worker, that share a study."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.py"
        model.write_text(MODEL.format(seconds=seconds), encoding="utf-8")
        storage = address or str(Path(folder) / "run.db")
        words = [sys.executable, "-m", "mipcash", "work", storage, "--model", str(model), "--budget", str(evaluations)]
        load, began = os.getloadavg()[0], time.perf_counter()
        programs = [subprocess.Popen([*words, "--quiet"], stdout=subprocess.DEVNULL) for _ in range(workers)]
        codes = [program.wait() for program in programs]
        whole = time.perf_counter() - began
        rows = read_study(storage)[1]
    assert codes == [0] * workers
    assert [r.status for r in rows] == ["done"] * evaluations
    trials = [_Told(r.proposed, r.finished or 0.0, r.duration or 0.0) for r in rows]
    wall = max(t.finished for t in trials) - min(t.started for t in trials)
    return row(kind, workers, evaluations, wall, whole, load, trials)


class _Told:
    def __init__(self, started: float, finished: float, duration: float) -> None:
        self.started, self.finished, self.duration = started, finished, duration


def row(kind: str, workers: int, evaluations: int, wall: float, whole: float | None, load: float, trials: Any) -> Any:
    """Return the result of one run."""
    evaluating = sum(t.duration or 0.0 for t in trials)
    told = {"kind": kind, "workers": workers, "evaluations": evaluations, "wall": wall, "whole": whole}
    return {**told, "evaluating": evaluating, "load": load}


@benchmark("scale-out", "wall-clock of 1, 2 and 4 workers: threads, processes, Dask, programs that share a study")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    from tests import servers

    rows = []
    run_in_a_pool("threads", 1, 8, 0.0)  # imports and compilation are not part of the measured time
    with servers.postgres() if "postgres" in KINDS[size] else nullcontext("") as address:
        for kind in KINDS[size]:
            for workers in WORKERS[size]:
                progress(f"{kind}, {workers} workers")
                told = (workers, EVALUATIONS[size], SECONDS[size])
                if kind in ("sqlite", "postgres"):
                    where = f"{address}?study=workers{workers}" if kind == "postgres" else ""
                    rows.append(run_programs(kind, where, *told))
                else:
                    rows.append(run_in_a_pool(kind, *told))
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    rows = results["rows"]
    alone = {row["kind"]: row["wall"] for row in rows if row["workers"] == 1}
    lines = [
        "| workers are | how many | evaluations | seconds | times as fast | busy | with the start, s | load before |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        kind, workers = row["kind"], row["workers"]
        faster = alone.get(kind, math.nan) / row["wall"]
        whole = "" if row["whole"] is None else f"{row['whole']:.1f}"
        lines.append(
            f"| {CALLED[kind]} | {workers} | {row['evaluations']} | {row['wall']:.1f} | {faster:.2f} "
            f"| {row['evaluating'] / workers / row['wall']:.0%} | {whole} | {row['load']:.1f} |"
        )
    return "\n".join(lines)
