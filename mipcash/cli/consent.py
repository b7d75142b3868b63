"""Consent of the user before code that a journal names is run.

A journal holds the path of its model file, and perhaps of a solver profile. Loading either runs code. A journal may come from an
untrusted source, and so may the file that is now at that path. Hence nothing is loaded by a path from a journal unless the user
names the path, names its folder, or agrees at a prompt that shows the resolved file. A model that is part of mipcash is named
without a path and needs no consent. Its options need consent, because an option may name a file to read or a data set to download.
Options of a journal are used only if the user types them or agrees at the prompt.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from mipcash.backends.registry import solver_names, split_options
from mipcash.cli import modelfile
from mipcash.errors import ModelError, SolverError, StorageError
from mipcash.study.storage.address import Address
from mipcash.study.storage.lock import real_path
from mipcash.study.storage.protocol import StudyRecord
from mipcash.text import shown, visible

REPEATED = (
    "budget",
    "cost",
    "steps",
    "timeout",
    "workers",
    "seconds_per_proposal",
    "evaluation_timeout",
    "evaluation_memory",
    "pruning",
    "confirm",
)
"""Options of a run that the command to go on repeats if they were typed."""
CURE = "it is of a script with its own, or damaged; run the script again, or start a new journal"


def agreed(journal: Path | str, record: StudyRecord, typed: Mapping[str, Any]) -> tuple[str, str, dict[str, str]]:
    """Return the model, the solver and the model's options that a command loads, after the user has agreed.

    Nothing is imported here.

    Args:
        typed: all options of ``mipcash resume`` or ``work`` by name; None: not given. Those that give consent are ``model``,
            ``solver``, ``trust`` (files in these folders may be run) and ``option``.

    Raises:
        ModelError: no model is known, or its file does not exist.
        StorageError: the user did not agree, or there is no terminal for the prompt.
    """
    model, folders = typed["model"] or record.model, typed.get("trust") or ()
    options = modelfile.pairs(typed["option"] or [])
    if model is None:
        raise ModelError(
            f"{journal} was written by a script and not by `mipcash run`, so the objective is not known here; "
            f"run the script again with storage={str(journal)!r} to resume it"
        )
    _check_known(journal, record)
    solver = _solver(record, typed["solver"])
    wanted = []  # description of each file or text to be loaded, with the command-line words that consent to it
    if typed["model"] is None and modelfile.is_path(model):
        file = real_path(Path(model))
        if not file.is_file():
            raise ModelError(
                f"the model file {file} that {journal} names does not exist; say where it is now: "
                f"{resume_command(journal)} --model FILE"
            )
        if not lies_in(file, folders):
            wanted.append((f"the model file {file}", ["--model", str(file)]))
    if typed["solver"] is None and loads_code(solver):
        name, settings = split_options(solver)
        profile = real_path(Path(name)) if name.endswith(".toml") else None
        if profile is None or settings or not lies_in(profile, folders):
            text = " ".join([str(profile or name), *(f"{key}={value}" for key, value in settings.items())])
            wanted.append((f"the solver {text}", ["--solver", text]))
    runs = bool(wanted)
    if record.options and not options:
        named = ", ".join(f"{key}={value}" for key, value in record.options.items())
        wanted.append((f"the options {named}", typed_options(record)))
    if wanted:
        _ask(journal, typed, wanted, runs)
    return model, solver, dict(options or record.options)


def typed_options(record: StudyRecord) -> list[str]:
    """Return the command-line words that give the options of a journal's model."""
    return [word for key, value in record.options.items() for word in ("--option", f"{key}={value}")]


def repeated(typed: Mapping[str, Any], names: Sequence[str] = REPEATED) -> list[str]:
    """Return the command-line words of those options that were typed."""
    given = [(name, typed[name]) for name in names if typed.get(name) is not None]
    return [word for name, value in given for word in (f"--{name.replace('_', '-')}", str(value))]


def resume_command(journal: Path | str, record: StudyRecord | None = None) -> str:
    """Return the command that resumes a run without a prompt.

    For a database it is ``mipcash work`` with the address, without the password.
    """
    words = _begin(journal)
    model = None if record is None else record.model
    if isinstance(journal, str) or (model is not None and modelfile.is_path(model)):
        words += ["--model", model or "FILE"]
    if record is not None and loads_code(record.solver):
        words += ["--solver", record.solver]
    if record is not None and model is not None:
        words += typed_options(record)
    return shlex.join(words)


def loads_code(solver: str) -> bool:
    """Return True if a solver is more than a name: a profile may import any class, and an option may write to any file."""
    return not solver.replace("-", "_").isidentifier()


def _check_known(journal: Path | str, record: StudyRecord) -> None:
    """Check that optimizer and solver exist, before anything is imported for them.

    Raises:
        StorageError: one of them does not.
    """
    from mipcash.optimizers.registry import optimizer_names  # imports surrogates and solvers

    try:
        solver = split_options(record.solver)[0]
    except SolverError as error:
        raise StorageError(f"{journal} names an invalid solver: {error}; {CURE}") from error
    for what, name, known in (
        ("optimizer", record.optimizer, optimizer_names()),
        ("solver", solver, solver_names()),
    ):
        if name not in known and not (what == "solver" and name.endswith(".toml")):
            raise StorageError(
                f"{journal} names the {what} {shown(name)}, which this mipcash does not have (it has {', '.join(known)}); {CURE}"
            )


def _solver(record: StudyRecord, typed: str | None) -> str:
    """Return the journal's text for the solver if the user gives none or the same profile, else the user's text.

    Opening the journal with another solver raises an error.
    """
    if typed is None:
        return record.solver
    (given, options), (stored, journaled) = split_options(typed), split_options(record.solver)
    profiles = given.endswith(".toml") and stored.endswith(".toml")
    same = profiles and real_path(Path(given)) == real_path(Path(stored)) and options == journaled
    return record.solver if same else typed


def lies_in(file: Path, folders: Sequence[Path]) -> bool:
    """Return True if a file, with its links resolved, lies in one of the folders."""
    file = real_path(file)
    return any(file.is_relative_to(real_path(folder)) for folder in folders)


def _ask(
    journal: Path | str, typed: Mapping[str, Any], wanted: Sequence[tuple[str, Sequence[str]]], runs: bool
) -> None:
    """Show what would be loaded, and ask for consent.

    Args:
        typed: all options of the command by name.
        wanted: description of each file or text to be loaded, with the command-line words that consent to it.
        runs: True if code would be loaded; False if only options of the model would be used.

    Raises:
        StorageError: there is no terminal, or the answer is no.
    """
    named = " and ".join(what for what, _ in wanted)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        folders = [word for folder in typed.get("trust") or () for word in ("--trust", str(folder))]
        words = [*repeated(typed, ("model", "solver")), *folders, *(word for _, some in wanted for word in some)]
        cure = shlex.join([*words, *repeated(typed)])
        loads = "to load what a journal names runs it"
        why = loads if runs else "a model may open a file or a data set that its options name"
        raise StorageError(
            f"{journal} names {named}, and {why}. If you trust it, run: {shlex.join(_begin(journal))} {cure}"
            + (" (or --trust FOLDER, where it lies)" if runs and "trust" in typed else "")
        )
    typer.echo(visible(f"{journal} names {named}"), err=True)
    question = "Loading runs it. Go on?" if runs else "The model may open what they name. Go on?"
    if not typer.confirm(question, default=False, err=True):
        raise StorageError(
            f"not resumed, and no code was run; for another file: {shlex.join(_begin(journal))} --model FILE"
        )


def _begin(journal: Path | str) -> list[str]:
    """Return the words of the command that resumes a journal, without options."""
    if isinstance(journal, str):
        return ["mipcash", "work", Address.of(journal).without_password]
    return ["mipcash", "resume", str(journal)]
