"""Journals as the command line sees them: read without the model, named by model and seed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from pathlib import Path

from mipcash.study.confirm import Confirm
from mipcash.study.policies.policy import EXHAUSTED, OPTIMIZER
from mipcash.study.records.limits import read_limits
from mipcash.study.records.trials import readable_trial
from mipcash.study.result import BY_LOSS, Result
from mipcash.study.storage.address import SQLITE, Address, is_address
from mipcash.study.storage.protocol import NOTHING, StudyRecord
from mipcash.study.storage.registry import exists, read_study

FOLDER = Path("runs")


@dataclass(frozen=True)
class Archive:
    """A journal that was read for show. Configurations are the readable ones: no model is loaded for it.

    Attributes:
        path: of its file; where it is none, the address of its database, without a password.
    """

    path: Path | str
    record: StudyRecord
    result: Result

    @property
    def told(self) -> int:
        """Evaluations: of outputs, where they are evaluated apart."""
        return self.result.n_evaluations

    def finished(self, budget: int) -> bool:
        """Whether a run with this budget has nothing left to evaluate."""
        return self.told >= budget or self.record.stopped.startswith((EXHAUSTED, OPTIMIZER))

    @property
    def confirms(self) -> Confirm | None:
        """What was asked for by ``--confirm``, as the first finalists show it, who wait together; None: there were none yet."""
        block = list(takewhile(lambda t: t.repeat, dropwhile(lambda t: not t.repeat, self.result.history)))
        finalists = sum(t.repeat == 1 for t in block)
        return Confirm(finalists, max(t.repeat for t in block)) if finalists > 1 else None

    @property
    def title(self) -> str:
        return f"{self.record.space}: {self.record.optimizer}, seed {self.record.seed}"


def place_of(text: str) -> Path | str:
    """What is typed for a journal: the path of a file, or the address of a database."""
    return text if is_address(text) else Path(text)


def address_of(storage: str, space: str, heartbeat_seconds: float | None = None) -> Address:
    """The address by which workers share what is typed, with the name of the study in it.

    Args:
        space: its name, which a study of a database has where nothing else is typed.

    Raises:
        StorageError: it is an address of a kind that there is not.
    """
    address = Address.of(storage) if is_address(storage) else Address(SQLITE, path=str(Path(storage).expanduser()))
    if heartbeat_seconds is not None:
        address = replace(address, heartbeat_seconds=heartbeat_seconds)
    return address if address.kind == SQLITE or address.study else replace(address, study=space)


def storage_of(text: str, space: str) -> Path | str:
    """What is typed for the journal of a run, as a study takes it: a path, or a whole address."""
    return address_of(text, space).whole if is_address(text) else Path(text)


def begun(storage: Path | str) -> bool:
    """Whether a study is there already.

    Raises:
        StorageError: its database cannot be reached.
    """
    return exists(Address.of(storage) if isinstance(storage, str) else Address(SQLITE, path=str(storage)))


def open_archive(path: Path | str) -> Archive:
    """Read a journal: a path, or an address.

    Raises:
        StorageError: see :func:`mipcash.study.storage.registry.read_study`.
    """
    record, rows = read_study(path)
    if isinstance(path, str):
        address = Address.of(path)
        path = Path(address.path) if address.path else address.without_password
    trials = tuple(readable_trial(row, record.goals) for row in rows)
    said = record.recommended
    best = BY_LOSS if said is None else None if said == NOTHING else said
    return Archive(path, record, Result(trials, record.space, record.stopped, best, read_limits(record.limits)))


def default_path(title: str, seed: int) -> Path:
    """Where ``mipcash run`` keeps its journal unless told otherwise."""
    return FOLDER / f"{title}-seed{seed}.db"


def picture_path(path: Path) -> Path:
    """The picture's place: next to the journal, with its name."""
    return path.with_suffix(".png")


def page_path(where: Path | str, record: StudyRecord) -> Path:
    """The page's place: next to the journal, with its name; of a database, in this folder, with the name of the study."""
    if isinstance(where, str):
        address = Address.of(where)
        if not address.path:
            name = re.sub(r"[^\w.-]+", "_", address.study or record.space).strip("._")
            return Path(f"{name or 'run'}.html")
        where = Path(address.path)
    return where.with_suffix(".html")
