"""A study that is open: the journal that it holds until it is closed, and what it prints."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from mipcash.display import config_text, counted, table
from mipcash.study.records.ledger import Ledger
from mipcash.study.standing import Standing
from mipcash.study.storage.base import Storage, StudyRecord, title_of
from mipcash.study.trial import Trial

if TYPE_CHECKING:
    from mipcash.optimizers.base import Limit, Optimizer
    from mipcash.optimizers.goals import Goals
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
