"""Tables of the benchmark ``automl``: losses on fresh rows after as many evaluations, or as many CPU seconds.

Each table compares one answer of ours with answers of other methods on their common runs. p-values are of Wilcoxon's test
over data sets, by Holm's method for the comparisons of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.automl.record import Answer, Run
from benchmarks.automl.searches import FAILED, STEPS
from benchmarks.automl.statistics import Key, compared, shared

Runs = Mapping[str, Mapping[Key, Run]]
Read = Callable[[Run, int], Answer | None]
"""Returns the answer of a run after so many evaluations; None if it has none."""

OURS, PROGRAMS = "hybrid", ("flaml", "tpot")


def single(run: Run, after: int) -> Answer | None:
    """Return the pipeline with the lowest cross-validated loss, which ``PipelineSearchCV`` returns."""
    if not run.losses:
        return run.answers.get(f"best {after}")
    done = [(v, k) for k, v in enumerate(run.losses[:after]) if v is not None]
    if not done:
        return Answer(FAILED, FAILED)
    value, k = min(done)
    fresh = run.fresh[k]
    return Answer(value, FAILED if fresh is None else fresh)


def ensemble(run: Run, after: int) -> Answer | None:
    """Return the ensemble."""
    return run.answers.get(f"ensemble {after}")


def default(run: Run, after: int) -> Answer | None:
    """Return the best of the defaults by cross-validation, with which a search of ours begins."""
    return single(run, min(after, run.stamp.get("starts", 0)))


@dataclass(frozen=True)
class Contender:
    """Answer of a method's runs, shown as a row of a table."""

    label: str
    method: str
    read: Read = single


SINGLE = Contender("`hybrid`", OURS)
ENSEMBLE = Contender("`hybrid`, ensemble", OURS, ensemble)
DEFAULT = Contender("best default", OURS, default)
OTHERS = (
    Contender("random", "random"),
    Contender("Optuna TPE", "optuna-tpe"),
    Contender("SMAC3", "smac"),
    Contender("FLAML", "flaml"),
    Contender("TPOT", "tpot"),
)
ENSEMBLES = tuple(Contender(f"{c.label}, our ensemble", c.method, ensemble) for c in OTHERS if c.method not in PROGRAMS)
TABLES: dict[str, tuple[Contender, tuple[Contender, ...]]] = {
    "Single pipelines": (SINGLE, OTHERS),
    "A single pipeline and the best default": (SINGLE, (DEFAULT,)),
    "The ensemble and single pipelines": (ENSEMBLE, (SINGLE, DEFAULT, *OTHERS)),
    "Ensembles": (ENSEMBLE, ENSEMBLES),
}
METHODS = (OURS, *(c.method for c in OTHERS))


def tables(runs: Runs, rows: str) -> list[dict[str, Any]]:
    """Return the tables of the records of searches on so many rows."""
    found = [
        table(f"{title}, {rows}", f"{n} evaluations", [_read(runs, c, n) for c in (reference, *others)])
        for title, (reference, others) in TABLES.items()
        for n in STEPS
    ]
    for title, reference in (("Single pipelines", SINGLE), ("The ensemble and single pipelines", ENSEMBLE)):
        for other in OTHERS[-2:]:
            pairs = [_at_equal_seconds(runs, reference, other), _read(runs, other, STEPS[-1])]
            found.append(table(f"{title}, {rows}", f"the CPU seconds of {other.label} for {STEPS[-1]} evaluations", pairs))
    return [t for t in found if t]


Column = tuple[str, dict[Key, Answer], dict[Key, float]]
"""Label, answers and CPU seconds by run."""


def _read(runs: Runs, contender: Contender, after: int) -> Column:
    made = runs.get(contender.method, {})
    answers = {key: answer for key, run in made.items() if (answer := contender.read(run, after)) is not None}
    return contender.label, answers, {key: seconds_of(made[key], after) for key in answers}


def _at_equal_seconds(runs: Runs, ours: Contender, other: Contender) -> Column:
    """Return our answers after the CPU seconds that the other method took.

    Ensembles are those of STEPS, the last one within the seconds; before the first one the answer is a single pipeline.
    """
    theirs, answers, seconds = runs.get(other.method, {}), {}, {}
    for key, run in runs.get(ours.method, {}).items():
        if key not in theirs:
            continue
        after = int(np.searchsorted(run.clock, theirs[key].seconds["search"], side="right"))
        read, done = ours.read, [n for n in STEPS if n <= after]
        if read is ensemble:
            read, after = (ensemble, done[-1]) if done else (single, after)
        answers[key] = (read(run, after) if after else None) or Answer(FAILED, FAILED)
        seconds[key] = seconds_of(run, after) if after else 0.0
    return ours.label, answers, seconds


def seconds_of(run: Run, after: int) -> float:
    """Return the CPU seconds of the first evaluations."""
    return float(run.clock[min(after, len(run.clock)) - 1]) if run.clock else run.seconds[f"search {after}"]


def table(title: str, after: str, columns: Sequence[Column]) -> dict[str, Any]:
    """Return a table, the first column the reference; columns without runs are left out, and fewer than two give no table.

    Ranks, losses and seconds are of the runs that all methods have, differences of those that a method shares with the reference.
    """
    columns = [c for c in columns if c[1]]
    keys = shared({label: answers for label, answers, _ in columns})
    if len(columns) < 2 or not keys:
        return {}
    losses = {label: {key: answer.fresh for key, answer in answers.items()} for label, answers, _ in columns}
    reference, rows = columns[0][0], []
    for row in compared(losses, reference, keys):
        label, answers, seconds = next(c for c in columns if c[0] == row["name"])
        pair = {reference: losses[reference], label: losses[label]}
        row |= {k: v for k, v in next(r for r in compared(pair, reference) if r["name"] == label).items() if k in PAIRED}
        row["runs"] = len(shared(pair))
        row["search"] = float(np.mean([answers[key].search for key in keys]))
        row["seconds"] = float(np.median([seconds[key] for key in keys]))
        rows.append(row)
    adjusted = holm({r["name"]: r["wilcoxon_sets"] for r in rows if r["name"] != reference})
    sets = list(dict.fromkeys(data for data, _ in keys))
    by_set = {label: {s: float(np.mean([of[k] for k in keys if k[0] == s])) for s in sets} for label, of in losses.items()}
    rows = [row | {"p": adjusted.get(row["name"], 1.0)} for row in rows]
    return {"title": title, "after": after, "reference": reference, "runs": len(keys), "rows": rows, "by_set": by_set}


PAIRED = ("gain", "gain_error", "better", "worse", "ties", "wilcoxon_sets")
"""Statistics over the runs that a method shares with the reference."""


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected by Holm's method for as many comparisons."""
    found, least = {}, 0.0
    for k, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        found[name] = least = min(1.0, max(least, (len(values) - k) * p))
    return found


def markdown(made: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tables in Markdown, those of one title below each other, and the sets of the last one with most methods."""
    lines = []
    for title in dict.fromkeys(t["title"] for t in made):
        of_title = [t for t in made if t["title"] == title]
        lines += [f"### {title}", "", *HEAD, *(_line(t, r) for t in of_title for r in t["rows"]), ""]
        most = max(len(t["by_set"]) for t in of_title)
        lines += sets_markdown([t for t in of_title if len(t["by_set"]) == most][-1]) if most > FEW else []
    return lines


FEW = 4
"""Number of methods above which a table has its losses by set, too."""
HEAD = (
    "| after | method | mean rank | loss on fresh rows | search said | CPU s | runs beside the reference | worse than it by "
    "| the reference better / worse / equal | p |",
    "|---" * 10 + "|",
)


def _line(t: Mapping[str, Any], r: Mapping[str, Any]) -> str:
    tested = ["reference", "", ""] if r["name"] == t["reference"] else [
        f"{r['gain']:.4f} ± {1.96 * r['gain_error']:.4f}", f"{r['better']} / {r['worse']} / {r['ties']}", f"{r['p']:.2g}"
    ]  # fmt: skip
    cells = [t["after"], r["name"], f"{r['rank']:.2f} ± {1.96 * r['rank_error']:.2f}", f"{r['loss']:.4f}", f"{r['search']:.4f}"]
    return "| " + " | ".join([*cells, f"{r['seconds']:.1f}", f"{r['runs']}", *tested]) + " |"


def sets_markdown(made: Mapping[str, Any]) -> list[str]:
    """Return the loss on fresh rows by set, with the lowest loss of a row in bold."""
    names = list(made["by_set"])
    lines = ["| set | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for s in made["by_set"][names[0]]:
        values = [made["by_set"][name][s] for name in names]
        cells = [f"**{v:.4f}**" if v <= min(values) + 5e-5 else f"{v:.4f}" for v in values]
        lines.append(f"| {s} | " + " | ".join(cells) + " |")
    return [*lines, ""]
