"""``mypy --strict`` on a user script: correct lines pass, and errors are reported in the lines that contain them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("script.py")
ROOT = Path(__file__).parents[2]


def test_mypy_reports_exactly_the_marked_errors(tmp_path: Path) -> None:
    assert (ROOT / "mipcash" / "py.typed").exists()
    (tmp_path / "mypy.ini").write_text("[mypy]\n")  # the user's configuration, not this project's
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--no-error-summary",
        "--hide-error-context",
    ]
    command += [
        "--config-file",
        str(tmp_path / "mypy.ini"),
        "--cache-dir",
        str(ROOT / ".mypy_cache" / "script"),
        str(SCRIPT),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        found = re.match(r".*?script\.py:(\d+): (?:error|note): (.*)", line)
        assert found, line
        said[int(found[1])] = f"{said.get(int(found[1]), '')}{found[2]}\n"
    expected = {
        number: line.split("# wrong: ")[1]
        for number, line in enumerate(SCRIPT.read_text(encoding="utf-8").splitlines(), 1)
        if "# wrong: " in line and not line.startswith('"""')
    }
    assert {n: text for n, text in said.items() if n not in expected} == {}
    assert {n: text for n, text in expected.items() if text not in said.get(n, "")} == {}
