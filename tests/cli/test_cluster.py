"""The recipes for clusters in docs/scale-out.md, run on this machine: workers that a scheduler ends, kills and starts again."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_work import MODEL, evaluated, until

from mipcash.study.storage.registry import read_study

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale-out.md"
BUDGET = 12
TOGETHER = MODEL.replace(
    "    time.sleep(0.1)",
    "    while len({line.split()[0] for line in open('marks.txt')}) < 3:  # so that no worker is left without work\n"
    "        time.sleep(0.01)\n"
    "    time.sleep(0.1)",
)


@pytest.fixture
def place(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the model and with the commands of the recipes."""
    folder = write(TOGETHER, "alloys.py").parent
    for name, command in {"mipcash": f"exec {shlex.quote(sys.executable)} -m mipcash", "srun": "exec"}.items():
        script = folder / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder


def recipe(language: str, address: str) -> str:
    """Return the recipe of the page, with this server, a small budget and short heartbeats."""
    (text,) = re.findall(
        rf"```{language}\n((?:(?!```).)*mipcash(?:(?!```).)*budget(?:(?!```).)*)```", PAGE.read_text("utf-8"), re.S
    )
    for written, here in (("500", str(BUDGET)), ("postgresql://ann@db.lab/studies?study=alloys", address)):
        assert text.count(written) == 1
        text = text.replace(written, here)
    return text


def works(commands: Callable[[], list[str]], address: str, end: signal.Signals) -> list[int]:
    """Run three workers, end one of them in mid-run, start another, and return the exit codes of those that were left alone."""

    def worker() -> subprocess.Popen[bytes]:
        return subprocess.Popen(commands(), stdout=subprocess.DEVNULL)

    workers = [worker() for _ in range(3)]
    until(
        lambda: (
            Path("marks.txt").exists() and len({m.split()[0] for m in Path("marks.txt").read_text().splitlines()}) == 3
        )
    )
    workers[0].send_signal(end)
    workers[0].wait(60)
    workers.append(worker())
    codes = [w.wait(240) for w in workers[1:]]
    record, rows = read_study(address)
    assert (record.budget, record.stopped) == (BUDGET, "budget")
    assert [row.status for row in rows] == ["done"] * BUDGET
    assert BUDGET <= sum(evaluated().values()) <= BUDGET + 1  # the one that was ended may be repeated
    return codes


def test_slurm(place: Path, postgres: str) -> None:
    script = place / "workers.sh"
    script.write_text(recipe("sh", postgres) + "\n", encoding="utf-8")
    assert works(lambda: ["sh", str(script)], postgres, signal.SIGTERM) == [0, 0, 0]


def test_kubernetes(place: Path, postgres: str) -> None:
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(recipe("yaml", postgres))
    assert (job["kind"], job["spec"]["template"]["spec"]["restartPolicy"]) == ("Job", "OnFailure")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = [*container["command"], "--heartbeat-seconds", "1"]
    assert works(lambda: command, postgres, signal.SIGKILL) == [0, 0, 0]
