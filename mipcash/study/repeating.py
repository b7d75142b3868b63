"""A study whose configurations may be evaluated again: repeats, which are trials after the search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from typing import TypeVar

from mipcash.optimizers.base import History
from mipcash.study.asking import Asking
from mipcash.study.opened import Opened
from mipcash.study.replication import next_repeat
from mipcash.study.storage.base import TakenError
from mipcash.study.text import shown
from mipcash.study.trial import Trial

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
