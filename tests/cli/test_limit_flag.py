"""Limits on the command line: as they are typed, as a model gives them, in the journal, in tables and in the picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mipcash.cli import limits, modelfile
from mipcash.cli.main import app
from mipcash.errors import ModelError
from mipcash.study.storage.sqlite import read_journal

Write = Callable[..., Path]
MODEL = '''"""Two outputs beside the loss."""
import mipcash as mc

DEFAULTS = {"budget": 12, "optimizer": "random"}
space = mc.Space("hot")
space.real("x", 0.0, 1.0)


def objective(config):
    if config["x"] > 0.9:
        raise mc.Failed("melted")
    return {"loss": -config["x"], "heat": config["x"], "grip [%]": 100 - 100 * config["x"]}
'''
OWN = MODEL.replace("space = ", 'LIMITS = {"heat": 0.5, "grip [%]": (30, None)}\nspace = ', 1)


def mipcash(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("typed", "ends"),
    [
        ("ms=5", (None, 5.0)),
        ("ms=:5", (None, 5.0)),
        ("ms=0.9:", (0.9, None)),
        ("ms=-0.1:2e-1", (-0.1, 0.2)),
        ("ms=none", (None, None)),
        ("a=b=5", (None, 5.0)),
    ],
)
def test_what_can_be_typed(typed: str, ends: tuple[float | None, float | None]) -> None:
    assert limits.parsed([typed]) == {typed.rpartition("=")[0]: ends}


@pytest.mark.parametrize(
    "typed", ["ms", "=5", "ms=", "ms=:", "ms=fast", "ms=1:2:3", "ms=2:1", "ms=nan", "ms=inf", " =1", "ms<=5", "ms >= 5"]
)
def test_what_cannot_be_read_is_refused_with_what_can(typed: str) -> None:
    with pytest.raises(
        ModelError, match=r"--limit takes NAME=HIGH.*latency_ms=5 \(at most 5\).*accuracy=0.9: \(at least"
    ):
        limits.parsed([typed])


def test_one_flag_limits_a_run_and_the_journal_keeps_it(write: Write) -> None:
    write(MODEL, "hot.py")
    ran = mipcash("run", "hot.py", "--limit", "heat=0.5", "--limit", "grip [%]=55:")
    assert ran.exit_code == 0, ran.output
    record, rows = read_journal("runs/hot-seed0.db")
    assert record.limits == {"heat": [None, 0.5], "grip [%]": [55.0, None]}
    kept = [r for r in rows if r.loss is not None and r.outcome.values["heat"] <= 0.45]
    best = min(kept, key=lambda r: r.loss or 0.0)
    assert f"best loss {best.loss:.6g} (trial {best.number})" in ran.stdout
    assert f"limits: {len(kept)} keep all; broken or not told: heat " in ran.stdout
    assert "what each limit costs" in ran.stdout
    assert "grip [%] at least" in ran.stdout
    assert "by the model" in ran.stdout
    assert " breaks heat 0." in ran.stderr
    resumed = mipcash("resume", "runs/hot-seed0.db", "--budget", "14", "-q", "--model", "hot.py")
    assert resumed.exit_code == 0, resumed.output
    assert read_journal("runs/hot-seed0.db")[0].limits == record.limits
    other = mipcash("run", "hot.py", "--limit", "heat=0.6")
    assert other.exit_code == 2
    assert "limit heat was [None, 0.5] and is [None, 0.6] now" in other.stderr


def test_show_marks_what_breaks_a_limit_and_by_what(write: Write) -> None:
    write(MODEL, "hot.py")
    mipcash("run", "hot.py", "-q", "--limit", "heat=0.5")
    shown = mipcash("show", "runs/hot-seed0.db", "--plot", "run.svg").stdout
    rows = read_journal("runs/hot-seed0.db")[1]
    hot = [r for r in rows if r.loss is not None and r.outcome.values["heat"] > 0.5]
    assert hot
    for row in hot:
        line = next(l for l in shown.splitlines() if f"{row.loss:.6g}" in l)
        assert f"heat {row.outcome.values['heat']:.6g} > 0.5" in line
    assert shown.count("> 0.5") == len(hot)
    assert "<!-- violates a constraint -->" in Path("run.svg").read_text()
    top = mipcash("show", "runs/hot-seed0.db", "--top", "30").stdout
    order = [l.split()[0] for l in top.splitlines() if l.split()[:1] and l.split()[0].isdigit() and "x=" in l]
    kept = sorted((r.loss or 0.0, r.number) for r in rows if r.loss is not None and r not in hot)
    assert order == [str(n) for _, n in kept] + [
        str(n) for _, n in sorted((r.outcome.values["heat"], r.number) for r in hot)
    ]


def test_while_nothing_keeps_them_the_nearest_is_shown(write: Write) -> None:
    write(MODEL, "hot.py")
    ran = mipcash("run", "hot.py", "--limit", "heat=-1")
    assert ran.exit_code == 1, ran.output
    rows = [r for r in read_journal("runs/hot-seed0.db")[1] if r.loss is not None]
    coolest = min(rows, key=lambda r: r.outcome.values["heat"])
    heat = coolest.outcome.values["heat"]
    said = f"nothing satisfies all constraints; trial {coolest.number} comes nearest: heat {heat:.6g} > -1"
    assert said in ran.stdout
    assert "best none satisfies all constraints yet" in ran.stderr
    assert said in mipcash("show", "runs/hot-seed0.db").stdout


def test_a_model_may_have_limits_of_its_own_and_the_command_goes_before_them(write: Write) -> None:
    write(OWN, "hot.py")
    assert modelfile.load("./hot.py").limits == {"heat": (None, 0.5), "grip [%]": (30.0, None)}
    mipcash("run", "hot.py", "-q")
    assert read_journal("runs/hot-seed0.db")[0].limits == {"heat": [None, 0.5], "grip [%]": [30.0, None]}
    assert "this run is finished" in mipcash("run", "hot.py").stdout
    mipcash("run", "hot.py", "-q", "--seed", "1", "--limit", "heat=0.7", "--limit", "grip [%]=none")
    assert read_journal("runs/hot-seed1.db")[0].limits == {"heat": [None, 0.7]}
    write(OWN.replace("0.5", "'warm'"), "bad.py")
    bad = mipcash("run", "bad.py")
    assert bad.exit_code == 2
    assert "LIMITS of" in bad.stderr
    assert "the limit on 'heat' is a number" in bad.stderr


def test_a_limit_that_is_spelt_otherwise_ends_the_run(write: Write) -> None:
    write(MODEL, "hot.py")
    ran = mipcash("run", "hot.py", "-q", "--limit", "heta=0.5", "--budget", "40")
    assert ran.exit_code == 2
    assert "none of 5 evaluations gave 'heta'" in ran.stderr
    assert "did you mean 'heat'?" in ran.stderr
    assert {r.status for r in read_journal("runs/hot-seed0.db")[1] if not r.outcome.message} == {"pending"}
