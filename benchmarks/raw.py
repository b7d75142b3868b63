"""Raw runs: one line of JSON each. Finished ones are packed, one compressed file per benchmark; new ones are appended beside it.

``peers/hybrid.jsonl`` is read from ``peers/peers.jsonl.gz`` and then from the file of that name, where there is one.
``python -m benchmarks pack`` moves what was appended into the compressed file.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

DEPTH = 2
"""Folders between a file and the compressed one."""


def lines(path: Path) -> list[str]:
    """The whole lines of a file, the packed ones first; a line that a kill cut short is left out."""
    packed = _pack_of(path)
    found = list(_packed(packed, packed.stat().st_mtime_ns)[_name(path, packed)]) if packed is not None else []
    if path.is_file():
        found += filter(_whole, path.read_text(encoding="utf-8").splitlines())
    return found


def append_line(path: Path, line: str) -> None:
    """Append a line with one write; a fragment that a kill left at the end is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = line + "\n"
    if path.is_file() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        text = "\n" + text
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)


def replace(path: Path, kept: Iterable[str]) -> None:
    """Give a file other lines, written to a new one that takes its place; packed lines of that name go."""
    kept, packed = list(kept), _pack_of(path)
    if path.is_file() or packed is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        new.replace(path)
    if packed is not None:
        others = {k: v for k, v in _packed(packed, packed.stat().st_mtime_ns).items() if k != _name(path, packed)}
        _write(packed, others)


def pack(folder: Path) -> Path:
    """Move the lines of all files below a folder into its compressed file; returns its path."""
    packed, files = folder / f"{folder.name}.jsonl.gz", sorted(folder.rglob("*.jsonl"))
    held = {k: list(v) for k, v in _packed(packed, packed.stat().st_mtime_ns).items()} if packed.is_file() else {}
    for file in files:
        held[_name(file, packed)] = lines(file)
    if files:
        _write(packed, held)
        for file in files:
            file.unlink()
    return packed


def _whole(line: str) -> bool:
    try:
        return json.loads(line) is not None
    except ValueError:
        return False


def _pack_of(path: Path) -> Path | None:
    """The compressed file that may hold lines of a file; None: there is none, or it has none of that name."""
    for folder in path.resolve().parents[:DEPTH]:
        packed = folder / f"{folder.name}.jsonl.gz"
        if packed.is_file() and _name(path, packed) in _packed(packed, packed.stat().st_mtime_ns):
            return packed
    return None


def _name(path: Path, packed: Path) -> str:
    return path.resolve().relative_to(packed.parent.resolve()).as_posix()


@lru_cache(maxsize=4)
def _packed(packed: Path, changed: int) -> dict[str, list[str]]:
    """The lines of a compressed file by the name of the file that they were in."""
    found: dict[str, list[str]] = {}
    with gzip.open(packed, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            name, text = json.loads(line)
            found.setdefault(name, []).append(text)
    return found


def _write(packed: Path, held: dict[str, list[str]]) -> None:
    text = "".join(json.dumps([name, line]) + "\n" for name in sorted(held) for line in held[name])
    new = packed.with_suffix(".new")
    new.write_bytes(gzip.compress(text.encode(), mtime=0))
    new.replace(packed)
