"""The commands ``mipcash report`` and ``mipcash dash``: a run as one HTML page, or as a page that is updated during the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipcash.cli.options import Debug, JournalOptions, Place
from mipcash.cli.printing import errors, say, show_table
from mipcash.errors import ModelError
from mipcash.study.text import visible

if TYPE_CHECKING:
    from mipcash.report.data.run import Place as Known
    from mipcash.study.storage.protocol import StudyRecord

ModelFile = Annotated[
    str | None,
    typer.Option("--model", metavar="FILE", help="The model, or a file that declares `space`; loading it runs it."),
]
Trusted = Annotated[
    list[Path] | None,
    typer.Option("--trust", metavar="FOLDER", help="A model file that the journal names may lie here; repeatable."),
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
    trust: Trusted = None,
    option: JournalOptions = None,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page of a run, with pictures; it needs no network."""
    with errors(debug):
        from mipcash.cli import archive
        from mipcash.report.data.run import Run
        from mipcash.report.page.writing import write_page
        from mipcash.study.storage.registry import read_study

        where = archive.place_of(journal)
        stored = read_study(where)
        place, lacking = space_of(where, stored[0], model, option, trust, "report")
        target = write_page(
            Run.of(where, place, stored), output or archive.page_path(where, stored[0]), lacking=lacking
        )
        say(f"report: {target}")
        _say_lacking(lacking)


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
        from mipcash.report.convergence import save_comparison
        from mipcash.report.files import mode_of

        runs = [archive.open_archive(archive.place_of(journal)) for journal in journals]
        titles = [run.title for run in runs]
        if len(set(titles)) < len(titles):  # runs with equal titles are distinguished by their paths
            titles = [f"{k}: {visible(str(run.path))}" for k, run in enumerate(runs, 1)]
        results = {title: run.result for title, run in zip(titles, runs, strict=True)}
        show_table(result_tables.comparison_table(results))
        if plot is not None:
            say(f"picture: {save_comparison(results, plot, kind, mode=min(map(mode_of, (run.path for run in runs))))}")


def dash(
    journal: Place,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="To listen on; default: 8765, or the next free one.")
    ] = None,
    model: ModelFile = None,
    trust: Trusted = None,
    option: JournalOptions = None,
    debug: Debug = False,
) -> None:
    """Serve the page of `mipcash report` to a browser on this machine, updated during a run; Ctrl-C ends it."""
    with errors(debug):
        from mipcash.cli import archive
        from mipcash.report.server import Watched, dashboard
        from mipcash.study.storage.registry import read_study

        where = archive.place_of(journal)
        record, _ = read_study(where)
        watched = Watched(where, *space_of(where, record, model, option, trust, "dash"))
        watched.run()
        with dashboard(watched, port) as server:
            say(f"{server.url}  (reachable from this machine only; Ctrl-C stops the page, not the run)")
            _say_lacking(watched.lacking)
            try:
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                say("ended")


def _say_lacking(lacking: str) -> None:
    if lacking:
        say(f"parts of the page that need the space are missing; to include them: {lacking}", err=True)


def space_of(
    journal: Path | str,
    record: StudyRecord,
    model: str | None,
    typed: Sequence[str] | None,
    trusted: Sequence[Path] | None,
    command: str,
) -> tuple[Known | None, str]:
    """Return the space of a journal and an empty text, or None and how to provide it. Code is run only with the user's consent.

    Models that are part of mipcash are loaded without consent if the journal holds no options for them.

    Args:
        typed, trusted: ``--option`` and ``--trust``.

    Raises:
        ModelError: the model that the user gives cannot be loaded.
    """
    from mipcash.cli import consent, modelfile
    from mipcash.report.data.run import Place as Known
    from mipcash.study.storage.address import Address

    options = modelfile.pairs(typed or [])
    shown = Address.of(journal).without_password if isinstance(journal, str) else str(journal)
    again = ["mipcash", command, shown, "--model"]
    if model is not None:
        same = record.model is not None and modelfile.is_path(model) == modelfile.is_path(record.model)
        if same and record.options and not options:
            return None, shlex.join([*again, model, *consent.typed_options(record)])
        return Known(modelfile.load_space(model, options)), ""
    if record.model is None:
        return None, f"{shlex.join(again)} FILE, where FILE declares it as `space`"
    trusts = not modelfile.is_path(record.model) or consent.lies_in(Path(record.model), trusted or ())
    if not trusts or (record.options and not options):
        return None, shlex.join([*again, record.model, *consent.typed_options(record)])
    try:
        return Known(modelfile.load_space(record.model, options)), ""
    except ModelError as error:
        return None, f"its model cannot be loaded: {error}"
