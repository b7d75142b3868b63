"""Proposals that are made while all workers are busy: they save the workers' time, and no trial is lost or one too many."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_lost_workers import Deadly, Notes, attempts, pool

import mipcash as mc
from mipcash.errors import SpaceExhaustedError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import minimize
from mipcash.study.policies.policy import BEST_OF_ALL, TIMEOUT
from mipcash.study.policies.spent import Deadline
from mipcash.study.policies.workers import Pace
from mipcash.study.storage.sqlite import read_journal

LONG = 5.0
"""Seconds after which an evaluation no longer waits for what does not come."""


class Asked(tiny.Sampler):
    """Takes its time, and says when it was asked."""

    def __init__(self, space: mc.Space) -> None:
        super().__init__(space)
        self.changed = threading.Condition()

    def propose(self, request: Request) -> Proposal:
        time.sleep(0.01)
        try:
            return super().propose(request)
        finally:
            with self.changed:
                self.changed.notify_all()

    @property
    def running(self) -> list[int]:
        """How many trials ran, by ask."""
        return [sum(o.status == "pending" for o in history) for history in self.histories]


class Patient:
    """Evaluations that last until the other worker has its next trial and there is one ahead; the first two take a moment."""

    def __init__(self, optimizer: Asked, until: int, then: threading.Event | None) -> None:
        self.optimizer, self.started, self.until, self.then = optimizer, 0, until, then

    def __call__(self, config: dict[str, Any]) -> float:
        with self.optimizer.changed:
            self.started += 1
            enough = self.started + 2
            late = enough > self.until
            if 4 < enough <= self.until:
                self.optimizer.changed.wait_for(lambda: len(self.optimizer.histories) >= enough, LONG)
        if late and self.then is not None:
            self.then.wait(LONG)
        return tiny.loss(config)


def go(
    space: mc.Space,
    budget: int,
    optimizer: Asked | None = None,
    until: int = 0,
    then: threading.Event | None = None,
    **arguments: Any,
) -> mc.Result:
    """A run of two workers.

    Args:
        until: the last proposal that an evaluation waits for; 0: that of the budget.
        then: what later evaluations wait for; None: nothing.
    """
    optimizer = optimizer or Asked(space)
    objective = Patient(optimizer, until or budget, then)
    return minimize(objective, space, budget, optimizer=optimizer, **{"execution": 2, "progress": False, **arguments})


def never_tried(result: mc.Result) -> list[int]:
    """Trials that were proposed and not evaluated."""
    return [t.number for t in result.history if t.pending]


def test_it_proposes_while_all_workers_are_busy(space: mc.Space, journal: Path) -> None:
    optimizer = Asked(space)
    result = go(space, 12, optimizer, storage=journal)
    assert (result.n_done, len(result.history), result.stopped) == (12, 12, "budget")
    assert len(optimizer.running) == 12  # none too many
    assert optimizer.running.count(2) >= 6
    assert max(optimizer.running) == 2  # one ahead, not more
    rows = read_journal(journal)[1]
    assert [attempts(row) for row in rows] == [[(1, "present")]] * 12
    assert all(row.proposed <= row.evaluations[0].started for row in rows)


def test_it_does_not_where_proposals_take_no_time() -> None:
    """One that is made an outcome later knows more."""
    pace = Pace()
    assert not pace.slow  # nothing is known
    for ask, expected in ((0.04, False), (0.04, False), (9.0, False), (0.06, False), (0.06, True)):
        pace.told(mc.Trial(0, {}, "done", seconds={"ask": ask}, duration=1.0), None)
        assert pace.slow == expected, ask
    for _ in range(3):
        pace.told(mc.Trial(0, {}, "done", seconds={"ask": 0.06}, duration=2.0), None)
    assert not pace.slow


def test_with_one_worker_nothing_is_proposed_ahead(space: mc.Space) -> None:
    optimizer = Asked(space)
    with ThreadPoolExecutor(1) as executor:
        result = minimize(
            tiny.loss, space, 6, optimizer=optimizer, execution=mc.Execution(executor=executor), progress=False
        )
    assert all(o.status == "done" for history in optimizer.histories for o in history)
    alone = minimize(tiny.loss, space, 6, optimizer=Asked(space), progress=False)
    assert [(t.config, t.loss) for t in result.history] == [(t.config, t.loss) for t in alone.history]


def test_what_is_proposed_ahead_when_the_time_is_up_is_evaluated_on_resuming(
    space: mc.Space, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = Asked(space)
    monkeypatch.setattr(Deadline, "refuses", lambda deadline, _: TIMEOUT if len(optimizer.histories) >= 8 else "")
    result = go(space, mc.Budget(99, timeout=99.0), optimizer, until=8, storage=journal)
    assert result.stopped == "timeout"
    (waiting,) = never_tried(result)
    assert read_journal(journal)[1][waiting].evaluations == ()
    monkeypatch.undo()
    again = minimize(tiny.loss, space, 9, optimizer=Asked(space), storage=journal, progress=False)
    assert again.n_done == len(again.history) == 9
    trial = again.history[waiting]
    assert (trial.config, trial.attempt, trial.lost) == (result.history[waiting].config, 1, 0)


def test_a_callback_ends_the_run_before_what_was_proposed_ahead(space: mc.Space, journal: Path) -> None:
    over = threading.Event()

    def sixth(study: mc.Study, trial: mc.Trial) -> bool:
        if study.n_told == 6:
            over.set()
        return over.is_set()

    result = go(space, 12, until=8, then=over, callbacks=[sixth], storage=journal)
    assert result.stopped == "callback"
    assert result.n_done == 7  # with the one that ran meanwhile
    (waiting,) = never_tried(result)
    again = minimize(tiny.loss, space, 12, optimizer=Asked(space), storage=journal, progress=False)
    assert (again.n_done, again.history[waiting].config) == (12, result.history[waiting].config)


def test_a_wish_to_stop_ends_the_run_after_what_was_proposed_ahead(space: mc.Space) -> None:
    class Content(Asked):
        def propose(self, request: Request) -> Proposal:
            stop = "good enough" if len(request.history) == 8 else ""
            return replace(super().propose(request), stop=stop)

    result = go(space, 20, Content(space), until=9)
    assert (result.n_done, len(result.history), result.stopped) == (9, 9, "optimizer: good enough")


def test_a_space_that_is_exhausted_ahead_ends_the_run_once_all_is_told(space: mc.Space) -> None:
    class Nine(Asked):
        def propose(self, request: Request) -> Proposal:
            if len(request.history) == 9:
                raise SpaceExhaustedError("all 9 legal configurations have been proposed")
            return super().propose(request)

    result = go(space, 20, Nine(space), until=9)
    assert (result.n_done, len(result.history), result.stopped) == (9, 9, BEST_OF_ALL)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, RuntimeError])
def test_a_run_that_is_broken_off_resumes_with_what_was_proposed_ahead(
    space: mc.Space, journal: Path, interrupt: type[BaseException]
) -> None:
    def fragile(study: mc.Study, trial: mc.Trial) -> None:
        if study.n_told == 7:
            raise interrupt

    with pytest.raises(interrupt):
        go(space, 12, until=8, callbacks=[fragile], storage=journal)
    before = [row.exact for row in read_journal(journal)[1]]
    assert len(before) > 7
    result = minimize(tiny.loss, space, 12, optimizer=Asked(space), storage=journal, progress=False)
    assert (result.n_done, len(result.history)) == (12, 12)
    assert [row.exact for row in read_journal(journal)[1]][: len(before)] == before
    assert all(trial.lost == 0 for trial in result.history)


def test_trials_that_lost_a_worker_come_before_what_was_proposed_ahead(space: mc.Space, journal: Path) -> None:
    """And they are evaluated alone, so that no other is spoiled with them."""

    class Unhurried(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            time.sleep(0.01)
            return super().propose(request)

    result = minimize(
        Deadly(3),
        space,
        12,
        optimizer=Unhurried(space),
        execution=mc.Execution(executor=pool, workers=2),
        storage=journal,
        progress=Notes(),
    )
    assert (len(result.history), result.stopped) == (12, "budget")
    assert any(trial.failed for trial in result.history)
    for trial in result.history:
        assert trial.failed == (trial.config["layers"] == 3), trial


def test_prepare_by_hand(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        first = study.ask()
        assert study.queue.prepare()
        assert not study.queue.prepare()  # one waits already
        assert [t.status for t in study.trials] == ["pending", "pending"]
        assert study.n_told == 0
        assert study.tell(first, 1.0).done
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        trial = study.ask()
        assert (trial.number, trial.attempt, trial.origin) == (1, 1, "step 1")
        seen = study.optimizer.histories  # type: ignore[attr-defined]
        assert seen == []  # it was not asked
        third = study.ask()
        assert (third.number, third.origin) == (2, "step 2")
        assert [o.status for o in seen[0]] == ["done", "pending"]
