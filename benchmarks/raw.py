"""Raw runs: one line of JSON each.

Finished runs are packed into one compressed file per benchmark. New runs are appended to plain files beside it.
``peers/hybrid.jsonl`` is read from ``peers/peers.jsonl.gz`` and then from the plain file of that name, if it exists.
``python -m benchmarks pack`` moves the appended lines into the compressed file.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

DEPTH = 2
"""Maximum number of folders between a file and its compressed file."""


def lines(path: Path) -> list[str]:
    """Return the complete lines of a file, packed lines first. An incomplete line of a killed process is left out."""
    packed = _pack_of(path)
    found = list(_packed(packed, packed.stat().st_mtime_ns)[_name(path, packed)]) if packed is not None else []
    if path.is_file():
        found += filter(_whole, path.read_text(encoding="utf-8").splitlines())
    return found


def append_line(path: Path, line: str) -> None:
    """Append a line with one write, after ending an incomplete line of a killed process."""
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
    """Replace the lines of a file, including its packed lines, by writing a new file."""
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
    """Move the lines of all files below a folder into its compressed file and return its path."""
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
    """Return the compressed file that has lines of a file, or None."""
    for folder in path.resolve().parents[:DEPTH]:
        packed = folder / f"{folder.name}.jsonl.gz"
        if packed.is_file() and _name(path, packed) in _packed(packed, packed.stat().st_mtime_ns):
            return packed
    return None


def _name(path: Path, packed: Path) -> str:
    return path.resolve().relative_to(packed.parent.resolve()).as_posix()


@lru_cache(maxsize=4)
def _packed(packed: Path, changed: int) -> dict[str, list[str]]:
    """Return the lines of a compressed file by the name of their original file."""
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
