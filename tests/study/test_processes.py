"""Killed, interrupted and competing processes, each a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.minimize import minimize
from mipcash.study.records.encoding import encode_config
from mipcash.study.storage.sqlite import read_journal

SCRIPT = Path(__file__).with_name("run_tiny.py")
BUDGET = 7


def launch(journal: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(journal), str(BUDGET), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], code: int) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return out.splitlines()


Record = list[tuple[int, str, float | None]]
"""Number, exact configuration and loss of each trial."""


def run_here(optimizer: str, journal: Path | None = None, known: int = 0) -> Record:
    """Run, or resume, in this process, which is another one than the script's."""
    space = tiny.tiny_space()
    chosen = getattr(tiny, optimizer)(space)
    given = tiny.known(space, known)
    result = minimize(tiny.loss, space, BUDGET, optimizer=chosen, seed=7, storage=journal, known=given, progress=False)
    return [(t.number, encode_config(space, t.config), t.loss) for t in result.history]


@pytest.fixture(scope="module")
def unbroken() -> dict[str, Record]:
    """What runs give that nothing disturbs, by optimizer."""
    return {optimizer: run_here(optimizer) for optimizer in ("Sampler", "Counter")}


def journaled(journal: Path) -> Record:
    return [(row.number, row.exact, row.loss) for row in read_journal(journal)[1]]


def test_killed_with_known_data_it_goes_on_as_an_unbroken_run(journal: Path) -> None:
    finish(launch(journal, "--known", "4", "--die", "evaluation", "6"), -signal.SIGKILL)
    assert [row.origin for row in read_journal(journal)[1]] == ["known"] * 4 + ["acquisition"] * 3
    again = run_here("Sampler", journal, known=4)
    assert (again, len(again)) == (run_here("Sampler", known=4), BUDGET + 4)


def test_the_same_seed_in_another_process_gives_the_same_run(journal: Path, unbroken: dict[str, Record]) -> None:
    finish(launch(journal, "--optimizer", "Counter"), 0)
    assert journaled(journal) == unbroken["Counter"]


@pytest.mark.parametrize(
    ("where", "at", "told", "running"),
    [
        ("ask", 4, 4, []),
        ("insert", 4, 4, []),
        ("evaluation", 4, 4, [4]),
        ("outcome", 4, 4, [4]),
        ("told", 4, 5, []),
    ],
)
def test_kill_and_resume(
    journal: Path, unbroken: dict[str, Record], where: str, at: int, told: int, running: list[int]
) -> None:
    """Nothing that was told is lost, wherever SIGKILL strikes, and the resumed run proposes as an unbroken one."""
    finish(launch(journal, "--die", where, str(at), "--optimizer", "Counter"), -signal.SIGKILL)
    rows = read_journal(journal)[1]
    assert [row.number for row in rows if row.status == "pending"] == running
    assert [(row.number, row.exact, row.loss) for row in rows if row.status == "done"] == unbroken["Counter"][:told]
    assert run_here("Counter", journal) == unbroken["Counter"]
    assert journaled(journal) == unbroken["Counter"]


def test_killed_from_outside_at_any_moment(journal: Path, unbroken: dict[str, Record]) -> None:
    evaluated: list[str] = []
    for killed in (True, False):
        process = launch(journal, "--slow", "0.05")
        assert process.stdout is not None
        if killed:
            evaluated += [process.stdout.readline() for _ in range(3)]
            process.kill()
        evaluated += finish(process, -signal.SIGKILL if killed else 0)
    assert journaled(journal) == unbroken["Sampler"]
    told = [line.split(" ", 1)[1].strip() for line in evaluated if line.startswith("trial")]
    assert len(told) == len(set(told))  # no evaluation whose outcome was told is done twice


def test_ctrl_c_leaves_a_run_that_resumes(journal: Path, unbroken: dict[str, Record]) -> None:
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("evaluating")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert [row.status for row in read_journal(journal)[1]] == ["pending"]
    assert not journal.with_name("run.db.lock").exists()
    assert run_here("Sampler", journal) == unbroken["Sampler"]


def test_two_processes_do_not_write_to_one_journal_and_a_killed_one_lets_go(journal: Path) -> None:
    process = launch(journal, "--slow", "30")
    assert process.stdout is not None
    process.stdout.readline()
    space = tiny.tiny_space()
    with pytest.raises(StorageError, match="in use by another study"):
        mc.Study(space, tiny.Sampler(space), seed=7, storage=journal)
    assert len(read_journal(journal)[1]) == 1  # a reader is welcome
    os.kill(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    with mc.Study(space, tiny.Sampler(space), seed=7, storage=journal) as study:
        assert study.ask().number == 0


def test_a_refused_second_study_here_does_not_open_the_door_to_another_process(journal: Path) -> None:
    """POSIX drops a process's locks on a file when it closes any descriptor of it."""
    space = tiny.tiny_space()
    with mc.Study(space, tiny.Sampler(space), seed=7, storage=journal):
        with pytest.raises(StorageError, match="in use"):
            mc.Study(space, tiny.Sampler(space), seed=7, storage=journal)
        process = launch(journal)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "InUseError" in err
        assert "in use by another study" in err
