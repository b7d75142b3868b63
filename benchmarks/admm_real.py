"""``admm-real``: the papers' operator splitting compared with ``hybrid``, JOPT and random search on real data.

The runs are those of :mod:`benchmarks.automl`: 40 pipelines, each fitted on five folds. Search folds, fresh folds of
the same rows, and rows that no search sees stand side by side. The sets of liu2020, Tables A4 and A5, are run
with ten seeds; the record says how many of these there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.automl import runner
from benchmarks.automl.benchmark import SEEDS
from benchmarks.automl.data import OF_PAPER, USUAL_SETS
from benchmarks.automl.record import FOLDER, Run, runs
from benchmarks.automl.spaces import FOLDS
from benchmarks.automl.statistics import Key, compared, shared
from benchmarks.registry import benchmark

OURS, JOINT = "hybrid", "jopt"
PENALTY, SPLIT_BY_BO = "admm:rho=1.0", "admm:z_min=gp"
"""The papers' AdADMM(BO,Ba) with their penalty, and their AdADMM(BO,BO). Both and ``admm`` use I = 4 and F = 2."""
METHODS = (OURS, "admm", PENALTY, SPLIT_BY_BO, JOINT, "random")
AS_PRINTED = (JOINT, PENALTY, SPLIT_BY_BO, "random")
TABLES = (((OURS, PENALTY, JOINT, "random"), USUAL_SETS), (METHODS, USUAL_SETS), (AS_PRINTED, OF_PAPER))
"""Methods and data sets of each table. A table with fewer methods has more runs that all of its methods have."""
PRINTED_SEEDS = {"quick": range(1), "full": range(10)}
SMOKE = ("random",)
LEAST = 1e-6
"""Losses below it count as it in ratios."""
STEPS = (10, 20, 40)
"""Evaluations after which the loss on the folds of the search is read: 50, 100 and 200 fits."""
OUT = FOLDER / "admm-real.json"
PAPER = """liu2020, Tables A4 and A5, eight other sets, an hour each, speed-up in time until JOPT(BO)'s last value, and gain on it:
AdADMM(BO,Ba) 4 to 153 times (median 18) and 0 to 56 % (median 2.5 %); AdADMM(BO,BO) 2 to 25 times (median 5) and 1 to 64 %
(median 5 %).
"""


@benchmark("admm-real", "operator splitting of the papers on real data: search folds, fresh folds, fresh rows", OUT)
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    if size == "smoke":
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            failed = runner.work(runner.tasks(SMOKE, ["wine"], [0]), progress, 3, folder=folder)
            return {"failed": failed, **collected(folder, ((SMOKE, USUAL_SETS),))}
    printed = runner.tasks(AS_PRINTED, OF_PAPER, PRINTED_SEEDS[size])
    todo = runner.missing(list(dict.fromkeys(runner.tasks(METHODS, None, SEEDS[size]) + printed)))
    failed = runner.work(todo, progress)
    return {"failed": failed, **collected()}


def collected(folder: Path = FOLDER, tables: Sequence[tuple[Sequence[str], Sequence[str]]] = TABLES) -> dict[str, Any]:
    """Return the results of the records."""
    made = runs(dict.fromkeys(m for methods, _ in tables for m in methods), folder)
    every = [r for of in made.values() for r in of.values()]
    return {
        "runs": len(every),
        "seeds": sorted({r.seed for r in every}),
        "cpu_hours": {"searches": sum(r.seconds["search"] for r in every) / 3600},
        "tables": [
            _table({m: {k: r for k, r in made[m].items() if k[0] in sets} for m in methods if m in made})
            for methods, sets in tables
        ],
    }


def _table(made: dict[str, dict[Key, Run]]) -> dict[str, Any]:
    """Return a table of the runs that all of its methods have."""
    by_folds = {m: {k: _folds(r) for k, r in of.items()} for m, of in made.items()}
    keys = shared(by_folds)
    reference = OURS if OURS in made else next(iter(made), "")
    rows = []
    for row in compared(by_folds, reference, keys):
        of = [made[row["name"]][key] for key in keys]
        rows.append(
            row
            | {
                "steps": [float(np.mean([r.best_after(n) for r in of])) for n in STEPS],
                "rows": float(np.mean([r.answers["best"].fresh for r in of])),
                "ask": float(np.median([r.seconds["asks"] / r.evaluations for r in of])),
                "seconds": float(np.median([r.seconds["search"] for r in of])),
                "against": _against(made, row["name"], keys),
            }
        )
    sets, seeds = list(dict.fromkeys(data for data, _ in keys)), sorted({seed for _, seed in keys})
    return {"pairs": len(keys), "sets": sets, "seeds": seeds, "reference": reference, "rows": rows}


def _folds(run: Run) -> float:
    found = run.answers["best"].folds
    return run.answers["best"].search if found is None else found


def _against(made: dict[str, dict[Key, Run]], name: str, keys: list[Key]) -> dict[str, float]:
    """Return the medians of :func:`beside`, and the share of runs that reach JOPT's last loss."""
    if JOINT not in made or name == JOINT or not keys:
        return {}
    pairs = [beside(made[JOINT][key], made[name][key]) for key in keys]
    return {
        "reached": float(np.mean([p["evaluations"] > 0 for p in pairs])),
        **{what: float(np.median([p[what] for p in pairs])) for what in pairs[0]},
    }


def beside(joint: Run, run: Run) -> dict[str, float]:
    """Compare a run with JOPT, on the folds of the search and as in the papers.

    Returns:
        ``evaluations`` and ``seconds``: how many times fewer until JOPT's last loss is reached, 0 if it is not; ``lower`` and
        ``lower_at_equal_seconds``: ratio of losses, JOPT's to the run's, after all evaluations and after as many CPU seconds.
    """
    target = joint.best_after(len(joint.losses))
    first_joint, first = _reached(joint, target) or 0, _reached(run, target)
    seconds = min(joint.clock[-1], run.clock[-1])
    within = [max(of.best_after(int(np.searchsorted(of.clock, seconds, side="right"))), LEAST) for of in (joint, run)]
    return {
        "evaluations": 0.0 if first is None else (first_joint + 1) / (first + 1),
        "seconds": 0.0 if first is None else joint.clock[first_joint] / run.clock[first],
        "lower": max(target, LEAST) / max(run.best_after(len(run.losses)), LEAST),
        "lower_at_equal_seconds": within[0] / within[1],
    }


def _reached(run: Run, target: float) -> int | None:
    """Return the first evaluation at or below a loss."""
    return next((k for k, v in enumerate(run.losses) if v is not None and v <= target + 1e-9), None)


def markdown(results: dict[str, Any]) -> str:
    """The tables for the page of results."""
    return "\n".join([*("\n".join(_lines(t)) for t in results["tables"] if t["rows"]), PAPER])


def _lines(table: dict[str, Any]) -> list[str]:
    lines = [
        f"{table['pairs']} runs of each method ({', '.join(table['sets'])}; seeds {', '.join(map(str, table['seeds']))}). "
        "Loss: 1 - AUC, means; the pipeline with the lowest cross-validated loss. Rank, differences and tests on fresh folds "
        f"(two other dealings of the rows searched on) against `{table['reference']}`. CPU seconds: medians.",
        "",
        "| method | search, " + " / ".join(f"{n * FOLDS}" for n in STEPS) + " fits | fresh folds | fresh rows | rank | worse by "
        "| better / worse / equal | Wilcoxon p, runs; sets | CPU s an ask | CPU s |",
        "|---" * 10 + "|",
    ]
    for r in table["rows"]:
        steps = " / ".join(f"{v:.4f}" for v in r["steps"])
        same = r["name"] == table["reference"]
        tested = [""] * 3 if same else [
            f"{r['gain']:.4f} ± {r['gain_error']:.4f}",
            f"{r['better']} / {r['worse']} / {r['ties']}",
            f"{r['wilcoxon_runs']:.2g}; {r['wilcoxon_sets']:.2g}",
        ]  # fmt: skip
        lines.append(
            f"| `{r['name']}` | {steps} | {r['loss']:.4f} | {r['rows']:.4f} | {r['rank']:.2f} ± {r['rank_error']:.2f} | "
            + " | ".join(tested)
            + f" | {r['ask']:.3f} | {r['seconds']:.1f} |"
        )
    beside = [r for r in table["rows"] if r["against"]]
    if beside:
        lines += [
            "",
            f"Beside `{JOINT}`, as the papers count: until its last loss on the search's folds is reached, and how much is "
            "gained in the end; medians over runs (0 times: it is not reached).",
            "",
            "| method | reached in | times as few evaluations | times as few CPU seconds | lower in the end by | at equal CPU s |",
            "|---" * 6 + "|",
        ]
        lines += [
            f"| `{r['name']}` | {a['reached']:.0%} | {a['evaluations']:.2g} | {a['seconds']:.2g} | {1 - 1 / a['lower']:.1%} | "
            f"{1 - 1 / a['lower_at_equal_seconds']:.1%} |"
            for r in beside
            for a in (r["against"],)
        ]
    return [*lines, ""]
