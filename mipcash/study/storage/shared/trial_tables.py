"""Where several writers keep one study: what :class:`mipcash.study.storage.shared.storage.SharedStorage` needs of a database.

Every change has a revision: 1, 2, ... of the study, in the order in which changes are committed. A trial has that of its latest
change; the study's own row (budget, how it ended) has one too, under the number ``STUDY``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mipcash.study.storage.protocol import EvaluationRow, StudyRecord, TrialRow

STUDY = -1
"""In the place of a trial's number: the study itself changed."""


class Silence(NamedTuple):
    """The silence of a worker.

    Attributes:
        promised: seconds within which it promised a sign of life; None: no such worker is known.
        witnessed: whether a worker that lives now was there when the silent one gave its last sign of life. If none was, the run
            ended as a whole, and nothing speaks against the trial.
    """

    promised: float | None
    witnessed: bool


class Tables(Protocol):
    """Rows of one study. All methods but ``open``, ``beat`` and ``close`` are called inside a transaction, by one thread.

    All raise :class:`~mipcash.errors.StorageError` with what cannot be done, why, and the cure, without a password.

    Attributes:
        title: what messages call it.
        path: the file, where it is one.
    """

    title: str
    path: Path | None

    def open(self, record: StudyRecord) -> StudyRecord:
        """Begin the study, or find the one that is there, and compare it.

        Raises:
            StorageError: it is another one, damaged, or cannot be got at.
        """
        ...

    def transaction(self, write: bool = True) -> AbstractContextManager[None]:
        """All or nothing. One that writes begins when all others of the study have ended, and sees what they wrote."""
        ...

    def now(self) -> float:
        """Seconds since the epoch, by the one clock that all writers go by."""
        ...

    def record(self) -> StudyRecord:
        """The study as it is stored."""
        ...

    def note(self, changes: Mapping[str, Any]) -> None:
        """Write some of the columns ``NOTED``."""
        ...

    def rows(self, numbers: Collection[int] | None = None) -> list[TrialRow]:
        """Trials by number, checked; None: all.

        Raises:
            DamageError: a row is not as mipcash writes it.
        """
        ...

    def insert(self, row: TrialRow) -> None:
        """Add a trial whose number is free."""
        ...

    def update(self, row: TrialRow, evaluations: Sequence[EvaluationRow]) -> None:
        """Write status, finished, duration, and evaluations that changed or are new."""
        ...

    def revision(self) -> int:
        """Of the latest change; 0: there was none."""
        ...

    def changes(self, since: int = 0) -> dict[int, int]:
        """Trials (or ``STUDY``) that changed after a revision -> revision of the latest change."""
        ...

    def mark(self, number: int, revision: int) -> None:
        """Note that a trial (or ``STUDY``) changed."""
        ...

    def running(self, worker: str) -> list[int]:
        """Numbers of trials with an attempt that a worker is at."""
        ...

    def silent(self, but: str) -> dict[str, Silence]:
        """Return the workers at an attempt that are silent for longer than they promised, but for one."""
        ...

    def beat(self, worker: str, seconds: float) -> None:
        """A sign of life, in a transaction of its own, from any thread; the next is promised within so many seconds."""
        ...

    def leave(self, worker: str) -> None:
        """Forget a worker."""
        ...

    def close(self) -> None:
        """Let go; doing it twice does no harm."""
        ...
