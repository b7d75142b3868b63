"""A study whose configurations may be evaluated again: repeats, which are trials after the search.

A study that is open: the journal that it holds until it is closed, and what it prints.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from mipcash.display import config_text, counted, table
from mipcash.optimizers.optimizer import History
from mipcash.study.asking import Asking
from mipcash.study.records.ledger import Ledger
from mipcash.study.replication import next_repeat
from mipcash.study.standing import Standing
from mipcash.study.storage.protocol import Storage, StudyRecord, TakenError, title_of
from mipcash.study.text import shown
from mipcash.study.trial import Trial

if TYPE_CHECKING:
    from mipcash.optimizers.goals import Goals
    from mipcash.optimizers.optimizer import Limit, Optimizer
    from mipcash.space.space import Space


class Opened:
    """What :class:`mipcash.Study` is beside its loop."""

    space: Space
    optimizer: Optimizer
    seed: int
    goals: Goals
    limits: tuple[Limit, ...]
    _lock: threading.RLock
    _asking: threading.RLock
    _storage: Storage
    _ledger: Ledger

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number, pending ones included."""
        raise NotImplementedError

    @property
    def storage(self) -> Path | None:
        """The journal's file; None in memory, and in a database that is no file."""
        return self._storage.path

    @property
    def record(self) -> StudyRecord:
        """The storage's row about this study."""
        return self._storage.record

    def close(self) -> None:
        """Let go of the journal. Trials without an outcome stay in it and are handed out again when it is resumed."""
        with self._asking, self._lock:
            self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a study holds its journal and cannot be copied or pickled; take study.result or study.trials, or let another "
            "process resume the journal's file (storage=)"
        )

    def __repr__(self) -> str:
        return f"<{self._summary()}>"

    def _summary(self) -> str:
        held = counted(len(self._ledger.trials), "trial")
        best = Standing.of(self._ledger.trials, self.limits).best
        found = "" if best is None else f", best {best.loss:.6g}"
        return (
            f"study of {self.space.name!r}: {self.optimizer.name}, seed {self.seed}, {held} in "
            f"{title_of(self._storage)}{found}"
        )

    def _repr_html_(self) -> str:
        rows = [(str(t.number), t._told(), config_text(t.config)) for t in reversed(self.trials)]
        return table(self._summary(), ("trial", "outcome", "configuration") if rows else (), rows)


T = TypeVar("T")


class Repeating(Opened):
    """What :class:`mipcash.Study` knows of repeats."""

    _questions: Asking
    _latest: tuple[History, int | None] = ((), None)

    def _recommended(self) -> int | None:
        """The number of the answer; asked again only where something is known since."""
        history, (before, found) = self._ledger.history, self._latest
        if not before or len(before) != len(history) or any(a is not b for a, b in zip(before, history, strict=True)):
            found = self._questions.recommended(history)
            self._latest = (history, found)
        return found

    def repeat(self, trial: Trial, number: int = 1) -> Trial:
        """Evaluate the configuration of a trial again: ``ask`` hands that out before it asks the optimizer.

        Args:
            number: of the repeat, from 1: ``trial.repeat`` of what is handed out, which an objective uses other folds or seeds for.

        Returns:
            The trial, pending; where there is this repeat of the configuration already, that.

        Raises:
            TellError: the trial belongs to another study.
            ValueError: no whole number of at least 1.
        """
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"repeats are numbered from 1, got {shown(number)}")
        return copy_of(self._agreed(lambda: self._ledger.repeat(trial, int(number))))

    def ask_repeat(self) -> Trial | None:
        """As :meth:`ask`, of repeats alone; None: none waits."""
        while True:
            with suppress(TakenError), self._lock:
                self._ledger.sync()
                waiting = (k for k in self._ledger.waiting if self._ledger.trials[k].repeat)
                number = next(waiting, None)
                return None if number is None else copy_of(self._ledger.restart(number))

    @property
    def noise(self) -> float:
        """Variance of one evaluation that shows itself in losses of single fits, or of one configuration; 0 where none does."""
        from mipcash.optimizers.noise import evident_noise  # brings surrogates along

        return evident_noise(self._ledger.history)

    def next_repeat(self) -> bool:
        """Let a repeat of the configuration that is most likely the best wait; return whether there is one."""
        chosen = self._agreed(lambda: next_repeat(self._ledger.history, self._questions.limits))
        if chosen is not None:
            number, repeat = chosen
            self.repeat(self._ledger.trials[number], repeat)
        return chosen is not None

    def finalists(self, count: int) -> list[Trial]:
        """The trials that the optimizer would recommend of the search, best first, each of another configuration."""
        with self._asking, self._lock:
            numbers = self._questions.finalists(self._ledger.history, count)
            return [copy_of(self._ledger.trials[k]) for k in numbers]

    def _agreed(self, change: Callable[[], T]) -> T:
        """What a change gives that other writers of the storage may come before: then it is made again, of what they did."""
        while True:
            with self._lock, suppress(TakenError):
                self._ledger.sync()
                return change()


def copy_of(trial: Trial) -> Trial:
    """A trial to hand out: its configuration may be changed at will."""
    return replace(trial, config=dict(trial.config))
