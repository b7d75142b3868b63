"""Report: ranks, regret, evaluations to match, wins and losses, CPU seconds, by convention and group of problems.

Only pairs (problem, seed) that all compared methods have are compared. Every table reports their number n.

    rank     rank of the best loss after ``budget`` evaluations, averaged over pairs, with the standard error.
             Ties share the mean rank.
    regret   (best - optimum) / (median of random search's best over its seeds - optimum).
             It is the mean over problems of medians, with a bootstrapped standard error.
             If only a bound is known, the lowest loss found replaces the optimum.
    match    evaluations that ours needs for the loss that a peer has after ``budget`` evaluations.
             It is the median over pairs (> budget: never).
    wins     pairs in which ours is better, worse, equal, and the two-sided sign test over unequal pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import binomtest, rankdata

from benchmarks.peers.catalogue import OURS, PEERS
from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.history import History, Reader, reader
from benchmarks.peers.problem import LOWER_BOUND, Problem, problems

Key = tuple[str, int]
TIE = 1e-7
"""Relative difference below which losses are equal."""
BOOTSTRAP = 400
"""Bootstrap resamples for the standard error of the regret."""


@dataclass(frozen=True)
class Collection:
    """Histories by convention, method and (problem, seed). Rule-free problems are in both conventions."""

    runs: dict[str, dict[str, dict[Key, History]]]

    def pairs(self, convention: str) -> list[Key]:
        """Return the pairs that all methods have, in a fixed order."""
        sets = [set(runs) for runs in self.runs[convention].values()]
        order = {name: k for k, name in enumerate(problems())}
        return sorted(set.intersection(*sets), key=lambda p: (order.get(p[0], len(order)), p)) if sets else []


def collect(
    methods: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    budget: int = 60,
    read: Reader | None = None,
) -> Collection:
    """Return the histories of methods (None: all peers, and ``hybrid`` if it was run).

    Args:
        read: reader of the folder; None reads this package's results.
    """
    read = read or reader()
    chosen = [m for m in methods or (OURS, *PEERS) if methods or any(read(m, c) for c in ("", *CONVENTIONS))]
    runs: dict[str, dict[str, dict[Key, History]]] = {}
    for convention in CONVENTIONS:
        runs[convention] = {}
        for method in chosen:
            runs[convention][method] = {
                h.key: h
                for h in read(method, "") + read(method, convention)
                if len(h.losses) >= budget and (names is None or h.problem in names) and (seeds is None or h.seed in seeds)
            }
    return Collection(runs)


def summarise(found: Collection, ours: str = OURS, budget: int = 60) -> dict[str, Any]:
    """Return all tables and the missing runs."""
    known = problems()
    tables = []
    for convention in CONVENTIONS:
        pairs = found.pairs(convention)
        for group in ("all", "rules", "free", "held out"):
            kept = [p for p in pairs if _in_group(known.get(p[0]), group)]
            if kept:
                tables.append(_table(found.runs[convention], kept, convention, group, ours, budget))
    return {"tables": tables, "ours": ours, "budget": budget}


def _in_group(problem: Problem | None, group: str) -> bool:
    if problem is None:
        return group == "all"
    return group == "all" or (problem.held_out if group == "held out" else problem.group == group)


def _table(
    runs: dict[str, dict[Key, History]], pairs: list[Key], convention: str, group: str, ours: str, budget: int
) -> dict[str, Any]:
    """Return the table of one group of problems in one convention."""
    best = {m: np.array([runs[m][p].best()[budget - 1] for p in pairs]) for m in runs}
    matrix = np.array([levelled(row) for row in np.array(list(best.values())).T])  # (pairs, methods)
    ranks = rankdata(matrix, axis=1)
    regrets = normalised(runs, pairs, budget)
    rows: list[dict[str, Any]] = []
    for k, method in enumerate(runs):
        histories = [runs[method][p] for p in pairs]
        late = [c for h in histories for c in h.cpu[budget - 10 : budget] if c is not None]
        row: dict[str, Any] = {
            "method": method,
            "rank": float(ranks[:, k].mean()),
            "error": float(ranks[:, k].std(ddof=1) / math.sqrt(len(pairs))) if len(pairs) > 1 else math.nan,
            **dict(zip(("regret", "regret_error"), regrets[method], strict=True)),
            **{"match": math.nan, "wins": 0, "losses": 0, "ties": 0, "p": math.nan},
            "cpu": float(np.median(late)) if late else math.nan,
            "illegal": float(np.mean([h.legal.count(False) for h in histories])),
        }
        if ours in runs and method != ours:
            difference = matrix[:, list(runs).index(ours)] - matrix[:, k]
            row |= duel(difference)
            row["match"] = float(np.median([to_match(runs[ours][p], b) for p, b in zip(pairs, best[method], strict=True)]))
        rows.append(row)
    rows.sort(key=lambda r: r["rank"])
    problems = len({p for p, _ in pairs})
    return {"convention": convention, "group": group, "pairs": len(pairs), "problems": problems, "rows": rows}


def duel(differences: np.ndarray) -> dict[str, Any]:
    """Return the numbers of negative (won), positive and zero differences, and the p-value of the sign test."""
    wins, losses = int((differences < 0).sum()), int((differences > 0).sum())
    p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else math.nan
    return {"wins": wins, "losses": losses, "ties": len(differences) - wins - losses, "p": p}


def levelled(losses: np.ndarray) -> np.ndarray:
    """Return the losses with ties made exactly equal."""
    order = np.argsort(losses)
    made = losses.copy()
    for a, b in pairwise(order):
        if np.isfinite(losses[b]) and abs(losses[b] - made[a]) <= TIE * max(1.0, abs(losses[b])):
            made[b] = made[a]  # infinite losses of runs without a result are equal already
    return made


def to_match(ours: History, target: float) -> float:
    """Return the evaluations until a run reaches ``target``, infinite if it never does."""
    slack = TIE * max(1.0, abs(target))
    return next((k + 1.0 for k, b in enumerate(ours.best()) if b <= target + slack), math.inf)


def floors(
    runs: dict[str, dict[Key, History]], names: Sequence[str], known: Mapping[str, Problem] | None = None
) -> dict[str, float]:
    """Return each problem's optimum, or the least loss found if that is lower or if only a bound is known.

    Args:
        known: the problems; None: the peers' own.
    """
    known, found = problems() if known is None else known, dict[str, float]()
    for name in names:
        least = min(min(h.best()) for of in runs.values() for k, h in of.items() if k[0] == name)
        attained = name in known and known[name].certificate != LOWER_BOUND
        found[name] = min(known[name].optimum, least) if attained else least
    return found


def normalised(runs: dict[str, dict[Key, History]], pairs: Sequence[Key], budget: int) -> dict[str, tuple[float, float]]:
    """Return the mean over problems of the median regret relative to random search, with its standard error.

    The error comes from a bootstrap of the method's runs in each problem, with the median of random search fixed. The
    result is nan without random search.
    """
    names = sorted({p for p, _ in pairs}) if "random" in runs else []
    least, rng = floors(runs, names), np.random.default_rng(0)
    single = len(set(pairs)) == len(names)
    drawn: dict[str, np.ndarray] = {}
    result = {}
    for method, of in runs.items():
        values, again = [], []
        for name in names:
            seeds = [s for p, s in pairs if p == name]
            scale = float(np.median([runs["random"][name, s].best()[budget - 1] for s in seeds])) - least[name]
            if scale <= 1e-12:
                continue
            own = (np.array([of[name, s].best()[budget - 1] for s in seeds]) - least[name]) / scale
            rows = drawn.setdefault(name, rng.integers(len(own), size=(BOOTSTRAP, len(own))))
            values.append(float(np.median(own)))
            again.append(np.median(own[rows], axis=1))
        spread = float(np.std(np.mean(again, axis=0), ddof=1)) if again and not single else math.nan
        result[method] = (float(np.mean(values)), spread) if values else (math.nan, math.nan)
    return result


# -- text -----------------------------------------------------------------------------------------------------------------------

HEAD = "| method | rank | normalised regret | {ours} matches it in | {ours} wins / loses / ties (p) | CPU s | illegal |"


def markdown(summary: Mapping[str, Any]) -> str:
    """Return the tables in Markdown."""
    lines = []
    for table in summary["tables"]:
        lines += [f"**{table['group']}, {table['convention']}**: {table['problems']} problems, n = {table['pairs']} runs", ""]
        head = HEAD.format(ours=summary["ours"])
        lines += [head, "|---" * (head.count("|") - 1) + "|"]
        lines += [_line(row, summary["ours"], summary["budget"]) for row in table["rows"]] + [""]
    return "\n".join(lines) if lines else "no run that all compared methods have; run more of them\n"


def _line(row: Mapping[str, Any], ours: str, budget: int) -> str:
    match = duel = "-"
    if row["method"] != ours:
        match = duel = "?"
        if not math.isnan(row["match"]):
            match = f"{row['match']:g}" if math.isfinite(row["match"]) else f"> {budget}"
            sign = "" if math.isnan(row["p"]) else f" ({row['p']:.2g})"
            duel = f"{row['wins']} / {row['losses']} / {row['ties']}{sign}"
    error, spread = ("" if math.isnan(row[k]) else f" ± {row[k]:.2f}" for k in ("error", "regret_error"))
    regret = "?" if math.isnan(row["regret"]) else f"{row['regret']:.2f}{spread}"
    cpu = "?" if math.isnan(row["cpu"]) else f"{row['cpu']:.3g}"
    return f"| {row['method']} | {row['rank']:.2f}{error} | {regret} | {match} | {duel} | {cpu} | {row['illegal']:.1f} |"
