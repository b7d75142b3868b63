"""Studies in several threads: ``ask`` does not block ``tell``, and only one thread at a time runs the optimizer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny

import mipcash as mc
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.storage.sqlite import read_journal

SOON = 10.0
"""Seconds after which a waiting test fails."""


class Held(tiny.Counter):
    """Optimizer that, from the second trial on, waits for an event before it proposes."""

    def __init__(self, space: mc.Space) -> None:
        super().__init__(space)
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.inside = 0

    def propose(self, request: Request) -> Proposal:
        self.inside += 1
        assert self.inside == 1, "two threads ask at a time"
        if request.history:
            self.begun.set()
            assert self.go_on.wait(SOON)
        self.inside -= 1
        return super().propose(request)


def during(study: mc.Study, act: Callable[[], object]) -> mc.Trial:
    """Ask for a trial in another thread, call ``act`` in this thread meanwhile, and return the trial."""
    optimizer = study.optimizer
    assert isinstance(optimizer, Held)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(study.ask)
        assert optimizer.begun.wait(SOON)
        try:
            act()
            assert not asked.done()
        finally:
            optimizer.go_on.set()
        return asked.result(SOON)


def test_outcomes_may_be_told_while_another_thread_asks(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, Held(space), seed=3, storage=journal) as study:
        first = study.ask()

        def tell() -> None:
            assert study.tell(first, 1.5).done
            assert (study.n_evaluated, study.trials[0].loss, study.table.suspects, study.table.stop_request) == (
                1,
                1.5,
                False,
                "",
            )
            assert read_journal(journal)[1][0].loss == 1.5  # written to the file, not only kept in memory

        second = during(study, tell)
        assert second.number == 1
        seen = study.optimizer.histories[1]  # type: ignore[attr-defined]
        assert [o.status for o in seen] == ["pending"]  # the history at the start of ask
        study.tell(second, 2.5)
    with mc.Study(space, tiny.Counter(space), seed=3, storage=journal) as study:
        assert [t.loss for t in study.trials] == [1.5, 2.5]
        assert study.ask().origin == "step 2"  # the state of the optimizer was kept


def test_ask_may_be_called_again_after_it_failed(space: mc.Space) -> None:
    class Moody(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            if len(self.histories) == 0:
                self.histories.append(())
                raise KeyboardInterrupt
            return super().propose(request)

    study = mc.Study(space, Moody(space))
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(study.ask).result(SOON).number == 0


def test_many_threads_ask_and_tell(space: mc.Space, journal: Path) -> None:
    """Assert that each trial is proposed once, with all earlier trials in its history, and told once."""
    optimizer = Held(space)
    optimizer.go_on.set()

    def work(_: int) -> list[int]:
        numbers = []
        for _ in range(5):
            trial = study.ask()
            study.tell(trial, tiny.loss(trial.config))
            numbers.append(trial.number)
        return numbers

    with mc.Study(space, optimizer, storage=journal) as study, ThreadPoolExecutor(4) as threads:
        numbers = sorted(n for told in threads.map(work, range(4)) for n in told)
        assert numbers == list(range(20))
        assert [len(history) for history in optimizer.histories] == numbers
    rows = read_journal(journal)[1]
    assert [(row.number, row.status) for row in rows] == [(k, "done") for k in range(20)]
