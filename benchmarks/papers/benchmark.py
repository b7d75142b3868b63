"""Registered benchmark ``papers``: docs/papers.md, the claims of five papers beside what our runs show of them.

It runs nothing itself: the benchmarks named on the page do. Smoke makes the table of the existing runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from benchmarks.papers.claims import CLAIMS, OUTSIDE, Claim
from benchmarks.papers.effects import CHANCE, NONE, NOT_RUN, REFUTED, REPRODUCED, SHARE, TIMES, estimate, verdict
from benchmarks.records import FOLDER, saved
from benchmarks.registry import benchmark, benchmarks

DOCS = FOLDER.parents[1] / "docs"
PAGE, PICTURE = DOCS / "papers.md", DOCS / "images" / "papers.svg"
COLOURS = {REPRODUCED: "#1b7837", REFUTED: "#b2182b", CHANCE: "#777777"}
PAPERS = {
    "liu2020": "Pipelines by ADMM: liu2020, ram2020",
    "perrone2019": "Constrained max-value entropy search: perrone2019",
    "ariafar2019": "ADMMBO: ariafar2019",
    "daxberger2019": "MiVaBO: daxberger2019",
}
HEAD = """# The papers' claims

mipcash has the methods of five papers. This page compares their claims with runs of the methods here. Of {n} claims {reproduced}
are reproduced, {refuted} are refuted, in {chance} cases the runs leave both possible, and {not_run} were not run.

![Estimates and intervals of the claims: right of the line agrees with the paper](images/papers.svg)

*Dot and bar: our estimate and its interval at 95 %. Diamond: the paper's figure. Vertical line: no effect; right of it the effect
has the paper's direction. Each row has its own scale, ratios are logarithmic.*

A claim is *reproduced* if the whole interval has its direction, and *refuted* if the whole interval has the other direction. That
two settings are equally good is reproduced if the interval lies within 0.8 and 1.25, and refuted if it lies outside. What is
claimed of every run is reproduced if every run has it, and refuted if fewer have it than 100 of 100 runs by Fisher's exact test.
Intervals of shares are Wilson's, of means Student's, and of medians by bootstrap. They are over runs, or over pairs of runs with
the same problem and seed, so they speak of these problems and not of others. No correction is made for the number of claims. Rows
without a result are not in the papers: they put a claim into context.

{tables}

Methods differ from the printed algorithms in points that the README of each folder of `mipcash/methods` lists.

## How much was run

`python -m benchmarks run NAME --size full` runs or continues a benchmark, and `python -m benchmarks run papers --size full` makes
this page. All runs are single-threaded, on two cores. Hours of evaluations are left out where evaluations are read from a table.

| benchmark | runs | seeds | CPU hours |
|---|---|---|---|
{hours}
"""


@benchmark("papers", "the claims of five papers, reproduced, refuted or not run: docs/papers.md")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = [row(claim) for claim in CLAIMS]
    results = {"rows": rows, "runs": runs()}
    if size != "smoke":
        PAGE.write_text(page(results), encoding="utf-8")
        draw(rows, PICTURE)
        progress(f"{PAGE} and {PICTURE} are written")
    return results


def row(claim: Claim) -> dict[str, Any]:
    """Return a claim with our estimate."""
    told = {"paper": claim.paper, "where": claim.where, "text": claim.text, "told": claim.told, "note": claim.note}
    values = claim.values() if claim.values else []
    if len(values) < 2:
        return {**told, "verdict": NOT_RUN}
    effect = estimate(values, claim.kind)
    found = {"kind": claim.kind, "figure": claim.figure, "benchmark": claim.benchmark, "claimed": claim.claimed}
    return {**told, **found, **vars(effect), "verdict": verdict(effect, claim.kind, claim.claimed)}


def runs() -> list[dict[str, Any]]:
    """Return the numbers of runs, seeds and CPU hours of the benchmarks' records."""
    found = []
    known = benchmarks()
    for name in dict.fromkeys(claim.benchmark for claim in CLAIMS if claim.benchmark):
        record = known[name].out or FOLDER / f"{name}.json"
        if not record.is_file():
            continue
        results = json.loads(record.read_text(encoding="utf-8"))["results"]
        hours = {k: float(v) for k, v in results.get("cpu_hours", {}).items()}
        found.append({"benchmark": name, "runs": results["runs"], "seeds": len(results["seeds"]), "hours": hours})
    return found


def page(results: Mapping[str, Any]) -> str:
    """Return docs/papers.md."""
    names = {"reproduced": REPRODUCED, "refuted": REFUTED, "chance": CHANCE, "not_run": NOT_RUN}
    claims = [r for r in results["rows"] if r["where"] != OUTSIDE]
    counts = {name: sum(r["verdict"] == v for r in claims) for name, v in names.items()}
    return HEAD.format(n=len(claims), **counts, tables=markdown(results), hours="\n".join(map(_hours, results["runs"])))


def _hours(r: Mapping[str, Any]) -> str:
    hours = ", ".join(f"{value:.2f} {what}" for what, value in r["hours"].items())
    return f"| `{r['benchmark']}` | {r['runs']} | {r['seeds']} | {hours} |"


def markdown(results: Mapping[str, Any]) -> str:
    """The tables for the page of results."""
    lines: list[str] = []
    for paper, title in PAPERS.items():
        lines += [f"## {title}", "", "| claim | the paper | here | unit | n | result |", "|---" * 6 + "|"]
        lines += [_line(r) for r in results["rows"] if r["paper"] == paper]
        lines.append("")
    return "\n".join(lines).rstrip()


def _line(r: Mapping[str, Any]) -> str:
    claim, told = f"{r['text']} ({r['where']})", r["told"] or "-"
    if r["verdict"] == NOT_RUN:
        return f"| {claim} | {told} | | {r['note']} | | {NOT_RUN} |"
    result = "" if r["where"] == OUTSIDE else f"**{r['verdict']}**"
    here = f"{_number(r['value'])} ({_number(r['low'])} to {_number(r['high'])})"
    return f"| {claim} | {told} | {here} | {r['note']}; `{r['benchmark']}` | {r['n']} | {result} |"


def _number(value: float) -> str:
    return f"{value:.3g}"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the estimates of all claims that were tested, each on its own scale."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    tested = [r for r in rows if r["verdict"] != NOT_RUN and r["where"] != OUTSIDE]
    figure = Figure(figsize=(9.0, 0.27 * len(tested) + 0.6))
    axes = figure.subplots()
    for y, r in enumerate(reversed(tested)):
        value, low, high, told = (None if v is None else position(v, r) for v in (r["value"], r["low"], r["high"], r["figure"]))
        largest = max(abs(v) for v in (value, low, high, told) if v is not None) or 1.0
        colour = COLOURS[r["verdict"]]
        axes.plot([low / largest, high / largest], [y, y], color=colour, linewidth=2)  # type: ignore[operator]
        axes.plot(value / largest, y, "o", color=colour, markersize=5)  # type: ignore[operator]
        if told is not None:
            axes.plot(told / largest, y, "D", color="black", markerfacecolor="none", markersize=6)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(tested)), [_label(r) for r in reversed(tested)], fontsize=7)
    axes.set_xlim(-1.1, 1.1)
    axes.set_xticks([])
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    handles = [Line2D([], [], color=c, marker="o", label=v) for v, c in COLOURS.items()]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.2, 1.0), ncols=3, frameon=False, fontsize=8)
    saved(figure, path, bbox_inches="tight")


def position(value: float, r: Mapping[str, Any]) -> float:
    """Return a value as a distance from no effect; shares from 1, on the left."""
    if r["kind"] == SHARE:
        return value - 1.0
    none = NONE[r["kind"]]
    return math.log(max(value, 0.01)) if none == NONE[TIMES] else value - none


def _label(r: Mapping[str, Any]) -> str:
    return f"{r['paper']}: {shorten(r['text'], 75, placeholder=' ...')}"
