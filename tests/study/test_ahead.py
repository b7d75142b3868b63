"""Proposals that are made while all workers are busy: they save the workers' time, and no trial is lost or one too many."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.errors import SpaceExhaustedError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import minimize
from mipcash.study.policies.policy import BEST_OF_ALL
from mipcash.study.storage.sqlite import read_journal

LONG = 5.0
"""Seconds after which an evaluation no longer waits for what does not come."""


class Asked(tiny.Sampler):
    """Takes its time, says when it was asked, and knows nine configurations if it is told so."""

    def __init__(self, space: mc.Space, known: int = 99) -> None:
        super().__init__(space)
        self.changed, self.known = threading.Condition(), known

    def propose(self, request: Request) -> Proposal:
        time.sleep(0.01)
        if len(request.history) == self.known:
            raise SpaceExhaustedError("all legal configurations have been proposed")
        try:
            return super().propose(request)
        finally:
            with self.changed:
                self.changed.notify_all()


class Patient:
    """Evaluations that last until the other worker has its next trial and there is one ahead; the first two take a moment."""

    def __init__(self, optimizer: Asked, until: int, then: threading.Event | None) -> None:
        self.optimizer, self.started, self.until, self.then = optimizer, 0, until, then

    def __call__(self, config: dict[str, Any]) -> float:
        with self.optimizer.changed:
            self.started += 1
            enough = self.started + 2
            if 4 < enough <= self.until:
                self.optimizer.changed.wait_for(lambda: len(self.optimizer.histories) >= enough, LONG)
        if enough > self.until and self.then is not None:
            self.then.wait(LONG)
        return tiny.loss(config)


def go(optimizer: Asked, until: int, then: threading.Event | None = None, **arguments: Any) -> mc.Result:
    """A run of two workers whose evaluations wait until proposal ``until`` is made, and later ones for ``then``."""
    objective = Patient(optimizer, until, then)
    return minimize(objective, optimizer.space, 12, optimizer=optimizer, execution=2, progress=False, **arguments)


def test_it_proposes_while_all_workers_are_busy(space: mc.Space, journal: Path) -> None:
    optimizer = Asked(space)
    result = go(optimizer, 12, storage=journal)
    assert (result.n_done, len(result.history), result.stopped) == (12, 12, "budget")
    running = [sum(o.status == "pending" for o in history) for history in optimizer.histories]
    assert len(running) == 12  # none too many
    assert running.count(2) >= 6
    assert max(running) == 2  # one ahead, not more
    assert all(row.proposed <= row.evaluations[0].started for row in read_journal(journal)[1])
    known = go(Asked(space, 9), 9)  # a space that is exhausted ahead ends the run once all is told
    assert (known.n_done, len(known.history), known.stopped) == (9, 9, BEST_OF_ALL)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_that_is_broken_off_resumes_with_what_was_proposed_ahead(
    space: mc.Space, journal: Path, interrupted: bool
) -> None:
    over = threading.Event()

    def sixth(study: mc.Study, trial: mc.Trial) -> bool:
        if study.n_told == 6:
            over.set()
            if interrupted:
                raise KeyboardInterrupt
        return over.is_set()

    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            go(Asked(space), 8, callbacks=[sixth], storage=journal)
    else:
        result = go(Asked(space), 8, over, callbacks=[sixth], storage=journal)
        assert (result.stopped, result.n_done) == ("callback", 7)  # with the one that ran meanwhile
        assert sum(t.pending for t in result.history) == 1
    before = [row.exact for row in read_journal(journal)[1]]
    assert len(before) > 6
    again = minimize(tiny.loss, space, 12, optimizer=Asked(space), storage=journal, progress=False)
    assert (again.n_done, len(again.history)) == (12, 12)
    assert [row.exact for row in read_journal(journal)[1]][: len(before)] == before
    assert all(trial.lost == 0 for trial in again.history)
