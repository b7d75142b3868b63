"""``mipcash resume`` runs nothing that only the journal names, unless the user says so."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mipcash.cli.main import app
from mipcash.cli.report import space_of
from mipcash.study.storage.sqlite import read_journal
from tests.forging import forge

Write = Callable[..., Path]
PLANTED = "open({mark!r}, 'w').close()\n"


def mipcash(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def told(path: str) -> int:
    return sum(row.status != "pending" for row in read_journal(path)[1])


@pytest.fixture
def planted(write: Write, tmp_path: Path) -> tuple[Path, Path]:
    """A journal that names a file which leaves a mark when it is run: the file and the mark."""
    write()
    assert mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "2").exit_code == 0
    mark = tmp_path / "ran"
    evil = tmp_path / "drop" / "evil.py"
    evil.parent.mkdir()
    evil.write_text(PLANTED.format(mark=str(mark)) + (tmp_path / "bowl.py").read_text())
    set_column("model", str(evil))
    return evil, mark


def set_column(name: str, value: str) -> None:
    forge("run.db", f"UPDATE study SET {name} = ?", (value,))


def test_a_planted_file_is_named_and_not_run(planted: tuple[Path, Path]) -> None:
    evil, mark = planted
    refused = mipcash("resume", "run.db", "--budget", "4", "-q")
    assert refused.exit_code == 2
    assert f"names the model file {evil}" in refused.stderr
    assert f"mipcash resume run.db --model {evil}" in refused.stderr
    assert "--trust FOLDER" in refused.stderr
    for command in (["resume", "run.db", "--budget", "2"], ["resume", "run.db"], ["show", "run.db"]):
        assert mipcash(*command).exit_code == 0  # finished: nothing is to be run
    assert not mark.exists()
    assert told("run.db") == 2


def test_a_relative_path_and_a_link_are_resolved_before_they_are_named(
    planted: tuple[Path, Path], tmp_path: Path
) -> None:
    evil, mark = planted
    link = tmp_path / "innocent.py"
    link.symlink_to(evil)
    for name in ("innocent.py", "./drop/../innocent.py", str(link), "drop/evil.py"):
        set_column("model", name)
        refused = mipcash("resume", "run.db", "--budget", "4")
        assert refused.exit_code == 2
        assert f"names the model file {evil}" in refused.stderr
        # a folder that holds the link alone is not where the file lies
        (tmp_path / "links").mkdir(exist_ok=True)
        assert mipcash("resume", "run.db", "--budget", "4", "--trust", "links").exit_code == 2
    assert not mark.exists()


def test_where_the_user_says(planted: tuple[Path, Path], tmp_path: Path) -> None:
    evil, mark = planted
    assert mipcash("resume", "run.db", "--budget", "3", "-q", "--model", "bowl.py").exit_code == 0
    assert not mark.exists()  # the user's file, not the journal's
    assert mipcash("resume", "run.db", "--budget", "4", "-q", "--trust", "elsewhere").exit_code == 2
    assert not mark.exists()
    assert mipcash("resume", "run.db", "--budget", "4", "-q", "--trust", "elsewhere", "--trust", "drop").exit_code == 0
    assert mark.exists()
    mark.unlink()
    assert mipcash("resume", "run.db", "--budget", "5", "-q", "--model", str(evil)).exit_code == 0
    assert mark.exists()
    assert told("run.db") == 5


def test_another_model_is_refused_by_what_the_journal_says_of_its_space(planted: tuple[Path, Path]) -> None:
    Path("other.py").write_text(Path("bowl.py").read_text().replace('"n", 0, 5', '"n", 0, 6'))
    refused = mipcash("resume", "run.db", "--budget", "4", "--model", "other.py")
    assert refused.exit_code == 2
    assert "parameter 'n' was" in refused.stderr
    assert told("run.db") == 2


def test_a_model_that_came_with_mipcash_needs_no_asking(write: Write) -> None:
    write()
    run = ("run", "synthetic", "--storage", "run.db", "-q", "--optimizer", "random", "--budget")
    assert mipcash(*run, "2").exit_code == 0
    resumed = mipcash("resume", "run.db", "--budget", "3", "-q")
    assert resumed.exit_code == 0, resumed.output
    set_column("model", "not_a_model")
    assert "there is no model 'not_a_model'" in mipcash("resume", "run.db", "--budget", "4").stderr


def test_a_model_file_that_is_gone_is_named_with_the_option(planted: tuple[Path, Path]) -> None:
    evil, _ = planted
    evil.unlink()
    refused = mipcash("resume", "run.db", "--budget", "4")
    assert refused.exit_code == 2
    assert f"the model file {evil} that run.db names does not exist" in refused.stderr
    assert "--model FILE" in refused.stderr
    assert mipcash("resume", "run.db", "--budget", "4", "-q", "--model", "bowl.py").exit_code == 0


@pytest.mark.parametrize("solver", ["planted.toml", "highs log_file=log.txt"])
def test_a_solver_that_is_more_than_a_name_is_asked_for_too(write: Write, tmp_path: Path, solver: str) -> None:
    """A profile may import any class, and an option of a solver may write to any file."""
    write()
    assert mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "2").exit_code == 0
    profile = 'name = "planted"\nmodule = "planted"\nlicence = "none"\nbackend = "planted:Solver"\n'
    (tmp_path / "planted.toml").write_text(profile + 'package = "x"\ninstall = "x"\n')
    (tmp_path / "planted.py").write_text(PLANTED.format(mark=str(tmp_path / "ran")))
    set_column("solver", solver)
    refused = mipcash("resume", "run.db", "--budget", "3", "--model", "bowl.py")
    assert refused.exit_code == 2
    assert "names the solver " in refused.stderr
    assert "--solver " in refused.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "log.txt").exists()
    other = mipcash("resume", "run.db", "--budget", "3", "--model", "bowl.py", "--solver", "highs")
    assert other.exit_code == 2
    assert "is 'highs' now" in other.stderr


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("optimizer", "magic", "run.db names the optimizer str 'magic', which this mipcash does not have"),
        ("solver", "magic", "run.db names the solver str 'magic', which this mipcash does not have"),
        ("solver", "highs a=1 b", "run.db names a solver that cannot be: "),
        ("options", '{"depth": "3"}', "the model of run.db cannot be loaded with its options: "),
    ],
)
def test_what_can_be_compared_is_compared_first(
    planted: tuple[Path, Path], column: str, value: str, message: str
) -> None:
    evil, mark = planted
    set_column(column, value)
    typed = ("--model", "bowl.py", "--option", "depth=3") if column == "options" else ("--model", str(evil))
    refused = mipcash("resume", "run.db", "--budget", "4", *typed)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert "start a new journal" in refused.stderr
    assert not mark.exists()


OPENED: list[str] = []
"""What this process opened and looked up since the list was cleared."""


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "socket.getaddrinfo", "socket.connect", "urllib.Request"):
        OPENED.append(str(arguments))


sys.addaudithook(note)


@pytest.fixture
def stranger(write: Write, tmp_path: Path) -> Iterator[Path]:
    """A journal that names a model of mipcash, with a file of this user's as its data."""
    write()
    assert mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "2").exit_code == 0
    file = tmp_path / "salaries.csv"
    file.write_text("person,salary\nann,1000000\n")
    set_column("model", "sklearn_pipeline")
    set_column("options", json.dumps({"data": str(file)}))
    OPENED.clear()
    yield file
    assert not [each for each in OPENED if "salaries" in each or "openml" in each]


def test_options_of_a_journal_are_shown_and_not_used(stranger: Path) -> None:
    again = f"--option data={stranger}"
    for command in (["resume", "run.db"], ["work", "run.db", "--model", "sklearn_pipeline"]):
        refused = mipcash(*command, "--budget", "4")
        assert refused.exit_code == 2
        assert f"names the options data={stranger}" in refused.stderr
        assert f"say so: mipcash resume run.db {again}" in refused.stderr or "mipcash work" in refused.stderr
    for model in ((), ("--model", "sklearn_pipeline")):
        made = mipcash("report", "run.db", *model)
        assert made.exit_code == 0, made.output
        assert f"mipcash report run.db --model sklearn_pipeline {again}" in made.stderr
        assert "1000000" not in made.output + Path("run.html").read_text()
    assert mipcash("show", "run.db").exit_code == 0
    record, _ = read_journal("run.db")
    assert space_of(Path("run.db"), record, None, [], (), "dash")[0] is None


def test_a_name_of_a_data_set_is_not_looked_up(stranger: Path) -> None:
    set_column("options", json.dumps({"data": "openml_name"}))
    OPENED.clear()
    assert mipcash("resume", "run.db", "--budget", "4").exit_code == 2
    assert mipcash("report", "run.db").exit_code == 0
    assert not [each for each in OPENED if "openml" in each]


def test_the_hook_sees_what_a_model_opens(stranger: Path) -> None:
    mipcash("resume", "run.db", "--budget", "4", "--option", f"data={stranger}")
    assert [each for each in OPENED if "salaries" in each]
    OPENED.clear()


def test_options_that_the_user_types_are_used(write: Write) -> None:
    write()
    run = ("run", "bowl.py", "--storage", "run.db", "-q", "-o", "strict=yes", "--budget")
    assert mipcash(*run, "2").exit_code == 0
    lacking = mipcash("report", "run.db", "--model", "bowl.py").stderr
    assert "mipcash report run.db --model bowl.py --option strict=yes" in lacking
    assert mipcash("report", "run.db", "--model", "bowl.py", "--option", "strict=yes").stderr == ""
    typed = ("resume", "run.db", "--budget", "3", "-q", "--model", "bowl.py", "--option")
    assert mipcash(*typed, "strict=yes").exit_code == 0
    assert told("run.db") == 3
    other = mipcash(*typed, "strict=no")
    assert other.exit_code == 0  # it is finished: nothing is loaded
    other = mipcash("resume", "run.db", "--budget", "4", "-q", "--model", "bowl.py", "--option", "label=y")
    assert other.exit_code == 2
    assert "options" in other.stderr
    command = ("mipcash", "work", "run.db", "--model", "bowl.py", "-q", "--budget", "4")
    assert mipcash(*command[1:], "-o", "strict=yes").exit_code == 0


def test_the_question_for_options_at_a_terminal(write: Write) -> None:
    write()
    assert mipcash("run", "bowl.py", "--storage", "run.db", "-q", "-o", "label=w", "--budget", "2").exit_code == 0
    for answer, code in (("n\n", 2), ("y\n", 0)):
        found, shown = at_a_terminal(answer, "resume", "run.db", "--budget", "3", "-q", "--model", "bowl.py")
        assert found == code
        assert "run.db names the options label=w" in shown
        assert "The model may open what they name. Go on? [y/N]" in shown
    assert told("run.db") == 3


def at_a_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Run the command with a terminal for its input and its messages."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "mipcash", *arguments]
    with subprocess.Popen(command, stdin=follower, stderr=follower, stdout=subprocess.PIPE) as process:
        os.close(follower)
        os.write(leader, answer.encode())
        process.communicate(timeout=120)
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
    except OSError:  # the terminal is closed
        pass
    os.close(leader)
    return process.returncode, " ".join(shown.decode().split())


def test_the_question_at_a_terminal(planted: tuple[Path, Path]) -> None:
    evil, mark = planted
    for answer in ("n\n", "\n"):
        code, shown = at_a_terminal(answer, "resume", "run.db", "--budget", "3", "-q")
        assert code == 2
        assert f"run.db names the model file {evil}" in shown
        assert "Loading runs it. Go on? [y/N]" in shown
        assert "not resumed, and nothing of it was run" in shown
        assert not mark.exists()
    code, _ = at_a_terminal("y\n", "resume", "run.db", "--budget", "3", "-q")
    assert code == 0
    assert mark.exists()
    assert told("run.db") == 3


def test_the_command_that_a_run_prints_goes_on_without_asking(write: Write) -> None:
    write()
    slow = mipcash("run", "bowl.py", "-o", "slow=0.2", "--timeout", "0.3", "--budget", "50", "-q")
    line = next(l for l in slow.stdout.splitlines() if l.startswith("to go on: "))
    command = shlex.split(line.removeprefix("to go on: "))
    assert command[:2] == ["mipcash", "resume"]
    before = told("runs/bowl-seed0.db")
    assert mipcash(*command[1:], "--budget", str(before + 1), "-q").exit_code == 0
    assert told("runs/bowl-seed0.db") == before + 1
