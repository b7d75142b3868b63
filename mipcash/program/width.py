"""Size above which a space counts as wide: no array over all pairs of its levels or parameters is formed.

On wide spaces, searches and surrogates use other methods, whose time and memory grow with the number of observations. Exact
steps that would take hours there are left out, and the result reports it (docs/decisions/archive.md, 039).
"""

from __future__ import annotations

COLUMNS, VARIABLES = 500, 100


def is_wide(columns: int, variables: int) -> bool:
    """Return True if a space with this many one-hot binaries, or groups and numbers together, is wide."""
    return columns > COLUMNS or variables > VARIABLES
