"""The storage protocol: what keeps a study, and the rows that it keeps. Rows are text and numbers; they know no spaces.

A trial is what was proposed; an evaluation is one attempt at one of its outputs. A storage takes rows and gives them back as
they were, each write whole or not at all. It may have one writer (a file, memory) or several (a server); then

* ``insert``, ``start`` and ``write`` raise :class:`TakenError` where another writer was first, and the study looks again,
* ``news`` says what the others have done since the last look,
* the attempts of a writer that vanished are given out as ``lost``, by whatever sign of life the storage keeps, if another writer
  was there when it vanished, and as ``returned`` if none was.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.optimizers.goals import Goal, Goals
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PENDING, PRESENT, TEXT, Outcome, Output

FORMAT = 1
"""Number of the journal format. A journal with another number is refused."""

RUNNING = "running"
"""An attempt that a worker is at."""
LOST = "lost"
"""An attempt whose worker died while its run went on."""
RETURNED = "returned"
"""An attempt that ended with its run, by Ctrl-C, on closing or because all of it was killed. It costs no retry."""
ATTEMPTS = (RUNNING, PRESENT, FAILED, TEXT, LOST, RETURNED)

NO_FOLDS = "[]"
"""Of an evaluation that gave its value alone."""

NOTHING = -1
"""In the place of the recommended trial: there is none."""


GOALS = "objectives"
"""Among the settings of a study: name and direction of each objective. Nothing stands for a loss that is minimised."""


def read_goals(settings: Mapping[str, Any] | None) -> Goals:
    """What the settings of a study say of its objectives.

    Raises:
        ValueError: they are none.
    """
    stored = (settings or {}).get(GOALS)
    if stored is None:
        return Goals()
    if not isinstance(stored, list) or not stored or not all(isinstance(p, list) and len(p) == 2 for p in stored):
        raise ValueError(f"the objectives are {stored!r} and no pairs of a name and a direction")
    return Goals(tuple(Goal(str(name), direction) for name, direction in stored))


NOTED = ("budget", "timeout", "stopped", "recommended", "objective")
"""Columns of a study that change while it goes on."""


class TakenError(StorageError):
    """Another writer of the same study was first."""


@dataclass(frozen=True)
class StudyRecord:
    """The row of a study.

    Attributes:
        id: random, the same for the life of a journal.
        space, fingerprint, listing: the space's name and what it declares; see :mod:`mipcash.study.records.fingerprint`.
        seed, optimizer, solver, settings: what the proposals depend on besides the space and the outcomes.
        limits: on outputs, by name: low and high, None where there is none; proposals depend on them too.
        model, options: what ``mipcash run`` loaded; None for a study of a script.
        budget, timeout: of the latest run; None where the loop is the caller's.
        stopped: why the latest run ended; empty while it goes on.
        recommended: number of the trial that the optimizer recommended when the latest run ended; NOTHING: it recommended none;
            None: it has not ended, or not said.
        objective: name and digest of the objective of the latest run (see :mod:`mipcash.study.records.objective`); None where they
            cannot be had, and where the loop is the caller's.
        schema, version, created: format, version of mipcash, seconds since the epoch.
    """

    id: str
    space: str
    fingerprint: str
    listing: Mapping[str, str]
    seed: int
    optimizer: str
    solver: str
    settings: Mapping[str, Any] | None = None
    limits: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    model: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    budget: int | None = None
    timeout: float | None = None
    stopped: str = ""
    recommended: int | None = None
    objective: Mapping[str, str] | None = None
    schema: int = FORMAT
    version: str = __version__
    created: float = 0.0

    @cached_property
    def goals(self) -> Goals:
        """What the study optimises, which stands among its settings."""
        return read_goals(self.settings)


@dataclass(frozen=True)
class EvaluationRow:
    """One attempt at one output of a trial.

    Attributes:
        output: its name. Where all that an objective gives is asked for, the attempt runs under the name of the loss, and
            the other outputs join it when they are told.
        attempt: 1, 2, ... of the trial.
        worker: who evaluated it: host and process; empty: nobody said.
        status: ``running``, ``present``, ``failed``, ``text``, ``lost`` or ``returned``.
        value: the number, nan and inf included; of one that runs, what was told so far.
        message: why it failed or was lost; a text itself.
        started, finished: seconds since the epoch; ``finished`` is None while it runs.
        cost, variance: see :class:`mipcash.optimizers.outcome.Output`.
        folds: a list of numbers as JSON, nan and inf included.
    """

    trial: int
    output: str
    attempt: int
    worker: str
    status: str
    value: float | None
    message: str
    started: float
    finished: float | None
    cost: float | None
    folds: str = NO_FOLDS
    variance: float | None = None

    @classmethod
    def of(
        cls,
        trial: int,
        output: str,
        attempt: int,
        worker: str,
        told: Output,
        started: float,
        finished: float | None,
        running: bool = False,
    ) -> EvaluationRow:
        """What was told of an output.

        Args:
            running: whether the attempt goes on.
        """
        status, folds = RUNNING if running else told.status, json.dumps(told.folds)
        said = (status, told.value, told.message, started, finished, told.cost, folds, told.variance)
        return cls(trial, output, attempt, worker, *said)

    @property
    def told(self) -> Output | None:
        """What it says of its output; None: nothing."""
        status = self.status
        if status == RUNNING:  # a part was told, and the attempt goes on
            status = FAILED if self.message else MISSING if self.value is None else PRESENT
        if status in (LOST, RETURNED, MISSING):
            return None
        return Output(status, self.value, self.message, self.cost, tuple(json.loads(self.folds)), self.variance)


@dataclass(frozen=True)
class TrialRow:
    """The row of a trial, with its evaluations. ``exact`` and ``proof`` decode through the space; ``config`` is JSON for people.

    Attributes:
        number: 0, 1, 2, ...
        status: ``pending``, ``done`` or ``failed``.
        config, exact, proof, origin, seconds, state, outputs, trace, stop: as proposed; JSON but for ``origin`` and ``stop``.
        proposed, finished: seconds since the epoch; ``finished`` is None while pending.
        duration: seconds of the evaluation, None while pending.
    """

    number: int
    status: str
    config: str
    exact: str
    proof: str | None
    origin: str
    seconds: str
    state: str
    outputs: str
    trace: str
    stop: str
    proposed: float
    finished: float | None = None
    duration: float | None = None
    evaluations: tuple[EvaluationRow, ...] = ()

    @cached_property
    def outcome(self) -> Outcome:
        """What is known of the outputs: the latest attempt that says something counts."""
        told = ((e.output, e.told) for e in sorted(self.evaluations, key=lambda e: e.attempt))
        return Outcome({name: output for name, output in told if output is not None})

    @property
    def loss(self) -> float | None:
        return self.outcome.loss

    @property
    def attempt(self) -> int:
        """Number of the latest attempt."""
        return max((e.attempt for e in self.evaluations), default=0)

    @property
    def lost(self) -> int:
        """Number of attempts whose worker died while its run went on."""
        return len({e.attempt for e in self.evaluations if e.status == LOST})

    @property
    def running(self) -> tuple[EvaluationRow, ...]:
        """Evaluations that a worker is at."""
        return tuple(e for e in self.evaluations if e.status == RUNNING)

    @property
    def waits(self) -> bool:
        """Whether it has no outcome and nobody is at it."""
        return self.status == PENDING and not self.running


@runtime_checkable
class Storage(Protocol):
    """Keeps one study. Methods are called by one thread at a time; all raise :class:`StorageError` with file, cause and cure."""

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        ...

    @property
    def record(self) -> StudyRecord:
        """The study as it is stored."""
        ...

    def open(self, record: StudyRecord) -> None:
        """Begin the study, or go on with the one that is there.

        Raises:
            StorageError: it is another one (see :func:`mipcash.study.storage.compare.compare`), damaged, or in use.
        """
        ...

    def rows(self) -> list[TrialRow]:
        """Return all trials by number, the attempts of a killed writer as returned. Nothing is changed yet."""
        ...

    def begin(self) -> None:
        """What was read is in order and writing begins: bring what is stored up to date, begin to give signs of life."""
        ...

    def news(self) -> Sequence[TrialRow]:
        """Trials that other writers made or changed since ``rows`` or the last call; with one writer there are none."""
        ...

    def insert(self, *rows: TrialRow) -> None:
        """Add trials, all of them or none: with its first attempt before its evaluation, without one to wait, or with its outcome.

        Raises:
            TakenError: a number is another writer's.
        """
        ...

    def start(self, evaluations: Sequence[EvaluationRow]) -> None:
        """Add another attempt at a trial, before its evaluation.

        Raises:
            TakenError: another writer is at it.
        """
        ...

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> None:
        """Write what became of a trial: status, finished, duration, and the evaluations that changed or joined it.

        Raises:
            TakenError: another writer changed the trial meanwhile.
        """
        ...

    def note(self, record: StudyRecord) -> None:
        """Write what a run intends, and how it ended: the columns ``NOTED``."""
        ...

    def close(self) -> None:
        """Let go; attempts that this writer still has running are returned. Doing it twice does no harm."""
        ...


def this_worker() -> str:
    """Who evaluates here."""
    return f"{platform.node()}:{os.getpid()}"


def title_of(storage: Storage) -> str:
    """What messages call a storage: its file, or its address without a password; ``memory`` where it is neither."""
    return str(getattr(storage, "title", "memory") if storage.path is None else storage.path)


def asked_for(outputs: Sequence[str]) -> tuple[str, ...]:
    """Names under which an attempt at a trial's outputs runs."""
    return tuple(outputs) or (LOSS,)
