"""Kinds of runs that are killed, and the objective that logs what it has evaluated.

An evaluation ends by appending a line to the log, and returns a random ``serial`` beside its loss. So a journal shows from which
evaluation each outcome is. A callback appends a line to ``told`` for each trial that the run has recorded.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mipcash as mc

SECONDS = 0.01
BUDGET = 12


class Logged:
    """Objective that logs each evaluation.

    Args:
        folder: where the log is.
        output: name of the only output, for a function per output; empty: loss, milliseconds and serial together.
        folds: number of steps to yield; 0: none.
    """

    def __init__(self, folder: Path, output: str = "", folds: int = 0) -> None:
        self.folder, self.output, self.folds = folder, output, folds

    def __call__(self, config: Mapping[str, Any]) -> Any:
        values, serial = self._values(config), int.from_bytes(os.urandom(6), "big")
        if self.folds:
            return self._steps(config, values["loss"], serial)
        time.sleep(SECONDS)
        if self.output:
            append(self.folder / "log", config, self.output, values[self.output], None)
            return values[self.output]
        append(self.folder / "log", config, "loss", values["loss"], serial)
        return {**values, "serial": serial}

    def _steps(self, config: Mapping[str, Any], loss: float, serial: int) -> Iterator[dict[str, float]]:
        for step in range(self.folds):
            time.sleep(SECONDS / self.folds)
            yield {"loss": loss + (step - 1.5) / 64, "serial": serial}
        append(self.folder / "log", config, "loss", loss, serial)

    def _values(self, config: Mapping[str, Any]) -> dict[str, float]:
        size = config["layers"] * config["width"]
        loss = (config["lr"] - 0.01) ** 2 + 1 / size + 0.1 * config.get("drop", 0.3)
        return {"loss": float(loss), "ms": float(size)}


def append(path: Path, *words: Any) -> None:
    """Append a line to a file, all of it or nothing, whatever happens to the process."""
    line = json.dumps([dict(w) if isinstance(w, Mapping) else w for w in words], sort_keys=True) + "\n"
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(opened, line.encode())
    finally:
        os.close(opened)


def lines(path: Path) -> list[Any]:
    """Return the lines that ``append`` wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        address: of the storage, with ``{folder}``, ``{server}`` and ``{study}``.
        programs: processes that share the study.
        workers: evaluations at a time, of each program.
        options: further arguments of ``mc.minimize``, as a function so that each program makes its own.
        objective: made from the folder of the log.
        serial: True if outcomes have a serial.
        cluster: ``dask`` or ``ray`` if evaluations run there.
        command: True if the programs are ``mipcash work``.
    """

    called: str
    address: str = "{folder}/run.db"
    programs: int = 1
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    objective: Callable[[Path], Any] = Logged
    serial: bool = True
    cluster: str = ""
    command: bool = False

    @property
    def repeats(self) -> bool:
        """True if a run resumed is equal to a run that was not interrupted."""
        return self.programs * self.workers == 1


def _per_output(folder: Path) -> dict[str, Any]:
    return {"loss": Logged(folder, "loss"), "ms": Logged(folder, "ms")}


def _folds(folder: Path) -> Logged:
    return Logged(folder, folds=4)


KINDS = {
    "sequential": Kind("one at a time"),
    "limit": Kind("one at a time, an outcome constraint", options={"limits": {"ms": 100.0}}),
    "pruning": Kind("pruning of folds", options={"pruning": True}, objective=_folds),
    "confirm": Kind("confirmation of the best", options={"confirm": 2}),
    "decoupled": Kind("a function per output", options={"limits": {"ms": 100.0}}, objective=_per_output, serial=False),
    "objectives": Kind("two objectives", options={"direction": ["loss", "ms"]}),
    "threads": Kind("threads", workers=2),
    "processes": Kind("processes", workers=2, options={"execution": mc.Execution(2, evaluation_timeout=60)}),
    "sqlite": Kind("two programs, a SQLite file", "sqlite:///{folder}/run.db?heartbeat_seconds=1", programs=2),
    "work": Kind("two of `mipcash work`, a SQLite file", "sqlite:///{folder}/run.db?heartbeat_seconds=1", programs=2, command=True),
    "shared": Kind(
        "two programs, a SQLite file, pruning of folds and confirmation",
        "sqlite:///{folder}/run.db?heartbeat_seconds=1",
        programs=2,
        options={"pruning": True, "confirm": 2},
        objective=_folds,
    ),
    "postgres": Kind("two programs, PostgreSQL", "{server}?study={study}&heartbeat_seconds=1", programs=2),
    "work-postgres": Kind(
        "two of `mipcash work`, PostgreSQL", "{server}?study={study}&heartbeat_seconds=1", programs=2, command=True
    ),
    "dask": Kind("Dask", workers=2, cluster="dask"),
    "ray": Kind("Ray", workers=2, cluster="ray"),
}
