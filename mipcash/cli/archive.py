"""Journals as the command line sees them: read without the model, named by model and seed, moved aside."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from mipcash.errors import StorageError
from mipcash.study.checks import StudyRecord, TrialRow
from mipcash.study.journal import read_journal
from mipcash.study.lock import WriterLock
from mipcash.study.minimize import EXHAUSTED, OPTIMIZER
from mipcash.study.result import Result
from mipcash.study.rows import outcome_of
from mipcash.study.trial import Trial

FOLDER = Path("runs")


@dataclass(frozen=True)
class Archive:
    """A journal that was read for show. Configurations are the readable ones: no model is loaded for it."""

    path: Path
    record: StudyRecord
    result: Result

    @property
    def told(self) -> int:
        return self.result.n_done + self.result.n_failed

    def finished(self, budget: int) -> bool:
        """Whether a run with this budget has nothing left to evaluate."""
        return self.told >= budget or self.record.stopped.startswith((EXHAUSTED, OPTIMIZER))

    @property
    def title(self) -> str:
        return f"{self.record.space}: {self.record.optimizer}, seed {self.record.seed}"


def open_archive(path: Path) -> Archive:
    """Read a journal.

    Raises:
        StorageError: see :func:`mipcash.study.journal.read_journal`.
    """
    record, rows = read_journal(path)
    trials = tuple(_readable(row) for row in rows)
    return Archive(path, record, Result(trials, record.space, record.stopped))


def default_path(title: str, seed: int) -> Path:
    """Where ``mipcash run`` keeps its journal unless told otherwise."""
    return FOLDER / f"{title}-seed{seed}.db"


def move_aside(path: Path) -> Path:
    """Rename a journal to the first free ``NAME.1.db``, ``NAME.2.db`` ...; nothing is deleted.

    Raises:
        StorageError: a run is writing to it.
    """
    _settle(path)
    number = 1
    while (target := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    path.rename(target)
    return target


def picture_path(path: Path) -> Path:
    """The picture's place: next to the journal, with its name."""
    return path.with_suffix(".png")


def _settle(path: Path) -> None:
    """Make sure that nobody writes, and let SQLite finish what a killed run left: its rollback file goes by name."""
    lock = WriterLock(path)
    try:
        with contextlib.suppress(StorageError):  # what is no journal may be moved aside too
            read_journal(path)
    finally:
        lock.release()


def _readable(row: TrialRow) -> Trial:
    """A trial as it was journaled; reading the journal has checked its JSON."""
    return Trial(
        number=row.number,
        config=json.loads(row.config),
        status=row.status,
        outcome=outcome_of(row),
        origin=row.origin,
        seconds=json.loads(row.seconds),
        started=row.started,
        finished=row.finished,
        duration=row.duration,
    )
