"""What ``mipcash show`` says of failures: how many of which kind, where, and the rules that they teach."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from mipcash.cli.archive import Archive
from mipcash.cli.tables import failures_table
from mipcash.display import counted
from mipcash.report.failures import failing
from mipcash.study.cuts.columns import listed_columns
from mipcash.study.cuts.proposing import proposed
from mipcash.study.records.fingerprint import ACCEPTED
from mipcash.study.text import one_line


def failures_of(old: Archive) -> Iterator[RenderableType | str]:
    """Tables, and lines to be copied as they are; nothing where nothing failed."""
    trials = old.result.history
    columns = listed_columns(old.record.listing, [t.config for t in trials])
    if kinds := failing(columns, trials):
        yield failures_table(kinds)
    for name, text in old.record.listing.items():
        if name.startswith(ACCEPTED):
            yield f"{one_line(name)}: {one_line(text)}"
    rules = proposed(columns, trials)
    if rules:
        yield (
            f"{counted(len(rules), 'proposed rule')}: settings that failed together, and under which nothing worked. To go on "
            "under one, put its line after the declaration of the space:"
        )
    for rule in rules:
        yield f"  {one_line(rule.what)}: {one_line(str(rule.evidence))}"
        yield f"    {rule.accepting}"
