"""Registry of optimizers: optimizers that other packages register, and its error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.optimizers.registry import make_optimizer, optimizer_names
from tests.named import METHODS, OPTIMIZERS

MODULE = """
from mipcash.optimizers.random import RandomSearch, RandomSettings
from mipcash.optimizers.registry import Entry

WRONG = RandomSearch
NONE = Entry(lambda domain, settings: None, RandomSettings)
ENTRY = Entry(RandomSearch, RandomSettings)
"""


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that registers three optimizers, two of them wrongly."""
    (tmp_path / "elsewhere.py").write_text(MODULE)
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    entries = "last = elsewhere:ENTRY\ngone = elsewhere:MISSING\nwrong = elsewhere:WRONG\n"
    entries += "nothing = elsewhere:NONE\nbroken = broken_elsewhere:ENTRY\ncmes = elsewhere:ENTRY\n"
    (tmp_path / "broken_elsewhere.py").write_text("1 / 0\n")
    (info / "entry_points.txt").write_text(f"[mipcash.optimizers]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))


def space() -> mc.Space:
    made = mc.Space("line")
    made.integer("n", 0, 40)
    return made


@pytest.mark.usefixtures("_package")
def test_another_package_adds_an_optimizer() -> None:
    assert "last" in optimizer_names()
    with mc.Study(space(), "last") as study:
        assert study.ask(3)
        assert study.record.optimizer == "last"


@pytest.mark.usefixtures("_package")
def test_an_entry_that_cannot_be_used_is_named_with_its_package() -> None:
    with pytest.raises(MipcashError, match=r"'gone' is registered by package 'elsewhere'.*cannot be imported"):
        make_optimizer("gone", space())
    with pytest.raises(MipcashError, match=r"'wrong' is registered by package 'elsewhere'.*must be a"):
        make_optimizer("wrong", space())
    with pytest.raises(MipcashError, match=r"'nothing': its Entry made None, which is no .*Optimizer with a name"):
        make_optimizer("nothing", space())
    with pytest.raises(MipcashError, match="cannot be imported: ZeroDivisionError: division by zero"):
        make_optimizer("broken", space())
    with pytest.raises(
        MipcashError, match="HybridSettings, got int"
    ):  # the broken package does not end the search of owners
        make_optimizer("hybrid", space(), settings=3)


@pytest.mark.skipif("cmes" not in METHODS, reason="without the methods the name is free")
@pytest.mark.usefixtures("_package")
def test_a_name_that_two_packages_register_is_refused() -> None:
    with pytest.raises(MipcashError, match=r"'cmes' is registered more than once, as .*elsewhere:ENTRY of elsewhere"):
        make_optimizer("cmes", space())


def test_the_methods_of_the_papers_are_entry_points() -> None:
    assert METHODS == ["admm", "admmbo", "cmes", "jopt", "mivabo", "mivabo-paper"]
    assert {"hybrid", "mutation", "random"} <= set(OPTIMIZERS)


def test_the_error_of_an_unknown_name_suggests_a_similar_one() -> None:
    with pytest.raises(MipcashError, match="there is no optimizer 'hybird'; did you mean 'hybrid'"):
        make_optimizer("hybird", space())


def test_settings_of_another_optimizer_are_refused_with_its_name() -> None:
    with pytest.raises(MipcashError, match=r"'random' takes RandomSettings, got HybridSettings.*optimizer='hybrid'"):
        make_optimizer("random", space(), settings=mc.settings.HybridSettings())
