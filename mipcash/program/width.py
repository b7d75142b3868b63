"""Where a space counts as wide: nothing is formed there over all pairs of its levels or parameters.

Searches and surrogates then go another way, in time and memory that grow with what was observed, and what is exact elsewhere and
would take hours there is left out and said so (docs/decisions/archive.md, 039).
"""

from __future__ import annotations

COLUMNS, VARIABLES = 500, 100


def is_wide(columns: int, variables: int) -> bool:
    """Whether a space of so many one-hot binaries, and of so many groups and numbers together, is wide."""
    return columns > COLUMNS or variables > VARIABLES
