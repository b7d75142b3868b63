"""Text that comes from elsewhere: objects that cannot say what they are, what a file can hold, what a terminal may see."""

from __future__ import annotations

import itertools
import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

MESSAGE_LIMIT = 4000
"""Characters of a message that the journal keeps; the rest is cut and counted."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_JOINERS = "\u200c\u200d"
"""Invisible, but letters of Persian and Indic words and parts of emoji."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def stable_text(value: Any) -> str:
    """``repr`` without memory addresses, so that it is the same in every process."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    return without_address(repr(value))


def without_address(text: str) -> str:
    """Text without ``at 0x7f...``, which is another one in every process."""
    return _ADDRESS.sub("", text)


def readable(value: Any, write: Callable[[Any], Any] = str) -> str:
    """``str`` (or another way to write) of any object, also of one that raises when it is asked or returns no string."""
    try:
        text = write(value)
        if isinstance(text, str):
            return str.__str__(text)
        problem = f"gave {kind(text)} and not a string"
    except Exception as error:  # whatever an object raises about itself must not end a run
        problem = f"raised {kind(error)}"
    return f"({kind(value)}, whose text cannot be had: it {problem})"


def shown(value: Any, limit: int = 60) -> str:
    """A value in an error message: ``float 1.5``; ``None`` stands alone. Long ones are cut, huge ones never written out."""
    if value is None:
        return "None"
    text = without_address(readable(value, _SHORT.repr))
    return f"{kind(value)} {text if len(text) <= limit else text[: limit - 3] + '...'}"


def listed(values: Iterable[Any], limit: int = 10) -> str:
    """The first values of what may be long, as a list."""
    first = list(itertools.islice(values, limit + 1))
    more = ", ..." if len(first) > limit else ""
    return f"[{', '.join(readable(v, _SHORT.repr) for v in first[:limit])}{more}]"


def kind(value: Any) -> str:
    """The name of a value's type, whatever its metaclass says."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str(name)


def storable(text: str, limit: int | None = None) -> str:
    """Text that UTF-8 and SQLite's own tools can hold: lone surrogates and NUL are written out as ``\\udc80``, ``\\x00``.

    Args:
        limit: characters to keep; what is cut off is counted.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}... ({len(text) - limit:,} more characters)"
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def visible(text: str, lines: bool = False) -> str:
    """Text as it may go to a terminal: every character that controls one is written out (``\\x1b``, ``\\u202e``).

    That is: control characters (C0, DEL, C1), what turns the direction of writing, other invisible format characters,
    line separators and lone surrogates.

    Args:
        lines: keep line feeds and tabs, for a text of several lines.
    """
    kept = "\n\t" if lines else ""
    if text.isprintable():  # nothing of the kind below is
        return text
    return "".join(c if c in kept or not _controls(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, limit: int | None = None) -> str:
    """Visible text on one line: white space joined, cut at ``limit`` characters."""
    joined = visible(" ".join(text.split()))
    return joined if limit is None or len(joined) <= limit else joined[: limit - 3] + "..."


def _controls(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _JOINERS
