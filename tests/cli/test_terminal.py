"""Names and messages with escape sequences, turned direction or markup reach a terminal as text."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import mipcash as mc
from mipcash.cli import result_tables as tables
from mipcash.cli.main import app
from mipcash.report import convergence as plots
from mipcash.study.minimize import minimize
from mipcash.study.progress import Bar, Lines
from mipcash.study.text import one_line, visible
from tests.forging import forge

Write = Callable[..., Path]
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202egnp.exe\u2066\r\x08[red]:smile:\\"
"""Sets a title, a colour, clears, turns the direction, overwrites the line; markup and an emoji code of rich."""

MODEL = '''"""{evil} described."""
import mipcash as mc
EVIL = {evil!r}
space = mc.Space("space " + EVIL)
x = space.real("x " + EVIL, 0.0, 1.0)
space.categorical("c", [EVIL, "b" + EVIL])
space.integer("n", 0, 9)
space.rule("rule " + EVIL, x <= 0.9)
def objective(config):
    if config["n"] < 5:
        raise ValueError(EVIL)
    return {{"loss": config["x " + EVIL], "v " + EVIL: 1.0}}
def report(result):
    return "report " + EVIL + "\\nsecond line"
'''


def mipcash(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def harmless(text: str) -> bool:
    return all(c in "\n" or c.isprintable() for c in text)


def test_what_is_written_out_and_what_stays() -> None:
    assert visible(EVIL) == r"\x1b]0;owned\x07\x1b[31m\x9b2J\u202egnp.exe\u2066\r\x08[red]:smile:" + "\\"
    assert visible("naïve 模型 \N{GRINNING FACE} a\u200db\u200cc") == "naïve 模型 \N{GRINNING FACE} a\u200db\u200cc"
    assert visible("a\nb\tc\x00\x7f\u2028\ud800\ufeff", lines=True) == "a\nb\tc\\x00\\x7f\\u2028\\ud800\\ufeff"
    assert visible("a\nb") == "a\\nb"
    assert one_line("a\n  b\x1b" * 100, 12) == "a b\\x1ba ..."
    every = "".join(map(chr, range(0x110000)))
    assert harmless(visible(every).replace("\u200c", "").replace("\u200d", "").translate(SPACES))


SPACES = {c: " " for c in range(0x110000) if chr(c).isspace() or (not chr(c).isprintable() and c > 0xA0)}
"""What Python does not call printable and no terminal obeys: wide spaces, code points without a character."""


@pytest.fixture
def evil(write: Write) -> Path:
    return write(MODEL.format(evil=EVIL), "evil.py")


def test_no_command_lets_one_through(evil: Path) -> None:
    for command in (
        ["run", "evil.py", "--budget", "8", "--optimizer", "random"],
        ["run", "evil.py", "--budget", "8", "--optimizer", "random"],
        ["show", "runs/evil-seed0.db", "--plot", "picture.svg"],
        ["show", "runs/evil-seed0.db", "--top", "2"],
        ["check", "evil.py"],
        ["resume", "runs/evil-seed0.db", "--budget", "9"],
        ["resume", "runs/evil-seed0.db", "--budget", "9", "--model", "evil.py"],
        ["run", EVIL.replace("\\", "") + ".py"],
        ["run", "evil.py", "-o", EVIL + "=1"],
        ["show", EVIL],
        ["show", EVIL, "--debug"],
    ):
        done = mipcash(*command)
        assert done.exit_code in (0, 1, 2), done.exception
        assert isinstance(done.exception, (SystemExit, type(None)))
        assert harmless(done.stdout + done.stderr), repr(done.stdout + done.stderr)
    ElementTree.parse("picture.svg")


def test_the_names_are_shown_and_no_markup_is_lost(evil: Path) -> None:
    ran = mipcash("run", "evil.py", "--budget", "8", "--optimizer", "random")
    assert "x \\x1b]0;owned" in ran.stdout
    assert "\\u202egnp.exe\\u2066" in ran.stdout
    assert "[red]:smile:\\" in ran.stdout
    assert "report \\x1b]0;owned" in ran.stdout
    assert "\nsecond line" in ran.stdout
    assert "failed: ValueError: \\x1b]0;owned" in ran.stderr


def test_a_planted_journal_shows_text(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "3")
    forge("run.db", "UPDATE trial SET origin = ?", (EVIL,))
    forge("run.db", "UPDATE evaluation SET message = ?, worker = ?", (EVIL, EVIL))
    forge("run.db", "UPDATE trial SET status = 'failed' WHERE number = 1")
    forge("run.db", "UPDATE evaluation SET status = 'failed', value = NULL WHERE trial = 1 AND output = 'loss'")
    forge("run.db", "UPDATE study SET space = ?, stopped = ?, model = ?", (EVIL, EVIL, f"/{EVIL}.py"))
    for command in (["show", "run.db"], ["resume", "run.db", "--budget", "5"], ["show", "run.db", "--debug"]):
        done = mipcash(*command)
        assert harmless(done.stdout + done.stderr), repr(done.stdout + done.stderr)


def objective(config: dict[str, object]) -> float:
    raise mc.Failed(EVIL)


def test_a_defect_shows_text(write: Write) -> None:
    write(MODEL.format(evil=EVIL).replace('config["n"] < 5', "True"), "evil.py")
    done = mipcash("run", "evil.py", "--budget", "8", "--optimizer", "random", "--quiet")
    assert (done.exit_code, harmless(done.output)) == (2, True), repr(done.output)
    assert "at each of its first 5 evaluations alike: ValueError: \\x1b]0;owned" in done.output


def test_progress_and_results_show_text() -> None:
    def space() -> mc.Space:
        made = mc.Space("space " + EVIL)
        made.integer("n " + EVIL, 0, 99)
        return made

    lines = io.StringIO()
    failed = minimize(objective, space(), 12, optimizer="random", progress=Lines(lines))
    assert harmless(lines.getvalue())
    screen = io.StringIO()
    # a terminal without colours and without moves of its own, so that every escape is one of a name
    console = Console(file=screen, force_terminal=False, width=300, color_system=None)
    minimize(objective, space(), 12, optimizer="random", progress=Bar(console))
    assert harmless(screen.getvalue())
    assert "space \\x1b]0;owned" in screen.getvalue()
    assert "[red]:smile:\\" in screen.getvalue()
    done = minimize(lambda config: {"loss": 1.0, EVIL: 2.0}, space(), 3, optimizer="random", progress=False)
    for text in (str(failed), str(done), repr(done), repr(failed)):
        assert harmless(text)


def test_tables_and_pictures_show_text(tmp_path: Path) -> None:
    space = mc.Space("space " + EVIL)
    space.integer("n " + EVIL, 0, 99)
    space.categorical("k " + EVIL, [EVIL, (EVIL, 1)])
    space.rule("r " + EVIL, space["n " + EVIL] <= 50)
    result = minimize(lambda config: 1.0, space, 3, optimizer="random", progress=False)
    out = io.StringIO()
    console = Console(file=out, width=400)
    for table in (
        tables.best_table(result, EVIL),
        tables.trials_table(result.history, result, EVIL),
        tables.models_table({EVIL: EVIL}),
        tables.space_tables(space, space.sizes(), space.bounds()),
        tables.summary(result),
    ):
        console.print(table)
    assert harmless(out.getvalue())
    assert "[red]:smile:" in out.getvalue()
    drawn = plots.save_convergence(result, tmp_path / "picture.svg", "a $\\broken$ $ title " + EVIL)
    assert harmless(ElementTree.parse(drawn).getroot().tag)
