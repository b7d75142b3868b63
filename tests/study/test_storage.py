"""Storage protocol: records that memory and SQLite keep and restore."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.optimizers.outcome import Outcome
from mipcash.study.storage.attempts import ended, given_up, recorded, reopened, started
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.protocol import LOST, RETURNED, RUNNING, Storage
from mipcash.study.storage.sqlite import read_journal


class Talkative(tiny.Counter):
    """Optimizer that returns a trace, requests named outputs, and asks to stop at the fourth proposal."""

    def propose(self, request: Request) -> Proposal:
        said = {"residual": [0.5, 1 / 3], "text": "\udcff"}
        stop = "small residuals" if len(request.history) == 3 else ""
        return replace(super().propose(request), outputs=("loss", "\ud800", '"quoted'), trace=said, stop=stop)


def test_all_reported_data_are_restored(space: mc.Space, journal: Path) -> None:
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
        assert study.table.stop_request == ""  # because a trial is left to evaluate
        assert (after[3].lost, after[3].stop) == (1, "small residuals")
    for a, b, c in zip(before, after, in_memory, strict=True):
        for name in [
            "config",
            "status",
            "evaluate",
            "trace",
            "stop",
            "attempt",
            "lost",
            "started",
            "finished",
            "duration",
        ]:
            assert getattr(a, name) == getattr(b, name)
        assert repr(a.outcome.outputs) == repr(b.outcome.outputs)  # nan is not equal to itself
        assert {n: replace(o, cost=None) for n, o in a.outcome.outputs.items() if o.value == o.value} == {
            n: replace(o, cost=None) for n, o in c.outcome.outputs.items() if o.value == o.value
        }
    assert [t.status for t in after] == ["done", "pending", "done", "pending"]
    assert after[0].outcome["loss"].cost == 60.0
    assert after[0].outcome['"quoted'].value == -math.inf
    rows = read_journal(journal)[1]
    assert {e.worker for e in rows[0].evaluations if e.output == "loss"} == {"node 7"}


def test_reported_outputs_survive_a_killed_process(space: mc.Space, journal: Path) -> None:
    """Assert that reported outputs are kept, and that missing outputs are evaluated in another attempt."""
    study = mc.Study(space, tiny.Sampler(space), storage=journal)
    first, second = study.ask(), study.ask()
    study.tell(first, {"latency_ms": 3.2}, partial=True)
    study.tell(second, {"loss": 0.5}, partial=True)  # the mean of the folds so far
    study._storage._started = False  # type: ignore[attr-defined]  # so that close() does not return the attempt
    study.close()
    with mc.Study(space, tiny.Sampler(space), storage=journal) as again:
        assert [(t.values, t.loss, t.lost) for t in again.trials] == [({"latency_ms": 3.2}, None, 0), ({}, None, 0)]
        trial = again.tell(again.ask(), {"loss": 1.0})
        assert (trial.number, trial.status, trial.loss, trial.values) == (0, "done", 1.0, {"latency_ms": 3.2})
    evaluations = read_journal(journal)[1][0].evaluations
    assert sorted((e.output, e.attempt, e.status) for e in evaluations) == [
        ("latency_ms", 1, "present"),
        ("loss", 1, "returned"),
        ("loss", 2, "present"),
    ]


def test_storages_implement_the_protocol_and_memory_leaves_no_file(
    space: mc.Space, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(journal.parent)
    for storage in (None, ":memory:", MemoryStorage(), journal):
        assert list(journal.parent.iterdir()) == []
        with mc.Study(space, tiny.Sampler(space), storage=storage) as study:
            assert isinstance(study._storage, Storage)
            assert study.tell(study.ask(), 1.0).done
            assert study.storage == (journal if journal.exists() else None)


def test_a_closed_memory_storage_is_resumed_like_a_file(space: mc.Space) -> None:
    memory = MemoryStorage()
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        study.tell(study.ask(), 1.0)
        asked = study.ask()
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        again = study.ask()
        assert (again.number, again.config, again.attempt, again.lost) == (1, asked.config, 2, 0)
        study.enqueue(asked.config | {"layers": 1 + asked.config["layers"] % 3})
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        assert [study.ask().attempt, study.ask().attempt] == [3, 1]
    with mc.Study(space, tiny.Sampler(space), seed=3, storage=memory) as study:
        assert [study.ask().attempt, study.ask().attempt] == [4, 2]
    with pytest.raises(StorageError, match="this memory belongs to another study: seed was 3 and is 4 now"):
        mc.Study(space, tiny.Sampler(space), seed=4, storage=memory)


def test_attempts_of_several_workers_end_each_for_itself(space: mc.Space) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=MemoryStorage()) as study:
        study.ask()
        assert study._storage is not None
        (row,) = study._storage.rows()
    (own,) = row.evaluations
    assert ended(row, LOST, "", 1.0, "another") == (row, ())
    lost, _ = ended(row, LOST, "gone", 1.0, own.worker)
    again, _ = started(lost, "b", 2.0)
    assert [(e.attempt, e.status, e.worker) for e in again.evaluations] == [(1, LOST, own.worker), (2, RUNNING, "b")]
    assert (again.attempt, again.lost) == (2, 1)
    assert ended(again, LOST, "", 3.0, "a") == ended(again, LOST, "", 3.0, "c") == (again, ())
    late, changed = recorded(again, Outcome.of(0.5), "done", own.worker, 3.0, 1.5, 1)
    assert (late.status, late.loss, late.finished, late.duration) == ("done", 0.5, 3.0, 1.5)
    assert [(e.attempt, e.status) for e in late.evaluations] == [(1, "present"), (2, RETURNED)]
    assert {e.attempt for e in changed} == {1, 2}
    latest, changed = recorded(again, Outcome.of(0.7), "done", "b", 3.0, 1.5)
    assert latest.loss == 0.7
    assert [(e.attempt, e.status, e.finished) for e in latest.evaluations] == [(1, LOST, 1.0), (2, "present", 3.0)]
    assert len(changed) == 1
    opened, _ = reopened(latest)
    assert (opened.status, opened.loss, opened.lost, opened.finished) == ("pending", None, 0, None)
    assert [(e.status, e.finished) for e in opened.evaluations] == [(RETURNED, 1.0), (RETURNED, 3.0)]
    failed, changed = given_up(lost, "no more", 4.0, ("ms",))
    assert (failed.status, failed.loss, failed.finished, failed.duration) == ("failed", None, 4.0, 0.0)
    assert [(e.output, e.attempt, e.status, e.message) for e in changed] == [
        (name, 2, "failed", "no more") for name in ("loss", "ms")
    ]
