"""Objectives with unusual behaviour. Worker processes import this module, so it imports no large package."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Odd = Callable[[Path], object]
"""Function that takes the folder of the marks."""


class Once:
    """Objective that calls ``odd`` at its second evaluation, counted over all processes.

    Each evaluation writes its process id to a file that is named by its number.
    """

    def __init__(self, marks: Path, odd: Odd) -> None:
        self.marks, self.odd = marks, odd

    def __call__(self, config: dict[str, Any]) -> float:
        number = len(list(self.marks.iterdir()))
        (self.marks / f"{number}").write_text(str(os.getpid()))
        if number == 1:
            self.odd(self.marks)
        return float(config["layers"])


class Homesick:
    """Objective that raises an error when it is unpickled."""

    def __call__(self, config: dict[str, Any]) -> float:
        return 1.0

    def __reduce__(self) -> Any:
        return not_there, ()


def not_there() -> None:
    raise ValueError("not there")


def layers(config: dict[str, Any]) -> float:
    return float(config["layers"])


def sleep(marks: Path) -> None:
    time.sleep(60)


def hang_in_c(marks: Path) -> None:
    """Sleep in C while holding the GIL, so that no Python code runs in the process."""
    ctypes.PyDLL(None).sleep(60)


def ignore_sigterm(marks: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def tidy_up(marks: Path) -> None:
    def tidy(*_: Any) -> None:
        (marks.parent / "tidy").touch()
        os._exit(0)

    signal.signal(signal.SIGTERM, tidy)
    time.sleep(60)


def start_a_child(marks: Path) -> None:
    command = "trap '' TERM; echo $$ > \"$0\"; while :; do sleep 1; done"
    subprocess.run(["sh", "-c", command, str(marks.parent / "child")], check=False)


def leave(marks: Path) -> None:
    os._exit(3)


def crash(marks: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hold(megabytes: int) -> list[bytearray]:
    """Return memory that is resident, because every byte was written."""
    return [bytearray(b"x" * 1_000_000) for _ in range(megabytes)]


def grow_in_a_child(marks: Path) -> None:
    """Hold 200 MB in a child process."""
    subprocess.run([sys.executable, "-c", "import time; x = b'x' * 200_000_000; time.sleep(60)"], check=False)
