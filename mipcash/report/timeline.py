"""Timeline of a run: when each evaluation ran, beside those that ran at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mipcash.errors import MipcashError
from mipcash.report.data.convergence import span_of, time_unit
from mipcash.report.data.run import Run, Source
from mipcash.report.drawing import CROSS, DOT, INK, RING, dress, new_axes
from mipcash.space.space import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_timeline(source: Source, *, ax: Axes | None = None, space: Space | None = None) -> Axes:
    """Plot the time from start to end of every evaluation; evaluations that overlap lie on different rows.

    The number of rows is the largest number of evaluations at a time, and gaps in a row are idle workers.

    Args:
        source: a result, a study, or the path of a journal.
        ax: axes to draw on; None: new axes.
        space: space of a journal; not needed.

    Returns:
        The axes.

    Raises:
        MipcashError: no evaluation has a time, matplotlib is missing, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_timeline
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_timeline(run).get_ylabel()
        'worker'
    """
    axes, run = new_axes(ax, (9.0, 3.5)), Run.of(source, space)
    from matplotlib.ticker import MaxNLocator

    trials = [t for t in run.result.history if t.started and not t.known]
    if not trials:
        raise MipcashError("there is no timeline: no evaluation of this run has started here")
    spans = [span_of(t) for t in trials]
    began, ended = min(begin for begin, _ in spans), max(end for _, end in spans)
    spans = [(begin, ended if t.pending else end) for t, (begin, end) in zip(trials, spans, strict=True)]
    unit, name = time_unit(ended - began)
    at = rows(spans)
    kinds = (("succeeded", DOT), ("failed", CROSS), ("pruned", RING), ("running", INK))
    of_kind = [
        "running" if t.pending else "failed" if t.failed else "pruned" if t.pruned else "succeeded" for t in trials
    ]
    for kind, color in kinds:
        chosen = [k for k, one in enumerate(of_kind) if one == kind]
        left = [(spans[k][0] - began) / unit for k in chosen]
        width = [(spans[k][1] - spans[k][0]) / unit for k in chosen]
        if chosen:
            axes.barh(
                [at[k] + 1 for k in chosen], width, left=left, height=0.7, color=color, label=kind, edgecolor="white"
            )
    axes.set_ylim(0.4, max(at) + 1.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    dress(axes, f"time since the first start ({name})", "worker")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)
    return axes


def rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, from 0, so that spans of one row do not overlap and there are as few rows as possible."""
    ends, chosen = list[float](), [0] * len(spans)
    for k in sorted(range(len(spans)), key=lambda k: spans[k]):
        begin, end = spans[k]
        row = next((r for r, last in enumerate(ends) if last <= begin), len(ends))
        ends[row : row + 1] = [end]
        chosen[k] = row
    return chosen
