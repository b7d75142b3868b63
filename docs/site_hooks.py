"""For the site: links to files that are not part of it become the names of these files."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?:benchmarks|README|CHANGELOG|CONTRIBUTING)[^)\s]*)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text before it is rendered."""
    return OUTSIDE.sub(r"\1 (`\2` of the repository)", markdown)
