"""Records of runs: one file per method with one line of JSON per run. Recorded runs are not repeated."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.history import path_of
from benchmarks.raw import append_line, lines

FOLDER = Path(__file__).resolve().parents[1] / "results" / "automl"


@dataclass(frozen=True)
class Answer:
    """Result of a run: a pipeline or an ensemble of pipelines.

    Attributes:
        search: its loss on the folds of the search.
        fresh: its loss on fresh rows, fitted to all rows of the search.
        folds: its loss on fresh folds of the rows of the search; None if not measured.
    """

    search: float
    fresh: float
    folds: float | None = None


@dataclass(frozen=True)
class Run:
    """Run of a method.

    Attributes:
        method, data, seed: what was run.
        space: ``own`` for FLAML and TPOT.
        answers: by name, of one and the same run: ``best`` (the lowest loss of the search), ``recommended``, ``ensemble 10``
            after ten evaluations; of other programs, which are run anew for each number, ``best 10`` or ``ensemble 10``.
        losses: cross-validated, of the evaluations in their order; None for a pipeline that failed. Empty if the method does not
            report them.
        evaluations, fits: numbers of them.
        seconds: CPU seconds: ``search`` in total, ``asks`` of the proposals, ``search 10`` of another program's run of ten.
        clock: CPU seconds of the search when each evaluation was done; empty if the method does not report them.
        by_fold: cross-validated losses of each evaluation, fold by fold; empty for a pipeline that failed.
        fresh: loss on fresh rows of each evaluation, refitted to all rows of the search; None for a pipeline that failed.
        confirmed: evaluation -> its losses on each repeat of fresh folds, for the best FINALISTS of ours.
        illegal: suggestions that violated a rule and were replaced by the nearest legal configuration.
        chosen: the answer's pipeline in words.
        stamp: versions and the commit.
    """

    method: str
    data: str
    seed: int
    space: str
    answers: dict[str, Answer]
    losses: tuple[float | None, ...] = ()
    evaluations: int = 0
    fits: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    clock: tuple[float, ...] = ()
    by_fold: tuple[tuple[float, ...], ...] = ()
    fresh: tuple[float | None, ...] = ()
    confirmed: dict[str, tuple[float, ...]] = field(default_factory=dict)
    illegal: int = 0
    chosen: str = ""
    stamp: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        return self.data, self.seed

    def best_after(self, evaluations: int) -> float:
        """Return the lowest loss of the first evaluations, or 1 if all failed."""
        return min((v for v in self.losses[:evaluations] if v is not None), default=1.0)

    def to_line(self) -> str:
        return json.dumps(_short(asdict(self)), separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Run:
        told = json.loads(line)
        answers = {name: Answer(**a) for name, a in told.pop("answers").items()}
        listed = {name: tuple(told.pop(name, ())) for name in ("losses", "clock", "by_fold", "fresh")}
        return cls(answers=answers, **listed, **told)


def _short(value: Any) -> Any:
    """Round numbers to six digits."""
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def read(method: str, folder: Path = FOLDER) -> dict[tuple[str, int], Run]:
    """Return the runs by data and seed. The last of several lines counts."""
    made = [Run.from_line(line) for line in lines(path_of(method, "", folder))]
    return {run.key: run for run in made}


def append(run: Run, folder: Path = FOLDER) -> None:
    """Append a run to the records."""
    append_line(path_of(run.method, "", folder), run.to_line())


def runs(methods: Iterable[str], folder: Path = FOLDER) -> dict[str, dict[tuple[str, int], Run]]:
    """Return the runs of the methods that have any."""
    found = {m: read(m, folder) for m in methods}
    return {m: made for m, made in found.items() if made}
