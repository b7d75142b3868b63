"""Suggestions for an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], most: int = 12) -> str:
    """Return ``did you mean 'C'?``, or a list of the known names.

    Args:
        known: the known names.
        most: maximum number of names in the list; 0: without a close match the text is empty.
    """
    names = list(known)
    close = [k for k in names if k.casefold() == name.casefold()] or difflib.get_close_matches(name, names, n=1)
    close = close or [k for k in names if k.endswith(f"__{name}")][:1]
    if close:
        return f"did you mean {close[0]!r}?"
    if not most:
        return ""
    first = sorted(names, key=lambda k: (k.count("__"), k))[:most]
    return f"it has {', '.join(first) or 'none'}{' ...' if len(names) > most else ''}"
