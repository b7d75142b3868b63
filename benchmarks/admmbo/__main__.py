"""``python -m benchmarks.admmbo``: the record and the tables of the runs that there are, be it a part."""

from __future__ import annotations

from benchmarks.admmbo.benchmark import RESULTS, collected, markdown
from benchmarks.records import keep_part

if __name__ == "__main__":
    keep_part("admmbo", collected, RESULTS / "admmbo.json")
    print(markdown(collected()))
