"""``python -m benchmarks.limits.collect``: write the record of the histories that are there."""

from __future__ import annotations

from benchmarks.limits.benchmark import OUT, collected
from benchmarks.records import keep_part

if __name__ == "__main__":
    keep_part("limits", collected, OUT)
