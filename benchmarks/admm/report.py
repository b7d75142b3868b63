"""Results on the artificial objective, by evaluations and by the CPU seconds of the methods themselves.

Notation:
    b_k(t)      least loss of instance k after t evaluations.
    c_k(t)      CPU seconds of the method until then, without the evaluations.
    log-ratio   log of the ratio of two methods' b_k on the same instance. FLOOR is added to both losses,
                since the infimum is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.peers.history import History

FLOOR = 1e-3
AT = (30, 50, 100)
"""Numbers of evaluations at which losses are reported."""
SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
"""CPU seconds at which losses are reported."""
LAST = 20
"""Number of last proposals of a run, of at most 100, whose CPU seconds are reported."""

DRAWN = ("random",)
"""Methods that draw all configurations before the first evaluation. Their CPU time is divided equally."""

Runs = Mapping[str, History]
"""Problem -> run."""


@dataclass(frozen=True)
class Track:
    """Losses of a run over evaluations and over CPU seconds.

    Attributes:
        best: b(1) ..., (T,).
        cpu: c(1) ..., (T,).
    """

    best: np.ndarray
    cpu: np.ndarray

    @classmethod
    def of(cls, run: History, most: int | None = None) -> Track:
        best, cpu = np.array(run.best())[:most], np.array([c or 0.0 for c in run.cpu])
        if run.method in DRAWN:
            asked = np.array([c is not None for c in run.cpu])
            cpu[asked] = cpu.sum() / max(1, asked.sum())
        return cls(best, np.cumsum(cpu)[:most])

    def after(self, evaluations: int) -> float:
        """Return b after a number of evaluations, or nan if the run is shorter."""
        return float(self.best[evaluations - 1]) if len(self.best) >= evaluations else math.nan

    def within(self, seconds: float) -> float:
        """Return b within some CPU seconds, or nan before the first evaluation and after the end of the run."""
        count = int(np.searchsorted(self.cpu, seconds, side="right"))
        return math.nan if count == 0 or count == len(self.best) else float(self.best[count - 1])

    def reaches(self, value: float) -> tuple[float, float]:
        """Return the evaluations and CPU seconds until a loss is at most ``value``; infinite if it never is."""
        where = np.flatnonzero(self.best <= value)
        return (int(where[0]) + 1, float(self.cpu[where[0]])) if len(where) else (math.inf, math.inf)


def rows(runs: Mapping[str, Runs]) -> list[dict[str, Any]]:
    """Return for each method the median losses by evaluations and by CPU seconds, and the cost of a proposal."""
    found = []
    for method, known in runs.items():
        tracks = [Track.of(run) for run in known.values()]
        asks = [c for track in tracks for c in np.diff(track.cpu[: max(AT)])[-LAST:]]
        found.append(
            {
                "method": method,
                "runs": len(tracks),
                "loss": {str(t): median([track.after(t) for track in tracks]) for t in AT},
                "within": {str(s): median([track.within(s) for track in tracks]) for s in SECONDS},
                "ask": float(np.median(asks)) if asks else None,
            }
        )
    return found


def pairs(runs: Mapping[str, Runs], reference: str, evaluations: int) -> list[dict[str, Any]]:
    """Return for each method the paired log-ratios to a reference after some evaluations, on common instances."""
    found = []
    for method, known in runs.items():
        if method == reference or reference not in runs:
            continue
        both = [
            (Track.of(known[p]).after(evaluations), Track.of(runs[reference][p]).after(evaluations))
            for p in known
            if p in runs[reference]
        ]
        logs = np.array([log_ratio(a, b) for a, b in both if not math.isnan(a + b)])
        if not len(logs):
            continue
        lost = int(np.sum(logs > 0))
        found.append(
            {
                "method": method,
                "runs": len(logs),
                "ratio": float(np.exp(logs.mean())),
                "wins": int(np.sum(logs < 0)),
                "losses": lost,
                "p": float(wilcoxon(logs).pvalue) if np.any(logs != 0) and len(logs) > 1 else 1.0,
            }
        )
    return found


def speedups(runs: Mapping[str, Runs], reference: str, evaluations: int) -> list[dict[str, Any]]:
    """Return for each method how much sooner it reaches the reference's final loss, and how much lower it then ends.

    Both are medians over instances, as in the papers. ``reached`` counts the instances that reach the loss at all. The
    remaining instances have an infinite time.
    """
    found = []
    for method, known in runs.items():
        if method == reference or reference not in runs:
            continue
        each = speedups_of(known, runs[reference], evaluations)
        if each:
            medians = {name: median([values[name] for values in each]) for name in each[0]}
            found.append({"method": method, "runs": len(each), "reached": sum(values["cpu"] > 0 for values in each), **medians})
    return found


def speedups_of(known: Runs, reference: Runs, evaluations: int) -> list[dict[str, float]]:
    """Return for each instance how much sooner a method reaches the reference's final loss, and how much lower it then ends."""
    found = []
    for problem in (p for p in known if p in reference):
        rival, own = Track.of(reference[problem], evaluations), Track.of(known[problem])
        objective = float(rival.best[-1])
        needed, seconds = rival.reaches(objective)
        took, spent = own.reaches(objective)
        spared = own.within(float(rival.cpu[-1]))
        found.append(
            {
                "evaluations": needed / took,
                "cpu": seconds / max(spent, 1e-9),
                "lower": 1.0 - own.after(evaluations) / objective if len(own.best) >= evaluations else math.nan,
                "lower_at_equal_cpu": 1.0 - (own.best[-1] if math.isnan(spared) else spared) / objective,
            }
        )
    return found


def log_ratio(a: float, b: float) -> float:
    """Return log a / b of two losses with FLOOR added to both."""
    return math.log((a + FLOOR) / (b + FLOOR))


def median(values: Sequence[float]) -> float | None:
    """Return the median, or None if any value is nan, since the medians would then be over different runs."""
    return None if not len(values) or any(math.isnan(v) for v in values) else float(np.median(values))


def number(value: float | None, digits: int = 3) -> str:
    """Format a number for the tables; empty if unknown."""
    return "" if value is None else f"{value:.{digits}g}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)]) + "\n"
