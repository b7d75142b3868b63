"""Text from foreign sources: representations of arbitrary objects, text that a file can hold or a terminal may show."""

from __future__ import annotations

import difflib
import itertools
import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MESSAGE_LIMIT = 4000
"""Characters of a message that the journal keeps; longer messages are cut."""

LISTED = 20
"""Largest number of known names that a hint lists."""

_ADDRESS = re.compile(r"( instance)? at 0x[0-9a-fA-F]+")
_JOINERS = "\u200c\u200d"
"""Joiners: invisible, but part of Persian and Indic words and of emoji."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def stable_text(value: Any) -> str:
    """Return ``repr`` without memory addresses, so that it is the same in every process."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    return without_address(repr(value))


def without_address(text: str) -> str:
    """Remove ``at 0x7f...``, which differs between processes, from a text."""
    return _ADDRESS.sub("", text)


def readable(value: Any, write: Callable[[Any], Any] = str) -> str:
    """Return ``str`` of any object (or another representation), even if it raises or returns no string."""
    try:
        text = write(value)
        if isinstance(text, str):
            return str.__str__(text)
        problem = f"gave {kind(text)} and not a string"
    except Exception as error:  # an exception in an object's own method must not end a run
        problem = f"raised {kind(error)}"
    return f"({kind(value)}, which cannot be shown as text: it {problem})"


def shown(value: Any, limit: int = 60) -> str:
    """Return a value for an error message: ``float 1.5``; ``None`` without a type. Long representations are cut."""
    if value is None:
        return "None"
    text = without_address(readable(value, _SHORT.repr))
    return f"{kind(value)} {text if len(text) <= limit else text[: limit - 3] + '...'}"


def listed(values: Iterable[Any], limit: int = 10) -> str:
    """Return the first values of an iterable that may be long, as a list in text form."""
    first = list(itertools.islice(values, limit + 1))
    more = ", ..." if len(first) > limit else ""
    return f"[{', '.join(readable(v, _SHORT.repr) for v in first[:limit])}{more}]"


def kind(value: Any) -> str:
    """Return the name of a value's type, bypassing its metaclass."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str(name)


def storable(text: str, limit: int | None = None) -> str:
    """Make text storable in UTF-8 and for SQLite's tools: lone surrogates and NUL are escaped as ``\\udc80``, ``\\x00``.

    Args:
        limit: characters to keep; the number of omitted characters is appended.
    """
    text = readable(text)
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}... ({len(text) - limit:,} more characters)"
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def visible(text: str, lines: bool = False) -> str:
    """Make text safe for a terminal: every control character is escaped (``\\x1b``, ``\\u202e``).

    That includes control characters (C0, DEL, C1), bidirectional and other invisible format characters, line separators and lone
    surrogates.

    Args:
        lines: keep line feeds and tabs, for a text of several lines.
    """
    kept, text = "\n\t" if lines else "", readable(text)
    if text.isprintable():  # nothing to escape
        return text
    return "".join(c if c in kept or not _controls(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, limit: int | None = None) -> str:
    """Return visible text on one line: white space joined, cut at ``limit`` characters."""
    joined = visible(" ".join(text.split()))
    return joined if limit is None or len(joined) <= limit else joined[: limit - 3] + "..."


def abridged(text: str, letters: int) -> str:
    """Cut a text in the middle, because the ends of a dotted name are the most informative."""
    if len(text) <= letters:
        return text
    tail = (letters - 1) * 2 // 3
    return f"{text[: letters - 1 - tail]}…{text[-tail:]}"


def told_apart(texts: Sequence[str], letters: int) -> list[str]:
    """Cut texts in the middle; if equal texts result, leave out the beginning and the end that all of them share."""
    cut = [abridged(text, letters) for text in texts]
    if len(set(cut)) == len(set(texts)):
        return cut
    head = _shared(texts)
    tail = _shared([text[head:][::-1] for text in texts])
    return [abridged(f"…{text[head : len(text) - tail]}{'…' if tail else ''}", letters) for text in texts]


def _shared(texts: Sequence[str]) -> int:
    """Return the number of letters at the beginning that all texts share."""
    return sum(1 for _ in itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


def _controls(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _JOINERS


COUNTERPARTS = {
    **{"best_trials": ".front", "best_params": ".config", "best_value": ".value"},
    **{"best_params_": ".config", "best_score_": ".value", "trials": ".history"},
    **{"params": ".config", "state": ".status", "add_trial": ".add()", "should_prune": ".should_stop()"},
    **{"value": ".loss", "best_trial": ".best_trial", "optimize": "mc.minimize(objective, space, budget, storage=...)"},
    **{
        "enqueue_trial": ".enqueue()",
        "attach_trial": ".add()",
        "complete_trial": ".tell()",
        "get_next_trials": ".ask()",
    },
}
"""Attributes of Optuna's studies and trials, Ax's clients and scikit-learn's searches, and ours of the same meaning."""


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "it has") -> str:
    """Return ``did you mean 'C'?``; without a similar name the first known ones after some words: ``it has a, b``.

    Args:
        name: the unknown name.
        known: the known names.
        otherwise: the words; empty: without a similar name the text is empty.
    """
    names, given = [str(k) for k in known], str(name)
    close = [k for k in names if k.casefold() == given.casefold() or k.endswith((f".{given}", f"__{given}"))]
    close = close or difflib.get_close_matches(given, names, n=1)
    if close or not otherwise:
        return f"did you mean {close[0]!r}?" if close else ""
    first = sorted(names, key=lambda k: k.count("__"))[:LISTED]
    return f"{otherwise} {', '.join(first) or 'none'}{' ...' if len(names) > LISTED else ''}"


def no_attribute(of: object, name: str) -> AttributeError:
    """Return the error for a missing attribute of a public class, with a hint at one of the same meaning or a similar name."""
    if name.startswith("_"):  # Python and its tools look up such names very often, so this has to be fast
        return AttributeError(f"a {type(of).__name__} has no attribute {name!r}")
    there = [n for n in dir(of) if not n.startswith("_")]
    ours = COUNTERPARTS.get(name, "")
    if ours.startswith(".") and ours.strip(".()") not in there:
        ours = f".result{ours}" if "result" in there else ""
    ours = ours or "".join(f".{close}" for close in difflib.get_close_matches(name, there, n=1))
    hint = "" if not ours else f"; use {type(of).__name__.lower()}{ours}" if ours.startswith(".") else f"; use {ours}"
    return AttributeError(f"a {type(of).__name__} has no attribute {name!r}{hint}")
