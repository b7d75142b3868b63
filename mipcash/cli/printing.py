"""Output of the commands, and error handling: one clean line and exit code 2.

This module does not import the optimizer, so that ``mipcash --help`` responds at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from mipcash.errors import DefectError, MipcashError
from mipcash.text import visible


@contextmanager
def errors(debug: bool) -> Iterator[None]:
    """Turn an exception of mipcash into one clean line and exit code 2, and warnings into notes without a line of code."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"note: {visible(str(message))}\n"
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has closed it, as in `mipcash show run.db | head`; typer ends with 1
        raise
    except (MipcashError, OSError) as error:
        if debug:
            say(traceback.format_exc(), err=True)
        fail(f"error: {error}", lines=isinstance(error, DefectError))
        raise typer.Exit(2) from None
    finally:
        warnings.formatwarning = usual


def plain_text(text: str, style: str = "", **options: Any) -> Text:
    """Return text for the terminal that shows names and messages literally: no markup, no escape sequences."""
    return Text(visible(text), style=style, **options)


def fail(message: str, lines: bool = False) -> None:
    """Print a message in red; ``lines`` is True for a message of several lines, like a traceback."""
    for line in message.split("\n") if lines else [message]:
        Console(stderr=True, soft_wrap=True).print(plain_text(line, "bold red"))


def say(message: str, err: bool = False) -> None:
    """Print plain text, with control characters escaped."""
    typer.echo(visible(message, lines=True), err=err)


def show_table(renderable: Any) -> None:
    """Print a table; in a file or a pipe it is not cut off at the terminal's width."""
    Console(width=None if sys.stdout.isatty() else 160).print(renderable)
