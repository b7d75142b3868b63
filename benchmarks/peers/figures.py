"""Figures: regret curves per problem, and the average rank over evaluations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.report import Collection, floors

COLUMNS = 4
TITLES = {"repair": "illegal suggestions repaired", "penalty": "illegal suggestions penalised"}


def draw(found: Collection, folder: Path, budget: int = 60) -> list[Path]:
    """Write ``regret-<convention>.png`` and ``rank-<convention>.svg``, and return their paths."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "mipcash"  # equal results make equal files
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for convention in CONVENTIONS:
        if found.pairs(convention):
            made += [_regrets(found, convention, folder, budget), _ranks(found, convention, folder, budget)]
    return made


def _regrets(found: Collection, convention: str, folder: Path, budget: int) -> Path:
    import matplotlib.pyplot as plt

    runs, pairs = found.runs[convention], found.pairs(convention)
    names = list(dict.fromkeys(p for p, _ in pairs))
    least = floors(runs, names)
    rows = math.ceil(len(names) / COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(3.4 * COLUMNS, 2.4 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names, strict=False):
        seeds = [s for p, s in pairs if p == name]
        for method, of in runs.items():
            curves = np.array([of[name, s].best()[:budget] for s in seeds]) - least[name]
            low, middle, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
            (line,) = axis.plot(np.arange(1, budget + 1), middle, label=method, lw=1.2)
            axis.fill_between(np.arange(1, budget + 1), low, high, color=line.get_color(), alpha=0.12, lw=0)
        axis.set_title(f"{name} (n = {len(seeds)})", fontsize=8)
        axis.set_yscale("symlog", linthresh=max(1e-9, 1e-3 * float(np.abs(axis.dataLim.y1))))
        axis.tick_params(labelsize=6)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return _saved(figure, folder / f"regret-{convention}.png")


def _ranks(found: Collection, convention: str, folder: Path, budget: int) -> Path:
    import matplotlib.pyplot as plt

    runs, pairs = found.runs[convention], found.pairs(convention)
    best = np.array([[of[p].best()[:budget] for p in pairs] for of in runs.values()])  # (methods, pairs, budget)
    ranks = rankdata(best, axis=0).mean(axis=1)
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for method, curve in zip(runs, ranks, strict=True):
        axis.plot(np.arange(1, budget + 1), curve, label=method)
    axis.set(xlabel="evaluations", ylabel="average rank", title=f"{TITLES[convention]}, {len(pairs)} runs")
    axis.legend(fontsize=7, ncols=2)
    return _saved(figure, folder / f"rank-{convention}.svg")


def _saved(figure: object, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={} if path.suffix == ".png" else {"Date": None}, dpi=110)  # type: ignore[attr-defined]
    plt.close("all")
    return path
