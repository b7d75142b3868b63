"""Pictures of results: ``write_page`` writes the page of a run, the other functions draw on matplotlib axes.

data/ has the data of every picture, page/ the HTML page with its charts, axes and drawing the matplotlib version of the charts,
contour, residuals, convergence and comparison further ones. predictions has numbers of the model of the loss, files writes what is
derived from a journal, failures finds the settings with which evaluations fail, server serves the page of a run in progress. No
module of the core imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipcash.lazy import attributes_of

_HOMES = {
    "compare_runs": "mipcash.report.comparison",
    "importances": "mipcash.report.predictions",
    "plot_contour": "mipcash.report.contour",
    "plot_convergence": "mipcash.report.axes",
    "plot_front": "mipcash.report.axes",
    "plot_gaps": "mipcash.report.axes",
    "plot_importance": "mipcash.report.axes",
    "plot_interactions": "mipcash.report.axes",
    "plot_limits": "mipcash.report.axes",
    "plot_parallel_coordinates": "mipcash.report.axes",
    "plot_residuals": "mipcash.report.axes",
    "plot_slice": "mipcash.report.axes",
    "plot_timeline": "mipcash.report.axes",
    "plot_times": "mipcash.report.axes",
    "predict": "mipcash.report.predictions",
    "write_page": "mipcash.report.page.writing",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from mipcash.report.axes import plot_convergence as plot_convergence
    from mipcash.report.axes import plot_front as plot_front
    from mipcash.report.axes import plot_gaps as plot_gaps
    from mipcash.report.axes import plot_importance as plot_importance
    from mipcash.report.axes import plot_interactions as plot_interactions
    from mipcash.report.axes import plot_limits as plot_limits
    from mipcash.report.axes import plot_parallel_coordinates as plot_parallel_coordinates
    from mipcash.report.axes import plot_residuals as plot_residuals
    from mipcash.report.axes import plot_slice as plot_slice
    from mipcash.report.axes import plot_timeline as plot_timeline
    from mipcash.report.axes import plot_times as plot_times
    from mipcash.report.comparison import compare_runs as compare_runs
    from mipcash.report.contour import plot_contour as plot_contour
    from mipcash.report.page.writing import write_page as write_page
    from mipcash.report.predictions import importances as importances
    from mipcash.report.predictions import predict as predict


if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__, _HOMES)
