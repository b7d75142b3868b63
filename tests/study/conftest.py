from __future__ import annotations

from pathlib import Path

import pytest
import tiny

import mipcash as mc


@pytest.fixture
def space() -> mc.Space:
    return tiny.tiny_space()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Return a folder in which evaluations leave files."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder
