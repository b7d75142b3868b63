"""The command, in this process through typer's runner and as a process of its own where signals matter."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mipcash import __version__
from mipcash.cli.main import app
from mipcash.optimizers.optimizer import Optimizer, Proposal, Request
from mipcash.study.storage.sqlite import read_journal

Write = Callable[..., Path]
BOWL = ("--model", "bowl.py")
OPTIONS = ("--option", "low=1.5", "--option", "label=width")


def mipcash(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def told(path: str) -> int:
    return sum(row.status != "pending" for row in read_journal(path)[1])


def test_run_then_show_then_resume(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    ran = mipcash("run", "bowl.py")
    assert ran.exit_code == 0, ran.output
    assert told("runs/bowl-seed0.db") == 4
    for part in (
        "best configuration of bowl",
        "twice = ",
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
        shown = mipcash("show", "runs/bowl-seed0.db")
        assert shown.exit_code == 0, shown.output
        assert "picture: none without matplotlib; pip install 'mipcash[plots]', then mipcash show runs/" in shown.stdout
    losses = [row.loss for row in read_journal("runs/bowl-seed0.db")[1]]
    assert all(f"{loss:.6g}" in shown.stdout for loss in losses)

    resumed = mipcash("resume", "runs/bowl-seed0.db", "--budget", "6", "--quiet", *BOWL)
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stderr == ""
    assert told("runs/bowl-seed0.db") == 6
    top = mipcash("show", "runs/bowl-seed0.db", "--top", "2").stdout
    best_first = sorted(row.loss or 0.0 for row in read_journal("runs/bowl-seed0.db")[1])
    assert top.index(f"{best_first[0]:.6g}") < top.index(f"{best_first[1]:.6g}")
    assert f"{best_first[2]:.6g}" not in top


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


def test_a_finished_run_is_shown_and_a_larger_budget_goes_on(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--budget", "3")
    before = Path("runs/bowl-seed0.db").read_bytes()
    for command in (["run", "bowl.py", "--budget", "3"], ["resume", "runs/bowl-seed0.db"]):
        again = mipcash(*command)
        assert again.exit_code == 0, again.output
        assert "this run is finished (3 evaluations)" in again.stdout
        assert "best configuration" in again.stdout
    assert Path("runs/bowl-seed0.db").read_bytes() == before
    assert mipcash("run", "bowl.py", "--budget", "5").exit_code == 0
    assert told("runs/bowl-seed0.db") == 5


def test_fresh_moves_the_old_journal_aside(write: Write) -> None:
    write()
    for _ in range(3):
        assert mipcash("run", "bowl.py", "--fresh", "--quiet", "--budget", "1").exit_code == 0
    kept = sorted(p.name for p in Path("runs").glob("*.db"))
    assert kept == ["bowl-seed0.db", "bowl-seed0.old-1.db", "bowl-seed0.old-2.db"]
    assert all(told(f"runs/{name}") == 1 for name in kept)
    Path("notes.db").write_text("not a journal")
    assert mipcash("run", "bowl.py", "--storage", "notes.db", "--fresh", "-q").exit_code == 0
    assert Path("notes.old-1.db").read_text() == "not a journal"


def test_options_are_kept_for_resuming_and_another_value_is_refused(write: Write) -> None:
    write()
    run = ("run", "bowl.py", "--storage", "run.db", "-q", "--seed", "3", "--option", "low=1.5", "-o", "label=width")
    assert "report: width = " in mipcash(*run, "--budget", "2").stdout
    assert "report: width = " in mipcash("resume", "run.db", "--budget", "4", "-q", *BOWL, *OPTIONS).stdout
    assert told("run.db") == 4
    assert all('"x": 1.' in row.config or '"x": 2.' in row.config for row in read_journal("run.db")[1])
    other = mipcash("run", "bowl.py", "--storage", "run.db", "--seed", "3", "-o", "low=1.0", "-o", "label=width")
    assert other.exit_code == 2
    assert "option low was '1.5' and is '1.0' now" in other.stderr
    assert "seed was 3 and is 0 now" in mipcash("run", "bowl.py", "--storage", "run.db").stderr


def test_a_journal_resumes_from_another_folder(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    mipcash("run", "bowl.py", "--budget", "2", "-q")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert mipcash("resume", "../runs/bowl-seed0.db", "--budget", "3", "-q", "--model", "../bowl.py").exit_code == 0
    assert told("../runs/bowl-seed0.db") == 3


def test_an_objective_that_changes_the_folder_does_not_lose_the_journal(write: Write, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write(
        write().read_text().replace("time.sleep(slow)", "import os; os.chdir(os.path.dirname(__file__) + '/elsewhere')")
    )
    ran = mipcash("run", "bowl.py", "--storage", "run.db", "-q")
    assert ran.exit_code == 0, ran.output
    assert "journal: run.db" in ran.stdout
    assert told("run.db") == 4
    assert Path("run.png").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_evaluation_that_takes_too_long_fails(write: Write) -> None:
    """The objective of a file that no process can import by name."""
    write()
    ran = mipcash("run", "bowl.py", "-o", "slow=60", "--evaluation-timeout", "0.2", "--budget", "1", "-q")
    assert ran.exit_code == 1, ran.output
    row = read_journal("runs/bowl-seed0.db")[1][0]
    assert row.outcome.message == "it took longer than evaluation_timeout=0.2 seconds, and its process was killed"
    assert (
        mipcash(
            "resume",
            "runs/bowl-seed0.db",
            "--budget",
            "2",
            "-q",
            "--evaluation-timeout",
            "0.2",
            *BOWL,
            "--option",
            "slow=60",
        ).exit_code
        == 1
    )
    assert told("runs/bowl-seed0.db") == 2


def test_an_evaluation_that_takes_too_much_memory_fails(write: Write) -> None:
    write(write().read_text().replace("time.sleep(slow)", "x = b'x' * int(slow * 1e6); time.sleep(slow)"))
    ran = mipcash("run", "bowl.py", "-o", "slow=400", "--evaluation-memory", "300", "--budget", "1", "-q")
    assert ran.exit_code == 1, ran.output
    said = "it took more memory than evaluation_memory=300 MB, and its process was killed"
    assert read_journal("runs/bowl-seed0.db")[1][0].outcome.message == said


def test_seconds_per_proposal(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []
    ask = Optimizer.ask

    def noted(self: Optimizer, request: Request) -> Proposal:
        given.append(request.seconds)
        return ask(self, request)

    monkeypatch.setattr(Optimizer, "ask", noted)
    write()
    for options in (("run", "bowl.py", "--budget", "1"), ("resume", "runs/bowl-seed0.db", "--budget", "2", *BOWL)):
        assert mipcash(*options, "-q", "--seconds-per-proposal", "0.5").exit_code == 0
    assert mipcash("resume", "runs/bowl-seed0.db", "--budget", "3", "-q", *BOWL).exit_code == 0
    assert given == [0.5, 0.5, 5.0]


def test_workers_and_timeout(write: Write) -> None:
    write()
    slow = mipcash("run", "bowl.py", "-o", "slow=0.2", "--workers", "3", "--timeout", "0.5", "--budget", "500", "-q")
    assert slow.exit_code == 0, slow.output
    assert "stopped: timeout" in slow.stdout
    assert "to go on: mipcash resume runs/bowl-seed0.db" in slow.stdout
    assert 3 <= told("runs/bowl-seed0.db") < 500


def test_a_run_without_a_success_says_so(write: Write) -> None:
    text = "import mipcash as mc\nspace = mc.Space('s')\nspace.real('x', 0, 1)\n"
    write(text + "def objective(c):\n    raise mc.Failed('no data [here]')\n", "broken.py")
    ran = mipcash("run", "broken.py", "--budget", "3", "--optimizer", "random")
    assert ran.exit_code == 1
    assert "each of the first 3 evaluations failed with the same message" in ran.stdout
    assert "no data [here]" in ran.stdout
    assert "[yellow]" not in mipcash("show", "runs/broken-seed0.db").stdout


def test_a_report_that_fails_does_not_hide_the_result(write: Write) -> None:
    write(write().read_text() + "\ndef report(result):\n    return 1 / 0\n")
    ran = mipcash("run", "bowl.py", "-q")
    assert ran.exit_code == 0
    assert "report() of bowl failed: ZeroDivisionError" in ran.stderr
    assert "best configuration" in ran.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "nothing"], "there is no model 'nothing'"),
        (["run", "bowl.py", "--option", "folds"], "--option takes KEY=VALUE"),
        (["run", "bowl.py", "--optimizer", "magic"], "magic"),
        (["run", "bowl.py", "--solver", "magic"], "magic"),
        (["run", "bowl.py", "--storage", "no/folder/run.db"], "mkdir -p no/folder"),
        (["run", "bowl.py", "--storage", "bowl.py"], "not a journal of mipcash"),
        (["resume", "missing.db"], "missing.db does not exist"),
        (["show", "bowl.py"], "not a journal of mipcash"),
        (["check", "missing.py"], "no model file"),
    ],
)
def test_mistakes_are_one_red_line(write: Write, command: list[str], message: str) -> None:
    write()
    failed = mipcash(*command)
    assert failed.exit_code == 2
    assert failed.stderr.startswith("error: ")
    assert message in failed.stderr
    assert "Traceback" not in failed.output
    assert len(failed.stderr.splitlines()) == 1


def test_debug_shows_the_traceback(write: Write) -> None:
    write()
    failed = mipcash("show", "bowl.py", "--debug")
    assert failed.exit_code == 2
    assert "Traceback" in failed.stderr
    assert "StorageError" in failed.stderr


def test_a_journal_of_a_script_says_how_to_resume_it(write: Write) -> None:
    write()
    import mipcash as mc

    space = mc.Space("s")
    space.real("x", 0, 1)
    mc.minimize(lambda c: c["x"], space, 2, optimizer="random", storage="script.db", progress=False)
    failed = mipcash("resume", "script.db")
    assert failed.exit_code == 2
    assert "run the script again with storage='script.db'" in failed.stderr
    assert mipcash("show", "script.db").exit_code == 0


def test_check_shows_the_space_and_an_example(write: Write) -> None:
    write()
    checked = mipcash("check", "bowl.py", "-o", "strict=true")
    assert checked.exit_code == 0, checked.output
    for part in ("A bowl to try", "integer in [0, 5]", "n is small", "binaries", "a legal configuration", "act"):
        assert part in checked.stdout


def test_check_says_what_it_knows_when_the_time_is_over(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.cli.main.CHECK_SECONDS", 0.0)
    write()
    checked = mipcash("check", "bowl.py")
    assert checked.exit_code == 0, checked.output
    for part in ("0 s are not enough to prove what is left", "not proven", "a legal configuration"):
        assert part in checked.stdout


def test_check_of_an_empty_space_gives_the_reason(write: Write) -> None:
    text = "import mipcash as mc\nspace = mc.Space('s')\nn = space.integer('n', 0, 5)\nobjective = len\n"
    write(text + "space.rule('many', n >= 4)\nspace.rule('few', n <= 3)\n", "empty.py")
    checked = mipcash("check", "empty.py")
    assert checked.exit_code == 1
    assert "no legal configuration exists" in checked.stderr
    assert "many" in checked.stderr
    assert "few" in checked.stderr


def test_models_solvers_and_version() -> None:
    assert "sklearn_pipeline" in mipcash("models").stdout
    assert "highs" in mipcash("solvers").stdout
    assert mipcash("--version").stdout == f"mipcash {__version__}\n"
    assert "resume" in mipcash("--help").stdout


# -- as a process ---------------------------------------------------------------------------------------------------


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mipcash", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible
    )


def interruptible() -> None:
    """A shell that starts tests in the background has SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def until_evaluation(process: subprocess.Popen[str], number: int) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if f"#{number} " in line:
            return


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_prints_the_command_that_resumes(write: Write, workers: str) -> None:
    write()
    process = start("run", "bowl.py", "-o", "slow=0.1", "--budget", "60", "--workers", workers)
    until_evaluation(process, 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "mipcash resume runs/bowl-seed0.db" in out
    assert "Traceback" not in err
    done = told("runs/bowl-seed0.db")
    assert 2 <= done < 60
    resumed = mipcash("resume", "runs/bowl-seed0.db", "--budget", str(done + 1), "-q", *BOWL, "--option", "slow=0.1")
    assert resumed.exit_code == 0, resumed.output
    assert told("runs/bowl-seed0.db") == done + 1


def test_a_run_can_be_shown_and_not_doubled_while_it_goes_on_and_resumed_when_killed(write: Write) -> None:
    write()
    process = start("run", "bowl.py", "-o", "slow=0.1", "--budget", "60")
    until_evaluation(process, 1)
    assert mipcash("show", "runs/bowl-seed0.db").exit_code == 0
    second = mipcash("run", "bowl.py", "-o", "slow=0.1", "--budget", "60")
    assert second.exit_code == 2
    assert "in use by another study" in second.stderr
    assert mipcash("run", "bowl.py", "-o", "slow=0.1", "--budget", "60", "--fresh").exit_code == 2
    process.kill()
    process.communicate(timeout=20)
    done = told("runs/bowl-seed0.db")
    assert (
        mipcash(
            "resume", "runs/bowl-seed0.db", "--budget", str(done + 1), "-q", *BOWL, "--option", "slow=0.1"
        ).exit_code
        == 0
    )
    assert told("runs/bowl-seed0.db") == done + 1
