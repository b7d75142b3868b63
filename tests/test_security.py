"""Tests of SECURITY.md: its tests exist, no data is loaded as code, and wheels are reproducible."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = {"eval", "exec", "compile"}
READERS = {"pickle", "cloudpickle", "joblib", "dill", "marshal", "shelve", "torch", "yaml", "runpy"}
FUNCTIONS = "load|open|run|unsafe_load|full_load"
BETWEEN_OWN_PROCESSES = {
    "mipcash/integrations/sklearn/search/executors.py",
    "mipcash/study/evaluating/evaluation.py",
    "mipcash/study/evaluating/pool.py",
    "mipcash/study/evaluating/processes.py",
    "mipcash/study/evaluating/worker.py",
}
"""Modules that unpickle objectives and outcomes which a run sends to its own processes, or has just pickled to check them."""


def test_every_threat_names_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.split("## Threats")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", table)
    assert len(rows) == len(named) > 10
    for file, name in named:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no test {name}"


def loaders(source: str) -> list[str]:
    """Return the calls that may run data as code, and such functions that are imported by name."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    found = [
        name.name
        for node in imports
        for name in node.names
        if node.module in READERS and re.match(FUNCTIONS, name.name)
    ]
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        module, _, function = name.rpartition(".")
        reads = module in READERS and re.match(FUNCTIONS, function) is not None
        if name in CODE or reads or "allow_pickle=True" in ast.unparse(call):
            found.append(name)
    return found


@pytest.mark.parametrize("call", ["eval(x)", "pickle.loads(x)", "np.load(x, allow_pickle=True)", "runpy.run_path(x)"])
def test_calls_that_run_data_are_seen(call: str) -> None:
    assert loaders(f"def f(x):\n    return {call}") == [call.partition("(")[0]]
    assert loaders("from pickle import loads") == ["loads"]


def test_no_data_is_loaded_as_code() -> None:
    files = [file for folder in ("mipcash", "models", "solvers") for file in (ROOT / folder).rglob("*.py")]
    found = {file.relative_to(ROOT).as_posix() for file in files if loaders(file.read_text(encoding="utf-8"))}
    assert found == BETWEEN_OWN_PROCESSES


def test_wheels_are_reproducible(tmp_path: Path) -> None:
    kept = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "mipcash", "models", "solvers")
    digests = set()
    for k, name in enumerate(("first", "a second")):
        source, target = tmp_path / name, tmp_path / f"wheel{k}"
        source.mkdir()
        for each in kept:  # as new files: each copy has other times
            path = ROOT / each
            if path.is_dir():
                shutil.copytree(
                    path, source / each, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copyfile(path, source / each)
            os.utime(source / each, (1e9 + k, 1e9 + k))
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(target), str(source)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": str(k)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (wheel,) = target.iterdir()
        digests.add((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert len(digests) == 1
