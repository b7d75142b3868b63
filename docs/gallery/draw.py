"""``python docs/gallery/draw.py [PAGE ...]``: run the Python of pages and keep the pictures that it draws beside them.

The pages are those of the gallery and of the tutorials.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(pages: list[str]) -> None:
    """Pages by name; all where none is named."""
    os.environ["MPLBACKEND"] = "Agg"
    found = sorted(page for folder in (HERE, HERE.parent / "tutorials") for page in folder.glob("*.md"))
    for page in [page for page in found if not pages or page.stem in pages]:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names = {"__name__": "page"}
            for number, code in enumerate(blocks):
                exec(compile(code, f"{page.name}, block {number}", "exec"), names)
            for picture in Path(folder).glob("*.svg"):
                (page.parent / picture.name).write_bytes(picture.read_bytes())
            os.chdir(HERE)


if __name__ == "__main__":
    main(sys.argv[1:])
