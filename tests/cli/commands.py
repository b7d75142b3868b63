"""Calls of the command line in the current process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from mipcash.cli.main import app
from mipcash.study.storage.sqlite import read_journal


def mipcash(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=typed)


def said(code: int, *arguments: str) -> str:
    """Run a command, assert its exit code, and return its output on one line."""
    done = mipcash(*arguments)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def told(path: str) -> int:
    return sum(row.status != "pending" for row in read_journal(path)[1])
