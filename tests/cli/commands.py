"""Calls of the command line, in the current process and, for signals, in another."""

from __future__ import annotations

import signal
import subprocess
import sys

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


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mipcash", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible
    )


def interruptible() -> None:
    """Restore the default SIGINT handler, because background shells ignore SIGINT and child processes inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
