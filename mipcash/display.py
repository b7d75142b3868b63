"""Text and HTML of configurations and values: in a sentence, on one line, and as plain tables in notebooks.

A table has no colours and no scripts, so it follows the light or dark theme of the page. All user-defined names are escaped.
"""

from __future__ import annotations

import html
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mipcash.text import readable, visible, without_address

SHOWN = 6
"""Number of parameters of a configuration that a sentence names."""
ROWS = 20
"""Number of rows of a listing or table; omitted rows are counted."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 40


def value_text(value: Any) -> str:
    """Return a value on one line: floats with six digits, long values cut, control characters escaped."""
    return f"{value:.6g}" if type(value) is float else visible(without_address(readable(value, _SHORT.repr)))


def counted(number: int, one: str, many: str = "") -> str:
    """Return a count with its noun: ``1 rule``, ``2 rules``, ``5,000 rules``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def config_text(config: Mapping[str, Any] | None, most: int = SHOWN) -> str:
    """Return a configuration on one line: ``layers=2, act='relu', ... (9 parameters)``."""
    if not config:
        return "no configuration" if config is None else "nothing active"
    text = ", ".join(f"{visible(name)}={value_text(config[name])}" for name in list(config)[:most])
    return text if len(config) <= most else f"{text}, ... ({len(config):,} parameters)"


def listing(rows: Sequence[tuple[str, str]], most: int = ROWS) -> list[str]:
    """Return lines of names and their descriptions; a last line counts the omitted rows."""
    width = min(24, max((len(name) for name, _ in rows[:most]), default=0))
    lines = [f"  {visible(name):<{width}}  {visible(text)}".rstrip() for name, text in rows[:most]]
    return lines if len(rows) <= most else [*lines, f"  ... and {len(rows) - most:,} more"]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], most: int = ROWS) -> str:
    """Return an HTML table of the first ``most`` rows; a last row counts the omitted ones."""
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
    """Return text escaped for HTML, so that markup in it is displayed and never interpreted."""
    return html.escape(visible(text))


def proof_text(status: str, value: float, bound: float, solver: str, of: str = "") -> str:
    """Return status, value and bound: ``optimal, value 3, proven by enumeration``; ``feasible, value 3, bound 2 (highs)``.

    Args:
        of: name of the value, written instead of "value".
    """
    if math.isnan(value):
        return f"{status} ({solver})" if not math.isfinite(bound) else f"{status}, bound {bound:.10g} ({solver})"
    if status == "optimal":
        return f"optimal, {of or 'value'} {value:.10g}, proven by {solver}"
    known = f", bound {bound:.10g}" if math.isfinite(bound) else ", no bound"
    return f"{status}, {of or 'value'} {value:.10g}{known} ({solver})"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines of text: columns to the right, the last one to the left."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]) - 1)]
    lines = ("  ".join([*(f"{text:>{w}}" for text, w in zip(row, widths, strict=False)), row[-1]]) for row in rows)
    return [f"  {line.rstrip()}" for line in lines]
