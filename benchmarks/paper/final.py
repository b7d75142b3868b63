"""Best network of each method (Table 1, Figs. 3 and 6), trained again: table and picture.

The code that trained them is in commit 1d32fc89 (``python -m benchmarks.paper``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.paper import vae as runs

PAPER = (
    "Paper, Table 1, 3,280 epochs and 5,000 samples: SMAC 99.09, TPE 97.05, GPyOpt 97.33, random 93.74, MiVaBO 84.25 nats; "
    "Figs. 3 and 6: reconstructions by the best network of each method, 32 epochs."
)


def key_of(row: dict[str, Any]) -> tuple[str, str]:
    """Return method and convention of a row."""
    return row["method"], row["convention"]


def _path(size: str, folder: Path) -> Path:
    return folder / f"final-{size}.json"


def picture_path(size: str, folder: Path = runs.FOLDER) -> Path:
    """Return the path of the picture of the reconstructions."""
    return folder.parent / "figures" / f"paper-vae-{size}-reconstructions.png"


def load(size: str, folder: Path = runs.FOLDER) -> dict[str, Any]:
    """Return the saved results; empty if there are none."""
    path = _path(size, folder)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _shared(rows: list[dict[str, Any]]) -> list[str]:
    """Return lines that name methods with the same best network, which is one of the initial design that they share."""
    by: dict[str, list[str]] = {}
    for row in rows:
        by.setdefault(json.dumps(row["config"], sort_keys=True), []).append(" ".join(filter(None, key_of(row))))
    return [line for names in by.values() if len(names) > 1 for line in ("", f"The same network: {', '.join(names)}.")]


def markdown(size: str, figures: str = "", folder: Path = runs.FOLDER) -> str:
    """Return the table, the picture and the paper's results; empty if no network was trained."""
    found = load(size, folder)
    if not found:
        return ""
    lines = [
        "The best network of each method, trained again:",
        "",
        "| method | illegal suggestions | runs | nats as searched, 32 samples | samples | nats | epochs |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in sorted(found["rows"], key=lambda r: r["nats"]):
        cells = [r["method"], r["convention"] or "none", r["runs"], f"{r['searched']:.2f}"]
        cells += [f"{r['samples']:,}", f"{r['nats']:.2f}", r["epochs"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += _shared(found["rows"])
    if figures:
        lines += ["", f"![reconstructions of test images]({figures}/{picture_path(size).name})"]
    return "\n".join([*lines, "", PAPER])
