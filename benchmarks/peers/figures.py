"""Figures: the average rank over evaluations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.report import Collection
from benchmarks.records import saved

TITLES = {"repair": "illegal suggestions repaired", "penalty": "illegal suggestions penalised"}


def draw(found: Collection, folder: Path, budget: int = 60) -> list[Path]:
    """Write ``rank-<convention>.svg``, and return the paths."""
    from matplotlib.figure import Figure

    made = []
    for convention in filter(found.pairs, CONVENTIONS):
        runs, pairs = found.runs[convention], found.pairs(convention)
        best = np.array([[of[p].best()[:budget] for p in pairs] for of in runs.values()])  # (methods, pairs, budget)
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axis = figure.subplots()
        for method, curve in zip(runs, rankdata(best, axis=0).mean(axis=1), strict=True):
            axis.plot(np.arange(1, budget + 1), curve, label=method)
        axis.set(xlabel="evaluations", ylabel="average rank", title=f"{TITLES[convention]}, {len(pairs)} runs")
        axis.legend(fontsize=7, ncols=2)
        made.append(saved(figure, folder / f"rank-{convention}.svg", dpi=110))
    return made
