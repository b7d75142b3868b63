"""Tables of the benchmark ``automl``: mean ranks on fresh rows, paired differences, CPU seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.automl.record import Run
from benchmarks.automl.statistics import Key, compared, shared

Runs = Mapping[str, Mapping[Key, Run]]


@dataclass(frozen=True)
class Contender:
    """Answer of a method's runs, shown as a row of a table."""

    label: str
    method: str
    answer: str = "best"


DEFAULT = Contender("default: `hybrid`, its ensemble", "hybrid", "ensemble")
SINGLE = Contender("`hybrid`, recommended", "hybrid", "recommended")
LUCKIEST = Contender("`hybrid`, lowest cross-validated", "hybrid")
FLAML, FLAML_STACKED = Contender("FLAML", "flaml"), Contender("FLAML, stacked ensemble", "flaml-ensemble", "ensemble")
TPOT, TPE, SMAC = Contender("TPOT", "tpot"), Contender("Optuna TPE", "optuna-tpe"), Contender("SMAC3", "smac")
RANDOM = Contender("random", "random")
ENSEMBLES = tuple(Contender(f"{c.label}, our ensemble", c.method, "ensemble") for c in (TPE, SMAC, RANDOM))
TABLES: dict[str, tuple[Contender, ...]] = {
    "The default and the others as they come": (DEFAULT, FLAML, TPOT, TPE, SMAC, RANDOM),
    "The same without TPOT, which takes longest": (DEFAULT, FLAML, TPE, SMAC, RANDOM),
    "Single pipelines: without the ensemble, and without the recommendation": (
        SINGLE, LUCKIEST, FLAML, TPOT, TPE, SMAC, RANDOM,
    ),
    "Ensembles of all": (DEFAULT, FLAML_STACKED, *ENSEMBLES),
}  # fmt: skip
METHODS = ("flaml", "flaml-ensemble", "tpot", "optuna-tpe", "smac", "random", "hybrid")


def fresh_of(runs: Runs, contender: Contender) -> dict[Key, float]:
    """Return the losses on fresh rows by run."""
    made = runs.get(contender.method, {})
    return {key: run.answers[contender.answer].fresh for key, run in made.items() if contender.answer in run.answers}


def table(runs: Runs, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return a table for a record. The first contender with runs is the reference. Fewer than two give no table."""
    having = {c.label: c for c in contenders if fresh_of(runs, c)}
    losses = {label: fresh_of(runs, c) for label, c in having.items()}
    keys = shared(losses)
    if len(having) < 2 or not keys:
        return {}
    reference = next(iter(having))
    rows = []
    for row in compared(losses, reference, keys):
        c = having[row["name"]]
        of = [runs[c.method][key] for key in keys]
        found = [r.answers[c.answer] for r in of]
        rows.append(
            row
            | {
                "search": float(np.mean([a.search for a in found])),
                "fits": float(np.mean([r.fits for r in of])),
                "seconds": float(np.median([r.seconds["search"] for r in of])),
            }
        )
    sets = list(dict.fromkeys(data for data, _ in keys))
    seeds = sorted({seed for _, seed in keys})
    by_set = {label: {s: float(np.mean([losses[label][k] for k in keys if k[0] == s])) for s in sets} for label in having}
    return {"reference": reference, "runs": len(keys), "sets": sets, "seeds": seeds, "rows": rows, "by_set": by_set}


def markdown(title: str, made: Mapping[str, Any]) -> list[str]:
    """Return a table in Markdown."""
    if not made:
        return []
    lines = [
        f"### {title}",
        "",
        f"{made['runs']} runs: {len(made['sets'])} sets, seeds {', '.join(map(str, made['seeds']))}. "
        f"Reference: {made['reference']}.",
        "",
        "| method | mean rank | lowest on, sets | loss on fresh rows | search said | worse than the reference by "
        "| reference better / worse / equal | sign p | Wilcoxon p, runs; sets | fits | CPU s |",
        "|---" * 11 + "|",
    ]
    lowest = {name: sum(by[s] <= _least(made, s) + 5e-5 for s in made["sets"]) for name, by in made["by_set"].items()}
    for r in made["rows"]:
        same = r["name"] == made["reference"]
        tested = [""] * 4 if same else [
            f"{r['gain']:.4f} ± {r['gain_error']:.4f}",
            f"{r['better']} / {r['worse']} / {r['ties']}",
            f"{r['sign']:.2g}",
            f"{r['wilcoxon_runs']:.2g}; {r['wilcoxon_sets']:.2g}",
        ]  # fmt: skip
        lines.append(
            f"| {r['name']} | {r['rank']:.2f} ± {r['rank_error']:.2f} | {lowest[r['name']]} "
            f"| {r['loss']:.4f} | {r['search']:.4f} | " + " | ".join(tested) + f" | {r['fits']:.0f} | {r['seconds']:.1f} |"
        )
    return [*lines, ""]


def _least(made: Mapping[str, Any], data: str) -> float:
    return min(by[data] for by in made["by_set"].values())


def sets_markdown(made: Mapping[str, Any]) -> list[str]:
    """Return the loss on fresh rows by set, with the lowest loss of a row in bold."""
    if not made:
        return []
    names = list(made["by_set"])
    lines = ["| set | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for s in made["sets"]:
        values = [made["by_set"][name][s] for name in names]
        cells = [f"**{v:.4f}**" if v <= _least(made, s) + 5e-5 else f"{v:.4f}" for v in values]
        lines.append(f"| {s} | " + " | ".join(cells) + " |")
    return [*lines, ""]
