"""Figures: the average rank over evaluations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.report import Collection

TITLES = {"repair": "illegal suggestions repaired", "penalty": "illegal suggestions penalised"}


def draw(found: Collection, folder: Path, budget: int = 60) -> list[Path]:
    """Write ``rank-<convention>.svg``, and return the paths."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "mipcash"  # equal results make equal files
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for convention in CONVENTIONS:
        if found.pairs(convention):
            made.append(_ranks(found, convention, folder, budget))
    return made


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

    figure.savefig(path, metadata={"Date": None}, dpi=110)  # type: ignore[attr-defined]
    plt.close("all")
    return path
