"""Best network of each method (Table 1, Figs. 3 and 6), trained again, with 5,000 samples and a picture.

A network with the same configuration, epochs and samples is trained only once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper import vae as runs
from benchmarks.paper.experiment import completed
from benchmarks.paper.remembered import Remembered
from benchmarks.peers.history import reader
from benchmarks.peers.suite import Suite
from mipcash.models import vae

SAMPLES, SHOWN = 5000, 8
PAPER = (
    "Paper, Table 1, 3,280 epochs and 5,000 samples: SMAC 99.09, TPE 97.05, GPyOpt 97.33, random 93.74, MiVaBO 84.25 nats; "
    "Figs. 3 and 6: reconstructions by the best network of each method, 32 epochs."
)


@dataclass(frozen=True)
class Best:
    """Best configuration of a method under a convention, over all of its runs."""

    method: str
    convention: str
    runs: int
    loss: float
    config: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.method} {self.convention}".strip()


def bests(size: str, suite: Suite, methods: Sequence[str], conventions: Sequence[str]) -> list[Best]:
    """Return the best network of each method that has runs, sorted by loss."""
    problem = suite.problems()[f"vae-{size}"]
    assert isinstance(problem.objective, Remembered)
    read, found = reader(suite.folder), []
    for convention in ("", *conventions):
        for method in methods:
            done = completed(suite, [problem.name], method, convention, read, suite.budget)
            if not done:
                continue
            loss = min(min(h.solutions()[: suite.budget]) for h in done)
            config = problem.objective.config_of(loss)
            if config is None:
                raise LookupError(
                    f"{problem.objective.path} holds no evaluation of {problem.name} with the loss {loss} that {method} has; "
                    "run the method again with --fresh"
                )
            found.append(Best(method, convention, len(done), loss, config))
    return sorted(found, key=lambda b: b.loss)


def make(
    size: str,
    chosen: Sequence[Best],
    progress: Callable[[str], None],
    samples: int = SAMPLES,
    epochs: int | None = None,
    folder: Path = runs.FOLDER,
) -> dict[str, Any]:
    """Train and test the missing networks, store and return the results, and draw the picture.

    Args:
        epochs: of training; None: as in the runs.
        folder: of ``final-<size>.json``; pictures go to ``figures`` beside it.
    """
    if not chosen:
        return load(size, folder)
    settings = vae.settings(**runs.OPTIONS[size])
    settings = settings if epochs is None else replace(settings, epochs=epochs)
    path, there = _path(size, folder), load(size, folder)
    known, originals = there.get("rows", []), there.get("originals", [])
    test = vae.held_out(settings)
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    for done, best in enumerate(chosen, 1):
        key = {"config": best.config, "samples": samples, "epochs": settings.epochs}
        row = next((r for r in known if key.items() <= r.items()), None)
        if row is None:
            trained = vae.train(best.config, settings)
            originals, seen = (_grey(images) for images in vae.reconstructions(trained, test, SHOWN, settings.seed))
            row = key | {"nats": vae.nll(trained, test, settings, samples), "images": seen, "machine": runs.machine(size)}
        row = row | {"method": best.method, "convention": best.convention, "runs": best.runs, "searched": best.loss}
        rows.append(row)
        kept = [r for r in known if not any(key_of(r) == key_of(n) for n in rows)]
        path.parent.mkdir(parents=True, exist_ok=True)
        stamp = {"mipcash": version("mipcash"), "seed": settings.seed}
        made = {"size": size, "stamp": stamp, "originals": originals, "rows": [*rows, *kept]}
        path.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
        left = (time.perf_counter() - began) / done * (len(chosen) - done) / 60
        told = f"{best.loss:.2f} nats in its run, {row['nats']:.2f} with {samples} samples"
        progress(f"{best.label}: {told}; about {left:.1f} min left")
    results = load(size, folder)
    if results:
        _draw(results, picture_path(size, folder))
    return results


def _grey(images: np.ndarray) -> list[list[list[int]]]:
    """Convert images in [0, 1] to integral grey values of a byte."""
    return np.round(255 * images).astype(int).tolist()


def _draw(results: dict[str, Any], path: Path) -> None:
    """Draw a row of images per method, lowest nats first."""
    rows = {
        f"{r['method']} {r['convention']}".strip() + f"\n{r['nats']:.1f} nats": np.array(r["images"], np.float32) / 255
        for r in sorted(results["rows"], key=lambda r: r["nats"])
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    vae.picture(path, np.array(results["originals"], np.float32) / 255, rows)


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
