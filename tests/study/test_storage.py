"""The storage protocol: what memory and SQLite keep, and that several writers can share one study behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.optimizers.base import Proposal, Request
from mipcash.study.storage.attempts import ended
from mipcash.study.storage.base import LOST, RUNNING, EvaluationRow, Storage, StudyRecord, TakenError, TrialRow
from mipcash.study.storage.compare import compare
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.sqlite.reading import read_journal
from mipcash.study.storage.sqlite.storage import SQLiteStorage


class Talkative(tiny.Counter):
    """Leaves a trace, names outputs, and wishes to stop in the end."""

    def propose(self, request: Request) -> Proposal:
        said = {"residual": [0.5, 1 / 3], "text": "\udcff"}
        stop = "small residuals" if len(request.history) == 3 else ""
        return replace(super().propose(request), outputs=("loss", "\ud800", '"quoted'), trace=said, stop=stop)


def test_everything_that_is_told_comes_back(space: mc.Space, journal: Path) -> None:
    def go(storage: Any) -> tuple[mc.Study, list[mc.Trial]]:
        study = mc.Study(space, Talkative(space), storage=storage)
        first, second, third, fourth = (study.ask() for _ in range(4))
        study.tell(first, {"\ud800": 1.0, "loss": 0.1}, 2.0, cost={"loss": 60.0}, worker="node 7")
        study.tell(first, {'"quoted': -math.inf}, 3.0)
        study.tell(second, {"loss": mc.Failed("diverged")}, 1.0)
        study.tell(third, {"loss": 1 / 3, "more": math.nan}, partial=False)
        study.lose(fourth, "node 8 went away")
        return study, list(study.trials)

    with go(journal)[0] as study:
        before = study.trials
    in_memory = go(None)[1]
    with mc.Study(space, Talkative(space), storage=journal) as study:
        after = study.trials
        assert study.wish == ""  # as a trial is left to evaluate
        assert (after[3].lost, after[3].stop) == (1, "small residuals")
    for a, b, c in zip(before, after, in_memory, strict=True):
        assert (a.config, a.status, a.evaluate, a.trace, a.stop, a.attempt, a.lost) == (
            b.config,
            b.status,
            b.evaluate,
            b.trace,
            b.stop,
            b.attempt,
            b.lost,
        )
        assert repr(a.outcome.outputs) == repr(b.outcome.outputs)  # nan is not equal to itself
        assert {n: replace(o, cost=None) for n, o in a.outcome.outputs.items() if o.value == o.value} == {
            n: replace(o, cost=None) for n, o in c.outcome.outputs.items() if o.value == o.value
        }
        assert (a.started, a.finished, a.duration) == (b.started, b.finished, b.duration)
    assert [t.status for t in after] == ["done", "pending", "done", "pending"]
    assert after[0].outcome["loss"].cost == 60.0
    assert after[0].outcome['"quoted'].value == -math.inf
    rows = read_journal(journal)[1]
    assert {e.worker for e in rows[0].evaluations if e.output == "loss"} == {"node 7"}


def test_parts_outlive_a_killed_process(space: mc.Space, journal: Path) -> None:
    """What was told counts; the rest of the attempt is lost, and another one is made."""
    study = mc.Study(space, tiny.Sampler(space), storage=journal)
    first, second = study.ask(), study.ask()
    study.tell(first, {"latency_ms": 3.2}, partial=True)
    study.tell(second, {"loss": 0.5}, partial=True)  # the mean of the folds so far
    study._storage._begun = False  # type: ignore[attr-defined]  # so that nothing is returned
    study.close()
    with mc.Study(space, tiny.Sampler(space), storage=journal) as again:
        assert [(t.values, t.loss, t.lost) for t in again.trials] == [({"latency_ms": 3.2}, None, 1), ({}, None, 1)]
        trial = again.tell(again.ask(), {"loss": 1.0})
        assert (trial.number, trial.status, trial.loss, trial.values) == (0, "done", 1.0, {"latency_ms": 3.2})
    evaluations = read_journal(journal)[1][0].evaluations
    assert sorted((e.output, e.attempt, e.status) for e in evaluations) == [
        ("latency_ms", 1, "present"),
        ("loss", 1, "lost"),
        ("loss", 2, "present"),
    ]


def test_the_recommendation_is_noted_for_those_who_look(space: mc.Space, journal: Path) -> None:
    from mipcash.cli.archive import open_archive

    class Last(tiny.Sampler):
        def recommend(self, history: Any, limits: Any = ()) -> Any:
            return history[-1] if len(history) > 2 else None

    for budget, expected in ((2, None), (4, 3)):
        result = mc.minimize(tiny.loss, space, budget, optimizer=Last(space), storage=journal, progress=False)
        seen = open_archive(journal).result
        assert (seen.best and seen.best.number) == (result.best and result.best.number) == expected


# -- several writers ----------------------------------------------------------------------------------------------


class Server:
    """What several writers share, as a database would: rows, who was seen last, and a log of changes."""

    def __init__(self) -> None:
        self.record: StudyRecord | None = None
        self.rows: list[TrialRow] = []
        self.log: list[int] = []

    def put(self, row: TrialRow) -> None:
        self.rows[row.number : row.number + 1] = [row]
        self.log.append(row.number)

    def vanish(self, worker: str) -> None:
        """No heartbeat of a worker was heard for long."""
        for row in self.rows:
            if any(e.worker == worker for e in row.running):
                self.put(ended(row, LOST, "no sign of life", 0.0)[0])


class Client:
    """One writer of a :class:`Server`."""

    path = None

    def __init__(self, server: Server, worker: str) -> None:
        self.server, self.worker, self.read = server, worker, 0

    @property
    def record(self) -> StudyRecord:
        assert self.server.record is not None
        return self.server.record

    def open(self, record: StudyRecord) -> None:
        if self.server.record is None:
            self.server.record = record
        compare("the server", self.record, record)

    def rows(self) -> list[TrialRow]:
        self.read = len(self.server.log)
        return list(self.server.rows)

    def begin(self) -> None:
        pass

    def news(self) -> Sequence[TrialRow]:
        numbers = sorted(set(self.server.log[self.read :]))
        self.read = len(self.server.log)
        return [self.server.rows[k] for k in numbers]

    def insert(self, *rows: TrialRow) -> None:
        if rows[0].number < len(self.server.rows):
            raise TakenError(f"trial {rows[0].number} is another's")
        for row in rows:
            self.server.put(self._signed(row))

    def start(self, evaluations: Sequence[EvaluationRow]) -> None:
        row = self.server.rows[evaluations[0].trial]
        if not row.waits:
            raise TakenError(f"trial {row.number} is being evaluated")
        self.server.put(self._signed(replace(row, evaluations=(*row.evaluations, *evaluations))))

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> None:
        self.server.put(row)

    def note(self, record: StudyRecord) -> None:
        self.server.record = record

    def close(self) -> None:
        pass

    def _signed(self, row: TrialRow) -> TrialRow:
        mine = [replace(e, worker=self.worker) if e.status == RUNNING else e for e in row.evaluations]
        return replace(row, evaluations=tuple(mine))


def test_two_writers_share_a_study_and_one_that_vanishes_gives_its_trial_back() -> None:
    server = Server()
    studies = []
    for name in ("a", "b"):
        space = tiny.tiny_space()
        studies.append(mc.Study(space, tiny.Counter(space), seed=7, storage=Client(server, name)))
    a, b = studies
    first, second = a.ask(), b.ask()
    assert (first.number, second.number) == (0, 1)
    a.tell(first, 1.0)
    third = b.ask()
    seen = b.optimizer.histories[-1]  # type: ignore[attr-defined]
    assert [o.status for o in seen] == ["done", "pending"]
    server.vanish("b")
    again = a.ask()
    assert (again.number, again.config, again.lost) == (1, second.config, 1)
    assert a.tell(again, 2.0).done
    assert a.tell(a.ask(), 3.0).number == third.number
    assert [t.loss for t in a.trials] == [1.0, 2.0, 3.0]
    b.ask()
    assert [t.loss for t in b.trials] == [1.0, 2.0, 3.0, None]
    assert a.record.id == b.record.id


def test_a_writer_that_was_too_late_looks_again() -> None:
    server = Server()
    space = tiny.tiny_space()
    slow: list[mc.Study] = []

    class Overtaken(tiny.Counter):
        """While it proposes, another writer is faster."""

        def propose(self, request: Request) -> Proposal:
            if len(request.history) == 0:
                other = tiny.tiny_space()
                slow.append(mc.Study(other, tiny.Counter(other), seed=7, storage=Client(server, "fast")))
                slow[0].tell(slow[0].ask(), 1.0)
            return super().propose(request)

    study = mc.Study(space, Overtaken(space), seed=7, storage=Client(server, "slow"))
    assert study.ask().number == 1
    assert [t.loss for t in study.trials] == [1.0, None]


def test_what_one_writer_knows_and_wants_is_there_for_all() -> None:
    server, spaces = Server(), (tiny.tiny_space(), tiny.tiny_space())
    a, b = (mc.Study(s, tiny.Counter(s), seed=7, storage=Client(server, n)) for s, n in zip(spaces, "ab", strict=True))
    known = [(tiny.draw(spaces[0], np.random.default_rng(k)), float(k)) for k in range(3)]
    a.add_missing(known)
    b.add_missing(known)  # it says the same
    b.add_missing([*known, known[0]])  # and that one was measured twice
    assert [(t.loss, t.origin) for t in a.result.history] == [(0.0, "known"), (1.0, "known"), (2.0, "known")]
    wanted = tiny.draw(spaces[0], np.random.default_rng(9))
    assert b.enqueue(wanted).number == 4  # a has not looked yet, and still finds it
    assert a.enqueue(wanted).number == 4
    assert (a.ask().config, b.ask().number, a.ask().number) == (wanted, 5, 6)
    assert [t.number for t in a.trials] == list(range(7))
    assert a.n_told == b.n_told == 0


def test_an_addition_that_was_too_late_is_made_again(space: mc.Space) -> None:
    server = Server()
    known = [(tiny.draw(space, np.random.default_rng(k)), float(k)) for k in range(3)]
    other = mc.Study(tiny.tiny_space(), tiny.Counter(space), seed=7, storage=Client(server, "fast"))

    class Slow(Client):
        def insert(self, *rows: TrialRow) -> None:
            if not self.server.rows:
                other.add_missing(known[:2])
            super().insert(*rows)

    study = mc.Study(space, tiny.Counter(space), seed=7, storage=Slow(server, "slow"))
    study.add_missing(known)
    assert [t.loss for t in study.trials] == [0.0, 1.0, 2.0]


def test_storages_are_what_the_protocol_says(journal: Path, space: mc.Space) -> None:
    file = SQLiteStorage(journal)
    for storage in (MemoryStorage(), file, Client(Server(), "a")):
        with mc.Study(space, tiny.Sampler(space), storage=storage) as study:
            assert isinstance(storage, Storage)
            study.tell(study.ask(), 1.0)
            assert study.result.value == 1.0
    assert file.path == journal


@pytest.mark.parametrize("storage", [None, ":memory:"])
def test_memory_leaves_no_file(space: mc.Space, storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with mc.Study(space, tiny.Sampler(space), storage=storage) as study:
        study.tell(study.ask(), 1.0)
        assert study.storage is None
    assert list(tmp_path.iterdir()) == []


def test_memory_that_was_closed_goes_on_like_a_file(space: mc.Space) -> None:
    memory = MemoryStorage()
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        study.tell(study.ask(), 1.0)
        asked = study.ask()
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        again = study.ask()
        assert (again.number, again.config, again.attempt, again.lost) == (1, asked.config, 2, 0)
    with pytest.raises(StorageError, match="this memory belongs to another study: seed was 3 and is 4 now"):
        mc.Study(space, tiny.Sampler(space), seed=4, storage=memory)
