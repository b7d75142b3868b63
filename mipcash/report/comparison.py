"""Several runs of one objective in one picture: their best values so far, their ranks, or the distributions of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import MipcashError
from mipcash.report.data.convergence import Curve, curve, shared_objective
from mipcash.report.data.run import Run, Source
from mipcash.report.drawing import add_legend, draw_best_so_far, draw_steps, dress, new_axes
from mipcash.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("convergence", "rank", "distribution")


def compare_runs(runs: Mapping[str, Source], kind: str = "convergence", *, ax: Axes | None = None) -> Axes:
    """Plot several runs of the same objective on the same axes.

    Args:
        runs: name -> a result, a study, or the path of a journal.
        kind: ``convergence``: the best value so far. ``rank``: the rank of each run's best value so far among the runs, from 1
            for the best; runs that are equal share their mean rank, and a run that ended keeps its best value.
            ``distribution``: the share of a run's evaluations that are at least as good as a value; failed and infeasible
            evaluations are as good as none.
        ax: axes to draw on; None: new axes.

    Returns:
        The axes.

    Raises:
        MipcashError: there are no runs, ``kind`` is invalid, the runs have several objectives or different ones, or matplotlib
            is missing.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import compare_runs
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> runs = {}
        >>> for name in ("random", "hybrid"):
        ...     runs[name] = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer=name, progress=False)
        >>> compare_runs(runs, "rank").get_ylabel()
        'rank of the best value so far'
    """
    check_kind(kind)
    if not isinstance(runs, Mapping) or not runs:
        raise MipcashError(f"a comparison needs runs by name, such as {{'a': result, 'b': 'b.db'}}; got {shown(runs)}")
    curves = {name: curve(Run.of(source).result) for name, source in runs.items()}
    shared_objective(c.objectives for c in curves.values())
    axes = new_axes(ax)
    draw_comparison(axes, curves, kind)
    add_legend(axes)
    return axes


def check_kind(kind: str) -> None:
    """Check the kind of a picture of several runs.

    Raises:
        MipcashError: there is no such kind.
    """
    if kind not in KINDS:
        raise MipcashError(f"runs are compared by {', '.join(map(repr, KINDS))}; got {shown(kind)}")


def draw_comparison(axes: Axes, curves: Mapping[str, Curve], kind: str) -> None:
    """Draw the picture of ``compare_runs``, without a legend."""
    objectives = next(iter(curves.values())).objectives
    if kind == "rank":
        x = np.arange(1, 1 + max(c.last for c in curves.values()))
        for name, rank in zip(curves, ranks(list(curves.values())), strict=True):
            draw_steps(axes, x, rank, name)
        axes.yaxis.set_inverted(True)  # the best run is at the top
        dress(axes, "evaluation", "rank of the best value so far")
    elif kind == "distribution":
        for name, c in curves.items():
            draw_steps(axes, *distribution(c), name)
        axes.set_ylim(0.0, 1.02)
        if objectives.maximised:
            axes.xaxis.set_inverted(True)  # values become worse to the right in each direction
        dress(axes, objectives.word, "share of the evaluations that are as good")
    else:
        for name, c in curves.items():
            draw_best_so_far(axes, c, False, name)


def ranks(curves: list[Curve]) -> NDArray[np.float64]:
    """Return the ranks of the runs' best values so far, shape (n_runs, largest number of trials); 1 is the best."""
    from scipy.stats import rankdata

    best = np.full((len(curves), max(c.last for c in curves)), np.inf)
    for row, c in zip(best, curves, strict=True):
        for at, value in zip(c.step_x, c.objectives.sign * c.step_y, strict=True):
            row[int(at) - 1 :] = value
    return np.asarray(rankdata(best, axis=0), dtype=float)


def distribution(c: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of the feasible complete evaluations, best first, and the share of all evaluations that are as good."""
    sign, total = c.objectives.sign, len(c.loss) + len(c.failed)
    values = np.sort(sign * c.loss[~c.infeasible & ~c.incomplete])
    return sign * values, np.arange(1, 1 + len(values)) / max(1, total)
