"""Storage of a study in memory, for the life of its process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from mipcash.study.storage.attempts import ended
from mipcash.study.storage.compare import compare
from mipcash.study.storage.protocol import RETURNED, EvaluationRow, StudyRecord, TrialRow


class MemoryStorage:
    """See ``mipcash.study.storage.protocol.Storage``. After closing, it may be given to another study of the same kind."""

    path = None
    record: StudyRecord
    meanwhile: Callable[[], object] | None = None
    patient = True

    def __init__(self) -> None:
        self._rows: list[TrialRow] = []

    def open(self, record: StudyRecord) -> None:
        if hasattr(self, "record"):
            compare("this memory", self.record, record)
        else:
            self.record = replace(record, created=time.time())

    def rows(self) -> list[TrialRow]:
        return list(self._rows)

    def begin(self) -> None:
        """Do nothing."""

    def news(self) -> Sequence[TrialRow]:
        return ()

    def insert(self, *rows: TrialRow) -> None:
        self._rows += rows

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow], starts: bool = False) -> None:
        self._rows[row.number] = row

    def note(self, record: StudyRecord) -> None:
        self.record = record

    def close(self) -> None:
        """Return the running attempts."""
        self._rows = [ended(row, RETURNED, "", time.time())[0] if row.running else row for row in self._rows]
