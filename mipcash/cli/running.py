"""Execution of a run on the command line, with its output."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer

from mipcash.cli import archive, consent, ending, modelfile
from mipcash.cli.json_lines import JsonLines, write_result
from mipcash.cli.plans import Plan
from mipcash.cli.printing import fail, say
from mipcash.errors import ConfigurationError, DefectError, ModelError, StorageError
from mipcash.study.minimize import run as run_study
from mipcash.study.study import Study
from mipcash.text import visible

INTERRUPTED = 130


def start(plan: Plan, stream: TextIO | None = None) -> None:
    """Run a plan, and print the result.

    Args:
        stream: gets JSON instead of all other output; None: text is printed.

    Raises:
        DefectError: the objective is broken; the message has the command to go on.
        StorageError: the folder of the journal cannot be made.
        typer.Exit: the run was interrupted, or found no best trial.
    """
    display, loaded, amount = None if stream is None else JsonLines(stream), plan.model, plan.budget.amount
    quiet = plan.typed["quiet"]
    if isinstance(plan.storage, Path) and plan.storage.parent == archive.FOLDER:
        try:
            plan.storage.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"the folder for journals cannot be made: {error}; give --storage FILE") from error
    if not quiet:
        with_what = f"{plan.method.optimizer} and {plan.method.solver}, seed {plan.seed}"
        say(visible(f"{loaded.title}: {plan.paying} with {with_what}"))
    starts = loaded.starts()[: amount if isinstance(amount, int) else None]
    try:
        # an objective may change the folder; paths of the user are relative to the current one
        with (
            contextlib.chdir(os.curdir),
            Study(
                loaded.space,
                plan.method,
                direction=plan.direction,
                seed=plan.seed,
                storage=plan.storage,
                limits=plan.limits,
                costs=plan.costs(),
                pruning=plan.pruning,
                model=loaded.reference,
                options=plan.options,
            ) as study,
        ):
            for config in starts:
                try:
                    study.enqueue(config)
                except ConfigurationError as error:
                    raise ModelError(f"starts() of {loaded.title}: {error}") from error
            result = run_study(
                study,
                loaded.objective,
                plan.budget,
                execution=plan.execution,
                confirm=plan.confirm,
                progress=display or (False if quiet else None),
            )
    except KeyboardInterrupt:
        _interrupted(plan, stream)
    except SystemExit as error:
        fail(
            f"error: the objective called sys.exit({error.code!r}), which ends the run; raise another exception to fail a trial"
        )
        _interrupted(plan, stream)
    except DefectError as error:
        raise DefectError(f"{error}.\nTo go on, once it is corrected: {_resume_command(plan)}") from error
    old = archive.open_archive(plan.storage)
    closing = _report(loaded, result) if stream is None else ""
    picture = archive.picture_path(old.path) if isinstance(old.path, Path) else None
    ending.close(old, picture, closing, stream, _beyond(plan))
    if result.best is None:
        raise typer.Exit(1)


def _interrupted(plan: Plan, stream: TextIO | None = None) -> NoReturn:
    if stream is not None:
        with contextlib.suppress(StorageError):  # interrupted before anything was written
            write_result(stream, archive.open_archive(plan.storage))
    say("\nstopped; nothing that was evaluated is lost. To go on:\n")
    say(f"    {_resume_command(plan)}\n")
    if plan.execution.workers > 1:
        # Python waits for the threads of running evaluations before it exits, which Ctrl-C should cut short. The journal is
        # closed and holds their trials.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    raise typer.Exit(INTERRUPTED)


def _resume_command(plan: Plan) -> str:
    try:
        return consent.resume_command(plan.storage, archive.open_archive(plan.storage).record) + _beyond(plan)
    except StorageError:  # interrupted before anything was written; an address may have a password
        again = shlex.join(["mipcash", *sys.argv[1:]])
        return again if isinstance(plan.storage, Path) else consent.resume_command(plan.storage) + _beyond(plan)


def _beyond(plan: Plan) -> str:
    """Return the options to append to the command that resumes a run; the journal has its budget in evaluations."""
    words = consent.repeated(plan.typed, [name for name in consent.REPEATED if name != "budget"])
    return "".join(f" {shlex.quote(word)}" for word in words)


def _report(loaded: modelfile.Model, result: Any) -> str:
    """Return the model's own report on the result; if it fails, print the error and return an empty text."""
    if result.best is None:
        return ""
    try:
        return loaded.report(result)
    except ModelError as error:
        fail(str(error))
        return ""
