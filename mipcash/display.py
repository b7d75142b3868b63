"""How configurations and values are shown: in a sentence, on a line, and as plain tables in notebooks.

A table has no colours and no scripts, so that it takes those of the page, light or dark; all that users named is escaped.
"""

from __future__ import annotations

import html
import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHOWN = 6
"""Parameters of a configuration that a sentence names."""
ROWS = 20
"""Rows of a listing or table; what is left out is counted."""

_ADDRESS = re.compile(r"( instance)? at 0x[0-9a-fA-F]+")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 40


def value_text(value: Any) -> str:
    """A value on one line: numbers with six digits, long ones cut, characters that control a terminal written out."""
    if type(value) is float:
        return f"{value:.6g}"
    try:
        text = _SHORT.repr(value)
    except Exception:  # a category may be any object
        text = f"<{type(value).__name__}>"
    return visible(_ADDRESS.sub("", text))


def visible(text: str) -> str:
    """Text on one line whose every character is printed."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, one: str, many: str = "") -> str:
    """``1 rule``, ``2 rules``, ``5,000 rules``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def config_text(config: Mapping[str, Any] | None, most: int = SHOWN) -> str:
    """``layers=2, act='relu', ... (9 parameters)``."""
    if not config:
        return "no configuration" if config is None else "nothing active"
    text = ", ".join(f"{visible(name)}={value_text(config[name])}" for name in list(config)[:most])
    return text if len(config) <= most else f"{text}, ... ({len(config):,} parameters)"


def listing(rows: Sequence[tuple[str, str]], most: int = ROWS) -> list[str]:
    """Lines of names and what they are; what is left out is counted."""
    width = min(24, max((len(name) for name, _ in rows[:most]), default=0))
    lines = [f"  {visible(name):<{width}}  {visible(text)}".rstrip() for name, text in rows[:most]]
    return lines if len(rows) <= most else [*lines, f"  ... and {len(rows) - most:,} more"]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], most: int = ROWS) -> str:
    """A table as HTML; of many rows the first."""
    lines = [f"<table><caption>{escaped(title)}</caption>" if title else "<table>"]
    if head:
        lines.append(_row("th", head))
    lines += [_row("td", row) for row in rows[:most]]
    if len(rows) > most:
        lines.append(f'<tr><td colspan="{len(rows[0])}">... and {len(rows) - most:,} more</td></tr>')
    return "\n".join([*lines, "</table>"])


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align: left">{escaped(cell)}</{tag}>' for cell in cells) + "</tr>"


def escaped(text: str) -> str:
    """Text as HTML: whatever is written in it is shown and never obeyed."""
    return html.escape(visible(text))


def proof_text(status: str, value: float, bound: float, solver: str, of: str = "") -> str:
    """``optimal, value 3, proven by enumeration``; ``feasible, value 3, bound 2 (highs)``.

    Args:
        of: what the value is, written in the place of "value".
    """
    if math.isnan(value):
        return f"{status} ({solver})" if not math.isfinite(bound) else f"{status}, bound {bound:.6g} ({solver})"
    if status == "optimal":
        return f"optimal, {of or 'value'} {value:.6g}, proven by {solver}"
    known = f", bound {bound:.6g}" if math.isfinite(bound) else ", no bound"
    return f"{status}, {of or 'value'} {value:.6g}{known} ({solver})"
