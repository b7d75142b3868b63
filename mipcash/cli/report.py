"""The commands ``mipcash report`` and ``mipcash dash``: a run as one HTML page, or as a page that is updated during the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipcash.cli.options import Debug, JournalOptions, Place
from mipcash.cli.printing import errors, say, show_table
from mipcash.errors import ModelError
from mipcash.text import visible

if TYPE_CHECKING:
    from mipcash.report.data.run import Run
    from mipcash.space.space import Space

ModelFile = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="A file that declares `space`, for a space on a Pyomo model; loading it runs it.",
    ),
]


def report(
    journal: Place,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="RUN.HTML", help="Default: next to the journal; of a database, STUDY.html."
        ),
    ] = None,
    model: ModelFile = None,
    option: JournalOptions = None,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page of a run, with pictures; it needs no network."""
    with errors(debug):
        from mipcash.cli import archive
        from mipcash.report.data.run import Run
        from mipcash.report.page.writing import write_page

        where = archive.place_of(journal)
        run = Run.of(where, _space(model, option))
        target = write_page(run, output or archive.page_path(where, run.title))
        say(f"report: {target}")
        _say_lacking(run)


def compare(
    journals: Annotated[
        list[str], typer.Argument(metavar="RUN.DB...", help="Journals of runs, or addresses of databases.")
    ],
    plot: Annotated[Path | None, typer.Option(help="Draw the runs in this file, .png or .svg.")] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="convergence|rank|distribution",
            help="What to draw: best values so far, ranks of the runs, or distributions of the values.",
        ),
    ] = "convergence",
    debug: Debug = False,
) -> None:
    """Compare runs of the same objective: best values, and after how many evaluations they were found."""
    with errors(debug):
        from mipcash.cli import archive, result_tables
        from mipcash.report.comparison import check_kind
        from mipcash.report.convergence import save_comparison
        from mipcash.report.files import mode_of

        check_kind(kind)
        runs = [archive.open_archive(archive.place_of(journal)) for journal in journals]
        titles = [run.title for run in runs]
        if len(set(titles)) < len(titles):  # runs with equal titles are distinguished by their paths
            titles = [f"{k}: {visible(str(run.path))}" for k, run in enumerate(runs, 1)]
        results = {title: run.result for title, run in zip(titles, runs, strict=True)}
        show_table(result_tables.comparison_table(results))
        if len(spaces := sorted({run.record.space for run in runs})) > 1:
            say(visible(f"the runs search different spaces ({', '.join(spaces)}): their values may not be comparable"))
        if plot is not None:
            say(f"picture: {save_comparison(results, plot, kind, mode=min(map(mode_of, (run.path for run in runs))))}")


def dash(
    journal: Place,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="To listen on; default: 8765, or the next free one.")
    ] = None,
    model: ModelFile = None,
    option: JournalOptions = None,
    debug: Debug = False,
) -> None:
    """Serve the page of `mipcash report` to a browser on this machine, updated during a run; Ctrl-C ends it."""
    with errors(debug):
        from mipcash.cli import archive
        from mipcash.report.server import Watched, dashboard

        watched = Watched(archive.place_of(journal), _space(model, option))
        _, run = watched.run()
        with dashboard(watched, port) as server:
            say(f"{server.url}  (reachable from this machine only; Ctrl-C stops the page, not the run)")
            _say_lacking(run)
            try:
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                say("ended")


def _space(model: str | None, options: Sequence[str] | None) -> Space | None:
    """Return the space of a model file that the user names; None: the journal describes it.

    Raises:
        ModelError: the model cannot be loaded.
    """
    if model is None:
        if options:
            raise ModelError("--option is of the model; give --model FILE too, or leave it out")
        return None
    from mipcash.cli import modelfile

    return modelfile.load_space(model, modelfile.pairs(options or []))


def _say_lacking(run: Run) -> None:
    if run.place is None:
        say(
            "parts of the page that need the space are missing; to include them, give its file by --model FILE",
            err=True,
        )
