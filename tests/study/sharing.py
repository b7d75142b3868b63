"""Storages that several writers share: a fake storage in memory, a SQLite file and a PostgreSQL database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mipcash.study.storage.address import Address
from mipcash.study.storage.attempts import ended
from mipcash.study.storage.compare import compare
from mipcash.study.storage.protocol import LOST, RUNNING, EvaluationRow, Storage, StudyRecord, TakenError, TrialRow
from mipcash.study.storage.registry import shared_storage
from mipcash.study.storage.sql import SQLStorage


class Server:
    """In-memory database that several writers share: the rows of the trials and a log of changes."""

    def __init__(self) -> None:
        self.record: StudyRecord | None = None
        self.rows: list[TrialRow] = []
        self.log: list[int] = []
        self.lock = threading.RLock()

    def put(self, row: TrialRow) -> None:
        self.rows[row.number : row.number + 1] = [row]
        self.log.append(row.number)

    def vanish(self, worker: str) -> None:
        """Record the running evaluations of a worker as lost, as if its heartbeats had stopped long ago."""
        for row in list(self.rows):
            if any(e.worker == worker for e in row.running):
                self.put(ended(row, LOST, "no sign of life", 0.0)[0])


class Client:
    """One writer of a :class:`Server`."""

    path = None
    meanwhile: Callable[[], object] | None = None

    def __init__(self, server: Server, worker: str) -> None:
        self.server, self.worker, self.read = server, worker, 0

    @property
    def record(self) -> StudyRecord:
        assert self.server.record is not None
        return self.server.record

    def open(self, record: StudyRecord) -> None:
        if self.server.record is None:
            self.server.record = record
        compare("the server", self.record, record)

    def rows(self) -> list[TrialRow]:
        with self.server.lock:
            self.read = len(self.server.log)
            return list(self.server.rows)

    def begin(self) -> None:
        pass

    def news(self) -> Sequence[TrialRow]:
        with self.server.lock:
            numbers = sorted(set(self.server.log[self.read :]))
            self.read = len(self.server.log)
            return [self.server.rows[k] for k in numbers]

    def insert(self, *rows: TrialRow) -> None:
        with self._change() as change:
            for row in rows:
                change(self._signed(row))

    def write(self, row: TrialRow, changed: Sequence[EvaluationRow], starts: bool = False) -> None:
        with self._change() as change:
            change(self._signed(row))

    @contextmanager
    def _change(self) -> Iterator[Callable[[TrialRow], None]]:
        """Change rows, if this writer has read all earlier changes. It does not read its own changes again."""
        with self.server.lock:
            if self.read != len(self.server.log):
                raise TakenError("another writer was first")
            yield self.server.put
            self.read = len(self.server.log)

    def note(self, record: StudyRecord) -> None:
        self.server.record = record

    def close(self) -> None:
        pass

    def _signed(self, row: TrialRow) -> TrialRow:
        mine = [replace(e, worker=self.worker) if e.status == RUNNING else e for e in row.evaluations]
        return replace(row, evaluations=tuple(mine))


@dataclass(frozen=True)
class Place:
    """Storage in which several writers keep one study.

    Attributes:
        writer: makes a writer with a given name.
        vanish: makes a writer look lost, as if its heartbeats had stopped long ago.
        address: address by which other writers join; None if there is none.
    """

    writer: Callable[[str], Storage]
    vanish: Callable[[Any], None]
    address: str | None = None


def in_memory() -> Place:
    server = Server()
    return Place(lambda name: Client(server, name), lambda client: server.vanish(client.worker))


def at(address: str) -> Place:
    def vanish(storage: SQLStorage) -> None:
        storage._end.set()
        assert storage._heart is not None
        storage._heart.join()
        storage._seconds = -1.0
        storage._beat()

    return Place(lambda _: shared_storage(Address.of(address)), vanish, address)


def in_file(path: Path) -> Place:
    return at(f"sqlite:///{path}")
