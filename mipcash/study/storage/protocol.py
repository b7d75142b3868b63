"""The storage protocol: a storage keeps a study as rows of text and numbers, independent of the space.

A trial row holds a proposal; an evaluation row is one attempt at one of its outputs. A storage returns rows as they were written,
and each write is atomic. It may have one writer (a file, memory) or several (a server). With several writers

* ``insert`` and ``write`` raise ``TakenError`` on a conflict with another writer, and the study looks again,
* ``news`` returns the changes of other writers since the last look,
* attempts of a dead writer, detected by missing heartbeats, become ``lost`` if another writer was present when it died, and
  ``returned`` otherwise.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mipcash.errors import StorageError
from mipcash.modelling.fidelity import Fidelity
from mipcash.optimizers.objectives import Objective, Objectives
from mipcash.optimizers.outcome import FAILED, LOSS, MISSING, PENDING, PRESENT, Outcome, Output
from mipcash.study.storage.versions import versions

FORMAT = 2
"""Number of the journal format. A journal with another number is refused."""

RUNNING = "running"
"""Status of an attempt that a worker is evaluating."""
LOST = "lost"
"""Status of an attempt whose worker died during its run."""
RETURNED = "returned"
"""Status of an attempt that ended with its run, by Ctrl-C, on closing or because the whole run was killed. It costs no retry."""

NO_FOLDS = "[]"
"""Folds of an evaluation without partial results."""

NOTHING = -1
"""Value of ``recommended`` if no trial is recommended."""


OBJECTIVES, FIDELITY = "objectives", "fidelity"
"""Keys in the settings of a study: of the objectives, with name and direction of each, absent for a loss that is minimised; and
of the fields of the fidelity, absent if the space has none."""


NOTED = ("budget", "timeout", "stopped", "recommended", "objective")
"""Columns of a study that change during its life."""


class TakenError(StorageError):
    """Raised on a conflict with another writer of the same study."""


class UnreachableError(StorageError):
    """Raised if a server cannot be reached, or a connection to it was lost."""


@dataclass(frozen=True)
class StudyRecord:
    """The row of a study.

    Attributes:
        id: random, the same for the life of a journal.
        space, fingerprint, listing: the space's name and its declarations; see ``mipcash.study.records.fingerprint``.
        declaration: the same as data (``mipcash.modelling.portable``); None for a space on a Pyomo model.
        seed, optimizer, solver, settings: what the proposals depend on besides the space and the outcomes.
        limits: outcome constraints, by output: low and high, with None for no limit; proposals depend on them too.
        model, options: model and its options, if the study was started by ``mipcash run``; None if it was started by a script.
        budget, timeout: of the latest run; None if the caller runs the loop.
        stopped: why the latest run ended; empty while it goes on.
        recommended: number of the trial that the optimizer recommended when the latest run ended; NOTHING: it recommended none;
            None: not available, e.g. because the run goes on.
        objective: name and digest of the objective of the latest run (see ``mipcash.study.records.objective``); None if they are
            not available, or the caller runs the loop.
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
    declaration: Mapping[str, Any] | None = None
    schema: int = FORMAT
    version: str = field(default_factory=versions)
    created: float = 0.0

    @cached_property
    def objectives(self) -> Objectives:
        """Objectives of the study, from its settings."""
        stored, fidelity = ((self.settings or {}).get(key) for key in (OBJECTIVES, FIDELITY))
        objectives = Objectives() if stored is None else Objectives(tuple(Objective(*pair) for pair in stored))
        return objectives if fidelity is None else replace(objectives, fidelity=Fidelity(*fidelity))


@dataclass(frozen=True)
class EvaluationRow:
    """One attempt at one output of a trial.

    Attributes:
        output: its name. If all outputs of the objective are requested, the attempt runs under the name of the loss, and rows for
            other outputs are added when they are recorded.
        attempt: 1, 2, ... of the trial.
        worker: host and process that evaluated it; empty: unknown.
        status: ``running``, ``present``, ``failed``, ``text``, ``lost`` or ``returned``.
        value: the number, nan and inf included; for a running attempt, the number recorded so far.
        message: why it failed or was lost; for a text, the text itself.
        started, finished: seconds since the epoch; ``finished`` is None while it runs.
        cost, variance: see ``mipcash.optimizers.outcome.Output``.
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

    @property
    def recorded(self) -> Output | None:
        """Recorded output; None if there is none."""
        status = self.status
        if status == RUNNING:  # a part is recorded, and the attempt goes on
            status = FAILED if self.message else MISSING if self.value is None else PRESENT
        if status in (LOST, RETURNED, MISSING):
            return None
        return Output(status, self.value, self.message, self.cost, tuple(parsed(self.folds)), self.variance)


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """The row of a trial, with its evaluations. ``exact`` and ``proof`` decode through the space; ``config`` is JSON for people.

    Attributes:
        number: 0, 1, 2, ...
        status: ``pending``, ``done`` or ``failed``.
        config, exact, proof, origin, seconds, state, outputs, trace, stop: data of the proposal, as JSON except for ``origin`` and
            ``stop``.
        proposed, finished: seconds since the epoch; ``finished`` is None while pending.
        duration: seconds of the evaluation, None while pending.
    """

    number: int
    status: str
    config: str
    exact: str
    proof: str | None = None
    origin: str
    seconds: str = "{}"
    state: str
    outputs: str
    trace: str = "{}"
    stop: str = ""
    proposed: float
    finished: float | None = None
    duration: float | None = None
    evaluations: tuple[EvaluationRow, ...] = ()

    @cached_property
    def requested(self) -> tuple[str, ...]:
        """Names of the outputs that the optimizer requests; empty: all."""
        return tuple(parsed(self.outputs))

    @cached_property
    def outcome(self) -> Outcome:
        """Known outputs; for each output, the latest attempt that recorded it counts."""
        reported = ((e.output, e.recorded) for e in sorted(self.evaluations, key=lambda e: e.attempt))
        return Outcome({name: output for name, output in reported if output is not None})

    @property
    def loss(self) -> float | None:
        return self.outcome.loss

    @property
    def attempt(self) -> int:
        """Number of the latest attempt."""
        return max((e.attempt for e in self.evaluations), default=0)

    @property
    def lost(self) -> int:
        """Number of attempts whose worker died during its run."""
        return len({e.attempt for e in self.evaluations if e.status == LOST})

    @property
    def running(self) -> tuple[EvaluationRow, ...]:
        """Evaluations that a worker is running."""
        return tuple(e for e in self.evaluations if e.status == RUNNING)

    @property
    def waits(self) -> bool:
        """True if the trial has no outcome and no running attempt."""
        return self.status == PENDING and not self.running


@runtime_checkable
class Storage(Protocol):
    """Keeps one study. Methods are called by one thread at a time; all raise ``StorageError`` with file, cause and cure.

    Attributes:
        meanwhile: called by a method that waits for a server; it may call ``write``, which then returns at once. None: no call.
        patient: False: no method waits for a server.
    """

    meanwhile: Callable[[], object] | None
    patient: bool

    @property
    def path(self) -> Path | None:
        """File of the storage; None if it is no file."""

    @property
    def record(self) -> StudyRecord:
        """Row of the study as it is stored."""

    def open(self, record: StudyRecord) -> None:
        """Create the study, or open the existing one.

        Raises:
            StorageError: it is another study (see ``mipcash.study.storage.compare.compare``), damaged, or in use.
        """

    def rows(self) -> list[TrialRow]:
        """Return all trials by number. Attempts of a killed writer have the status ``returned``, which is not written yet."""

    def begin(self) -> None:
        """Start writing, after the rows were read and checked: write pending corrections and start the heartbeat."""

    def news(self) -> Sequence[TrialRow]:
        """Return trials that other writers added or changed since ``rows`` or the last call; empty with one writer."""

    def insert(self, *rows: TrialRow) -> None:
        """Add trials, all of them or none. A trial may have a started attempt, no attempt (it waits), or its outcome.

        Raises:
            TakenError: another writer has used a number.
        """

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow], starts: bool = False) -> None:
        """Update a trial: status, finished, duration, and its changed or added evaluations.

        Args:
            starts: True if the evaluations are another attempt, which starts only if nothing was changed since ``news``.

        Raises:
            TakenError: another writer changed the trial, or of an attempt that starts the study, meanwhile.
        """

    def note(self, record: StudyRecord) -> None:
        """Write the settings of a run and the reason why it ended: the columns ``NOTED``."""

    def close(self) -> None:
        """Close the storage; running attempts of this writer are returned. A second call has no effect."""


def this_worker() -> str:
    """Return the name of this worker, i.e. its host and process."""
    return f"{platform.node()}:{os.getpid()}"


def title_of(storage: Storage) -> str:
    """Return the name of a storage for messages: its file, its address without a password, or ``memory``."""
    return str(getattr(storage, "title", "memory") if storage.path is None else storage.path)


def parsed(text: str) -> Any:
    """Return decoded JSON, quickly for the empty lists and dicts that most rows have."""
    return [] if text == "[]" else {} if text == "{}" else json.loads(text)


def asked_for(outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the output names of the rows of an attempt: the requested outputs, or the loss if all outputs were requested."""
    return tuple(outputs) or (LOSS,)
