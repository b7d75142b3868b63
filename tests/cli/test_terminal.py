"""Escape sequences, changes of text direction and markup in names and messages reach a terminal as plain text."""

from __future__ import annotations

import io
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import mipcash
from rich.console import Console

import mipcash as mc
from mipcash.study.progress import Bar
from mipcash.text import one_line, visible
from tests.forging import forge

Write = Callable[..., Path]
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202egnp.exe\u2066\r\x08[red]:smile:$\\broken$\\"
"""Text that sets title and colour, clears, reverses the direction, overwrites the line, and has markup and an emoji."""

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


def harmless(text: str) -> bool:
    return all(c in "\n" or c.isprintable() for c in text)


def test_control_characters_are_escaped_and_printable_text_stays() -> None:
    assert visible(EVIL) == r"\x1b]0;owned\x07\x1b[31m\x9b2J\u202egnp.exe\u2066\r\x08[red]:smile:$\broken$" + "\\"
    assert visible("naïve 模型 \N{GRINNING FACE} a\u200db\u200cc") == "naïve 模型 \N{GRINNING FACE} a\u200db\u200cc"
    assert visible("a\nb\tc\x00\x7f\u2028\ud800\ufeff", lines=True) == "a\nb\tc\\x00\\x7f\\u2028\\ud800\\ufeff"
    assert visible("a\nb") == "a\\nb"
    assert one_line("a\n  b\x1b" * 100, 12) == "a b\\x1ba ..."
    # Control characters, direction marks, surrogates and tags are escaped. Wide spaces and unassigned code points stay.
    codes = [*range(0x3100), *range(0xD800, 0xE010), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0200)]
    for code in codes:
        shown = visible(chr(code))
        category = unicodedata.category(chr(code))
        joins = chr(code) in "\u200c\u200d"
        assert shown.isprintable() or joins or category in ("Zs", "Cn", "Co"), hex(code)


@pytest.mark.usefixtures("pictures")
def test_no_command_prints_an_escape_sequence(write: Write) -> None:
    write(MODEL.format(evil=EVIL), "evil.py")
    write(MODEL.format(evil=EVIL).replace('config["n"] < 5', "True"), "broken.py")
    run = ["run", "evil.py", "--budget", "8", "--optimizer", "random"]
    shown = ""
    for command in (
        run,
        ["show", "runs/evil-seed0.db", "--plot", "picture.svg", "--top", "2"],
        ["check", "evil.py"],
        ["resume", "runs/evil-seed0.db", "--budget", "9"],
        ["run", "broken.py", "--budget", "8", "--optimizer", "random", "--quiet"],
        ["run", EVIL.replace("\\", "") + ".py"],
        ["run", "evil.py", "-o", EVIL + "=1"],
        ["show", EVIL, "--debug"],
    ):
        done = mipcash(*command)
        assert isinstance(done.exception, (SystemExit, type(None)))
        assert harmless(done.stdout + done.stderr), repr(done.stdout + done.stderr)
        shown += done.stdout + done.stderr
    ElementTree.parse("picture.svg")
    for part in (
        *(
            "x \\x1b]0;owned",
            "\\u202egnp.exe\\u2066",
            "[red]:smile:$\\broken$\\",
            "report \\x1b]0;owned",
            "\nsecond line",
        ),
        "failed: ValueError: \\x1b]0;owned",
        "at each of its first 5 evaluations alike: ValueError: \\x1b]0;owned",
    ):
        assert part in shown


def test_escape_sequences_in_a_journal_are_shown_as_text(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "3")
    forge("run.db", "UPDATE trial SET origin = ?", (EVIL,))
    forge("run.db", "UPDATE evaluation SET message = ?, worker = ?", (EVIL, EVIL))
    forge("run.db", "UPDATE trial SET status = 'failed' WHERE number = 1")
    forge("run.db", "UPDATE evaluation SET status = 'failed', value = NULL WHERE trial = 1 AND output = 'loss'")
    forge("run.db", "UPDATE study SET space = ?, stopped = ?, model = ?", (EVIL, EVIL, f"/{EVIL}.py"))
    for command in (["show", "run.db"], ["resume", "run.db", "--budget", "5"]):
        done = mipcash(*command)
        assert harmless(done.stdout + done.stderr), repr(done.stdout + done.stderr)


@pytest.mark.parametrize("fails", [True, False])
def test_the_progress_bar_and_results_escape_names(fails: bool) -> None:
    def objective(config: dict[str, object]) -> dict[str, float]:
        if fails:
            raise mc.Failed(EVIL)
        return {"loss": 1.0, EVIL: 2.0}

    space = mc.Space("space " + EVIL)
    space.integer("n " + EVIL, 0, 99)
    # the terminal has no colours and no cursor movement, so every escape sequence comes from a name
    console = Console(file=io.StringIO(), force_terminal=False, width=300, color_system=None)
    result = mc.minimize(objective, space, 6, optimizer="random", progress=Bar(console))
    shown = console.file.getvalue()
    assert harmless(shown + str(result) + repr(result))
    assert "space \\x1b]0;owned" in shown
    assert "[red]:smile:" in shown
