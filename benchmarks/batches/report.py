"""What the histories come to: the regret of each method at each size of batch, and what batches cost it.

regret    as in the peers' tables: (best - optimum) / (median of random search's best over its seeds - optimum), the mean over
          problems of medians over seeds
ratio     regret in batches / regret one at a time, of the same method
wins      runs in which ours is better, worse, level, in batches of the same size
Errors are bootstrapped: the seeds of every problem are drawn again, for both sides of a ratio apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.batches.runner import PROBLEMS, RESULTS, SIZES, needs_repair
from benchmarks.peers import history
from benchmarks.peers.history import History, Reader, reader
from benchmarks.peers.report import BOOTSTRAP, TIE, Key, floors

Runs = Mapping[Key, History]
Rows = Mapping[tuple[str, int], Runs]
"""By method and size of batch."""


def collect(
    methods: Sequence[str],
    names: Sequence[str] = PROBLEMS,
    batches: Sequence[int] = (1, *SIZES),
    budget: int = 60,
    folder: Path = RESULTS,
    peers: Reader | None = None,
) -> dict[tuple[str, int], dict[Key, History]]:
    """The histories by method and size of batch, those of random search among them.

    Args:
        peers: reads the histories one at a time of methods that were not run so by this benchmark.
    """
    peers = peers or reader()
    rows = {}
    for method, batch in [("random", 1), *((m, b) for m in methods for b in batches)]:
        found: dict[Key, History] = {}
        for name in names:
            rule = "repair" if needs_repair(method, name) else ""
            own = history.read(method, rule, folder / str(batch))
            listed = own if own or batch != 1 else peers(method, rule)
            found |= {h.key: h for h in listed if h.problem == name and len(h.losses) >= budget}
        rows[method, batch] = found
    return rows


def summarise(rows: Rows, ours: str, budget: int = 60) -> list[dict[str, Any]]:
    """A line per method and size, over the pairs of problem and seed that all of them have; no line where there is none."""
    pairs = sorted(set.intersection(*(set(of) for of in rows.values()))) if rows else []
    names = sorted({p for p, _ in pairs})
    least = floors({f"{m} {b}": dict(of) for (m, b), of in rows.items()}, names)
    rng = np.random.default_rng(0)
    drawn = {n: rng.integers(k, size=(2, BOOTSTRAP, k)) for n in names for k in [sum(p == n for p, _ in pairs)]}
    units = {n: _scale(rows["random", 1], n, least[n], budget) for n in names}
    names = [n for n in names if units[n] > 1e-12]

    def regret(of: Runs, side: int) -> tuple[float, np.ndarray]:
        values = [np.array([_best(of[p], budget) for p in pairs if p[0] == n]) for n in names]
        scaled = [(v - least[n]) / units[n] for n, v in zip(names, values, strict=True)]
        again = [np.median(v[drawn[n][side]], axis=1) for n, v in zip(names, scaled, strict=True)]
        return float(np.mean([np.median(v) for v in scaled])), np.mean(again, axis=0)

    lines = []
    for (method, batch), of in rows.items() if names else ():
        value, spread = regret(of, 0)
        alone, before = regret(rows[method, 1], 1)
        mine = rows.get((ours, batch))
        signs = [_sign(_best(mine[p], budget), _best(of[p], budget)) for p in pairs] if mine and method != ours else []
        cpu = [c for p in pairs for c in of[p].cpu if c is not None]
        lines.append(
            {
                "method": method,
                "batch": batch,
                "runs": len(pairs),
                "problems": len(names),
                "regret": value,
                "error": float(np.std(spread, ddof=1)),
                "ratio": value / alone if batch > 1 and alone > 0 else math.nan,
                "ratio_error": float(np.std(spread / np.maximum(before, 1e-12), ddof=1)) if batch > 1 else math.nan,
                "wins": [signs.count(-1), signs.count(1), signs.count(0)] if signs else None,
                "cpu": float(np.mean(cpu)) if cpu else math.nan,
            }
        )
    return lines


def _best(run: History, budget: int) -> float:
    return run.best()[budget - 1]


def _scale(random: Runs, name: str, least: float, budget: int) -> float:
    return float(np.median([_best(h, budget) for (p, _), h in random.items() if p == name])) - least


def _sign(a: float, b: float) -> int:
    return 0 if abs(a - b) <= TIE * max(1.0, abs(a)) else -1 if a < b else 1


def markdown(lines: Sequence[Mapping[str, Any]], ours: str) -> str:
    """A table; nothing where there is no line."""
    if not lines:
        return "no run that all compared methods have; run more of them\n"
    said = [
        f"{lines[0]['problems']} problems, n = {lines[0]['runs']} runs",
        "",
        f"| method | at a time | regret | regret / one at a time | {ours} wins / loses / ties | CPU s a suggestion |",
        "|---|---|---|---|---|---|",
    ]
    for line in lines:
        ratio = "-" if math.isnan(line["ratio"]) else f"{line['ratio']:.2f} ± {line['ratio_error']:.2f}"
        wins = "-" if line["wins"] is None else " / ".join(map(str, line["wins"]))
        regret = f"{line['regret']:.2f} ± {line['error']:.2f}"
        said.append(f"| {line['method']} | {line['batch']} | {regret} | {ratio} | {wins} | {line['cpu']:.3g} |")
    return "\n".join(said) + "\n"
