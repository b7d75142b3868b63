"""Objectives with stored evaluations: methods share their initial designs, and an interrupted run can be resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers.problem import Config, Objective
from benchmarks.raw import append_line, lines


class Remembered:
    """Objective that stores its evaluations, one line of JSON each.

    Attributes:
        make: makes the objective; called only when something is to be evaluated.
        path: the file.
        stamp: settings that change the loss; evaluations with another stamp are not used.
        machine: versions and device, stored with an evaluation but not part of its key.
    """

    def __init__(
        self,
        make: Callable[[], Objective],
        path: Path,
        stamp: Mapping[str, Any] | None = None,
        machine: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.make, self.path, self.stamp, self.machine = make, path, dict(stamp or {}), machine
        self._objective: Objective | None = None

    def __call__(self, config: Config) -> float:
        key = _key(config)
        for record in self.records():
            if record["config"] == key:
                return float(record["loss"])
        if self._objective is None:
            self._objective = self.make()
        began, cpu = time.perf_counter(), time.process_time()
        loss = self._objective(config)
        line = {
            "config": key,
            "loss": loss,
            "seconds": round(time.process_time() - cpu, 2),
            "wall": round(time.perf_counter() - began, 2),
            "stamp": self.stamp,
            "machine": self.machine(),
        }
        append_line(self.path, json.dumps(line))
        return loss

    def records(self) -> list[dict[str, Any]]:
        """Return the evaluations kept under this stamp: configuration, loss, CPU and wall seconds, machine."""
        kept = (json.loads(line) for line in lines(self.path))
        return [record for record in kept if record["stamp"] == self.stamp]


def hours(objectives: Iterable[object]) -> dict[str, float]:
    """Return the CPU hours of the kept evaluations, and the wall-clock hours of evaluations on a GPU."""
    records = [r for o in objectives if isinstance(o, Remembered) for r in o.records()]
    found = {"trainings": sum(r["seconds"] for r in records) / 3600}
    gpu = sum(r["wall"] for r in records if "cuda" in str(r.get("machine", {}).get("device", "")))
    return found | ({"of a clock for trainings on a GPU": gpu / 3600} if gpu else {})


def machines(objectives: Iterable[object]) -> list[str]:
    """Return the machines of the kept evaluations, each once with its count; older records do not name theirs."""
    records = [r for o in objectives if isinstance(o, Remembered) for r in o.records()]
    told = [", ".join(f"{k} {v}" for k, v in r.get("machine", {}).items()) for r in records]
    return [f"{text} ({told.count(text)})" for text in dict.fromkeys(told) if text]


def _key(config: Config) -> dict[str, Any]:
    return json.loads(json.dumps(dict(sorted(config.items())), default=lambda v: v.item()))
