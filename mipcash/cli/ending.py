"""The end of ``run``, ``resume`` and ``show``: what a journal holds, for people or as JSON. Pyomo and the model are not needed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TextIO

import typer

from mipcash.cli import archive
from mipcash.cli.json_lines import write_result
from mipcash.cli.printing import say


def close(
    old: archive.Archive, picture: Path | None, report: str = "", stream: TextIO | None = None, beyond: str = ""
) -> None:
    """Print the end of ``run``, ``resume`` and ``show``: best configuration, summary, report, picture, journal.

    Args:
        picture: the file to draw the convergence in; None: nothing is drawn.
        stream: gets the result as JSON instead; None: text is printed.
        beyond: options to append to the command that resumes the run.
    """
    if stream is not None:
        write_result(stream, old)
        return
    result, record = old.result, old.record
    say(str(result))
    if result.under:
        say(f"\n{result.limits}")
    if report:
        say(f"\n{report.rstrip()}")
    say("")
    if result.history and picture is not None:
        say(f"picture: {_picture(old, picture)}")
    say(f"journal: {old.path}")
    confirmed = record.stopped and any(t.repeat for t in result.history)
    if record.model is not None and record.budget and not old.finished(record.budget) and not confirmed:
        from mipcash.cli import consent  # imports Pyomo

        say(f"to go on: {consent.resume_command(old.path, record)}{beyond}")


def finished(old: archive.Archive, stream: TextIO | None = None) -> None:
    """Print the end of a run that has nothing left to evaluate.

    Raises:
        typer.Exit: it has no best trial.
    """
    say(old.ended)
    close(old, None, stream=stream)
    if old.result.best is None:
        raise typer.Exit(1)


def _picture(old: archive.Archive, plot: Path) -> str:
    """Return the path of the picture, or how to get one."""
    from mipcash.report.convergence import save_convergence
    from mipcash.report.drawing import drawable
    from mipcash.report.files import mode_of

    if not drawable():
        command = ["mipcash", "show", str(old.path), "--plot", str(plot)]
        return f"none without matplotlib; pip install 'mipcash[plots]', then {shlex.join(command)}"
    return str(save_convergence(old.result, plot, old.title, mode=mode_of(old.path)))
