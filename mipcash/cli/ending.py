"""The end of ``run``, ``resume`` and ``show``: what a journal holds, for people or as JSON. Pyomo and the model are not needed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TextIO

from mipcash.cli import archive, result_tables
from mipcash.cli.json_lines import write_result
from mipcash.cli.printing import say, show_table
from mipcash.study.finalists import text_of


def close(old: archive.Archive, picture: Path | None, report: str = "", stream: TextIO | None = None) -> None:
    """Print the end of ``run``, ``resume`` and ``show``: best configuration, summary, report, picture, journal.

    Args:
        picture: the file to draw the convergence in; None: nothing is drawn.
        stream: gets the result as JSON instead; None: text is printed.
    """
    if stream is not None:
        write_result(stream, old)
        return
    result = old.result
    if result.best is not None and result.objectives.several:
        show_table(result_tables.front_table(result))
    if result.best is not None:
        show_table(result_tables.config_table(result.best.config, f"best configuration of {old.record.space}"))
    elif result.under and result.nearest is not None:
        lacking = "nothing satisfies all constraints" if result.nearest.violations else "no loss is known"
        show_table(result_tables.config_table(result.nearest.config, f"{lacking}; {result.nearest}"))
    show_table(result_tables.summary(result))
    if result.finalists:
        best = None if result.best is None else result.best.number
        say("\n" + "\n".join(text_of(result.finalists, best, result.objectives.maximised)))
    if result.under:
        say(f"\n{result.limits}")
    if report:
        say(f"\n{report.rstrip()}")
    say("")
    if result.history and picture is not None:
        say(f"picture: {_picture(old, picture)}")
    say(f"journal: {old.path}")
    if old.record.model is not None and old.record.budget and not old.finished(old.record.budget):
        from mipcash.cli import consent  # imports Pyomo

        say(f"to go on: {consent.resume_command(old.path, old.record)}")


def _picture(old: archive.Archive, plot: Path) -> str:
    """Return the path of the picture, or how to get one."""
    from mipcash.report.convergence import save_convergence
    from mipcash.report.drawing import drawable
    from mipcash.report.files import mode_of

    if not drawable():
        command = ["mipcash", "show", str(old.path), "--plot", str(plot)]
        return f"none without matplotlib; pip install 'mipcash[plots]', then {shlex.join(command)}"
    return str(save_convergence(old.result, plot, old.title, mode=mode_of(old.path)))
