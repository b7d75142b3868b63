"""Tests of the command line: in this process by typer's runner, or as a separate process for signals."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import mipcash, said, start, told

import mipcash as mc
from mipcash import __version__
from mipcash.cli.printing import errors
from mipcash.optimizers.optimizer import Optimizer, Proposal, Request
from mipcash.study.storage.sqlite import read_journal

Write = Callable[..., Path]
BOWL = ("--model", "bowl.py")
OPTIONS = ("--option", "low=1.5", "--option", "label=width")


@pytest.mark.usefixtures("pictures")
def test_run_then_show_then_resume(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    ran = mipcash("run", "bowl.py")
    assert ran.exit_code == 0, ran.output
    assert told("runs/bowl-seed0.db") == 4
    for part in (
        "best value",
        "[twice] ",
        "report: x = ",
        "picture: runs/bowl-seed0.png",
        "journal: runs/",
    ):
        assert part in ran.stdout
    assert "[4/4]" in ran.stderr
    assert Path("runs/bowl-seed0.png").stat().st_size > 1000

    shown = mipcash("show", "runs/bowl-seed0.db", "--plot", "here.svg")
    assert shown.exit_code == 0, shown.output
    assert "picture: here.svg" in shown.stdout
    assert Path("here.svg").read_text().rstrip().endswith("</svg>")
    with monkeypatch.context() as without:
        without.setattr("mipcash.report.drawing.find_spec", lambda name: None)
        assert "pip install 'mipcash[plots]'" in said(2, "show", "runs/bowl-seed0.db", "--plot", "none.svg")
    assert "picture:" not in said(0, "show", "runs/bowl-seed0.db")
    losses = [row.loss for row in read_journal("runs/bowl-seed0.db")[1]]
    assert all(f"{loss:.6g}" in shown.stdout for loss in losses)

    resumed = mipcash("resume", "runs/bowl-seed0.db", "--budget", "6", "--quiet", *BOWL)
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stderr == ""
    assert told("runs/bowl-seed0.db") == 6
    last = mipcash("show", "runs/bowl-seed0.db", "--last", "1").stdout
    assert "6 trials, the last 1" in last
    assert f"{losses[0]:.6g}  " not in last.split("best value")[0]
    top = mipcash("show", "runs/bowl-seed0.db", "--top", "2").stdout
    best_first = sorted(row.loss or 0.0 for row in read_journal("runs/bowl-seed0.db")[1])
    assert top.index(f"{best_first[0]:.6g}") < top.index(f"{best_first[1]:.6g}")
    assert f"{best_first[2]:.6g}" not in top


def test_run_the_design(write: Write) -> None:
    write()
    ran = said(0, "run", "design", "--budget", "60", "--optimizer", "random", "--quiet")
    assert "best value" in ran
    assert "deflection_mm" in ran


def test_starts_of_a_model_are_evaluated_first(write: Write) -> None:
    path = write()
    more = """

def starts(low: float = 0.0):
    return [{"x": low + 0.5, "n": 2, "act": None}, {"x": low + 0.25, "n": 1, "act": True}]
"""
    path.write_text(path.read_text() + more)
    for budget in ("1", "4"):
        assert mipcash("run", "bowl.py", "--budget", budget, "--option", "low=1").exit_code == 0
    rows = read_journal("runs/bowl-seed0.db")[1]
    assert [row.loss for row in rows[:2]] == [1.5**2 + 2, 1.25**2 + 1]
    assert [row.origin == "enqueued" for row in rows] == [True, True, False, False]


def test_a_journal_is_shown_without_importing_what_a_search_needs(write: Write) -> None:
    write()
    said(0, "run", "bowl.py", "--storage", "run.db", "--quiet")
    code = "import sys; from mipcash.cli.main import main; sys.argv = ['mipcash', 'show', 'run.db']; main()"
    ends = "import atexit, sys; atexit.register(lambda: print({'pyomo', 'highspy', 'scipy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{ends}; {code}"], capture_output=True, text=True, check=True)
    assert "best value" in done.stdout
    assert done.stdout.strip().endswith("set()")


def test_a_finished_run_is_shown_and_a_larger_budget_resumes_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    mipcash("run", "bowl.py", "--budget", "3")
    before = Path("runs/bowl-seed0.db").read_bytes()
    for command in (["run", "bowl.py", "--budget", "3"], ["resume", "runs/bowl-seed0.db"]):
        again = said(0, *command)
        assert "this run is finished (3 evaluations)" in again
        assert "best value" in again
    assert Path("runs/bowl-seed0.db").read_bytes() == before
    said(0, "run", "bowl.py", "--budget", "5")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said(0, "resume", "../runs/bowl-seed0.db", "--budget", "6", "-q", "--model", "../bowl.py")
    assert told("../runs/bowl-seed0.db") == 6


def test_options_are_kept_for_resuming_and_another_value_is_refused(write: Write) -> None:
    write()
    run = ("run", "bowl.py", "--storage", "run.db", "-q", "--seed", "3", "--option", "low=1.5", "-o", "label=width")
    assert "report: width = " in said(0, *run, "--budget", "2")
    assert "report: width = " in said(0, "resume", "run.db", "--budget", "4", "-q", *BOWL, *OPTIONS)
    assert told("run.db") == 4
    assert all('"x": 1.' in row.config or '"x": 2.' in row.config for row in read_journal("run.db")[1])
    other = ("run", "bowl.py", "--storage", "run.db", "--seed", "3", "-o", "low=1.0", "-o", "label=width")
    assert "option low was '1.5' and is '1.0' now" in said(2, *other)
    assert "seed was 3 and is 0 now" in said(2, "run", "bowl.py", "--storage", "run.db")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("slow=60", "--evaluation-timeout", "0.2"), "longer than evaluation_timeout=0.2 seconds"),
        (("slow=400", "--evaluation-memory", "300"), "more memory than evaluation_memory=300 MB"),
    ],
)
def test_an_evaluation_over_its_time_or_memory_limit_fails(write: Write, flags: tuple[str, ...], message: str) -> None:
    """Assert this for the objective of a model file, which cannot be imported by name in another process."""
    write(write().read_text().replace("time.sleep(slow)", "x = b'x' * int(slow * 1e6); time.sleep(slow)"))
    said(1, "run", "bowl.py", "--budget", "1", "-q", "-o", *flags)
    row = read_journal("runs/bowl-seed0.db")[1][0]
    assert row.outcome.message == f"it took {message}, and its process was killed"


def test_seconds_per_proposal(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []
    ask = Optimizer.ask

    def noted(self: Optimizer, request: Request) -> Proposal:
        given.append(request.seconds)
        return ask(self, request)

    monkeypatch.setattr(Optimizer, "ask", noted)
    write()
    said(0, "run", "bowl.py", "--budget", "1", "-q", "--seconds-per-proposal", "0.5")
    resume = ("resume", "runs/bowl-seed0.db", "-q", *BOWL, "--budget")
    said(0, *resume, "2", "--seconds-per-proposal", "0.5")
    said(0, *resume, "3")
    assert given == [0.5, 0.5, 5.0]


def test_the_printed_resume_command_continues_without_a_question(write: Write) -> None:
    write()
    slow = mipcash("run", "bowl.py", "-o", "slow=0.2", "--workers", "3", "--timeout", "0.5", "--budget", "500", "-q")
    assert slow.exit_code == 0, slow.output
    assert "stopped: timeout" in slow.stdout
    before = told("runs/bowl-seed0.db")
    assert 3 <= before < 500
    line = next(l for l in slow.stdout.splitlines() if l.startswith("to go on: "))
    command = shlex.split(line.removeprefix("to go on: "))
    assert command[:3] == ["mipcash", "resume", "runs/bowl-seed0.db"]
    said(0, *command[1:], "--budget", str(before + 1), "-q")
    assert told("runs/bowl-seed0.db") == before + 1


@pytest.mark.usefixtures("pictures")
def test_a_model_that_changes_the_folder_or_whose_report_fails_loses_nothing(write: Write, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moves = "import os; os.chdir(os.path.dirname(__file__) + '/elsewhere')"
    write(write().read_text().replace("time.sleep(slow)", moves) + "\ndef report(result):\n    return 1 / 0\n")
    ran = said(0, "run", "bowl.py", "--storage", "run.db", "-q")
    for part in ("report() of bowl failed: ZeroDivisionError", "best value", "journal: run.db"):
        assert part in ran
    assert told("run.db") == 4
    assert Path("run.png").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_mistakes_are_reported_in_one_line(write: Write) -> None:
    write()
    for command, message in (
        ("run nothing", "there is no model 'nothing'"),
        ("run bowl.py --option folds", "--option takes KEY=VALUE"),
        ("run bowl.py --optimizer magic", "magic"),
        ("run bowl.py --solver magic", "magic"),
        ("run bowl.py --storage no/folder/run.db", "mkdir -p no/folder"),
        ("run bowl.py --storage bowl.py", "not a journal of mipcash"),
        ("resume missing.db", "missing.db does not exist"),
        ("show bowl.py", "not a journal of mipcash"),
        ("check missing.py", "no model file"),
    ):
        failed = mipcash(*command.split())
        assert failed.exit_code == 2
        assert failed.stderr.startswith("error: ")
        assert message in failed.stderr
        assert "Traceback" not in failed.output
        assert len(failed.stderr.splitlines()) == 1
    traced = said(2, "show", "bowl.py", "--debug")
    assert "Traceback" in traced
    assert "StorageError" in traced


def test_a_journal_of_a_script_says_how_to_resume_it(write: Write) -> None:
    space = mc.Space("s")
    space.real("x", 0, 1)
    write()
    mc.minimize(lambda c: c["x"], space, 2, optimizer="random", storage="script.db", progress=False)
    assert "run the script again with storage='script.db'" in said(2, "resume", "script.db")
    said(0, "show", "script.db")


def test_check_shows_the_space_and_an_example_or_why_there_is_none(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    checked = said(0, "check", "bowl.py", "-o", "strict=true")
    for part in ("A bowl to try", "integer in [0, 5]", "n is small", "binaries", "a legal configuration", "act"):
        assert part in checked
    text = "import mipcash as mc\nspace = mc.Space('s')\nn = space.integer('n', 0, 5)\nobjective = len\n"
    write(text + "space.rule('many', n >= 4)\nspace.rule('few', n <= 3)\n", "empty.py")
    empty = said(1, "check", "empty.py")
    for part in ("no legal configuration exists", "many", "few"):
        assert part in empty
    monkeypatch.setattr("mipcash.cli.main.CHECK_SECONDS", 0.0)
    checked = said(0, "check", "bowl.py")
    for part in ("0 s are not enough to prove what is left", "not proven", "a legal configuration"):
        assert part in checked


def test_models_solvers_and_version() -> None:
    assert "sklearn_pipeline" in mipcash("models").stdout
    assert "highs" in mipcash("solvers").stdout
    assert mipcash("--version").stdout == f"mipcash {__version__}\n"
    assert "resume" in mipcash("--help").stdout


# -- as a process ---------------------------------------------------------------------------------------------------


def until_evaluation(process: subprocess.Popen[str], number: int) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if f"#{number} " in line:
            return


def test_ctrl_c_prints_the_command_that_resumes(write: Write) -> None:
    write()
    process = start("run", "bowl.py", "-o", "slow=0.1", "--budget", "60", "--workers", "2")
    until_evaluation(process, 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "mipcash resume runs/bowl-seed0.db" in out
    assert "Traceback" not in err
    done = told("runs/bowl-seed0.db")
    assert 2 <= done < 60
    said(0, "resume", "runs/bowl-seed0.db", "--budget", str(done + 1), "-q", *BOWL, "--option", "slow=0.1")
    assert told("runs/bowl-seed0.db") == done + 1


def test_a_running_study_can_be_shown_but_not_run_twice_and_is_resumed_after_a_kill(write: Write) -> None:
    write()
    process = start("run", "bowl.py", "-o", "slow=0.1", "--budget", "60")
    until_evaluation(process, 1)
    assert mipcash("show", "runs/bowl-seed0.db").exit_code == 0
    assert "in use by another study" in said(2, "run", "bowl.py", "-o", "slow=0.1", "--budget", "60")
    said(2, "run", "bowl.py", "-o", "slow=0.1", "--budget", "60", "--fresh")
    process.kill()
    process.communicate(timeout=240)
    done = told("runs/bowl-seed0.db")
    said(0, "resume", "runs/bowl-seed0.db", "--budget", str(done + 1), "-q", *BOWL, "--option", "slow=0.1")
    assert told("runs/bowl-seed0.db") == done + 1


def test_warnings_are_notes_without_a_line_of_code() -> None:
    with errors(debug=False):
        assert warnings.formatwarning(UserWarning("late \x1b"), UserWarning, "main.py", 7) == "note: late \\x1b\n"
    assert "UserWarning" in warnings.formatwarning(UserWarning("late"), UserWarning, "main.py", 7)


def test_a_closed_pipe_is_no_success_and_characters_of_names_that_a_file_lacks_are_escaped(write: Write) -> None:
    write()
    Path("greek.py").write_text(Path("bowl.py").read_text().replace('"n"', '"β"'), encoding="utf-8")
    words = [sys.executable, "-m", "mipcash", "run", "greek.py", "--budget", "3", "--storage", "greek.db"]
    western = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    ran = subprocess.run(words, capture_output=True, env=western)
    assert ran.returncode == 0, ran.stderr
    assert b"\\u03b2" in ran.stdout
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run([*words, "--fresh"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert gone.returncode != 0
    assert b"Traceback" not in gone.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("compare", "a.db", "--kind", "foo"), "runs are compared by"),
        (("report", "a.db", "--option", "a=1"), "give --model FILE too"),
        (("run", "bowl.py", "--solver-option", "foo"), "--solver-option takes KEY=VALUE"),
        (("run", "artificial", "--option", "instance=x"), "error: option instance='x' is not a whole number"),
        (("show", "n" * 300), "name too long"),
    ],
)
def test_mistakes_are_told_at_once(write: Write, command: tuple[str, ...], message: str) -> None:
    write()
    assert message in said(2, *command)
