"""Comparisons in addition to the table of all methods: further sets of methods, and single problems.

Only pairs (problem, seed) that all methods of a set have are compared, and no method has them all: GPSampler takes too
long on three problems, BoTorch and SMAC3 have few runs under a penalty. One record therefore holds several sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers import report
from benchmarks.peers.catalogue import OURS
from benchmarks.peers.history import History, Reader
from benchmarks.peers.report import Key

SIX = "hybrid:n_initial=6"
SEARCHING = ("botorch", "optuna-tpe", "mutation", "smac", "hyperopt", "random")
"""Peers with ten seeds of every problem."""
GROUPS = ("all", "rules", "free", "held out")
PEERS = ("botorch", "optuna-gp", "mutation", "optuna-tpe", "smac", "hyperopt")
"""Columns of the table of problems."""
LAST = 60
"""Evaluations after which methods are compared."""


@dataclass(frozen=True)
class Comparison:
    """Set of methods and its tables.

    Attributes:
        ours: the method that each other method is compared with.
        seeds: of the runs that are compared, at most.
        tables: convention and group of problems of each.
    """

    title: str
    methods: tuple[str, ...]
    tables: tuple[tuple[str, str], ...]
    ours: str = OURS
    seeds: tuple[int, ...] = tuple(range(10))


REPAIR = tuple(("repair", group) for group in GROUPS)
COMPARISONS = (
    Comparison("All problems, every peer but GPSampler", (OURS, *SEARCHING), REPAIR),
    Comparison("The default's six initial configurations, the peers' ten", (SIX, *SEARCHING), REPAIR, ours=SIX),
    Comparison(
        "Under a penalty, the methods with ten seeds",
        (OURS, "mutation", "optuna-tpe", "random", "hyperopt"),
        (("penalty", "rules"),),
    ),
    Comparison(
        "Under a penalty, seeds 0 and 1, every peer but GPSampler", (OURS, *SEARCHING), (("penalty", "rules"),), seeds=(0, 1)
    ),
    Comparison("BoTorch with the library's own limits", (OURS, "botorch", "botorch-library"), (("repair", "all"),)),
    Comparison("SMAC3 with the library's own limits", (OURS, "smac", "smac-library"), (("repair", "all"),)),
)


def collected(seeds: Sequence[int], read: Reader) -> dict[str, Any]:
    """Return all comparisons of this module for the existing runs, as values for JSON."""
    return {
        "comparisons": [made for c in COMPARISONS if (made := _compared(c, seeds, read))["tables"]],
        "problems": problems(seeds, read),
    }


def _compared(of: Comparison, seeds: Sequence[int], read: Reader) -> dict[str, Any]:
    found = report.collect(of.methods, seeds=[s for s in of.seeds if s in seeds], read=read)
    summary = report.summarise(found, of.ours)
    kept = [t for t in summary["tables"] if (t["convention"], t["group"]) in of.tables]
    return summary | {"title": of.title, "tables": kept}


def problems(seeds: Sequence[int], read: Reader) -> list[dict[str, Any]]:
    """Return for each problem the repaired runs in which ours is better and worse than each peer with runs."""
    found = report.collect([OURS, *PEERS], seeds=seeds, read=read).runs["repair"]
    rows = []
    for name in dict.fromkeys(p for p, _ in sorted(found[OURS])):
        duels = {}
        for peer in PEERS:
            pairs = sorted(k for k in found[OURS].keys() & found[peer].keys() if k[0] == name)
            if pairs:
                duels[peer] = _duel(found[OURS], found[peer], pairs)
        if duels:
            rows.append({"problem": name, "duels": duels})
    return rows


def _duel(ours: dict[Key, History], theirs: dict[Key, History], pairs: Sequence[Key]) -> dict[str, Any]:
    """Return wins, losses and ties of ours after the last step, and the sign test."""
    differences = []
    for p in pairs:
        a, b = ours[p].best()[LAST - 1], theirs[p].best()[LAST - 1]
        differences.append(0.0 if abs(a - b) <= report.TIE * max(1.0, abs(a), abs(b)) else a - b)
    return report.duel(np.array(differences))


# -- text -----------------------------------------------------------------------------------------------------------------------


def markdown(results: dict[str, Any]) -> str:
    """Return the tables in Markdown, empty for a record without comparisons."""
    lines: list[str] = []
    for each in results.get("comparisons", ()):
        lines += [f"### {each['title']}", "", report.markdown(each)]
    return "\n".join([*lines, *_problem_lines(results.get("problems", ()))])


def _problem_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = [
        "### Problem by problem",
        "",
        f"Runs in which {OURS} is better / worse than a peer after {LAST} evaluations, repaired; those left are level. "
        "Where it is worse more often than better the figure is bold.",
        "",
        "| problem | " + " | ".join(PEERS) + " |",
        "|---" * (1 + len(PEERS)) + "|",
    ]
    for row in rows:
        cells = []
        for peer in PEERS:
            duel = row["duels"].get(peer)
            text = f"{duel['wins']} / {duel['losses']}" if duel else "-"
            cells.append(f"**{text}**" if duel and duel["losses"] > duel["wins"] else text)
        lines.append(f"| {row['problem']} | " + " | ".join(cells) + " |")
    return [*lines, ""]
