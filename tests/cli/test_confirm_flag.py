"""``--confirm``: finalists are evaluated again; reports show what the search's folds and fresh ones say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from mipcash.cli.archive import open_archive
from mipcash.cli.main import app

MODEL = '''"""Luck in the search."""
import random
import mipcash as mc
DEFAULTS = {"optimizer": "random"}
space = mc.Space("luck")
space.integer("n", 0, 50)
def objective(config, repeat=0):
    return 0.1 * abs(config["n"] - 7) + random.Random(f"{config['n']} {repeat}").gauss(0, 1)
'''


def mipcash(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


def test_finalists_are_shown_and_the_answer_is_kept(write: Callable[..., Path]) -> None:
    path = write(MODEL, "luck.py")
    journal = path.parent / "run.db"
    code, said = mipcash("run", str(path), "--budget", "12", "--confirm", "4", "--storage", str(journal), "--quiet")
    assert code == 0, said
    result = open_archive(journal).result
    assert len(result.finalists) == 4
    assert [t.repeat for t in result.history] == [0] * 8 + [1] * 4
    best = min(result.finalists, key=lambda f: f.mean)
    assert result.best is not None
    assert result.best.number == best.number
    code, shown = mipcash("show", str(journal))
    for text in (said, shown):
        assert "finalists, evaluated again:" in text
        assert "the answer" in text
        assert f"best loss {best.mean:.6g}" in text
    assert "repeat 1" in shown
    code, again = mipcash("run", str(path), "--budget", "12", "--confirm", "4", "--storage", str(journal))
    assert "this run is finished (12 evaluations)" in again
    code, on = mipcash("resume", str(journal), "--model", str(path), "--budget", "20", "--quiet")  # confirmed as before
    assert code == 0, on
    assert len([t for t in open_archive(journal).result.history if not t.repeat]) == 12
    code, on = mipcash("resume", str(journal), "--model", str(path), "--budget", "24", "--confirm", "0", "--quiet")
    assert code == 0, on
    assert not any(t.repeat for t in open_archive(journal).result.history[20:])


def test_what_cannot_be_confirmed_is_one_red_line(write: Callable[..., Path]) -> None:
    path = write(MODEL, "luck.py")
    code, said = mipcash("run", str(path), "--budget", "5", "--confirm", "5")
    assert (code, "the budget is 5 evaluations" in " ".join(said.split())) == (2, True)
    code, said = mipcash("run", str(path), "--confirm", "1")
    assert (code, "--confirm 3, or --confirm 0 for none" in " ".join(said.split())) == (2, True)


def test_what_is_stopped_is_told_how_to_go_on_as_it_began(write: Callable[..., Path]) -> None:
    stops = MODEL.replace("    return 0.1", "    if config['n'] > 40:\n        raise KeyboardInterrupt\n    yield 0.1")
    path = write(stops, "stops.py")
    flags = ["--steps", "99", "--pruning", "halving", "--confirm", "3"]
    code, said = mipcash("run", str(path), *flags, "--storage", str(path.parent / "run.db"), "--quiet")
    assert code == 130, said
    assert " ".join(flags) in " ".join(said.split())
