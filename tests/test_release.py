"""Tests of the release: files of the wheel, one version number, fast start of ``import mipcash`` and the command.

``make core`` runs these tests with the wheel installed, from a copy of the tests.
``MIPCASH_SOURCE`` is the source tree of the wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import mipcash

ROOT = Path(__file__).parent.parent
SOURCE = os.environ.get("MIPCASH_SOURCE")
ENGINE = ["pyomo", "highspy", "sklearn", "scipy", "numpy", "sympy", "matplotlib", "torch"]
INSTALLED = pytest.mark.skipif(SOURCE is None, reason="asks for the wheel: make core")


def python(*arguments: str, folder: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@INSTALLED
def test_the_wheel_holds_every_file_of_the_tree_and_no_other() -> None:
    installed = Path(mipcash.__file__).parent
    assert Path(sys.prefix) in installed.parents, f"{installed} is not what was installed"

    def contents(folder: Path) -> dict[str, bytes]:
        files = (f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        return {f.relative_to(folder).as_posix(): f.read_bytes() for f in files}

    expected = contents(Path(SOURCE or "") / "mipcash")
    for content in ("models", "solvers"):
        expected |= {f"{content}/{name}": text for name, text in contents(Path(SOURCE or "") / content).items()}
    assert contents(installed) == expected


@INSTALLED
def test_the_installed_command(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("mipcash")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert told == f"mipcash {version('mipcash')}\n" == python("-m", "mipcash", "--version", folder=tmp_path)
    arguments = ["run", "synthetic", "--budget", "3", "--optimizer", "random", "--quiet"]
    run = subprocess.run([script, *arguments], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "best value" in run.stdout


def test_the_version_is_defined_once() -> None:
    assert python("-m", "mipcash", "--version") == f"mipcash {mipcash.__version__}\n"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert 'version = { attr = "mipcash.__version__" }' in project
    assert re.search(r'^version = "', project, re.M) is None


def test_importing_loads_no_third_party_module() -> None:
    code = """
import sys
before = set(sys.modules)
import mipcash
print(*sorted(m for m in set(sys.modules) - before if m.split(".")[0] not in sys.stdlib_module_names))
"""
    assert python("-c", code).split() == ["mipcash", "mipcash.lazy"]


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_command_line_answers_without_the_engine(argument: str) -> None:
    code = f"""
import sys
from mipcash.cli.main import app
try:
    app([{argument!r}], prog_name="mipcash")
except SystemExit:
    print("loaded", [m for m in {ENGINE} if m in sys.modules])
"""
    assert python("-c", code).endswith("loaded []\n")
