"""Several writers of one study: shared outcomes, trials that only one writer evaluates, and trials of lost writers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharing
import tiny

import mipcash as mc
from mipcash.errors import LateError, StorageError, TellError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import run
from mipcash.study.progress import Progress
from mipcash.study.storage import sql, sqlite
from mipcash.study.storage.protocol import FORMAT, TakenError
from mipcash.study.storage.registry import read_study
from mipcash.study.storage.sqlite import read_journal


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, journal: Path) -> sharing.Place:
    if request.param == "memory":
        return sharing.in_memory()
    return sharing.in_file(journal) if request.param == "sqlite" else sharing.at(request.getfixturevalue("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, journal: Path) -> str:
    return f"sqlite:///{journal}" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def counting(storage: Any, optimizer: Callable[[mc.Space], Any] = tiny.Counter, **options: Any) -> mc.Study:
    """Return the study of a writer with its own space, like a study in another process."""
    space = tiny.tiny_space()
    return mc.Study(space, optimizer(space), seed=7, storage=storage, **options)


def test_two_writers_share_a_study_and_the_trial_of_a_lost_writer_is_repeated(place: sharing.Place) -> None:
    writers = [place.writer("a"), place.writer("b")]
    a, b = (counting(writer) for writer in writers)
    first, second = a.ask(), b.ask()
    assert (first.number, second.number) == (0, 1)
    a.tell(first, 1.0)
    third = b.ask()
    seen = b.optimizer.histories[-1]  # type: ignore[attr-defined]
    assert [o.status for o in seen] == ["done", "pending"]
    place.vanish(writers[1])
    again = a.ask()
    assert (again.number, again.config, again.lost) == (1, second.config, 1)
    assert a.tell(again, 2.0).done
    assert a.tell(a.ask(), 3.0).number == third.number
    assert [t.loss for t in a.trials] == [1.0, 2.0, 3.0]
    b.ask()
    assert [t.loss for t in b.trials] == [1.0, 2.0, 3.0, None]
    assert a.record.id == b.record.id


def test_a_writer_that_was_overtaken_proposes_again(place: sharing.Place) -> None:
    others: list[mc.Study] = []

    class Overtaken(tiny.Counter):
        """Optimizer during whose first proposal another writer adds a trial."""

        def propose(self, request: Request) -> Proposal:
            if len(request.history) == 0:
                others.append(counting(place.writer("fast")))
                others[0].tell(others[0].ask(), 1.0)
            return super().propose(request)

    study = counting(place.writer("slow"), Overtaken)
    assert study.ask().number == 1
    assert [t.loss for t in study.trials] == [1.0, None]


def test_known_and_enqueued_configurations_are_shared_by_all_writers(place: sharing.Place) -> None:
    a, b = counting(place.writer("a")), counting(place.writer("b"))
    known = [(tiny.draw(a.space, np.random.default_rng(k)), float(k)) for k in range(3)]
    a.add_missing(known)
    b.add_missing(known)  # the same evaluations are added once
    b.add_missing([*known, known[0]])  # a repeated evaluation is added
    assert [(t.loss, t.origin) for t in a.result.history] == [(0.0, "known"), (1.0, "known"), (2.0, "known")]
    wanted = tiny.draw(a.space, np.random.default_rng(9))
    assert b.enqueue(wanted).number == 4  # writer a has not read it yet, and still finds it
    assert a.enqueue(wanted).number == 4
    assert (a.ask().config, b.ask().number, a.ask().number) == (wanted, 5, 6)
    assert [t.number for t in a.trials] == list(range(7))
    assert a.n_evaluated == b.n_evaluated == 0


def test_a_worker_that_was_taken_for_lost_may_tell_the_first_outcome(place: sharing.Place) -> None:
    """Assert that the first outcome of a trial counts, and that a later outcome of another worker is refused."""
    gone = place.writer("a")
    a, b = counting(gone), counting(place.writer("b"))
    first, second, third = a.ask(), a.ask(), a.ask()
    place.vanish(gone)
    again, more = b.ask(), b.ask()
    assert ([again.number, more.number], again.attempt, again.lost) == ([0, 1], 2, 1)
    assert a.tell(first, 1.0).loss == 1.0  # b is evaluating it and has not reported an outcome
    with pytest.raises(LateError, match="trial 0 counted as lost, and another worker has recorded its outcome"):
        b.tell(again, 5.0)
    b.tell(more, 2.0)
    with pytest.raises(LateError, match="trial 1 "):
        a.tell(second, 6.0)
    with pytest.raises(TellError, match="trial 1 has an outcome already"):
        a.tell(second, 6.0)
    assert a.tell(third, 3.0).done  # b knows that it was lost and has not started it
    for study in (a, b):
        study.table.look()
        assert ([t.loss for t in study.trials], study.n_evaluated) == ([1.0, 2.0, 3.0], 3)
    assert b.ask().number == 3


def test_a_trial_that_loses_too_many_workers_has_failed_for_all_writers(place: sharing.Place) -> None:
    last, kept = counting(place.writer("last"), retries=1), []
    for name in ("a", "b"):
        writer = place.writer(name)
        kept.append(counting(writer, retries=1))
        assert kept[-1].ask().number == 0
        place.vanish(writer)
    assert last.ask().number == 1
    assert (last.trials[0].status, last.trials[0].lost) == ("failed", 2)
    assert "its worker died 2 times; at last: " in last.trials[0].message


def test_the_budget_is_shared_and_concurrent_writers_do_not_exceed_it(place: sharing.Place) -> None:
    calls: list[str] = []
    ready = threading.Barrier(3)

    def objective(config: Any) -> float:
        calls.append(repr(config))
        return tiny.loss(config)

    def work(k: int) -> mc.Result:
        with counting(place.writer(str(k)), tiny.Sampler) as study:
            ready.wait()
            return run(study, objective, 8, execution=mc.Execution(workers=1 + k % 2), progress=False)

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(work, range(3)))
    assert [(r.stopped, r.n_done) for r in found] == [("budget", 8)] * 3  # each writer waits for running evaluations
    assert (len(calls), len(set(calls))) == (8, 8)
    numbers = [t.number for t in found[0].history if t.done]
    assert len(numbers) == len(set(numbers)) == 8


def test_the_last_worker_repeats_the_trial_of_a_lost_worker(place: sharing.Place) -> None:
    """Assert that a worker waits for the last trial of another worker, and evaluates it when that worker is lost."""
    gone = place.writer("gone")
    trial = counting(gone, tiny.Sampler).ask()
    threading.Timer(0.2, lambda: place.vanish(gone)).start()
    result = run(counting(place.writer("here"), tiny.Sampler), tiny.loss, 3, progress=False)
    assert (result.n_done, result.history[trial.number].attempt) == (3, 2)


def test_a_display_counts_outcomes_of_other_workers_and_notes_an_ignored_late_outcome(place: sharing.Place) -> None:
    class Noting(Progress):
        def evaluated(self, trial: mc.Trial) -> None:
            super().evaluated(trial)
            counts.append((self.evaluated_count, self.best))

        def note(self, text: str) -> None:
            notes.append(text)

    counts: list[tuple[int, float]] = []
    notes: list[str] = []
    gone, other = place.writer("gone"), counting(place.writer("other"), tiny.Sampler)
    other.tell(other.ask(), 9.0)  # an outcome from before the run

    def objective(config: Any) -> float:
        if not gate:
            gate.append(1)
            place.vanish(gone)
            other.tell(other.ask(), 0.25)
        return 1.0

    gate: list[int] = []
    result = run(counting(gone, tiny.Sampler), objective, 3, progress=Noting())
    assert [t.loss for t in result.history] == [9.0, 0.25, 1.0]
    assert counts[-1] == (3, 0.25)
    assert len(notes) == 1
    assert "trial 1 counted as lost, and another worker has recorded its outcome; this outcome is ignored" in notes[0]


# -- storages given by address --------------------------------------------------------------------------------------


def test_a_study_given_by_address_is_resumed(address: str) -> None:
    space = tiny.tiny_space()

    def go(budget: int, storage: str | None = address, **options: Any) -> mc.Result:
        optimizer = tiny.Counter(space)
        return mc.minimize(tiny.loss, space, budget, optimizer=optimizer, storage=storage, progress=False, **options)

    assert go(4).n_done == 4
    result, in_memory = go(6), go(6, None)
    assert [(t.config, t.proof) for t in result.history] == [(t.config, t.proof) for t in in_memory.history]
    record, rows = read_study(address)
    assert (record.budget, record.stopped, [r.loss for r in rows]) == (6, "budget", [t.loss for t in result.history])
    with pytest.raises(StorageError, match="belongs to another study: seed was 0 and is 3 now"):
        go(8, seed=3)


def test_losing_all_workers_costs_no_retry(address: str) -> None:
    """Assert that a lost attempt counts only if another worker was present at the time and survived."""
    place, kept = sharing.at(address), []
    for attempt in (1, 2):
        writer = place.writer("")
        kept.append(counting(writer, retries=0))
        trial = kept[-1].ask()
        assert (trial.number, trial.attempt, trial.lost) == (0, attempt, 0)
        place.vanish(writer)
    last = counting(place.writer(""), retries=1)
    gone = place.writer("")
    kept.append(counting(gone, retries=1))
    assert kept[-1].ask().attempt == 3
    place.vanish(gone)
    trial = last.ask()
    assert (trial.number, trial.attempt, trial.lost) == (0, 4, 1)
    assert last.tell(trial, 1.0).done
    statuses = {(e.attempt, e.status) for e in read_study(address)[1][0].evaluations}
    assert statuses == {(1, "returned"), (2, "returned"), (3, "lost"), (4, "present")}


def test_a_long_evaluation_is_not_lost_while_its_worker_lives(address: str) -> None:
    beating = f"{address}{'&' if '?' in address else '?'}heartbeat_seconds=0.4"
    a, b = counting(beating), counting(beating)
    trial = a.ask()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        b.table.look()
        assert [t.number for t in b.table.elsewhere] == [0]
        time.sleep(0.05)
    assert a.tell(trial, 1.0).attempt == 1


@pytest.mark.parametrize("leap", [7200.0, -7200.0])
def test_writers_that_stood_still_together_do_not_take_each_other_for_lost(
    journal: Path, monkeypatch: pytest.MonkeyPatch, leap: float
) -> None:
    """The clock leaps by two heartbeats, as after the sleep of a machine, or goes back by as much."""
    place = sharing.at(f"sqlite:///{journal}?heartbeat_seconds=3600")
    gone, mine = place.writer(""), place.writer("")
    assert isinstance(mine, sql.SQLStorage)
    with counting(gone) as a, counting(mine) as b:
        trial, now = a.ask(), time.time()
        monkeypatch.setattr(time, "time", lambda: now + leap)
        b.table.look()  # before its own heartbeat
        mine._beat()
        b.table.look()
        assert [t.number for t in b.table.elsewhere] == [trial.number]
        mine._steady -= mine._seconds  # the other one had its time, and sent nothing
        again = b.ask()
        assert (again.number, again.attempt) == (trial.number, 2)


def test_a_larger_budget_of_one_worker_holds_for_all_workers(address: str) -> None:
    def objective(config: Any) -> float:
        if study.n_evaluated == 2:
            other.plan(7, None)
        return tiny.loss(config)

    study, other = counting(address, tiny.Sampler), counting(address, tiny.Sampler)
    assert run(study, objective, 4, progress=False).n_done == 7


def test_another_writer_sees_at_once_that_an_attempt_was_returned(address: str) -> None:
    a, b = counting(address), counting(address)
    left, own = a.ask(), b.ask()
    b.tell(own, 1.0)
    a.close()
    again = b.ask()
    assert (again.number, again.config, again.attempt, again.lost) == (left.number, left.config, 2, 0)
    b.tell(again, 2.0)
    b.close()


# -- shared files --------------------------------------------------------------------------------------------------


def test_a_file_is_shared_only_by_writers_that_open_it_by_address(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = f"sqlite:///{journal}"
    with counting(str(journal)) as alone:
        alone.tell(alone.ask(), 1.0)
        monkeypatch.setattr(sqlite, "OPENING", 0.0)  # do not wait for a writer that may be about to share the file
        with pytest.raises(StorageError, match=r"which does not share it\. .*storage='sqlite:///"):
            counting(shared)
        monkeypatch.undo()
    with counting(shared) as a, counting(shared) as b:
        assert [t.loss for t in b.trials] == [1.0]
        with pytest.raises(StorageError, match="is in use by another study"):
            counting(str(journal))
        a.close()
        with pytest.raises(StorageError, match="is in use by another study"):  # b still has it open
            counting(str(journal))
        assert b.tell(b.ask(), 2.0).number == 1
        assert len(read_journal(journal)[1]) == 2  # reading is allowed
    with counting(str(journal)) as alone:
        assert [t.loss for t in alone.trials] == [1.0, 2.0]
        assert alone.record.schema == FORMAT
    assert sorted(p.name for p in journal.parent.iterdir()) == ["run.db"]


def test_a_trial_of_a_killed_process_is_repeated_when_its_file_is_shared(journal: Path) -> None:
    killed = counting(str(journal))
    trial = killed.ask()
    killed._storage._started = False  # type: ignore[attr-defined]  # so that close() does not return the attempt
    killed.close()
    with counting(f"sqlite:///{journal}") as study:
        again = study.ask()
        assert (again.number, again.config, again.attempt, again.lost) == (0, trial.config, 2, 0)


def test_a_file_whose_maker_was_killed_before_it_wrote_anything_is_made_by_the_next(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The maker holds the file alone when the next writer looks, and is gone when that one shares it."""
    held, locked = [True], sqlite.WriterLock

    def lock(path: Path, shared: bool = False) -> Any:
        if held and held.pop():
            raise sqlite.InUseError(f"{path} is in use")
        return locked(path, shared)

    journal.touch()
    monkeypatch.setattr(sqlite, "WriterLock", lock)
    with mc.Study(tiny.tiny_space(), "random", storage=f"sqlite:///{journal}") as study:
        assert study.tell(study.ask(), 1.0).number == 0


def test_a_writer_does_not_overwrite_changes_that_it_has_not_read(address: str) -> None:
    a, b = counting(address), counting(address)
    first = a.ask()
    b.table.look()
    row = b.table._rows[0]
    a.tell(first, 1.0)
    with pytest.raises(TakenError):
        b._storage.write(row, row.evaluations)
    assert read_study(address)[1][0].loss == 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_must_open_the_study_itself(address: str) -> None:
    with counting(address) as study, ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        global forked
        forked = study
        with pytest.raises(StorageError, match="from which this one was forked; open the study in each process"):
            pool.submit(_asked).result()
        assert study.tell(study.ask(), 1.0).done


def _asked() -> None:
    forked.ask()
