"""What an evaluation in a worker process may take: seconds and memory.

Memory is watched from outside, as the sum over the process and all that it started in its group, and not limited by ``RLIMIT_AS``.
That limits *addresses*: threads, allocators and CUDA reserve gigabytes of them which they never touch, so that a limit near what an
evaluation really needs keeps OpenBLAS from starting its threads, which ends the process, long before memory is short. It is of each
process, so that joblib's workers have one each; and macOS ignores it. What is resident is what a machine runs out of.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from mipcash.study.arguments import seconds_of
from mipcash.study.text import shown

MEGABYTE = 1_000_000
_PROC = Path("/proc")


@dataclass(frozen=True)
class Allowed:
    """What an evaluation may take.

    Attributes:
        seconds: from when a process that has loaded the objective gets the configuration; None: any.
        megabytes: of 10^6 bytes, that the process and what it started hold at a time, with what it has loaded; None: any.
    """

    seconds: float | None = None
    megabytes: float | None = None

    @classmethod
    def of(cls, evaluation_timeout: Any, evaluation_memory: Any, executor: Any = None) -> Allowed | None:
        """What was asked for; None: nothing is limited.

        Raises:
            ValueError: it is no such limit, or stands beside an executor.
        """
        seconds = seconds_of("evaluation_timeout", evaluation_timeout)
        memory = _megabytes_of(evaluation_memory)
        if seconds is None and memory is None:
            return None
        if executor is not None:
            name = "evaluation_timeout=" if memory is None else "evaluation_memory="
            raise ValueError(
                f"{name} runs evaluations in processes of its own, which executor= would not be used for; leave one "
                "of them out (workers= says how many processes)"
            )
        return cls(seconds, memory)

    @property
    def late(self) -> str:
        """Why an evaluation has failed that took too long."""
        return f"it took longer than evaluation_timeout={self.seconds:g} seconds, and its process was killed"

    @property
    def large(self) -> str:
        """Why an evaluation has failed that took too much memory."""
        return f"it took more memory than evaluation_memory={self.megabytes:g} MB, and its process was killed"


def _megabytes_of(memory: Any) -> float | None:
    """A limit in megabytes, > 0; None: there is none, which infinity says too."""
    if memory is None:
        return None
    number = float(memory) if isinstance(memory, Real) and not isinstance(memory, bool) else math.nan
    if not number > 0:
        raise ValueError(
            f"evaluation_memory must be a positive number of megabytes (of 10^6 bytes), or None for no limit; got {shown(memory)}"
        )
    return None if math.isinf(number) else number


def held(group: int, limit: float = 0.0) -> float:
    """Megabytes that the processes of a group hold.

    Resident memory, which counts what processes share once for each of them. Where that comes to more than ``limit``, the
    proportional share of Linux (PSS) is counted in its place, which is slower to read.
    """
    members = list(_members(group))
    resident = sum(bytes_ for _, bytes_ in members)
    if resident <= limit * MEGABYTE or len(members) < 2:
        return resident / MEGABYTE
    return sum(_shared_out(pid, bytes_) for pid, bytes_ in members) / MEGABYTE


def _members(group: int) -> Iterator[tuple[int, int]]:
    """Processes of a group with their resident bytes."""
    if not _PROC.joinpath("self/stat").exists():
        yield from _listed_by_ps(group)
        return
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may end while it is read
                pid = int(entry.name)
                if os.getpgid(pid) == group:
                    yield pid, int(_PROC.joinpath(entry.name, "statm").read_text().split()[1]) * page


def _listed_by_ps(group: int) -> Iterator[tuple[int, int]]:
    """The same where there is no /proc, as on macOS; ``ps`` tells kilobytes."""
    told = subprocess.run(["ps", "-A", "-o", "pgid=,pid=,rss="], capture_output=True, text=True, check=False)
    for line in told.stdout.splitlines():
        own, pid, kilobytes = map(int, line.split())
        if own == group:
            yield pid, kilobytes * 1024


def _shared_out(pid: int, resident: int) -> int:
    """Bytes of a process, of what is shared its part; all that is resident where that is not told."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident
