"""Faults of a machine and of an objective that are no kills. Each function returns what is wrong, or nothing."""

from __future__ import annotations

import os
import re
import resource
import signal
import stat
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, call
from typing import Any

import mipcash as mc
from benchmarks.faults.kills import compare, ended, forked, run, work
from benchmarks.faults.runs import BUDGET, KINDS, Logged, append, lines
from benchmarks.load import network
from mipcash.study.storage.registry import read_study
from tests import servers

PLAIN = KINDS["sequential"]
LONG = 120.0
KILLED_WITHIN = 2.0  # seconds in which a process that was sent SIGKILL is gone


class Misbehaving:
    """Objective that misbehaves for three layers, and is a plain objective else.

    Args:
        how: name of the method that misbehaves.
        size: bytes to print.
    """

    def __init__(self, folder: Path, how: str, size: int = 0) -> None:
        self.plain, self.how, self.size = Logged(folder), how, size

    def __call__(self, config: Mapping[str, Any]) -> Any:
        if config["layers"] == 3:
            getattr(self, self.how)()
        return self.plain(config)

    def hangs(self) -> None:
        time.sleep(10_000)

    def allocates(self) -> None:
        taken = [bytearray(1 << 27) for _ in range(64)]
        raise AssertionError(f"{len(taken)} pieces fit")

    def forks(self) -> None:
        child = os.fork()
        if not child:
            time.sleep(10_000)
            os._exit(0)
        append(self.plain.folder / "children", child)

    def forks_and_returns(self) -> None:
        child = os.fork()  # the child goes on as if it were the run
        if child:
            append(self.plain.folder / "children", child)

    def prints(self) -> None:
        for _ in range(self.size >> 20):
            print("x" * ((1 << 20) - 1))


def full_disk(folder: Path) -> str:
    """The disk of the journal has less room than the journal needs; then there is room again, and the run is resumed.

    Without the right to mount such a disk, the size of files is limited instead, and a line says so.
    """
    other = folder / "other"
    other.mkdir()
    said = _ends(other, lambda: run(PLAIN, other, str(other / "run.db"), 0, ""))
    room, disk, journal = (other / "run.db").stat().st_size * 2 // 3, folder / "disk", folder / "disk" / "run.db"
    disk.mkdir()
    mounted = not call(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(disk)], stderr=DEVNULL)
    print("full disk:", "a disk of its own" if mounted else "a limit of the size of files, as nothing may be mounted")

    def limited() -> None:
        if not mounted:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        run(PLAIN, folder, str(journal), 0, "")

    try:
        said = said or _refused(folder, limited, "run.db")
        if mounted:
            call(["mount", "-o", "remount,size=64m", str(disk)])
        return said or _resumed(folder, journal)
    finally:
        if mounted:
            call(["umount", str(disk)])


def server_away(folder: Path) -> str:
    """PostgreSQL is stopped for a minute while two of ``mipcash work`` run, as long as their heartbeat."""
    with servers.interruptible() as server:
        programs = [forked(lambda: work(folder, server.address, 0), folder / "output") for _ in range(2)]
        while len(lines(folder / "log")) < 3:
            time.sleep(0.002)
        server.stop()
        time.sleep(60.0)
        server.start()
        return _both_end(folder, server.address, programs)


def read_only_folder(folder: Path) -> str:
    """The folder of the journal cannot be written, by a user who is not root."""
    kept, other = folder / "kept", folder / "other"
    kept.mkdir()
    other.mkdir()
    kept.chmod(0o555)
    folder.chmod(folder.stat().st_mode | stat.S_IRWXO)

    def started() -> None:
        run(PLAIN, other, str(other / "run.db"), 0, "")  # loads the modules, which another user may not read
        if os.getuid() == 0:
            os.setuid(65534)
        run(PLAIN, folder, str(kept / "run.db"), 0, "")

    said = _refused(folder, started, "run.db")
    return said or (f"{len(lines(folder / 'log'))} evaluations were made" if lines(folder / "log") else "")


def clock_goes_back(folder: Path) -> str:
    """The clock is set back by an hour in mid-run."""
    return _ends(folder, lambda: _set_back(folder, "sequential", str(folder / "run.db"))) or _resumed(folder)


def clock_of_two_goes_back(folder: Path) -> str:
    """The clock of a machine on which two programs share a study is set back by an hour in mid-run."""
    address = f"sqlite:///{folder}/run.db?heartbeat_seconds=2"
    return _both_end(folder, address, [forked(lambda: _set_back(folder, "sqlite", address), folder / "output") for _ in range(2)])


def _set_back(folder: Path, kind: str, address: str) -> None:
    now = time.time
    time.time = lambda: now() - (3600 if len(lines(folder / "log")) >= BUDGET // 2 else 0)
    run(KINDS[kind], folder, address, 0, "")


def stands_still(folder: Path, stopped: int = 1) -> str:
    """One of two programs, or both, stop for three times their heartbeat, as on a machine that sleeps, and go on."""
    address = f"sqlite:///{folder}/run.db?heartbeat_seconds=2"
    programs = [forked(lambda: run(KINDS["sqlite"], folder, address, 0, ""), folder / "output") for _ in range(2)]
    while len(lines(folder / "log")) < 3:
        time.sleep(0.002)
    for program in programs[:stopped]:
        os.kill(program, signal.SIGSTOP)
    time.sleep(6)
    for program in programs[:stopped]:
        os.kill(program, signal.SIGCONT)
    return _both_end(folder, address, programs, repeated=0 if stopped == 2 else 1)


def _both_end(folder: Path, address: str, programs: list[int], repeated: int = 0) -> str:
    """Wait for two programs, and return what is wrong, such as more repeated evaluations than allowed."""
    codes = [ended(p, LONG) for p in programs]
    rows = read_study(address)[1]
    again, problems = compare(KINDS["sqlite"], folder, rows, rows)
    fine = codes == [0, 0] and not problems and again <= repeated
    return "" if fine else f"exit codes {codes}, {again} evaluations repeated, {problems}"


def dead_machine(folder: Path) -> str:
    """A program that holds the journal dies, and the next program finds it free."""
    program = forked(lambda: run(PLAIN, folder, str(folder / "run.db"), 0, ""), folder / "output")
    while len(lines(folder / "log")) < 3:
        time.sleep(0.002)
    os.kill(program, signal.SIGSTOP)
    said = _refused(folder, lambda: run(PLAIN, folder, str(folder / "run.db"), 0, ""), "run.db")
    os.kill(program, signal.SIGKILL)
    os.waitpid(program, 0)
    return said or _resumed(folder)


def _misbehaves(how: str, expected: str, size: int = 0, **execution: Any) -> Callable[[Path], str]:
    def mishap(folder: Path) -> str:
        def started() -> None:
            objective, execute = Misbehaving(folder, how, size), mc.Execution(**execution)
            storage, space = str(folder / "run.db"), network()
            mc.minimize(objective, space, BUDGET, storage=storage, execution=execute, progress=False)

        said = _ends(folder, started)
        if said:
            return said
        rows = read_study(folder / "run.db")[1]
        failed = {r.outcome["loss"].message for r in rows if r.status == "failed"}
        if len(rows) != BUDGET or (expected and not (failed and all(expected in message for message in failed))):
            return f"{Counter(r.status for r in rows)}, {failed}"
        if "fork" in how and not lines(folder / "children"):
            return "nothing was forked"
        if not expected and (problems := compare(PLAIN, folder, rows, rows)[1]):
            return "; ".join(problems)
        until = time.monotonic() + KILLED_WITHIN
        while (alive := [child for (child,) in lines(folder / "children") if _runs(child)]) and time.monotonic() < until:
            time.sleep(0.01)
        return f"processes {alive} still run" if alive else ""

    return mishap


def mishaps(size: int) -> dict[str, Callable[[Path], str]]:
    """Return the faults by name.

    Args:
        size: bytes that an objective prints.
    """
    timed = {"evaluation_timeout": 2.0}
    return {
        "full disk": full_disk,
        "folder that cannot be written": read_only_folder,
        "journal in use, then its holder dies": dead_machine,
        "PostgreSQL away for a minute, two of `mipcash work`": server_away,
        "clock an hour back": clock_goes_back,
        "clock an hour back, two programs": clock_of_two_goes_back,
        "program that stands still for three heartbeats": stands_still,
        "two programs that stand still for three heartbeats": partial(stands_still, stopped=2),
        "objective that hangs": _misbehaves("hangs", "took longer", **timed),
        "objective that takes 8 GiB": _misbehaves("allocates", "memory", evaluation_memory=2000),
        "objective that leaves processes": _misbehaves("forks", "", **timed),
        "objective that forks, and whose child returns": _misbehaves("forks_and_returns", ""),
        "objective that prints, in this process": _misbehaves("prints", "", size=size),
        "objective that prints, in a process of its own": _misbehaves("prints", "", size=size, evaluation_timeout=LONG),
    }


def _runs(process: int) -> bool:
    """Return True if a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ends(folder: Path, call: Callable[[], object]) -> str:
    code = ended(forked(call, folder / "output"), LONG)
    return "" if code == 0 else f"exit code {code}: {_output(folder)}"


def _refused(folder: Path, call: Callable[[], object], named: str) -> str:
    """Run, and return what is wrong unless the run ends with an error of storage that names the file."""
    code, output = ended(forked(call, folder / "refused"), LONG), (folder / "refused").read_text(encoding="utf-8")
    words = output.strip().splitlines()[-1] if output.strip() else ""
    return (
        ""
        if code == 1 and re.match(r"mipcash\.\S*(Storage|InUse)Error", words) and named in words
        else f"exit code {code}: {words}"
    )


def _resumed(folder: Path, journal: Path | None = None) -> str:
    """Resume a run of ``PLAIN`` to its end, and compare it with an unbroken one."""
    journal = journal or folder / "run.db"
    other = folder / "unbroken"
    other.mkdir()
    said = _ends(folder, lambda: run(PLAIN, folder, str(journal), 0, "")) or _ends(
        other, lambda: run(PLAIN, other, str(other / "run.db"), 0, "")
    )
    return said or "; ".join(compare(PLAIN, folder, read_study(journal)[1], read_study(other / "run.db")[1])[1])


def _output(folder: Path) -> str:
    with (folder / "output").open("rb") as found:
        found.seek(max(0, found.seek(0, os.SEEK_END) - 500))
        return found.read().decode(errors="replace")
