"""The command ``mipcash report``: a run as one HTML page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipcash.cli.printing import errors, say
from mipcash.errors import ModelError

if TYPE_CHECKING:
    from mipcash.report.data.run import Place
    from mipcash.study.storage.base import StudyRecord

Journal = Annotated[Path, typer.Argument(metavar="RUN.DB", help="The journal of a run, also of one that goes on.")]
ModelFile = Annotated[
    str | None,
    typer.Option("--model", metavar="FILE", help="The model, or a file that declares `space`; loading it runs it."),
]
Trusted = Annotated[
    list[Path] | None,
    typer.Option("--trust", metavar="FOLDER", help="A model file that the journal names may lie here; repeatable."),
]


def report(
    journal: Journal,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="RUN.HTML", help="Default: next to the journal.")
    ] = None,
    model: ModelFile = None,
    trust: Trusted = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """One HTML page of a run, with pictures: it needs no network and nothing beside itself."""
    with errors(debug):
        from mipcash.report.data.run import Run
        from mipcash.report.page.writing import write_page
        from mipcash.study.storage.sqlite.reading import read_journal

        record, _ = read_journal(journal)
        place, lacking = place_of(journal, record, model, trust or (), "report")
        target = write_page(Run.of(journal, place), output or journal.with_suffix(".html"), lacking=lacking)
        say(f"report: {target}")
        if lacking:
            say(f"without the space, so without what needs it: {lacking}", err=True)


def place_of(
    journal: Path, record: StudyRecord, model: str | None, trusted: list[Path] | tuple[Path, ...], command: str
) -> tuple[Place | None, str]:
    """The space of a journal, or how to bring it: what a journal names is run only where the user says so.

    Models that came with mipcash need no asking.

    Raises:
        ModelError: the model that the user gives cannot be loaded.
    """
    from mipcash.cli import consent, modelfile
    from mipcash.report.data.run import Place

    if model is not None:
        same = record.model is not None and modelfile.is_path(model) == modelfile.is_path(record.model)
        return Place(modelfile.load_space(model, record.options if same else {})), ""
    again = shlex.join(["mipcash", command, str(journal), "--model"])
    if record.model is None:
        return None, f"{again} FILE, where FILE declares it as `space`"
    if modelfile.is_path(record.model) and not consent.lies_in(Path(record.model), trusted):
        return None, f"{again} {shlex.quote(record.model)}"
    try:
        return Place(modelfile.load_space(record.model, record.options)), ""
    except ModelError as error:
        return None, f"its model cannot be loaded: {error}"
