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
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.limits.suite import BUDGET, FOLDER, METHODS, problems
from benchmarks.peers import report
from benchmarks.peers.history import History, Reader, reader
from benchmarks.peers.report import Key, floors, levelled

CAP, LEAST = 2.0, 1e-6
"""Maximum regret, and minimum regret in a geometric mean."""
DRAWS = 2000
"""Resamples of a confidence interval."""


def table(
    title: str,
    methods: Sequence[str],
    ours: str,
    names: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    budget: int = BUDGET,
    read: Reader | None = None,
) -> dict[str, Any]:
    """Return the table of some methods on their common runs, empty if they have none.

    ``difference`` of a row: of log10 regret, ours less this method's, with the ends of its 90 % interval.
    """
    read = read or reader(FOLDER)
    runs = report.collect(methods, names, seeds, budget, read).runs["repair"]
    order = {name: k for k, name in enumerate(problems())}
    pairs = sorted(set.intersection(*(set(of) for of in runs.values())), key=lambda p: (order[p[0]], p[1]))
    if not pairs:
        return {}
    listed = list(dict.fromkeys(p for p, _ in pairs))
    regrets = {m: regret(runs[m], pairs, lowest(listed, read), budget) for m in runs}
    best = np.array([[runs[m][p].best()[budget - 1] for m in runs] for p in pairs])
    with np.errstate(invalid="ignore"):
        ranks = rankdata(np.array([levelled(row) for row in best]), axis=1)
    rows = [
        _row(m, [runs[m][p] for p in pairs], ranks[:, k], regrets[m], regrets.get(ours), ours, budget) for k, m in enumerate(runs)
    ]
    at = {name: [k for k, p in enumerate(pairs) if p[0] == name] for name in listed}
    return {
        "title": title,
        "ours": ours,
        "seeds": sorted({s for _, s in pairs}),
        "problems": listed,
        "pairs": len(pairs),
        "rows": sorted(rows, key=lambda r: r["rank"]),
        "medians": {name: {m: float(np.median(regrets[m][of])) for m in runs} for name, of in at.items()},
        "firsts": {
            name: {m: float(np.mean([first(runs[m][pairs[k]], budget) for k in of])) for m in runs} for name, of in at.items()
        },
    }


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
) -> dict[str, Any]:
    firsts = [first(h, budget) for h in runs]
    asks = [c for h in runs for c in h.cpu[:budget] if c is not None]
    row: dict[str, Any] = {
        "method": method,
        **{"rank": float(ranks.mean()), "error": _error(ranks)},
        **{"mean": float(regrets.mean()), "mean_error": _error(regrets), "median": float(np.median(regrets))},
        "geometric": float(np.exp(np.log(np.maximum(regrets, LEAST)).mean())),
        **{"first": float(np.mean(firsts)), "never": firsts.count(budget + 1)},
        "violating": float(np.mean([v is None for h in runs for v in h.losses[:budget]])),
        "illegal": float(np.mean([h.legal[:budget].count(False) for h in runs])),
        "cpu": float(np.mean(asks)) if asks else math.nan,
        **{"wins": None, "p": math.nan, "difference": None},
    }
    if own is not None and method != ours:
        duel = report.duel(np.where(np.abs(own - regrets) <= LEAST, 0.0, own - regrets))
        each = np.log10(np.maximum(own, LEAST)) - np.log10(np.maximum(regrets, LEAST))
        again = np.random.default_rng(0).choice(each, (DRAWS, len(runs))).mean(axis=1)
        row |= {"wins": [duel[k] for k in ("wins", "losses", "ties")], "p": duel["p"]}
        row["difference"] = [float(each.mean()), *map(float, np.quantile(again, (0.05, 0.95)))]
    return row


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


# -- text -----------------------------------------------------------------------------------------------------------------------

HEAD = """| method | rank | regret, mean | median | geometric | first kept | never | violating | illegal | CPU s an ask |
|---|---|---|---|---|---|---|---|---|---|"""


def markdown(t: Mapping[str, Any]) -> str:
    """Return a table in Markdown, with paired comparisons and medians by problem."""
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
