"""Model files with a function per output, and budgets by what these cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from mipcash.cli.archive import open_archive
from mipcash.cli.main import app

MODEL = '''"""A loss and a latency."""
import mipcash as mc
DEFAULTS = {"optimizer": "random"}
LIMITS = {"ms": 2}
COSTS = {"loss": 10, "ms": 1}
space = mc.Space("apart")
space.integer("n", 0, 50)
objective = {"loss": lambda c: abs(c["n"] - 7), "ms": lambda c: c["n"] / 10}
'''


def mipcash(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


def spent(path: Path) -> int:
    return sum({"loss": 10, "ms": 1}[n] for t in open_archive(path).result.history if not t.pending for n in t.evaluate)


def test_a_budget_by_cost_is_kept_and_gone_on_with(write: Callable[..., Path]) -> None:
    path = write(MODEL, "apart.py")
    journal = path.parent / "run.db"
    code, said = mipcash("run", str(path), "--cost", "120", "--storage", str(journal))
    assert code == 0, said
    assert "evaluations that cost 120 with random" in said
    assert spent(journal) == 110
    code, said = mipcash("resume", str(journal), "--model", str(path), "--cost", "150", "--quiet")
    assert code == 0, said
    assert spent(journal) == 143
    code, said = mipcash(
        "run", str(path), "--budget", "20", "--storage", str(journal)
    )  # calls, of which there are more
    assert "this run is finished (26 evaluations)" in said
    assert mipcash("show", str(journal))[0] == 0


def test_costs_that_do_not_fit_are_one_red_line(write: Callable[..., Path]) -> None:
    path = write(MODEL.replace('"ms": 1}', '"ms": 1, "size": 1}'), "wrong.py")
    code, said = mipcash("run", str(path))
    assert (code, "costs= name each function of the objective" in " ".join(said.split())) == (2, True)
    path = write(
        MODEL.replace('objective = {"loss": ', "objective = ").replace(', "ms": lambda c: c["n"] / 10}', ""), "one.py"
    )
    code, said = mipcash("run", str(path))
    assert (code, "the objective is one function" in " ".join(said.split())) == (2, True)
    path = write(MODEL, "small.py")
    code, said = mipcash("run", str(path), "--cost", "5")
    assert (code, "does not pay for one evaluation of each output" in " ".join(said.split())) == (2, True)
