"""Histories: one line of JSON per run, appended in one write; a file per method and convention (:mod:`benchmarks.raw`).

``<method>.jsonl`` has runs without illegal suggestions (rule-free problems, methods that are always legal).
``<method>-<convention>.jsonl`` has all other runs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.raw import append_line, lines, replace

RESULTS = Path(__file__).resolve().parents[1] / "results" / "peers"
DIGITS = 8


@dataclass(frozen=True)
class History:
    """Run of a method on a problem.

    Attributes:
        method, problem, seed: what was run.
        convention: one of :mod:`benchmarks.peers.convention`, or ``""`` if no suggestion can be illegal.
        losses: of every suggestion, the initial ones included; None for an illegal or infeasible one.
        legal: True for each suggestion that was legal.
        cpu: CPU seconds of each suggestion with its observation; None for an initial one.
        stamp: versions.
        outputs: on a problem with outcome constraints, all outputs of each evaluation, with the loss; None for a crash.
    """

    method: str
    problem: str
    seed: int
    convention: str
    losses: tuple[float | None, ...]
    legal: tuple[bool, ...]
    cpu: tuple[float | None, ...]
    stamp: dict[str, Any]
    outputs: tuple[dict[str, float] | None, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return self.problem, self.seed

    def best(self) -> list[float]:
        """Return the least loss after each evaluation, infinite before the first feasible one."""
        found, least = [], math.inf
        for loss in self.losses:
            least = least if loss is None else min(least, loss)
            found.append(least)
        return found

    def solutions(self) -> list[float]:
        """Return the losses of the legal, feasible evaluations in their order."""
        return [v for v in self.losses if v is not None]

    def to_line(self) -> str:
        record = {
            "problem": self.problem,
            "seed": self.seed,
            "losses": [None if v is None else kept(v) for v in self.losses],
            "legal": "".join("01"[flag] for flag in self.legal),
            "cpu": [None if v is None else float(f"{v:.3g}") for v in self.cpu],
            "stamp": self.stamp,
        }
        if self.outputs:
            record["outputs"] = [o and {k: kept(v) for k, v in o.items()} for o in self.outputs]
        return json.dumps(record, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str, method: str, convention: str) -> History:
        r = json.loads(line)
        legal = tuple(flag == "1" for flag in r["legal"])
        key = (method, r["problem"], r["seed"], convention)
        return cls(*key, tuple(r["losses"]), legal, tuple(r["cpu"]), r["stamp"], tuple(r.get("outputs", ())))


def kept(loss: float) -> float:
    """Round a loss to the digits of a history."""
    return float(f"{loss:.{DIGITS}g}")


def path_of(method: str, convention: str, folder: Path = RESULTS) -> Path:
    """Return the file of a method. In names with settings, characters other than letters and digits are replaced."""
    stem = re.sub(r"[^A-Za-z0-9.]+", "_", method) if ":" in method else method
    return folder / (f"{stem}-{convention}.jsonl" if convention else f"{stem}.jsonl")


def read(method: str, convention: str, folder: Path = RESULTS) -> list[History]:
    """Return the histories of a file without incomplete lines. The last of several for one run counts."""
    found = {}
    for line in lines(path_of(method, convention, folder)):
        history = History.from_line(line, method, convention)
        found[history.key] = history
    return list(found.values())


Reader = Callable[[str, str], list[History]]
"""(method, convention) -> histories."""


def reader(folder: Path = RESULTS) -> Reader:
    """Return a function that reads each file of a folder once."""
    return cache(partial(read, folder=folder))


def account(runs: Iterable[History]) -> dict[str, Any]:
    """Return the number of runs of a record, their seeds, and the CPU hours of their proposals."""
    runs = list(runs)
    spent = sum(c for h in runs for c in h.cpu if c is not None) / 3600
    return {"runs": len(runs), "seeds": sorted({h.seed for h in runs}), "cpu_hours": {"proposals": spent}}


def append(history: History, folder: Path = RESULTS) -> None:
    """Append one line."""
    append_line(path_of(history.method, history.convention, folder), history.to_line())


def drop(method: str, convention: str, keys: Iterable[tuple[str, int]], folder: Path = RESULTS) -> None:
    """Remove runs from a file."""
    path, gone = path_of(method, convention, folder), set(keys)
    replace(path, [line for line in lines(path) if History.from_line(line, method, convention).key not in gone])


# -- initial designs: stored, so that every peer starts from the same points even if the sampler changes ---------------


def initial_design(problem: str, seed: int, folder: Path = RESULTS) -> list[dict[str, Any]] | None:
    """Return the stored initial configurations of a problem and seed, or None."""
    for line in lines(folder / "initial.jsonl"):
        record = json.loads(line)
        if record["problem"] == problem and record["seed"] == seed:
            return [{k: tuple(v) if isinstance(v, list) else v for k, v in c.items()} for c in record["configs"]]
    return None


def keep_initial_design(problem: str, seed: int, configs: list[dict[str, Any]], folder: Path = RESULTS) -> None:
    record = {"problem": problem, "seed": seed, "configs": configs, "stamp": {"mipcash": version("mipcash")}}
    append_line(folder / "initial.jsonl", json.dumps(record, separators=(",", ":"), default=_plain))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
