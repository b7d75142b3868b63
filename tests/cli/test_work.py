"""``mipcash work``: several processes at one study, of which one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from commands import mipcash, said

from mipcash.study.storage.protocol import TrialRow
from mipcash.study.storage.registry import read_study

MODEL = '''"""Work that leaves marks."""

import os, time
from pathlib import Path
import mipcash as mc

DEFAULTS = {"budget": 6, "optimizer": "random"}
space = mc.Space("marked")
x = space.real("x", 0.0, 1.0)
n = space.integer("n", 0, 9)
space.rule("n is small", n <= 8)


def objective(config):
    with open("marks.txt", "a") as marks:
        marks.write(f"{os.getpid()} {config['x']!r}\\n")
    if os.environ.get("HANGS"):
        Path("hangs").touch()
        time.sleep(60)
    time.sleep(0.1)
    return config["x"] + config["n"]
'''


def worker(storage: str, *more: str, hangs: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mipcash", "work", storage, "--model", "marked.py", *more]
    told = {**os.environ, **({"HANGS": "1"} if hangs else {})}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=told)


def until(happened: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def evaluated() -> Counter[float]:
    return Counter(float(line.split()[1]) for line in Path("marks.txt").read_text().splitlines())


def attempts(row: TrialRow) -> list[tuple[int, str]]:
    return [(e.attempt, e.status) for e in sorted(row.evaluations, key=lambda e: e.attempt)]


def beside(address: str, pid: int) -> bool:
    """Return True if another worker has reported since the worker of this process started."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(address.partition("?")[0].replace("postgresql", "postgresql+psycopg"))
    with engine.connect() as connection:
        study = "(SELECT id FROM mipcash_study WHERE name = :name)"
        found = connection.execute(
            sqlalchemy.text(f"SELECT name, since, seen FROM mipcash_worker WHERE study = {study}"),
            {"name": address.partition("?study=")[2]},
        ).all()
    engine.dispose()
    mine = [seen for name, _, seen in found if f":{pid}:" in name]
    return any(since <= mine[0] for name, since, _ in found if f":{pid}:" not in name)


def test_the_trial_of_a_killed_worker_is_evaluated_again(write: Callable[..., Path], postgres: str) -> None:
    write(MODEL, "marked.py")
    killed = worker(postgres, "--heartbeat-seconds", "1", hangs=True)
    until(lambda: Path("hangs").exists())
    other = worker(postgres)
    until(lambda: len(evaluated()) >= 2)
    until(lambda: beside(postgres, killed.pid))  # without another live worker, all workers count as killed
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    shown = other.communicate(timeout=240)[0]
    assert other.returncode == 0, shown
    record, rows = read_study(postgres)
    assert (record.budget, record.stopped) == (6, "budget")
    assert [row.status for row in rows] == ["done"] * 6
    assert [attempts(row) for row in rows[:2]] == [[(1, "lost"), (2, "present")], [(1, "present")]]
    lost = next(e for e in rows[0].evaluations if e.status == "lost")
    assert f":{killed.pid} gave no sign of life for 1 seconds" in lost.message
    assert f"trial {lost.trial} lost its worker and is evaluated again: {lost.message}" in " ".join(shown.split())
    assert sorted(evaluated().values()) == [1, 1, 1, 1, 1, 2]
    assert "6 done, 0 failed" in shown
    finished = "this run is finished (6 evaluations); give a larger --budget to go on"
    assert finished in said(0, "work", postgres, "--model", "marked.py")
    assert f"journal: {postgres}" in said(0, "show", postgres)


def test_two_processes_share_one_sqlite_file(write: Callable[..., Path]) -> None:
    write(MODEL, "marked.py")
    stopped = worker("run.db", hangs=True)
    until(lambda: Path("hangs").exists())
    said(0, "work", "run.db", "--model", "marked.py", "--budget", "3", "--timeout", "2")
    assert [row.status for row in read_study("run.db")[1]] == ["pending", "done", "done"]  # never above the budget
    stopped.terminate()  # like a job scheduler
    assert "mipcash work sqlite:///run.db --model" in stopped.communicate(timeout=240)[0]
    assert stopped.returncode == 130
    assert attempts(read_study("run.db")[1][0]) == [(1, "returned")]
    said(0, "work", "run.db", "--model", "marked.py")
    record, rows = read_study("run.db")
    assert (record.budget, [row.status for row in rows]) == (3, ["done"] * 3)
    other = ("work", "run.db", "--model", "marked.py", "--seed", "4", "--budget", "9")
    assert "seed was 0 and is 4 now" in said(2, *other)


def test_an_unavailable_storage_is_reported_in_one_line(write: Callable[..., Path]) -> None:
    write(MODEL, "marked.py")
    for storage in ("postgresql://ann:s3cr3t@127.0.0.1:1/d", "sqlite://run.db", "mysql://h/d"):
        refused = mipcash("work", storage, "--model", "marked.py")
        assert (refused.exit_code, len(refused.output.strip().splitlines())) == (2, 1), refused.output
        assert "s3cr3t" not in refused.output
