"""Tables in Markdown and figures of the paper's experiments."""

from __future__ import annotations

import math
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.experiment import OURS, Experiment, Group
from benchmarks.records import saved

COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999")
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""
DASHES = ("-", "--", ":", "-.")
ALWAYS = {"hybrid": 0, "mivabo": 6, "random": 7}
"""Methods with a fixed colour in all figures."""
PENALTY = "penalty-500"
"""Convention of the paper's Table 1."""
BANDS = ("hybrid", "random")
"""Methods drawn with a band. Bands of all methods would cover each other."""


def markdown(experiment: Experiment, results: dict[str, Any], figures: str = "") -> str:
    """Return the tables of an experiment.

    Args:
        figures: folder of the figures as the page sees it; empty: no pictures.
    """
    known = {g.name: g for g in experiment.groups}
    lines = []
    for found in results["groups"]:
        group = known[found["name"]]
        if not found["rows"]:
            continue
        lines += [f"**{group.title}**", "", *_table(experiment, group, found["rows"], results), ""]
        lines += _by_convention(experiment, found["rows"], results)
        if figures:
            lines += [f"![{group.title}]({figures}/{experiment.name}-{group.name}.svg)", ""]
        if group.paper:
            lines += [group.paper.strip(), ""]
    return "\n".join([*lines, *_made(results)]) if lines else "no run yet\n"


def _made(results: dict[str, Any]) -> list[str]:
    """Return lines on the versions and machines of histories and evaluations; the first runs kept no commit."""
    told = [f"{name} {', '.join(map(str, values))}" for name, values in results.get("stamps", {}).items()]
    lines = ["Histories: " + "; ".join(told) + "."] if told else []
    machines = results.get("machines")
    if machines:
        lines.append("Evaluations that say so: " + "; ".join(machines) + ".")
    return [" ".join(lines), ""] if lines else []


def _table(experiment: Experiment, group: Group, rows: list[dict[str, Any]], results: dict[str, Any]) -> list[str]:
    ruled = any(r["convention"] for r in rows)
    at = results["at"]
    head = ["method", *(["illegal suggestions"] if ruled else []), "runs"]
    head += [f"{experiment.unit} after {n}" for n in at]
    if ruled:
        head += [f"violations until {n}" for n in at] + [f"after {results['budget']}, violations counted"]
    duels = any(r.get("ours") for r in rows)
    head += [f"{OURS} lower / higher (shared runs)"] if duels else []
    head += ["CPU s per proposal"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    if group.scaled:
        lines.append("| *" + group.scaled + "* " + "|" * len(head))
    for r in rows:
        short = f", {r['short']} short" if r["short"] else ""
        cells = [r["method"], *([r["convention"] or "none"] if ruled else []), f"{r['runs']}{short}"]
        cells += [spread(r["mean"][n - 1], r["deviation"][n - 1]) for n in at]
        if ruled:
            seen = dict(zip(results["at"], r["violations"], strict=True))
            cells += [spread(*seen[n], digits=1) for n in at]
            cells.append(number((r["counted"] or r["mean"])[-1]))
        if duels:
            cells.append("{} / {} ({})".format(*r["ours"]) if r.get("ours") else "-")
        cells.append("?" if r["cpu"] is None else f"{r['cpu']:.2g}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _by_convention(experiment: Experiment, rows: list[dict[str, Any]], results: dict[str, Any]) -> list[str]:
    """Return methods by conventions, as in the paper's Tables 3 and 4; empty for a single convention."""
    told = [c for c in experiment.suite.conventions if any(r["convention"] == c for r in rows)]
    if len(told) < 2:
        return []
    first = results["at"][0]
    heads = [c.replace("penalty-", "penalty of ").replace("ignore", "ignored") for c in told]
    head = ["method", *heads, *(f"violations, {h}" for h in heads)]
    lines = [f"After {first} evaluations, by what an illegal suggestion is told:", ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for method in dict.fromkeys(r["method"] for r in rows):
        of = {r["convention"]: r for r in rows if r["method"] == method}
        legal = of.get("")
        found = [legal] + [None] * (len(told) - 1) if legal else [of.get(c) for c in told]
        cells = [spread(r["mean"][first - 1], r["deviation"][first - 1]) if r else "" for r in found]
        cells += [spread(*r["violations"][0], digits=1) if r else "" for r in found]
        lines.append("| " + " | ".join([method + (", always legal" if legal else ""), *cells]) + " |")
    return [*lines, ""]


def number(value: float | None, digits: int | None = None) -> str:
    """Format a number with four significant digits, or with a fixed number of decimals."""
    if value is None:
        return "none"
    if digits is None:
        digits = 0 if value == 0 else max(0, min(4, 3 - math.floor(math.log10(abs(value)))))
    return f"{value:.{digits}f}"


def spread(mean: float, deviation: float | None, digits: int | None = None) -> str:
    """Format mean ± standard deviation with as many decimals as the mean."""
    text = number(mean, digits)
    if deviation is None:
        return text
    return f"{text} ± {deviation:.{len(text.partition('.')[2])}f}"


def draw(experiment: Experiment, results: dict[str, Any], folder: Path) -> list[Path]:
    """Draw a figure per group: mean ± one standard deviation of the best value over the legal evaluations."""
    known = {g.name: g for g in experiment.groups}
    return [_figure(experiment, known[g["name"]], g["rows"], results["budget"], folder) for g in results["groups"] if g["rows"]]


def _figure(experiment: Experiment, group: Group, rows: list[dict[str, Any]], budget: int, folder: Path) -> Path:
    from matplotlib.figure import Figure

    beside = bool(group.points)
    figure = Figure(figsize=(8.4 + 1.8 * beside, 4.2), layout="constrained")
    axes = figure.subplots(1, 1 + beside, squeeze=False, width_ratios=[3, 1] if beside else None)
    axis = axes[0, 0]
    marks = [n for n in experiment.at if n <= budget] or [budget]
    looks = styles([r["method"] + r["convention"] for r in rows])
    for k, (row, (colour, dash)) in enumerate(zip(rows, looks, strict=True)):
        _line(axis, row, colour, dash, marks, 0.35 * (k - len(rows) / 2))
    first = max(3, budget // 8)  # the first evaluations are far above the relevant range
    shown = np.array([r["mean"] for r in rows], float)[:, first - 1 :]
    room = 0.08 * (shown.max() - shown.min() or 1.0)
    axis.set(xlim=(first, budget + 2), ylim=(max(0.0, shown.min() - 3 * room), shown.max() + room))
    axis.set(xlabel="legal evaluations", ylabel=f"best {experiment.unit}", title=group.title)
    axis.grid(alpha=0.25)
    if group.points:
        same = zip(rows, looks, strict=True)
        _paper(axes[0, 1], experiment, group, {r["method"]: x for r, x in same if r["convention"] in ("", PENALTY)})
    figure.legend(loc="outside right upper", fontsize=8)
    return saved(figure, folder / f"{experiment.name}-{group.name}.svg")


def _paper(axis: Any, experiment: Experiment, group: Group, looks: dict[str, tuple[str, str]]) -> None:
    """Draw the paper's numbers in the colours of our methods."""
    last = experiment.at[-1]
    span = [m for _, values in group.points.values() for m, _ in values.values()]
    apart, below = 0.045 * (max(span) - min(span)), -math.inf
    for k, method in enumerate(sorted(group.points, key=lambda m: group.points[m][1][last][0])):
        name, values = group.points[method]
        colour, dash = looks.get(method, ("#555555", ":"))
        at = np.array(sorted(values))
        mean, deviation = (np.array([values[n][i] for n in at.tolist()]) for i in (0, 1))
        axis.errorbar(at + 0.5 * (k - 2), mean, deviation, color=colour, ls=dash, marker="o", ms=3, capsize=2, lw=1.2)
        below = max(below + apart, mean[-1])  # overlapping names are moved up
        axis.text(last + 2, below, name, va="center", fontsize=8, color=colour)
    axis.set(xlim=(experiment.at[0] - 3, last + 12), xticks=experiment.at, xlabel="evaluations")
    axis.set_title("the paper:\nMNIST, 60,000 images", fontsize=9)
    axis.grid(alpha=0.25)


def _line(axis: Any, row: dict[str, Any], colour: str, dash: str, marks: list[int], shift: float) -> None:
    """Draw the mean and one standard deviation, as a band for highlighted methods and as bars for the rest."""
    mean, deviation = np.array(row["mean"], float), np.nan_to_num(np.array(row["deviation"], float))
    steps = np.arange(1, len(mean) + 1)
    rule = f", {row['convention']}" if row["convention"] else ""
    width = 2.4 if row["method"] == "hybrid" else 1.4
    axis.plot(steps, mean, color=colour, ls=dash, lw=width, label=f"{row['method']}{rule} (n = {row['runs']})")
    if row["method"] in BANDS:
        axis.fill_between(steps, mean - deviation, mean + deviation, color=colour, alpha=0.13, lw=0)
    else:
        at = np.array(marks) - 1
        axis.errorbar(steps[at] + shift, mean[at], deviation[at], color=colour, ls="", capsize=2, lw=1)


def styles(names: list[str]) -> list[tuple[str, str]]:
    """Return a colour and a dash per line. No two lines share both."""
    free = [k for k in range(len(COLOURS)) if k not in ALWAYS.values()]
    pool = cycle([(COLOURS[k], d) for d in DASHES for k in free])
    return [(COLOURS[ALWAYS[n]], "-") if n in ALWAYS else next(pool) for n in names]
