"""Records of benchmarks: results with machine and versions, and the page that shows all records."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.registry import Benchmark, Results

FOLDER = Path(__file__).resolve().parent / "results"
PAGE = "REPORT.md"
SETTLED = "settled"
"""Folder with the records and sections of removed benchmarks."""
PART = "part"
"""Size of a record collected from histories, complete or not."""
PACKAGES = ("mipcash", "numpy", "pyomo", "highspy", "gurobipy", "cplex", "pyscipopt", "pytoulbar2", "torch", "xgboost-cpu")


def stamped(name: str, size: str, seconds: float, results: Results) -> Results:
    """Return the record of a benchmark: results, size, seconds, machine and versions."""
    return {
        "benchmark": name,
        "size": size,
        "seconds": seconds,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "versions": {each: version for each in PACKAGES if (version := _version(each))},
        "results": results,
    }


def keep_part(name: str, collect: Callable[[], Results], path: Path) -> None:
    """Write the record of the existing histories and report its path."""
    began = time.perf_counter()
    results = collect()
    if not results["runs"]:
        raise SystemExit(f"no runs are kept; {path} stays as it is")
    record = stamped(name, PART, time.perf_counter() - began, results)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {results['runs']} runs")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def page(known: Mapping[str, Benchmark], folder: Path | None = None) -> Path:
    """Write the page of all records below a folder (None: this package's results) and return its path."""
    folder = folder or FOLDER
    parts = [
        "# Benchmarks: what was measured",
        "",
        "Made by `python -m benchmarks report` from the records (`*.json`) below this folder. Figures: mean ± one standard "
        "deviation; in the tables of the peers one standard error. A line in italics under the head of a table says where it is "
        "smaller than in the paper. Runs whose record was not kept stand in "
        "[docs/measurements.md](../../docs/measurements.md).",
        "",
    ]
    for path in sorted(folder.rglob("*.json")):
        record = _record(path)
        if record is not None and record["benchmark"] in known:
            parts += _part(known[record["benchmark"]], record, path, folder)
    for path in sorted((folder / SETTLED).glob("*.md")):
        parts += [path.read_text(encoding="utf-8").rstrip(), ""]
    out = folder / PAGE
    out.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    return out


def _record(path: Path) -> dict[str, Any] | None:
    """Read a record, or return None for other JSON."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"benchmark", "results"} <= found.keys() else None


def _part(each: Benchmark, record: dict[str, Any], path: Path, folder: Path) -> list[str]:
    versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    lines = [f"## {each.name}: {each.summary}", ""]
    lines += [f"{_command(each.name, record)}; {_hours(record)}", ""]
    lines += [f"[{path.name}]({path.relative_to(folder).as_posix()}): {record['machine']['cores']} cores, {versions}.", ""]
    figures = path.parent / "figures"
    return [
        *lines,
        each.markdown(record["results"], figures.relative_to(folder).as_posix() if figures.is_dir() else "").rstrip(),
        "",
    ]


def _command(name: str, record: dict[str, Any]) -> str:
    """Return the command that was run, and for a record of parts, how much of it."""
    if record["size"] != PART:
        return f"`python -m benchmarks run {name} --size {record['size']}`"
    results = record["results"]
    seeds = results["seeds"] if "seeds" in results else sorted({row["seed"] for row in results["rows"]})
    return f"Part of `python -m benchmarks run {name} --size full`: {results['runs']} runs, seeds {', '.join(map(str, seeds))}"


def _hours(record: dict[str, Any]) -> str:
    """Return the time of a record: its own CPU hours if it continued earlier runs, else the seconds of the run."""
    spent = record["results"].get("cpu_hours")
    if not spent:
        return f"{record['seconds'] / 3600:.2g} hours."
    return "CPU hours: " + ", ".join(f"{hours:.2f} {what}" for what, hours in spent.items()) + "."


def saved(figure: Any, path: Path, **options: Any) -> Path:
    """Write a figure of matplotlib, so that equal figures make equal files, and return the path."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "mipcash"}):
        figure.savefig(path, metadata={"Date": None}, **options)
    return path
