"""Journals as the command line uses them: read without the model, named by model and seed."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from mipcash.errors import StorageError
from mipcash.study.policies.policy import EXHAUSTED, OPTIMIZER
from mipcash.study.records.limits import read_limits
from mipcash.study.records.trials import readable_trial
from mipcash.study.result import Result
from mipcash.study.spending import Spending
from mipcash.study.storage.address import SQLITE, Address, is_address
from mipcash.study.storage.checks import uncollected
from mipcash.study.storage.protocol import StudyRecord
from mipcash.study.storage.registry import exists, read_study

FOLDER = Path("runs")
JOURNALS = (".db", ".sqlite", ".sqlite3", "")
"""Suffixes of journals, which the names of pictures and pages leave out."""


@dataclass(frozen=True)
class Archive:
    """A journal that was read for display. Configurations are in the readable form, so that no model has to be loaded.

    Attributes:
        path: path of the journal's file, or the address of its database without the password.
        record: row of the study.
        result: result of the study so far.
    """

    path: Path | str
    record: StudyRecord
    result: Result

    @property
    def n_evaluated(self) -> int:
        """Number of evaluations; for decoupled evaluations, of single outputs."""
        return self.result.n_evaluations

    def finished(self, budget: float, confirm: object = None) -> bool:
        """Return True if a run with this budget has nothing left to evaluate, repeats of finalists included.

        Args:
            confirm: given now; None: no repeats are asked for.
        """
        trials, left = self.result.history, self.n_evaluated < budget
        if self.record.objectives.fidelity is not None:
            spending = Spending(budget)
            left = spending.admits(spending.spent(trials) + spending.least(trials))
        if confirm is not None:
            return not left and any(t.repeat for t in trials)
        return not left or self.record.stopped.startswith((EXHAUSTED, OPTIMIZER))

    @property
    def ended(self) -> str:
        """Sentence that says that nothing is left to evaluate, and how to go on."""
        more = "" if self.finished(math.inf) else "; give a larger --budget to go on"
        return f"this run is finished ({self.n_evaluated} evaluations){more}\n"

    @property
    def title(self) -> str:
        return f"{self.record.space}: {self.record.optimizer}, seed {self.record.seed}"


def place_of(text: str) -> Path | str:
    """Return a journal given on the command line as a path, or as the address of a database."""
    return text if is_address(text) else Path(text)


def address_of(storage: str, space: str, heartbeat_seconds: float | None = None) -> Address:
    """Return the address by which workers share a storage, including the name of the study in a database.

    Args:
        space: name of the space, the default name of a study in a database.

    Raises:
        StorageError: the kind of address is not supported.
    """
    address = Address.of(storage) if is_address(storage) else Address(SQLITE, path=os.path.expanduser(storage))
    if heartbeat_seconds is not None:
        address = replace(address, heartbeat_seconds=heartbeat_seconds)
    return address if address.kind == SQLITE or address.study else replace(address, study=space)


def storage_of(text: str, space: str) -> Path | str:
    """Return the storage of a run as a study takes it: a path, or an address with user and password."""
    if not text.strip():
        raise StorageError("--storage is empty; give the path of a journal, or leave it out")
    return address_of(text, space).with_password if is_address(text) else Path(text)


def started(storage: Path | str) -> bool:
    """Return True if the storage already holds the study.

    Raises:
        StorageError: its database cannot be reached.
    """
    return exists(Address.of(storage) if isinstance(storage, str) else Address(SQLITE, path=str(storage)))


@uncollected()
def open_archive(path: Path | str) -> Archive:
    """Read a journal from a path or an address.

    Raises:
        StorageError: see ``mipcash.study.storage.registry.read_study``.
    """
    record, rows = read_study(path)
    if isinstance(path, str):
        address = Address.of(path)
        path = Path(address.path) if address.path else address.without_password
    trials = tuple(readable_trial(row, record.objectives) for row in rows)
    return Archive(
        path,
        record,
        Result(
            trials,
            record.space,
            record.stopped,
            record.recommended,
            read_limits(record.limits),
            directions=record.objectives,
        ),
    )


def default_path(title: str, seed: int) -> Path:
    """Return the default path of the journal of ``mipcash run``."""
    return FOLDER / f"{title}-seed{seed}.db"


def picture_path(path: Path) -> Path:
    """Return the default path of the picture: next to the journal, with its name."""
    return _beside(path, ".png")


def page_path(where: Path | str, title: str) -> Path:
    """Return the default path of the page: next to the journal, with its name; for a database, in the current folder."""
    if isinstance(where, str):
        address = Address.of(where)
        if not address.path:
            name = re.sub(r"[^\w.-]+", "_", address.study or title).strip("._")
            return Path(f"{name or 'run'}.html")
        where = Path(address.path)
    return _beside(where, ".html")


def _beside(journal: Path, suffix: str) -> Path:
    """Return the path of a file next to a journal, another one for each journal: ``run.png`` of ``run.db``, else ``NAME.png``."""
    return journal.with_suffix(suffix) if journal.suffix in JOURNALS else journal.with_name(journal.name + suffix)
