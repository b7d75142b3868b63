"""Parts of a page other than charts: cards, tiles, legends, tables. All foreign text is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from mipcash.report.page.svg import escaped
from mipcash.text import visible

LONG = 24
"""Number of characters from which a name may be broken."""
SWATCHES = {
    "dot": '<circle class="dot" cx="8" cy="8" r="4"/>',
    "member": '<circle class="member" cx="8" cy="8" r="4.5"/>',
    "limit": '<circle class="limit" cx="8" cy="8" r="4"/>',
    "estimate": '<circle class="estimate" cx="8" cy="8" r="4"/>',
    "ask": '<circle class="ask" cx="8" cy="8" r="4"/>',
    "failed": '<path class="failed" d="M4 4l8 8m0 -8l-8 8"/>',
    "off": '<path class="off" d="M3 12h10l-5 -8z"/>',
    "best": '<path class="best" d="M1 11H8V5H15"/>',
    "thin": '<path class="best thin" d="M1 11H8V5H15"/>',
    "evaluated": '<circle class="evaluated" cx="8" cy="8" r="3"/>',
    "star": '<circle class="star" cx="8" cy="8" r="5"/>',
    "band": '<rect class="band" x="1" y="3" width="14" height="10"/><path class="mean" d="M1 8h14"/>',
    "forbidden": '<rect class="forbidden" x="1" y="2" width="14" height="12"/>',
    "here": '<path class="here" d="M8 1v14"/>',
    "bound": '<path class="bound" d="M8 1v14"/>',
    "allowed": '<path class="coordinate" d="M1 8h14"/><path class="allowed" d="M4 8h8"/>',
    "good": '<path class="line s0" d="M1 8h14"/>',
    "poor": '<path class="line s4" d="M1 8h14"/>',
    "top": '<path class="line top" d="M1 8h14"/>',
    "bar": '<rect class="bar" x="1" y="4" width="14" height="8" rx="2"/>',
    "inner": '<rect class="bar inner" x="1" y="4" width="14" height="8" rx="2"/>',
    "whisker": '<path class="whisker" d="M1 8h14M1 5v6M15 5v6"/>',
    "r-0": '<path class="best r-0" d="M1 8h14"/>',
    "r-1": '<path class="best r-1" d="M1 8h14"/>',
    "r-2": '<path class="best r-2" d="M1 8h14"/>',
}


def legend(*entries: tuple[str, str]) -> str:
    """Return a legend of symbols and their meanings."""
    items = "".join(
        f'<li><svg viewBox="0 0 16 16" aria-hidden="true">{SWATCHES[sign]}</svg>{escaped(text)}</li>'
        for sign, text in entries
    )
    return f'<ul class="legend">{items}</ul>'


def card(title: str, body: str, note: str = "", ident: str = "", kind: str = "") -> str:
    """Return a part of the page; ``body`` is HTML, ``title`` and ``note`` are text."""
    message = f'<p class="note">{escaped(note)}</p>' if note else ""
    anchor = f' id="{escaped(ident)}"' if ident else ""
    return f'<section class="card {kind}"{anchor}><h2>{escaped(title)}</h2>{message}{body}</section>'


def tile(name: str, value: str, detail: str = "", kind: str = "") -> str:
    """Return a tile with a key figure and its detail."""
    below = f"<small>{escaped(detail)}</small>" if detail else ""
    return f'<div class="tile {kind}"><span>{escaped(name)}</span><strong>{escaped(value)}</strong>{below}</div>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), marked: Sequence[int] = ()
) -> str:
    """Return a table that scrolls horizontally if it is too wide.

    Args:
        numbers: columns aligned to the right.
        marked: highlighted rows.
    """

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = (' class="n"' if k in numbers else "" for k in range(len(row)))
        return "".join(f"<{tag}{kind}>{_broken(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr{' class=marked' if k in marked else ''}>{cells('td', row)}</tr>" for k, row in enumerate(rows))
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def _broken(text: str) -> str:
    """Return a cell; long names may break after dots and underscores."""
    message = escaped(text)
    return message if len(text) <= LONG else message.replace("_", "_<wbr>").replace(".", ".<wbr>")


def switch(name: str, choices: Sequence[tuple[str, str]]) -> str:
    """Return charts of which buttons select one, without a script."""
    buttons = "".join(
        f'<input type="radio" name="{name}" id="{name}-{k}"{" checked" if not k else ""}>'
        f'<label for="{name}-{k}">{escaped(text)}</label>'
        for k, (text, _) in enumerate(choices)
    )
    shown = "".join(f'<div class="choice choice-{k}">{body}</div>' for k, (_, body) in enumerate(choices))
    return f'<div class="switch">{buttons}{shown}</div>'


def code(text: str) -> str:
    """Return code to be copied."""
    message = html.escape(visible(text, lines=True))
    return f'<div class="code"><button type="button" class="copy" hidden>Copy</button><pre><code>{message}</code></pre></div>'


def missing(what: str, cure: str) -> str:
    """Return a note on what a part of the page lacks, and how to get it."""
    return f'<p class="missing">{escaped(what)} {escaped(cure)}</p>'
