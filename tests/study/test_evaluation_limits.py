"""Time and memory limits in real worker processes: an evaluation beyond its limit is killed and recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import odd
import pytest
import tiny

import mipcash as mc
from mipcash.errors import DefectError, ObjectiveError
from mipcash.study.evaluating.allowed import Allowed
from mipcash.study.failures import OUT_OF_MEMORY, kind_of_failure
from mipcash.study.minimize import minimize
from mipcash.study.storage.sqlite import read_journal

TIME = 0.3
"""Time limit in seconds; evaluations usually take milliseconds."""
MEMORY = 180
"""Memory limit in megabytes; a process that has loaded a trivial objective uses about 50."""
LATE = "it took longer than evaluation_timeout=0.3 seconds, and its process was killed"
LARGE = "it took more memory than evaluation_memory=180 MB, and its process was killed"


def run(space: mc.Space, objective: Any, budget: int = 4, **arguments: Any) -> mc.Result:
    """Run with the given limit, or with a time limit that no evaluation reaches."""
    names = {field.name for field in fields(mc.Execution)} & arguments.keys()
    execution = {"evaluation_timeout": 60.0, **{n: arguments.pop(n) for n in names}}
    given = {"optimizer": tiny.Counter(space), "progress": False, **arguments}
    return minimize(objective, space, budget, execution=mc.Execution(**execution), **given)


def gone(pid: int) -> bool:
    """Return True once a process has ended or is a zombie, and False after ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("deed", "limit", "said", "kind"),
    [
        (odd.hang_in_c, {"evaluation_timeout": TIME}, LATE, "timed out"),
        (odd.ignore_sigterm, {"evaluation_timeout": TIME, "evaluation_memory": MEMORY}, LATE, "timed out"),
        (odd.grow_in_a_child, {"evaluation_memory": MEMORY}, LARGE, OUT_OF_MEMORY),
    ],
    ids=["time", "both", "memory"],
)
def test_an_evaluation_beyond_its_limit_fails_and_the_run_goes_on(
    space: mc.Space, journal: Path, marks: Path, deed: odd.Odd, limit: Any, said: str, kind: str
) -> None:
    result = run(space, odd.Once(marks, deed), storage=journal, **limit)
    assert [t.status for t in result.history] == ["done", "failed", "done", "done"]
    failed = result.history[1]
    assert (failed.message, failed.lost, failed.attempt) == (said, 0, 1)
    assert kind_of_failure(failed.message) == kind
    assert failed.duration is not None
    assert failed.duration < 30.0  # without a limit it would take a minute
    pids = [int((marks / str(k)).read_text()) for k in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]  # a process is used again, and replaced only after it was killed
    assert os.getpid() not in pids
    assert all(map(gone, pids))
    rows = read_journal(journal)[1]
    assert [row.evaluations[0].worker.split(":")[-1] for row in rows] == list(map(str, pids))
    assert run(space, odd.layers, storage=journal).history[1].message == said


def test_a_killed_evaluation_may_clean_up_and_its_child_processes_are_killed(
    space: mc.Space, marks: Path, tmp_path: Path
) -> None:
    assert run(space, odd.Once(marks, odd.tidy_up), 2, evaluation_timeout=TIME).n_failed == 1
    assert (tmp_path / "tidy").exists()
    for mark in marks.iterdir():
        mark.unlink()
    assert run(space, odd.Once(marks, odd.start_a_child), 2, evaluation_timeout=1.5).n_failed == 1
    assert gone(int((tmp_path / "child").read_text()))


def test_processes_that_an_evaluation_leaves_end_with_the_run(space: mc.Space, tmp_path: Path) -> None:
    def leaves(config: dict[str, Any]) -> float:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (tmp_path / "child").write_text(str(child.pid))
        return 1.0

    assert run(space, leaves, 1, evaluation_timeout=60).n_done == 1
    assert gone(int((tmp_path / "child").read_text()))


def test_memory_that_an_evaluation_keeps_does_not_count_for_the_next_evaluation(space: mc.Space) -> None:
    kept: list[Any] = []

    def leaks(config: dict[str, Any]) -> dict[str, float]:
        kept.append(odd.hold(110))
        return {"loss": 1.0, "pid": os.getpid()}

    result = run(space, leaks, 3, evaluation_memory=MEMORY)
    assert (result.n_done, len({t.values["pid"] for t in result.history})) == (3, 3)


@pytest.mark.parametrize(
    ("deed", "said"), [(odd.leave, "ended with exit code 3"), (odd.crash, "was killed by SIGSEGV")]
)
def test_a_process_that_dies_is_a_lost_worker(space: mc.Space, marks: Path, deed: odd.Odd, said: str) -> None:
    """Assert that the evaluation is repeated, as with any executor."""
    result = run(space, odd.Once(marks, deed), workers=2)
    assert (result.n_done, sorted(t.lost for t in result.history)) == (4, [0, 0, 0, 1])
    (always,) = run(space, lambda config: deed(Path()), 1, retries=1).history
    assert always.message.startswith("its worker died 2 times; at last: the worker process ")
    assert always.message.endswith(said)
    assert kind_of_failure(always.message) == "worker died"


def test_each_worker_has_its_own_process(space: mc.Space, tmp_path: Path, journal: Path) -> None:
    """Run evaluations that wait for each other in pairs."""

    def meet(config: dict[str, Any]) -> float:
        (tmp_path / f"at-{os.getpid()}").touch()
        end = time.monotonic() + 30
        while len(list(tmp_path.glob("at-*"))) < 2 and time.monotonic() < end:
            time.sleep(0.005)
        return len(list(tmp_path.glob("at-*")))

    result = run(space, meet, 4, workers=2, storage=journal)
    assert [t.loss for t in result.history] == [2.0] * 4
    assert len({row.evaluations[0].worker for row in read_journal(journal)[1]}) == 2


def test_results_errors_and_prints_of_a_worker_process_arrive(
    space: mc.Space, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def moody(config: dict[str, Any]) -> Any:
        calls.append(1)  # the worker's own list; the list of this process stays empty
        print("x" * 1_000_000, flush=True)
        if len(calls) == 1:
            raise ZeroDivisionError("no folds")
        if len(calls) == 2:
            raise mc.Failed("out of memory")
        return [threading.Lock(), {"loss": 2.0, "ms": 3}, mc.Failed("diverged"), [1]][len(calls) - 3]

    result = run(space, moody, 6)
    assert calls == []
    messages = [t.message for t in result.history]
    assert messages[0].startswith("ZeroDivisionError: no folds (")
    assert messages[1] == "out of memory"
    assert messages[2] == "the objective returned lock, which cannot be sent from its worker process; return numbers"
    assert (result.history[3].loss, result.history[3].values) == (2.0, {"ms": 3.0})
    assert messages[4] == "diverged"
    assert "[1]" in messages[5]
    assert capfd.readouterr().out.count("x") == 6_000_000


def test_a_defect_or_system_exit_in_a_worker_process_stops_the_run(space: mc.Space, journal: Path) -> None:
    def stopped(config: dict[str, Any]) -> float:
        raise SystemExit

    with pytest.raises(SystemExit):
        run(space, stopped, storage=journal)
    assert run(space, odd.layers, storage=journal).n_done == 4
    with pytest.raises(DefectError, match="NameError: name 'undefined' is not defined"):
        run(space, lambda config: undefined)  # type: ignore[name-defined] # noqa: F821
    result = run(space, lambda config: time.sleep(60), 6, workers=2, evaluation_timeout=0.05)
    assert (result.n_failed, result.stopped) == (6, "budget")  # exceeding a limit is no defect


def test_ctrl_c_ends_running_evaluations(space: mc.Space, marks: Path) -> None:
    # like a terminal, send SIGINT to the process
    # the main thread would notice a signal to the timer's thread only when it runs next
    interrupt = threading.Timer(0.0, os.kill, [os.getpid(), signal.SIGINT])

    class Soon(tiny.Counter):
        def propose(self, request: Any) -> Any:
            if len(request.history) == 1:
                interrupt.start()
            return super().propose(request)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(space, odd.Once(marks, odd.sleep), optimizer=Soon(space))
    finally:
        signal.signal(signal.SIGINT, before)
    assert all(gone(int(mark.read_text())) for mark in marks.iterdir())


def test_objectives_of_scripts_and_lambdas_work(tmp_path: Path) -> None:
    """Assert that they need no ``if __name__ == "__main__"`` and may use other definitions of the script."""
    (tmp_path / "beside.py").write_text("def square(x):\n    return x * x\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import beside, mipcash as mc\n"
        "class Point:\n    def __init__(self, x): self.x = x\n"
        "SCALE = 3\n"
        "def train(config):\n"
        "    return {'loss': beside.square(Point(config['n']).x), 'scale': SCALE}\n"
        "space = mc.Space('s')\n"
        "space.integer('n', 0, 5)\n"
        "for f in (train, lambda config: train(config)['loss']):\n"
        "    result = mc.minimize(f, space, 3, optimizer='random', progress=False, execution=mc.Execution(evaluation_timeout=30))\n"
        "    assert [t.loss for t in result.history] == [t.config['n'] ** 2 for t in result.history], result\n"
        "print('fine')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd="/", check=False)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


def test_a_worker_process_starts_without_numpy_so_that_it_is_replaced_quickly() -> None:
    code = "import sys, mipcash.study.evaluating.worker; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_unpicklable_objectives_and_invalid_limits_are_refused_before_any_evaluation(
    space: mc.Space, journal: Path
) -> None:
    lock = threading.Lock()
    said = r"cannot be sent to a worker process.*lock.*Define what it needs inside it"
    with pytest.raises(ObjectiveError, match=said):
        run(space, lambda config: lock.locked(), storage=journal)
    for name, unit in (("evaluation_memory", "megabytes"), ("evaluation_timeout", "seconds")):
        for bad in (0, -1, "2 GB", True, float("nan")):
            with pytest.raises(ValueError, match=f"{name} must be a positive number of {unit}"):
                run(space, odd.layers, storage=journal, **{name: bad})
        with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="leave one of them out"):
            run(space, odd.layers, storage=journal, executor=executor, **{"evaluation_timeout": None, name: 99})
    assert not journal.exists()
    with pytest.raises(ObjectiveError, match=r"holds \d+ MB before it evaluates anything.*raise it"):
        run(space, odd.layers, evaluation_memory=5)
    with pytest.raises(ObjectiveError, match=r"cannot be loaded in a worker process.*ValueError: not there.*Define"):
        run(space, odd.Homesick(), storage=journal)
    assert read_journal(journal)[1] == []
    assert Allowed.of(None, float("inf")) is None
