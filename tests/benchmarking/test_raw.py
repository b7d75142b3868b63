"""Raw runs: packed and appended lines are read by one function, and nothing is lost by packing."""

from __future__ import annotations

from pathlib import Path

from benchmarks.raw import append_line, lines, pack, replace
from benchmarks.records import FOLDER


def test_packed_and_appended_lines_are_read_alike(tmp_path: Path) -> None:
    folder = tmp_path / "peers"
    plain, nested = folder / "a.jsonl", folder / "4" / "a.jsonl"
    append_line(plain, '{"x": 1e-05}')
    append_line(nested, '{"x":"é"}')
    packed = pack(folder)
    assert packed == folder / "peers.jsonl.gz"
    assert not plain.exists()
    assert not nested.exists()
    assert lines(plain) == ['{"x": 1e-05}']
    assert lines(nested) == ['{"x":"é"}']
    append_line(plain, '{"x": 2}')
    assert lines(plain) == ['{"x": 1e-05}', '{"x": 2}']
    bytes_before = pack(folder).read_bytes()
    assert lines(plain) == ['{"x": 1e-05}', '{"x": 2}']
    assert pack(folder).read_bytes() == bytes_before
    replace(plain, lines(plain)[1:])
    assert lines(plain) == ['{"x": 2}']
    assert lines(nested) == ['{"x":"é"}']
    assert lines(folder / "none.jsonl") == []


def test_kept_runs_are_packed() -> None:
    assert list(FOLDER.rglob("*.jsonl")) == []
    assert len(lines(FOLDER / "peers" / "hybrid.jsonl")) >= 210
