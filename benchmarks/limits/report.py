"""Tables of problems with outcome constraints: ranks, regrets, first feasible evaluation, violations, CPU, wins.

Only pairs (problem, seed) that all methods of a table have are compared.

rank        rank of the best feasible loss after ``budget`` evaluations. A run without any is ranked last.
regret      (best - optimum) / (reference - optimum): 1 is the result of random search.
            It is at most 2, the value of a run without a feasible evaluation.
first       number of the first feasible evaluation, with the initial ones; budget + 1 if there is none.
violating   share of evaluations that violate constraints or crash.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.stats import binomtest, rankdata

from benchmarks.limits.suite import BUDGET, FOLDER, METHODS, problems
from benchmarks.peers import report
from benchmarks.peers.history import History, Reader, reader
from benchmarks.peers.report import Key, floors, levelled

CAP, LEAST = 2.0, 1e-6
"""Maximum regret, and minimum regret in a geometric mean."""
DRAWS = 2000
"""Resamples of a confidence interval."""


@dataclass
class Row:
    """Results of one method.

    Attributes:
        difference: of log10 regret, ours less this method's, with the ends of its 90 % interval.
    """

    method: str
    rank: float
    error: float
    mean: float
    mean_error: float
    median: float
    geometric: float
    first: float
    never: int
    violating: float
    illegal: float
    cpu: float
    wins: tuple[int, int, int] | None = None
    p: float = math.nan
    difference: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Table:
    """Methods compared on their common runs."""

    title: str
    ours: str
    seeds: list[int]
    problems: list[str]
    pairs: int
    rows: list[Row] = field(default_factory=list)
    medians: dict[str, dict[str, float]] = field(default_factory=dict)
    firsts: dict[str, dict[str, float]] = field(default_factory=dict)


def table(
    title: str,
    methods: Sequence[str],
    ours: str,
    names: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    budget: int = BUDGET,
    read: Reader | None = None,
) -> Table | None:
    """Return the table of some methods, or None if they have no common run."""
    read = read or reader(FOLDER)
    runs = report.collect(methods, names, seeds, budget, read).runs["repair"]
    order = {name: k for k, name in enumerate(problems())}
    pairs = sorted(set.intersection(*(set(of) for of in runs.values())), key=lambda p: (order[p[0]], p[1]))
    if not pairs:
        return None
    listed = list(dict.fromkeys(p for p, _ in pairs))
    regrets = {m: regret(runs[m], pairs, lowest(listed, read), budget) for m in runs}
    best = np.array([[runs[m][p].best()[budget - 1] for m in runs] for p in pairs])
    with np.errstate(invalid="ignore"):
        ranks = rankdata(np.array([levelled(row) for row in best]), axis=1)
    rows = [
        _row(m, [runs[m][p] for p in pairs], ranks[:, k], regrets[m], regrets.get(ours), ours, budget) for k, m in enumerate(runs)
    ]
    made = Table(title, ours, sorted({s for _, s in pairs}), listed, len(pairs), sorted(rows, key=lambda r: r.rank))
    for name in listed:
        at = [k for k, p in enumerate(pairs) if p[0] == name]
        made.medians[name] = {m: float(np.median(regrets[m][at])) for m in runs}
        made.firsts[name] = {m: float(np.mean([first(runs[m][pairs[k]], budget) for k in at])) for m in runs}
    return made


def lowest(names: Sequence[str], read: Reader) -> dict[str, float]:
    """Return the optima, or the least loss of any run if it is lower."""
    runs = {m: {h.key: h for h in read(m, "") + read(m, "repair") if h.problem in names} for m in METHODS}
    return floors(runs, [*names], problems()) if any(runs.values()) else {n: problems()[n].optimum for n in names}


def regret(runs: Mapping[Key, History], pairs: Sequence[Key], floor: Mapping[str, float], budget: int) -> np.ndarray:
    """Return the regret of each pair, as defined in the module's docstring."""
    found = []
    for pair in pairs:
        reference = problems()[pair[0]].reference
        assert reference is not None
        found.append((runs[pair].best()[budget - 1] - floor[pair[0]]) / (reference - floor[pair[0]]))
    return np.clip(found, 0.0, CAP)


def first(run: History, budget: int) -> int:
    """Return the number of the first feasible evaluation."""
    return next((k + 1 for k, v in enumerate(run.losses[:budget]) if v is not None), budget + 1)


def _row(
    method: str, runs: list[History], ranks: np.ndarray, regrets: np.ndarray, own: np.ndarray | None, ours: str, budget: int
) -> Row:
    n = len(runs)
    firsts = [first(h, budget) for h in runs]
    asks = [c for h in runs for c in h.cpu[:budget] if c is not None]
    row = Row(
        method,
        float(ranks.mean()),
        _error(ranks),
        float(regrets.mean()),
        _error(regrets),
        float(np.median(regrets)),
        float(np.exp(np.log(np.maximum(regrets, LEAST)).mean())),
        float(np.mean(firsts)),
        firsts.count(budget + 1),
        float(np.mean([v is None for h in runs for v in h.losses[:budget]])),
        float(np.mean([h.legal[:budget].count(False) for h in runs])),
        float(np.mean(asks)) if asks else math.nan,
    )
    if own is not None and method != ours:
        level = np.abs(own - regrets) <= LEAST
        won, lost = int(((own < regrets) & ~level).sum()), int(((own > regrets) & ~level).sum())
        row.wins = (won, lost, n - won - lost)
        row.p = float(binomtest(won, won + lost).pvalue) if won + lost else math.nan
        each = np.log10(np.maximum(own, LEAST)) - np.log10(np.maximum(regrets, LEAST))
        again = np.random.default_rng(0).choice(each, (DRAWS, n)).mean(axis=1)
        row.difference = (float(each.mean()), *map(float, np.quantile(again, (0.05, 0.95))))
    return row


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


# -- text -----------------------------------------------------------------------------------------------------------------------

HEAD = """| method | rank | regret, mean | median | geometric | first kept | never | violating | illegal | CPU s an ask |
|---|---|---|---|---|---|---|---|---|---|"""


def markdown(given: Table | Mapping[str, Any]) -> str:
    """Return a table in Markdown, with paired comparisons and medians by problem."""
    t = asdict(given) if isinstance(given, Table) else given
    lines = [f"**{t['title']}**: {len(t['problems'])} problems, {_seeds(t['seeds'])}, n = {t['pairs']} runs each", ""]
    lines.append(HEAD)
    for r in t["rows"]:
        cpu = "-" if math.isnan(r["cpu"]) else f"{r['cpu']:.2g}"
        lines.append(
            f"| {r['method']} | {r['rank']:.2f} ± {r['error']:.2f} | {r['mean']:.3f} ± {r['mean_error']:.3f} | "
            f"{r['median']:.2g} | {r['geometric']:.2g} | {r['first']:.1f} | {r['never']} | {r['violating']:.2f} | "
            f"{r['illegal']:.1f} | {cpu} |"
        )
    ours = t["ours"]
    pairs = [r for r in t["rows"] if r["wins"]]
    if pairs:
        lines += ["", f"| {ours} against | wins / loses / ties (p) | log10 regret, less by (90 %) |", "|---|---|---|"]
        for r in pairs:
            a, low, high = (-v for v in r["difference"])
            p = "" if math.isnan(r["p"]) else f" ({r['p']:.2g})"
            wins = " / ".join(map(str, r["wins"]))
            lines.append(f"| {r['method']} | {wins}{p} | {a:.2f} ({high:.2f} to {low:.2f}) |")
    methods = [r["method"] for r in t["rows"]]
    lines += ["", "| median regret (first kept) | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name in t["problems"]:
        each = [f"{t['medians'][name][m]:.2g} ({t['firsts'][name][m]:.1f})" for m in methods]
        lines.append(f"| {name} | " + " | ".join(each) + " |")
    return "\n".join(lines) + "\n"


def _seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seed" + ("s" if len(seeds) > 1 else "")
