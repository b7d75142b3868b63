"""Limits on the time and memory of an evaluation in a worker process.

Memory is monitored from outside, as the sum over the process group, rather than limited by ``RLIMIT_AS``. ``RLIMIT_AS`` limits the
address space. Threads, allocators and CUDA reserve gigabytes of addresses that they never touch, so a limit near the actual need
stops OpenBLAS from starting its threads and ends the process long before memory is short. ``RLIMIT_AS`` also applies per process,
so each of joblib's workers would have its own limit, and macOS ignores it. Resident memory is the resource that a machine runs out
of.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipcash.study.arguments import positive

MEGABYTE = 1_000_000
_PROC = Path("/proc")


@dataclass(frozen=True)
class Allowed:
    """Limits of an evaluation.

    Attributes:
        seconds: time limit of an evaluation, not counting the time to load the objective; None: no limit.
        megabytes: limit on the memory of the process and its children, in 10^6 bytes, loaded modules included; None: no limit.
    """

    seconds: float | None = None
    megabytes: float | None = None

    @classmethod
    def of(cls, evaluation_timeout: Any, evaluation_memory: Any, executor: Any = None) -> Allowed | None:
        """Return the limits of the arguments; None if there are none.

        Raises:
            ValueError: a limit is invalid, or is combined with an executor.
        """
        seconds = positive("evaluation_timeout", evaluation_timeout)
        memory = positive("evaluation_memory", evaluation_memory, "megabytes (of 10^6 bytes)")
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
        """Failure message of an evaluation that took too long."""
        return f"it took longer than evaluation_timeout={self.seconds:g} seconds, and its process was killed"

    @property
    def large(self) -> str:
        """Failure message of an evaluation that took too much memory."""
        return f"it took more memory than evaluation_memory={self.megabytes:g} MB, and its process was killed"


def held(group: int, limit: float = 0.0) -> float:
    """Return the megabytes that the processes of a group hold.

    Resident memory counts shared pages once per process. If it exceeds ``limit``, the proportional share of Linux (PSS) is used
    instead, which is slower to read.
    """
    members = list(_members(group))
    resident = sum(bytes_ for _, bytes_ in members)
    if resident <= limit * MEGABYTE or len(members) < 2:
        return resident / MEGABYTE
    return sum(_shared_out(pid, bytes_) for pid, bytes_ in members) / MEGABYTE


def _members(group: int) -> Iterator[tuple[int, int]]:
    """Yield the processes of a group with their resident bytes."""
    if not _PROC.joinpath("self/stat").exists():
        yield from _listed_by_ps(group)
        return
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):  # a process may end while it is read
                pid = int(entry.name)
                if os.getpgid(pid) == group:
                    yield pid, int(_PROC.joinpath(entry.name, "statm").read_text().split()[1]) * page


def _listed_by_ps(group: int) -> Iterator[tuple[int, int]]:
    """Yield the processes of a group with their resident bytes, by ``ps``, on systems without /proc such as macOS."""
    reported = subprocess.run(["ps", "-A", "-o", "pgid=,pid=,rss="], capture_output=True, text=True, check=False)
    for line in reported.stdout.splitlines():
        own, pid, kilobytes = map(int, line.split())
        if own == group:
            yield pid, kilobytes * 1024


def _shared_out(pid: int, resident: int) -> int:
    """Return the proportional share of a process in bytes; its resident memory if the share is not available."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident
