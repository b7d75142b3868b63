"""A row of the benchmark ``scale``: a space that is large in some way, what is timed over it, and what is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.proxies import proxy
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.compiled import compiled

Sized = dict[str, int]
"""By size of the benchmark: ``smoke``, ``quick``, ``full``."""


BEFORE = {"vae": 2.0, "sklearn_pipeline": 2.0, "binaries": 5.0}
"""What was wanted of the rows that are recorded without it."""


@dataclass(frozen=True)
class Asks:
    """Proposals of ``hybrid``.

    Attributes:
        name: of the row.
        space: declares it, for a size of the benchmark.
        observations: legal ones before the first proposal.
        proposals: that are timed.
        wanted: seconds of the median at most.
        worst: seconds of the worst but the first at most; None: as many.
        seconds: what each may take; None: no limit.
        first: whether the first proposal, which sets up what others use, counts as well.
    """

    name: str
    space: Callable[[str], mc.Space]
    observations: Sized
    proposals: Sized
    wanted: float
    worst: float | None = None
    seconds: float | None = None
    first: bool = False

    def measured(self, size: str) -> dict[str, Any]:
        """CPU and wall-clock seconds of each proposal, and how many a limit cut."""
        space = self.space(size)
        objective, optimizer = proxy(space, 0), make_optimizer("hybrid", space)
        history = [Observation(c, DONE, objective(c)) for c in space.sample(self.observations[size], 0)]
        cpu, wall, cut, state = list[float](), list[float](), 0, dict[str, Any]()
        for k in range(self.proposals[size]):
            began = time.process_time(), time.perf_counter()
            proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, seconds=self.seconds))
            cpu.append(time.process_time() - began[0])
            wall.append(time.perf_counter() - began[1])
            cut += "cut" in proposal.trace
            state = dict(proposal.state)
            assert space.is_legal(proposal.config)
            history.append(Observation(proposal.config, DONE, objective(proposal.config)))
        binaries = compiled(space).program.n_z
        sized = {"binaries": binaries, "observations": self.observations[size]}
        timed = {"cpu": cpu, "wall": wall, "cut": cut, "wanted": self.wanted, "worst": self.worst or self.wanted}
        return {"space": self.name, "what": "asks", **sized, **timed, "limit": self.seconds, "first": self.first}


@dataclass(frozen=True)
class Question:
    """A question about a space, asked once.

    Attributes:
        name: of the row.
        space: declares it, for a size of the benchmark.
        what: the question as it is typed.
        ask: asks it; returns what is shown of the answer.
        wanted: seconds at most.
        limit: what it may take; None: no limit but the usual.
    """

    name: str
    space: Callable[[str], mc.Space]
    what: str
    ask: Callable[[mc.Space], object]
    wanted: float
    limit: float | None = None

    def measured(self, size: str) -> dict[str, Any]:
        """CPU and wall-clock seconds, and the answer."""
        space = self.space(size)
        program = compiled(space).program
        began = time.process_time(), time.perf_counter()
        answer = str(self.ask(space))
        cpu, wall = [time.process_time() - began[0]], [time.perf_counter() - began[1]]
        timed = {"cpu": cpu, "wall": wall, "cut": 0, "wanted": self.wanted, "worst": self.wanted, "limit": self.limit}
        return {
            "space": self.name,
            "what": self.what,
            "binaries": program.n_z,
            "answer": answer,
            **timed,
            "first": True,
        }


Row = Asks | Question


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table for the page of results: CPU seconds, and wall-clock ones where a limit is on them."""
    head = "| space | binaries | observations | what | limit | median | worst | cut | wanted | MB |"
    lines = [head, "|---" * 10 + "|"]
    for row in map(_whole, rows):
        times = row["cpu"] if row["limit"] is None else row["wall"]
        counted = times if row["first"] or len(times) < 2 else times[1:]
        limit = "" if row["limit"] is None else f"{row['limit']:g} s"
        what = row["what"] if "answer" not in row else f"{row['what']}: {row['answer']}"
        lines.append(
            f"| {row['space']} | {row['binaries']} | {row.get('observations', '')} | {what} | {limit} | {median(counted):.3f} "
            f"| {max(counted):.3f} | {row['cut'] or ''} | {row['wanted']:g}, worst {row['worst']:g} "
            f"| {format(row['peak'], '.0f') if 'peak' in row else ''} |"
        )
    return "\n".join(lines)


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is recorded now: earlier ones were all of asks, in CPU seconds without a limit."""
    if "cpu" in row:
        return row
    wanted = BEFORE[row["space"]]
    timed = {"cpu": row["seconds"], "wall": row["seconds"], "cut": 0, "wanted": wanted, "worst": wanted}
    return {**row, "what": "asks", **timed, "limit": None, "first": False}
