"""Options ``--limit``, ``--cost`` and ``--confirm``: parsing, values of a model file, journal, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import mipcash, said, told

from mipcash.cli import limits, modelfile
from mipcash.cli.archive import open_archive, picture_path
from mipcash.errors import ModelError
from mipcash.study.storage.sqlite import read_journal

Write = Callable[..., Path]
HOT = '''"""Two outputs beside the loss."""
import mipcash as mc

DEFAULTS = {"budget": 12, "optimizer": "random"}
space = mc.Space("hot")
space.real("x", 0.0, 1.0)


def objective(config):
    if config["x"] > 0.9:
        raise mc.Failed("melted")
    return {"loss": -config["x"], "heat": config["x"], "grip [%]": 100 - 100 * config["x"]}
'''
OWN = HOT.replace("space = ", 'LIMITS = {"heat": 0.5, "grip [%]": (30, None)}\nspace = ', 1)
LUCK = '''"""Luck in the search."""
import random
import mipcash as mc
DEFAULTS = {"optimizer": "random"}
space = mc.Space("luck")
space.integer("n", 0, 50)
def objective(config, repeat=0):
    return 0.1 * abs(config["n"] - 7) + random.Random(f"{config['n']} {repeat}").gauss(0, 1)
'''
APART = '''"""A loss and a latency."""
import mipcash as mc
DEFAULTS = {"optimizer": "random"}
LIMITS = {"ms": 2}
COSTS = {"loss": 10, "ms": 1}
space = mc.Space("apart")
space.integer("n", 0, 50)
objective = {"loss": lambda c: abs(c["n"] - 7), "ms": lambda c: c["n"] / 10}
'''


def test_limit_flags_are_parsed() -> None:
    for typed, ends in (
        ("ms=5", (None, 5.0)),
        ("ms=:5", (None, 5.0)),
        ("ms=0.9:", (0.9, None)),
        ("ms=-0.1:2e-1", (-0.1, 0.2)),
        ("ms=none", (None, None)),
        ("a=b=5", (None, 5.0)),
    ):
        assert limits.parsed([typed]) == {typed.rpartition("=")[0]: ends}
    cure = r"--limit takes NAME=HIGH.*latency_ms=5 \(at most 5\).*accuracy=0.9: \(at least"
    for wrong in ("ms", "=5", "ms=", "ms=:", "ms=fast", "ms=1:2:3", "ms=2:1", "ms=nan", "ms=inf", " =1", "ms<=5"):
        with pytest.raises(ModelError, match=cure):
            limits.parsed([wrong])


def test_limit_flags_are_kept_in_the_journal(write: Write) -> None:
    write(HOT, "hot.py")
    ran = mipcash("run", "hot.py", "--limit", "heat=0.5", "--limit", "grip [%]=55:")
    assert ran.exit_code == 0, ran.output
    record, rows = read_journal("runs/hot-seed0.db")
    assert record.limits == {"heat": [None, 0.5], "grip [%]": [55.0, None]}
    kept = [r for r in rows if r.loss is not None and r.outcome.values["heat"] <= 0.45]
    best = min(kept, key=lambda r: r.loss or 0.0)
    for part in (
        f"best value {best.loss:.6g} (trial {best.number})",
        f"{len(kept)} within all limits",
        *("trade-offs: the lowest loss for other bounds", "grip [%] at least"),
    ):
        assert part in ran.stdout
    assert " violates heat 0." in ran.stderr
    said(0, "resume", "runs/hot-seed0.db", "--budget", "14", "-q", "--model", "hot.py")
    assert read_journal("runs/hot-seed0.db")[0].limits == record.limits
    assert "limit heat was [None, 0.5] and is [None, 0.6] now" in said(2, "run", "hot.py", "--limit", "heat=0.6")


@pytest.mark.usefixtures("pictures")
def test_show_marks_infeasible_trials_with_their_violation(write: Write) -> None:
    write(HOT, "hot.py")
    mipcash("run", "hot.py", "-q", "--limit", "heat=0.5")
    shown = mipcash("show", "runs/hot-seed0.db", "--plot", "run.svg").stdout
    rows = read_journal("runs/hot-seed0.db")[1]
    hot = [r for r in rows if r.loss is not None and r.outcome.values["heat"] > 0.5]
    assert shown.count("> 0.5") == len(hot) > 0
    for row in hot:
        line = next(l for l in shown.splitlines() if f"{row.loss:.6g}" in l)
        assert f"heat {row.outcome.values['heat']:.6g} > 0.5" in line
    assert "<!-- violates a constraint -->" in Path("run.svg").read_text()
    top = mipcash("show", "runs/hot-seed0.db", "--top", "30").stdout
    order = [l.split()[0] for l in top.splitlines() if l.split()[:1] and l.split()[0].isdigit() and "x=" in l]
    kept = sorted((r.loss or 0.0, r.number) for r in rows if r.loss is not None and r not in hot)
    by_heat = sorted((r.outcome.values["heat"], r.number) for r in hot)
    assert order == [str(number) for _, number in (*kept, *by_heat)]


def test_without_a_feasible_trial_the_nearest_one_is_shown(write: Write) -> None:
    write(HOT, "hot.py")
    ran = mipcash("run", "hot.py", "--limit", "heat=-1")
    assert ran.exit_code == 1, ran.output
    rows = [r for r in read_journal("runs/hot-seed0.db")[1] if r.loss is not None]
    coolest = min(rows, key=lambda r: r.outcome.values["heat"])
    heat = coolest.outcome.values["heat"]
    nearest = f"nothing satisfies all constraints yet; trial {coolest.number} comes nearest: heat {heat:.6g} > -1"
    assert nearest in ran.stdout
    assert "best none satisfies all constraints yet" in ran.stderr
    assert nearest in mipcash("show", "runs/hot-seed0.db").stdout


def test_limit_flags_override_the_limits_of_a_model(write: Write) -> None:
    write(OWN, "hot.py")
    assert modelfile.load("./hot.py").limits == {"heat": (None, 0.5), "grip [%]": (30.0, None)}
    mipcash("run", "hot.py", "-q", "--seed", "1", "--limit", "heat=0.7", "--limit", "grip [%]=none")
    assert read_journal("runs/hot-seed1.db")[0].limits == {"heat": [None, 0.7]}
    write(OWN.replace("0.5", "'warm'"), "bad.py")
    bad = said(2, "run", "bad.py")
    assert "LIMITS of" in bad
    assert "the limit on 'heat' is a number" in bad
    misspelt = said(2, "run", "hot.py", "-q", "--limit", "heta=0.5", "--budget", "40")
    assert "none of 5 evaluations gave 'heta'" in misspelt
    assert "did you mean 'heat'?" in misspelt
    objectives = ("--objective", "heat", "--objective", "grip [%]=maximize")
    assert "limits= has a limit on 'loss'" in said(2, "run", "hot.py", "-q", *objectives, "--limit", "loss=0.5")


def test_finalists_are_shown_and_the_recommendation_is_kept(write: Write) -> None:
    write(LUCK, "luck.py")
    run = ("run", "luck.py", "--budget", "12", "--confirm", "4", "--storage", "run.db")
    ran = said(0, *run, "--quiet")
    result = open_archive(Path("run.db")).result
    assert [t.repeat for t in result.history] == [0] * 8 + [1] * 4
    best = min(result.finalists, key=lambda f: f.mean)
    assert len(result.finalists) == 4
    assert result.best is not None
    assert result.best.number == best.number
    assert result.value >= best.mean  # repeats remove the luck of the search
    shown = said(0, "show", "run.db")
    for part in ("finalists, evaluated again:", "recommended", f"best value {result.value:.6g}"):
        assert part in ran
        assert part in shown
    assert "repeat 1" in shown
    assert "this run is finished (12 evaluations)" in said(0, *run)
    resume = ("resume", "run.db", "--model", "luck.py", "--quiet", "--budget")
    assert "give --confirm N or --confirm replicate as before" in said(2, *resume, "20")
    said(0, *resume, "20", "--confirm", "4")
    assert len([t for t in open_archive(Path("run.db")).result.history if not t.repeat]) == 12
    said(0, *resume, "24", "--confirm", "0")
    assert not any(t.repeat for t in open_archive(Path("run.db")).result.history[20:])
    assert "the budget is 5 evaluations" in said(2, "run", "luck.py", "--budget", "5", "--confirm", "5")
    assert "--confirm 3, or --confirm 0 for none" in said(2, "run", "luck.py", "--confirm", "1")


def test_an_exit_of_the_objective_is_no_success(write: Write) -> None:
    write(
        LUCK.replace("    return 0.1", "    if config['n'] > 0:\n        raise SystemExit(0)\n    return 0.1"),
        "luck.py",
    )
    stopped = said(130, "run", "luck.py", "--budget", "5", "--optimizer", "random", "--quiet", "--storage", "run.db")
    assert "the objective called sys.exit(0), which ends the run" in stopped
    assert "mipcash resume run.db" in stopped


def test_an_interrupted_run_prints_its_flags_in_the_resume_command(write: Write) -> None:
    write(
        LUCK.replace("    return 0.1", "    if config['n'] > 40:\n        raise KeyboardInterrupt\n    yield 0.1"),
        "stops.py",
    )
    flags = ["--steps", "99", "--timeout", "600.0", "--pruning", "halving", "--confirm", "3"]
    told = said(130, "run", "stops.py", *flags, "--storage", "run.db", "--quiet")
    assert " ".join(flags) in told
    assert "--seconds-per-proposal" not in told
    defaults = 'DEFAULTS = {"pruning": "on", "workers": 2}\n'
    write(LUCK.replace("    return 0.1", "    raise KeyboardInterrupt\n    yield 0.1") + defaults, "stops.py")
    flags = ["--workers", "1", "--seconds-per-proposal", "2.0", "--pruning", "off"]
    told = said(130, "run", "stops.py", "--budget", "3", *flags, "--storage", "off.db", "--quiet")
    assert "mipcash resume off.db --model" in told
    assert " ".join(flags) in told


def test_a_run_that_never_began_is_not_called_finished(write: Write) -> None:
    write(LUCK + "\n\ndef starts():\n    return [{'n': 1000}]\n", "luck.py")
    assert "starts() of luck: the configuration cannot be evaluated: " in said(
        2, "run", "luck.py", "--budget", "4", "--storage", "run.db", "--quiet"
    )
    write(LUCK, "luck.py")
    resume = ("resume", "run.db", "--model", "luck.py", "--quiet")
    assert "did not end, and its budget is not known; give --budget N" in said(2, *resume)
    assert "best" in said(0, *resume, "--budget", "4")


def test_a_cost_budget_is_kept_and_extended_on_resume(write: Write) -> None:
    def spent() -> int:
        trials = open_archive(Path("run.db")).result.history
        return sum({"loss": 10, "ms": 1}[n] for t in trials if not t.pending for n in t.evaluate)

    write(APART, "apart.py")
    ran = said(0, "run", "apart.py", "--cost", "120", "--storage", "run.db")
    assert "evaluations that cost 120 with random" in ran
    assert spent() == 110
    said(0, "resume", "run.db", "--model", "apart.py", "--cost", "150", "--quiet")
    assert spent() == 143
    assert "this run is finished (26 evaluations)" in said(
        0, "run", "apart.py", "--budget", "20", "--storage", "run.db"
    )
    said(0, "show", "run.db")
    write(APART.replace('"ms": 1}', '"ms": 1, "size": 1}'), "wrong.py")
    assert "costs= name each function of the objective" in said(2, "run", "wrong.py")
    write(
        APART.replace('objective = {"loss": ', "objective = ").replace(', "ms": lambda c: c["n"] / 10}', ""), "one.py"
    )
    assert "the objective is one function" in said(2, "run", "one.py")
    assert "does not pay for one evaluation of each output" in said(2, "run", "apart.py", "--cost", "5")


@pytest.mark.parametrize(
    ("defaults", "named"),
    [
        ({"workers": 0}, "workers must be a whole number"),
        ({"timeout": "x"}, "timeout must be"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seconds_per_proposal": "5"}, "seconds_per_proposal must be"),
        ({"solver": 3}, "solver must be a name, got int 3"),
        ({"solver": "highs", "workers": 1.5}, "workers must be a whole number"),
    ],
)
def test_invalid_defaults_of_a_model_are_named(write: Write, defaults: dict[str, Any], named: str) -> None:
    write(
        f"import mipcash as mc\nspace = mc.Space('s')\nspace.real('x', 0, 1)\nobjective = float\nDEFAULTS = {defaults}\n",
        "off.py",
    )
    assert named in said(2, "run", "off.py")


def test_a_file_in_the_place_of_the_folder_of_journals_is_named(write: Write) -> None:
    write("import mipcash as mc\nspace = mc.Space('s')\nspace.real('x', 0, 1)\nobjective = float\n", "model.py")
    Path("runs").write_text("a file")
    assert "the folder for journals cannot be made" in said(2, "run", "model.py")


def test_solver_options_are_of_the_solver_of_the_model(write: Write) -> None:
    write(
        "import mipcash as mc\nspace = mc.Space('s')\nspace.integer('x', 0, 1)\ndef objective(c): return c['x']\n"
        "DEFAULTS = {'solver': 'highs', 'budget': 1}\n",
        "own.py",
    )
    assert "with hybrid and highs time_limit=3," in said(0, "run", "own.py", "--solver-option", "time_limit=3")


def test_a_finished_run_of_another_model_is_not_called_this_one(write: Write) -> None:
    run = ("run", "luck.py", "--budget", "4", "--storage", "run.db", "--quiet")
    write(LUCK, "luck.py")
    said(0, *run)
    assert "this run is finished (4 evaluations)" in said(0, *run)
    write(LUCK.replace("- 7", "- 9"), "luck.py")
    with pytest.warns(UserWarning, match="were evaluated by another objective"):
        said(0, *run)
    write(LUCK.replace("0, 50", "0, 40"), "luck.py")
    for again in (run, ("resume", "run.db", "--model", "luck.py", "--quiet")):
        assert "belongs to another study" in said(2, *again)


def test_a_finished_run_without_success_says_so_again(write: Write) -> None:
    write(HOT, "hot.py")
    run = ("run", "hot.py", "--limit", "heat=-1", "--budget", "3", "--quiet")
    assert said(1, *run)
    assert "this run is finished" in said(1, *run)


def test_a_run_at_fidelities_is_resumed_until_its_budget_is_spent(write: Write) -> None:
    write(
        "import mipcash as mc\nspace = mc.Space('f')\nspace.integer('n', 0, 9)\nspace.fidelity('epochs', 1, 9)\n"
        "def objective(c): return c['n'] / c['epochs']\n",
        "fidelity.py",
    )
    said(0, "run", "fidelity.py", "--budget", "4", "--storage", "run.db", "--quiet")
    before = told("run.db")
    assert before > 6  # most of them at low fidelities
    assert "this run is finished" in said(0, "resume", "run.db", "--model", "fidelity.py", "--quiet")
    said(0, "resume", "run.db", "--model", "fidelity.py", "--budget", "6", "--quiet")
    assert told("run.db") > before


def test_no_file_is_written_over_a_journal_or_renamed_that_is_none(write: Write) -> None:
    write(LUCK, "luck.v2.py")
    for name in ("run.png", "run.html", "exp.1", "exp.2"):
        said(0, "run", "luck.v2.py", "--budget", "3", "--storage", name, "--quiet")
        assert told(name) == 3
        said(0, "report", name)
    assert {"run.html.html", "exp.1.html", "exp.2.html"} <= {p.name for p in Path().iterdir()}
    assert [str(picture_path(Path(name))) for name in ("run.db", "run.png", "exp.1")] == [
        "run.png",
        "run.png.png",
        "exp.1.png",
    ]
    assert "it is a journal, which is not replaced" in said(2, "report", "exp.1", "-o", "run.html")
    assert told("run.html") == 3
    fresh = said(2, "run", "luck.v2.py", "--storage", "luck.v2.py", "--fresh", "--budget", "3")
    assert "is no journal, and is not renamed" in fresh
    assert Path("luck.v2.py").read_text(encoding="utf-8") == LUCK
