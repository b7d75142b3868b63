"""Start-up time: CPU seconds of a fresh process for a line of code.

The numbers are medians of the user and system time of the whole process, minus the time of an idle interpreter.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.registry import Progress, benchmark

REPEATS = {"smoke": 1, "quick": 11, "full": 31}
NOTHING = ["-c", "pass"]
LINES = {
    "`import mipcash`": ["-c", "import mipcash"],
    "`import mipcash; mipcash.Space`": ["-c", "import mipcash; mipcash.Space"],
    "`import mipcash; mipcash.minimize`": ["-c", "import mipcash; mipcash.minimize"],
    "`mipcash --version`": ["-m", "mipcash", "--version"],
    "`mipcash --help`": ["-m", "mipcash", "--help"],
}
WANTED = {"`import mipcash`": 0.2}


def seconds(arguments: list[str]) -> float:
    """Return the CPU seconds of one fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@benchmark("startup", "seconds until mipcash is imported, and until the command line answers")
def run(size: str, progress: Progress) -> dict[str, Any]:
    taken: dict[str, list[float]] = {name: [] for name in LINES}
    for k in range(REPEATS[size]):
        progress(f"round {k + 1} of {REPEATS[size]}")
        idle = seconds(NOTHING)
        for name, arguments in LINES.items():
            taken[name].append(seconds(arguments) - idle)
    rows = [
        {"line": name, "median": statistics.median(found), "worst": max(found), "wanted": WANTED.get(name)}
        for name, found in taken.items()
    ]
    return {"repeats": REPEATS[size], "rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = ["| line | median CPU s | worst | wanted |", "|---|---|---|---|"]
    for row in results["rows"]:
        wanted = "" if row["wanted"] is None else f"{row['wanted']:g}"
        lines.append(f"| {row['line']} | {row['median']:.3f} | {row['worst']:.3f} | {wanted} |")
    return "\n".join(lines)
