"""``mipcash run`` with a storage address, and file names of ``mipcash report``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import said

from mipcash.cli import archive
from mipcash.study.storage.registry import read_study

Write = Callable[..., Path]
TWO = '''"""Two outputs."""
import mipcash as mc
DEFAULTS = {"direction": "maximize", "budget": 3, "optimizer": "random"}
space = mc.Space("two")
space.real("x", 0.0, 1.0)
def objective(config):
    return {"loss": config["x"], "ms": 1.0 - config["x"]}
'''


def test_a_run_at_an_address_is_resumed_and_fresh_moves_it_aside(write: Write) -> None:
    write()
    at = ["run", "bowl.py", "--storage", "sqlite:///q7.db"]
    said(0, *at, "-q")
    assert len(read_study("q7.db")[1]) == 4
    assert "this run is finished (4 evaluations)" in said(0, *at)
    said(0, *at, "-q", "--budget", "5")
    assert len(read_study("sqlite:///q7.db")[1]) == 5
    assert said(0, "report", "sqlite:///q7.db").startswith("report: q7.html")
    assert Path("q7.html").exists()
    assert "the journal that was there is q7.old-1.db now" in said(0, *at, "--fresh")
    assert (len(read_study("q7.db")[1]), len(read_study("q7.old-1.db")[1])) == (4, 5)
    database = ["run", "bowl.py", "--storage", "postgresql://ann:s3cr3t@127.0.0.1:1/d", "--fresh"]
    shown = said(2, *database)
    assert "postgresql://...@127.0.0.1:1/d?study=bowl is no file; name a new study, ?study=NAME" in shown


@pytest.mark.parametrize(
    ("where", "page"),
    [
        ("sqlite:////data/w.db", "/data/w.html"),
        ("postgresql://h/d?study=first", "first.html"),
        ("postgresql://h/d?study=../of%20May", "of_May.html"),
        ("postgresql://h/d?study=%2F", "run.html"),
        ("postgresql://h/d", "bowl.html"),
    ],
)
def test_a_report_of_a_database_is_named_after_its_study(where: str, page: str) -> None:
    assert archive.page_path(where, "bowl") == Path(page)
    assert archive.page_path(Path("runs/a.db"), "other") == Path("runs/a.html")


def test_only_the_changed_direction_or_optimizer_is_reported(write: Write) -> None:
    write(TWO, "two.py")
    run = ["run", "two.py", "--storage", "run.db", "-q"]
    said(0, *run)
    for command, told in (
        ([*run, "--direction", "minimize", "--budget", "4"], "direction was maximize and is minimize"),
        (
            [*run, "--objective", "loss", "--objective", "ms=maximize"],
            "objectives were {'loss': 'maximize'} and are {'loss': 'minimize', 'ms': 'maximize'}",
        ),
        (["work", "run.db", "--model", "two.py", "--optimizer", "hybrid"], "optimizer was 'random' and is 'hybrid'"),
    ):
        assert f"another study: {told} now. To resume" in said(2, *command)


def test_objectives_that_are_typed_replace_the_direction_of_the_file(write: Write) -> None:
    write(TWO, "two.py")
    for command, journal in (
        (["run", "two.py", "--storage", "a.db"], "a.db"),
        (["work", "b.db", "--model", "two.py"], "b.db"),
    ):
        said(0, *command, "-q", "--objective", "loss", "--objective", "ms=max")
        each = read_study(journal)[0].objectives.each
        assert [(g.output, g.direction) for g in each] == [("loss", "minimize"), ("ms", "maximize")]
        wrong = said(2, *command, "--objective", "ms", "--objective", "foo=sideways")
        assert "--objective foo=sideways: direction must be 'minimize' or 'maximize', got 'sideways'" in wrong
