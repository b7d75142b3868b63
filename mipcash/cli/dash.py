"""The command ``mipcash dash``: the report of a run, live."""

from __future__ import annotations

from typing import Annotated

import typer

from mipcash.cli.options import Debug, JournalOptions, Place
from mipcash.cli.printing import errors, say
from mipcash.cli.report import ModelFile, Trusted, space_of


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
    """The page of `mipcash report`, live in a browser on this machine while a run goes on; Ctrl-C ends it."""
    with errors(debug):
        from mipcash.cli import archive
        from mipcash.report.server import Watched, dashboard
        from mipcash.study.storage.registry import read_study

        where = archive.place_of(journal)
        record, _ = read_study(where)
        place, lacking = space_of(where, record, model, option or [], trust or (), "dash")
        watched = Watched(where, place, lacking)
        watched.run()
        with dashboard(watched, port) as server:
            say(f"{server.url}  (this machine alone; Ctrl-C ends it, and not the run)")
            if lacking:
                say(f"without the space, so without what needs it: {lacking}", err=True)
            try:
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                say("ended")
