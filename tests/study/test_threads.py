"""A study in several threads: who asks keeps nobody from telling, and the optimizer is asked by one at a time."""

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
"""Seconds after which a test fails that waits for what does not come."""


class Held(tiny.Counter):
    """From the second trial on, an ask begins, and goes on when it may."""

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
    """What is asked for in another thread, while this one acts."""
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


def test_outcomes_are_reported_while_another_thread_asks(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, Held(space), seed=3, storage=journal) as study:
        first = study.ask()

        def tell() -> None:
            assert study.tell(first, 1.5).done
            assert (study.n_evaluated, study.trials[0].loss, study.table.suspects, study.table.wish) == (
                1,
                1.5,
                False,
                "",
            )
            assert read_journal(journal)[1][0].loss == 1.5  # written, not only noted

        second = during(study, tell)
        assert second.number == 1
        seen = study.optimizer.histories[1]  # type: ignore[attr-defined]
        assert [o.status for o in seen] == ["pending"]  # as it was when the ask began
        study.tell(second, 2.5)
    with mc.Study(space, tiny.Counter(space), seed=3, storage=journal) as study:
        assert [t.loss for t in study.trials] == [1.5, 2.5]
        assert study.ask().origin == "step 2"  # the state went on


def test_an_ask_that_fails_lets_the_next_one_in(space: mc.Space) -> None:
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
    """Each trial is proposed once, with every earlier one in its history, and told once."""
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
