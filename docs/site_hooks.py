"""Hooks of the site's build: links to files outside the site become their names, and no page loads anything from elsewhere."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?:benchmarks|README|CHANGELOG|CONTRIBUTING)[^)\s]*)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text before it is rendered."""
    return OUTSIDE.sub(r"\1 (`\2` of the repository)", markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Return a rendered page as it is.

    Raises:
        ValueError: the page loads something from elsewhere.
    """
    for tag in re.findall(r"<(?:link|script|img)[^>]+>", output):
        found = re.search(r"(?:href|src)=\"((?:https?:)?//[^\"]+)", tag)
        if found is not None and 'rel="canonical"' not in tag:
            raise ValueError(f"a page of the site loads {found[1]}; the site needs nothing from elsewhere")
    return output
