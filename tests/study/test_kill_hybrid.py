"""kill -9 in the middle of a run of the real optimizer, from outside: the resumed run is the unbroken one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

RUN = """
import sys, time
import mipcash as mc
from tests.spaces import bound_numbers, loss

def slow(config):
    time.sleep(0.02)
    return loss(config)

method = mc.Method("hybrid", mc.settings.HybridSettings(n_initial=4), seconds_per_proposal=None)
mc.minimize(slow, bound_numbers(), 12, seed=7, storage=sys.argv[1], progress=False, optimizer=method)
"""
ROOT = Path(__file__).parents[2]


def start(path: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", RUN, str(path)], env=environment, cwd=ROOT)


def rows(path: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute(
            "select number, trial.status, config, value from trial left join evaluation "
            "on trial = number and output = 'loss' and evaluation.status = 'present' order by number"
        ).fetchall()


def trials(path: Path) -> int:
    try:
        return len(rows(path))
    except sqlite3.OperationalError:
        return 0


def test_kill_and_resume(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.db", tmp_path / "broken.db"
    assert start(whole).wait() == 0
    seen = 0
    for target in (2, 7):
        process = start(broken)
        while trials(broken) < target and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert trials(broken) >= max(target, seen)  # nothing is lost
        seen = trials(broken)
    assert start(broken).wait() == 0
    assert rows(broken) == rows(whole)
    assert len(rows(whole)) == 12
    assert {row[1] for row in rows(whole)} == {"done"}
