"""The command ``mipcash dash``: the report of a run, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipcash.cli.printing import errors, say
from mipcash.cli.report import ModelFile, Trusted, place_of


def dash(
    journal: Annotated[Path, typer.Argument(metavar="RUN.DB", help="The journal of a run that goes on, or of any.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="To listen on; default: 8765, or the next free one.")
    ] = None,
    model: ModelFile = None,
    trust: Trusted = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """The page of `mipcash report`, live in a browser on this machine while a run goes on; Ctrl-C ends it."""
    with errors(debug):
        from mipcash.report.server import Watched, dashboard
        from mipcash.study.storage.sqlite.reading import read_journal

        record, _ = read_journal(journal)
        place, lacking = place_of(journal, record, model, trust or (), "dash")
        watched = Watched(journal, place, lacking)
        watched.run()
        with dashboard(watched, port) as server:
            say(f"{server.url}  (this machine alone; Ctrl-C ends it, and not the run)")
            if lacking:
                say(f"without the space, so without what needs it: {lacking}", err=True)
            try:
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                say("ended")
