"""``mipcash resume`` executes nothing that only the journal names, unless the user agrees."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import mipcash, said, told

from mipcash.report.server import Watched
from tests.forging import forge

Write = Callable[..., Path]
PLANTED = "open({mark!r}, 'w').close()\n"
MORE = ("resume", "run.db", "--budget", "4", "-q")


@pytest.fixture
def journal(write: Write) -> None:
    write()
    said(0, "run", "bowl.py", "--storage", "run.db", "-q", "--budget", "2")


@pytest.fixture
def planted(journal: None, tmp_path: Path) -> tuple[Path, Path]:
    """Return a file named by the journal and the mark that running the file would create."""
    mark = tmp_path / "ran"
    evil = tmp_path / "drop" / "evil.py"
    evil.parent.mkdir()
    evil.write_text(PLANTED.format(mark=str(mark)) + (tmp_path / "bowl.py").read_text())
    set_column("model", str(evil))
    return evil, mark


def set_column(name: str, value: str) -> None:
    forge("run.db", f"UPDATE study SET {name} = ?", (value,))


def test_a_planted_file_is_named_resolved_and_not_run(planted: tuple[Path, Path], tmp_path: Path) -> None:
    evil, mark = planted
    refused = said(2, *MORE)
    for part in (f"names the model file {evil}", f"mipcash resume run.db --model {evil}", "--trust FOLDER"):
        assert part in refused
    for command in (["resume", "run.db", "--budget", "2"], ["resume", "run.db"], ["show", "run.db"]):
        said(0, *command)  # finished, so no model is loaded
    (tmp_path / "innocent.py").symlink_to(evil)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "innocent.py").symlink_to(evil)
    for name in ("innocent.py", "links/innocent.py", "./drop/../innocent.py", "drop/evil.py"):
        set_column("model", name)
        assert f"names the model file {evil}" in said(2, *MORE)
        said(2, *MORE, "--trust", "links")  # the folder contains only a link; the file is in another folder
    assert not mark.exists()
    assert told("run.db") == 2


def test_a_model_file_runs_if_the_user_names_or_trusts_it(planted: tuple[Path, Path]) -> None:
    evil, mark = planted
    said(2, *MORE, "--trust", "elsewhere")
    said(0, "resume", "run.db", "--budget", "3", "-q", "--model", "bowl.py")
    assert not mark.exists()  # the user's file was run, not the journal's
    said(0, *MORE, "--trust", "elsewhere", "--trust", "drop")
    assert mark.exists()
    mark.unlink()
    said(0, "resume", "run.db", "--budget", "5", "-q", "--model", str(evil))
    assert mark.exists()
    assert told("run.db") == 5
    evil.unlink()
    gone = said(2, "resume", "run.db", "--budget", "6")
    assert f"the model file {evil} that run.db names does not exist" in gone
    assert "--model FILE" in gone


def test_a_bundled_model_needs_no_consent(write: Write) -> None:
    write()
    said(0, "run", "synthetic", "--storage", "run.db", "-q", "--optimizer", "random", "--budget", "2")
    said(0, "resume", "run.db", "--budget", "3", "-q")
    set_column("model", "not_a_model")
    assert "there is no model 'not_a_model'" in said(2, *MORE)


def test_a_solver_with_a_profile_file_or_options_needs_consent(journal: None, tmp_path: Path) -> None:
    """Assert this because a profile may import any class and a solver option may write to any file."""
    profile = 'name = "planted"\nmodule = "planted"\nlicence = "none"\nbackend = "planted:Solver"\n'
    (tmp_path / "planted.toml").write_text(profile + 'package = "x"\ninstall = "x"\n')
    (tmp_path / "planted.py").write_text(PLANTED.format(mark=str(tmp_path / "ran")))
    for solver in ("planted.toml", "highs log_file=log.txt"):
        set_column("solver", solver)
        refused = said(2, *MORE, "--model", "bowl.py")
        assert "names the solver " in refused
        assert "--solver " in refused
        assert not {"ran", "log.txt"} & {path.name for path in tmp_path.iterdir()}
        assert "is 'highs' now" in said(2, *MORE, "--model", "bowl.py", "--solver", "highs")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("optimizer", "magic", "run.db names the optimizer str 'magic', which this mipcash does not have"),
        ("solver", "magic", "run.db names the solver str 'magic', which this mipcash does not have"),
        ("solver", "highs a=1 b", "run.db names an invalid solver: "),
        ("options", '{"depth": "3"}', "the model of run.db cannot be loaded with its options: "),
    ],
)
def test_a_journal_that_cannot_be_resumed_is_refused_before_its_model_runs(
    planted: tuple[Path, Path], column: str, value: str, message: str
) -> None:
    evil, mark = planted
    set_column(column, value)
    typed = ("--model", "bowl.py", "--option", "depth=3") if column == "options" else ("--model", str(evil))
    refused = said(2, *MORE, *typed)
    assert message in refused
    assert "start a new journal" in refused
    assert not mark.exists()


def test_a_model_with_another_space_than_the_journal_is_refused(journal: None) -> None:
    Path("other.py").write_text(Path("bowl.py").read_text().replace('"n", 0, 5', '"n", 0, 6'))
    for command in ("resume", "work"):
        refused = said(2, command, "run.db", "--budget", "4", "--model", "other.py")
        assert "belongs to another study: parameter 'n' was" in refused
    assert told("run.db") == 2


OPENED: list[str] = []
"""Files and addresses that this process accessed since the list was cleared."""


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "socket.getaddrinfo", "socket.connect", "urllib.Request"):
        OPENED.append(str(arguments))


sys.addaudithook(note)


@pytest.fixture
def stranger(journal: None, tmp_path: Path) -> Iterator[Path]:
    """Yield a user's file that the journal names as the data of a bundled model."""
    file = tmp_path / "salaries.csv"
    file.write_text("person,salary\nann,1000000\n")
    set_column("model", "sklearn_pipeline")
    set_column("options", json.dumps({"data": str(file)}))
    OPENED.clear()
    yield file
    assert not [each for each in OPENED if "salaries" in each or "openml_name" in each or "openml.org" in each]
    set_column("options", json.dumps({"data": str(file)}))
    mipcash(*MORE, "--option", f"data={file}")
    assert [each for each in OPENED if "salaries" in each], "the hook does not see what a model opens"


def test_options_of_a_journal_are_shown_and_not_used(stranger: Path) -> None:
    again = f"--option data={stranger}"
    for command in ("resume run.db", "work sqlite:///run.db --model sklearn_pipeline"):
        refused = said(2, *command.split(), "--budget", "4")
        assert f"names the options data={stranger}" in refused
        assert f"run: mipcash {command} {again}" in refused
    made = said(0, "report", "run.db") + said(2, "report", "run.db", "--model", "sklearn_pipeline")
    assert "1000000" not in made + Path("run.html").read_text()
    said(0, "show", "run.db")
    Watched(Path("run.db")).run()
    set_column("options", json.dumps({"data": "openml_name"}))  # the name of a data set is not looked up either
    said(2, *MORE)
    said(0, "report", "run.db")


def test_options_that_the_user_types_are_used(write: Write) -> None:
    write()
    said(0, "run", "bowl.py", "--storage", "run.db", "-q", "-o", "strict=yes", "--budget", "2")
    assert mipcash("report", "run.db", "--model", "bowl.py", "--option", "strict=yes").stderr == ""
    assert "options" in said(2, *MORE, "--model", "bowl.py", "--option", "label=y")
    said(0, *MORE, "--model", "bowl.py", "--option", "strict=yes")
    said(0, "work", "run.db", "--model", "bowl.py", "-q", "--budget", "5", "-o", "strict=yes")
    assert told("run.db") == 5


def test_a_terminal_asks_for_consent(planted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    evil, mark = planted
    terminal = SimpleNamespace(isatty=lambda: True)
    with monkeypatch.context() as patched:
        patched.setattr("mipcash.cli.consent.sys", SimpleNamespace(stdin=terminal, stderr=terminal))
        for answer in ("n\n", "\n"):
            refused = mipcash(*MORE, typed=answer)
            assert refused.exit_code == 2
            shown = " ".join(refused.output.split())
            assert f"run.db names the model file {evil}" in shown
            assert "Loading runs it. Go on? [y/N]" in shown
            assert "not resumed, and no code was run" in shown
        set_column("options", '{"label": "w"}')
        agreed = mipcash(*MORE, "--model", "bowl.py", typed="y\n")
        assert agreed.exit_code == 0
        assert "run.db names the options label=w" in " ".join(agreed.output.split())
        assert "The model may open what they name. Go on? [y/N]" in " ".join(agreed.output.split())
        assert not mark.exists()
    code, shown = at_a_terminal("y\n", "resume", "run.db", "--budget", "5", "-q")
    assert code == 0
    assert f"run.db names the model file {evil} and the options label=w" in shown
    assert mark.exists()
    assert told("run.db") == 5


def at_a_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Run the command with a terminal as its standard input and standard error."""
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
    except OSError:  # the terminal was closed
        pass
    os.close(leader)
    return process.returncode, " ".join(shown.decode().split())
