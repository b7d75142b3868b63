"""``mipcash run`` at an address, and where ``mipcash report`` writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mipcash.cli import archive
from mipcash.cli.main import app
from mipcash.study.storage.protocol import StudyRecord
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


def mipcash(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def said(done: Result, code: int = 2) -> str:
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_a_run_at_an_address_goes_on_and_is_moved_aside(write: Write) -> None:
    write()
    at = ["run", "bowl.py", "--storage", "sqlite:///q7.db"]
    assert mipcash(*at, "-q").exit_code == 0
    assert len(read_study("q7.db")[1]) == 4
    assert "this run is finished (4 evaluations)" in said(mipcash(*at), 0)
    assert mipcash(*at, "-q", "--budget", "5").exit_code == 0
    assert len(read_study("sqlite:///q7.db")[1]) == 5
    assert "the journal that was there is q7.old-1.db now" in said(mipcash(*at, "--fresh"), 0)
    assert (len(read_study("q7.db")[1]), len(read_study("q7.old-1.db")[1])) == (4, 5)
    database = ["run", "bowl.py", "--storage", "postgresql://ann:s3cr3t@127.0.0.1:1/d", "--fresh"]
    assert (
        "is renamed, and postgresql://...@127.0.0.1:1/d?study=bowl is no file; name a new study, ?study=NAME"
        in said(mipcash(*database))
    )


def test_a_run_in_a_database_goes_on(write: Write, postgres: str) -> None:
    write()
    assert mipcash("run", "bowl.py", "--storage", postgres, "-q", "--budget", "2").exit_code == 0
    assert mipcash("run", "bowl.py", "--storage", postgres, "-q", "--budget", "3").exit_code == 0
    assert len(read_study(postgres)[1]) == 3
    assert "this run is finished (3" in said(mipcash("run", "bowl.py", "--storage", postgres, "--budget", "3"), 0)


def test_a_report_of_an_address_is_named_after_its_file(write: Write) -> None:
    write()
    for name in ("w", "mm"):
        mipcash("run", "bowl.py", "--storage", f"sqlite:///{name}.db", "-q", "--budget", "2")
        assert mipcash("report", f"sqlite:///{name}.db").stdout == f"report: {name}.html\n"
    assert Path("w.html").exists()
    assert Path("mm.html").exists()
    assert not Path("run.html").exists()


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
    record = StudyRecord("", "bowl", "", {}, 0, "random", "auto")
    assert archive.page_path(where, record) == Path(page)
    assert archive.page_path(Path("runs/a.db"), replace(record, space="other")) == Path("runs/a.html")


def test_another_direction_or_optimizer_is_told_without_what_follows_from_it(write: Write) -> None:
    write(TWO, "two.py")
    run = ["run", "two.py", "--storage", "run.db", "-q"]
    assert mipcash(*run).exit_code == 0
    told = said(mipcash(*run, "--direction", "minimize", "--budget", "4"))
    assert "another study: direction was maximize and is minimize now. To resume" in told
    told = said(mipcash(*run, "--objective", "loss", "--objective", "ms=maximize"))
    assert (
        "another study: objectives were {'loss': 'maximize'} and are {'loss': 'minimize', 'ms': 'maximize'} now. To resume"
        in told
    )
    told = said(mipcash("work", "run.db", "--model", "two.py", "--optimizer", "hybrid"))
    assert "another study: optimizer was 'random' and is 'hybrid' now. To resume" in told


def test_objectives_that_are_typed_replace_the_direction_of_the_file(write: Write) -> None:
    write(TWO, "two.py")
    for command in (["run", "two.py", "--storage", "a.db"], ["work", "b.db", "--model", "two.py"]):
        done = mipcash(*command, "-q", "--objective", "loss", "--objective", "ms=max")
        assert done.exit_code == 0, done.output
        record, _ = read_study("a.db" if command[0] == "run" else "b.db")
        assert [(g.output, g.direction) for g in record.objectives.each] == [
            ("loss", "minimize"),
            ("ms", "maximize"),
        ]
        told = said(mipcash(*command, "--objective", "ms", "--objective", "foo=sideways"))
        assert "--objective foo=sideways: direction must be 'minimize' or 'maximize', got 'sideways'" in told
    mipcash("work", "c.db", "--model", "two.py", "-q")
    told = said(mipcash("work", "c.db", "--model", "two.py", "--objective", "loss", "--objective", "ms"))
    assert "objectives were {'loss': 'maximize'} and are {'loss': 'minimize', 'ms': 'minimize'} now" in told


def test_resume_speaks_json_too(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "2")
    for budget, kinds in (("3", ["trial", "result"]), ("3", ["result"])):
        done = mipcash("resume", "run.db", "--model", "bowl.py", "--budget", budget, "--json")
        assert done.exit_code == 0, done.output
        assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == kinds
