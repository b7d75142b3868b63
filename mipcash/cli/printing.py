"""What every command prints with, and what it says of an error: one clean line and exit code 2.

Nothing here brings the engine along, so that ``mipcash --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from mipcash.errors import DefectError, MipcashError
from mipcash.study.text import visible


@contextmanager
def errors(debug: bool) -> Iterator[None]:
    """One clean line and exit code 2 for what mipcash raises on purpose."""
    try:
        yield
    except MipcashError as error:
        if debug:
            say(traceback.format_exc(), err=True)
        fail(f"error: {error}", lines=isinstance(error, DefectError))
        raise typer.Exit(2) from None
    except BrokenPipeError:  # `mipcash show run.db | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def plain_text(text: str, style: str = "", **options: Any) -> Text:
    """Text for the terminal in which names and messages are what they are: no markup, no escape sequences."""
    return Text(visible(text), style=style, **options)


def fail(message: str, lines: bool = False) -> None:
    """A red text; ``lines``: of several lines, as a traceback is."""
    for line in message.split("\n") if lines else [message]:
        Console(stderr=True, soft_wrap=True).print(plain_text(line, "bold red"))


def say(message: str, err: bool = False) -> None:
    """Plain text, of which nothing reaches the terminal but letters."""
    typer.echo(visible(message, lines=True), err=err)


def show_table(renderable: Any) -> None:
    """A table; in a file or a pipe nothing is cut off at a terminal's edge."""
    Console(width=None if sys.stdout.isatty() else 160).print(renderable)
