"""A PostgreSQL database that holds studies, through SQLAlchemy and psycopg."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mipcash.errors import StorageError
from mipcash.study.records.fingerprint import fingerprint
from mipcash.study.storage.address import Address
from mipcash.study.storage.checks import (
    DIGEST,
    DamageError,
    check_format,
    study_record,
    trial_row,
    with_digest,
    without_digest,
)
from mipcash.study.storage.compare import compare
from mipcash.study.storage.protocol import RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.shared.trial_tables import Silence
from mipcash.study.storage.sqlite.schema import EVALUATION, STUDY, TRIAL, coded_name, coded_study, decoded_name
from mipcash.study.text import one_line, storable

try:
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql as pg

    from mipcash.study.storage.shared import postgres_schema as db
except ImportError as missing:
    raise StorageError(
        f"a storage in PostgreSQL needs SQLAlchemy and psycopg ({missing}); pip install 'mipcash[postgres]'"
    ) from missing

MAKING = 0x6D697063
"""The advisory lock under which tables and studies are made."""

CONNECT = 10
"""Seconds that connecting may take, unless the address says ``connect_timeout``."""


class PostgresTables:
    """See :class:`mipcash.study.storage.shared.trial_tables.Tables`.

    Args:
        address: of the database, and of the study in it.

    Raises:
        StorageError: psycopg is missing, or the database cannot be reached.
    """

    path: Path | None = None

    def __init__(self, address: Address) -> None:
        self._address, self.title = address, str(address)
        self._study = ""
        url = sa.URL.create(
            "postgresql+psycopg",
            address.user,
            address.password,
            address.host,
            address.port,
            address.database,
            {"connect_timeout": str(CONNECT), "application_name": "mipcash", **address.query},
        )
        try:
            self._engine = sa.create_engine(url, pool_pre_ping=True)
        except ImportError as missing:
            raise StorageError(
                f"a storage in PostgreSQL needs psycopg ({missing}); pip install 'mipcash[postgres]'"
            ) from None
        self._connection: Any = None

    # -- the study ----------------------------------------------------------------------------------------------------

    def open(self, record: StudyRecord) -> StudyRecord:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.open`."""
        name = self._address.study or storable(record.space)
        with self._explained(), self._engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
            if not sa.inspect(connection).has_table(db.CHANGE.name):  # the last of them
                db.METADATA.create_all(connection)
            stored = self._find(connection, name)
            if stored is None:
                columns = coded_study({**asdict(record), "created": _now(connection)})
                connection.execute(sa.insert(db.STUDY).values(with_digest({"name": name, **columns})))
                stored = record.id
            self._connection, self._study = connection, stored
            try:
                found = self.record()
            finally:
                self._connection = None
        self.title = str(replace(self._address, study=name))
        compare(self.title, found, record, "give another name, ?study=NAME")
        return found

    def read(self) -> tuple[StudyRecord, list[TrialRow]] | None:
        """A study and its trials, for a look; None: there is none of this name.

        Raises:
            StorageError: no name is given, and the database holds several.
        """
        with (
            self._explained(),
            self._engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        ):
            if not sa.inspect(connection).has_table(db.STUDY.name):
                return None
            names = list(connection.execute(sa.select(db.STUDY.c.name).order_by(db.STUDY.c.created)).scalars())
            name = self._address.study or (names[0] if len(names) == 1 else "")
            if not name and names:
                raise StorageError(
                    f"{self.title} holds {len(names)} studies; say which one: ?study={' or ?study='.join(names)}"
                )
            if name not in names:
                return None
            self._study = self._find(connection, name) or ""
            self.title = str(replace(self._address, study=name))
            self._connection = connection
            try:
                return self.record(), self.rows()
            finally:
                self._connection = None

    def record(self) -> StudyRecord:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.record`."""
        columns = self._columns()
        record = study_record({name: columns[name] for name in STUDY})
        if fingerprint(record.listing) != record.fingerprint:
            raise DamageError("what it lists of its space does not agree with its fingerprint")
        return record

    def note(self, changes: Mapping[str, Any]) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.note`."""
        changed = with_digest({**self._columns(), **coded_study(changes)})
        self._run(sa.update(db.STUDY).where(db.STUDY.c.id == self._study).values(changed))

    def _columns(self) -> dict[str, Any]:
        """Return the row of the study, compared with its digest.

        Raises:
            StorageError: the study was deleted, or has another format.
            DamageError: the row does not match its digest.
        """
        this = db.STUDY.c.id == self._study
        found = self._run(sa.select(db.STUDY.c.schema).where(this)).scalar()
        if found is None:
            raise StorageError(f"the study {self.title} was deleted while it was open; start a new one")
        check_format(self.title, found, "start a new study in another database")
        (columns,) = self._selected(db.STUDY, sa.select(db.STUDY).where(this))
        return columns

    # -- trials -------------------------------------------------------------------------------------------------------

    def rows(self, numbers: Collection[int] | None = None) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.rows`."""
        some = None if numbers is None else sorted(numbers)
        trials = sa.select(db.TRIAL).where(db.TRIAL.c.study == self._study)
        told = sa.select(db.EVALUATION).where(db.EVALUATION.c.study == self._study)
        if some is not None:
            trials = trials.where(db.TRIAL.c.number == sa.any_(sa.literal(some, pg.ARRAY(sa.Integer))))
            told = told.where(db.EVALUATION.c.trial == sa.any_(sa.literal(some, pg.ARRAY(sa.Integer))))
        evaluations: dict[int, list[dict[str, Any]]] = {}
        told = told.order_by(db.EVALUATION.c.trial, db.EVALUATION.c.attempt, db.EVALUATION.c.place)
        for row in self._selected(db.EVALUATION, told):
            columns = {name: row[name] for name in EVALUATION}
            evaluations.setdefault(row["trial"], []).append({**columns, "output": decoded_name(row["output"])})
        found = self._selected(db.TRIAL, trials.order_by(db.TRIAL.c.number))
        expected = range(len(found)) if some is None else some
        read = ({name: row[name] for name in TRIAL} for row in found)
        return [trial_row(row, evaluations.get(k, []), k) for row, k in zip(read, expected, strict=False)]

    def _selected(self, table: sa.Table, statement: Any) -> list[dict[str, Any]]:
        """Return whole rows of a table, compared with their digests."""
        key = [column.name for column in table.primary_key]
        rows = ({n: v for n, v in row.items() if n != db.PLACE} for row in self._run(statement).mappings())
        return [without_digest(table.name, key, row) for row in rows]

    def insert(self, row: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.insert`."""
        self._run(sa.insert(db.TRIAL).values(self._trial(row)))
        self._put(row.evaluations)

    def update(self, row: TrialRow, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.update`."""
        this = (db.TRIAL.c.study == self._study) & (db.TRIAL.c.number == row.number)
        columns = self._trial(row)
        became = {name: columns[name] for name in ("status", "finished", "duration", DIGEST)}
        self._run(sa.update(db.TRIAL).where(this).values(**became))
        self._put(evaluations)

    def _trial(self, row: TrialRow) -> dict[str, Any]:
        return with_digest({"study": self._study, **{name: getattr(row, name) for name in TRIAL}})

    def _put(self, evaluations: Sequence[EvaluationRow]) -> None:
        if not evaluations:
            return
        rows = [{n: getattr(e, n) for n in EVALUATION} for e in evaluations]
        rows = [with_digest({**row, "output": coded_name(row["output"]), "study": self._study}) for row in rows]
        insert = pg.insert(db.EVALUATION)
        new = {n: insert.excluded[n] for n in (*EVALUATION, DIGEST) if n not in ("trial", "attempt", "output")}
        self._run(insert.on_conflict_do_update(index_elements=["study", "trial", "attempt", "output"], set_=new), rows)

    # -- writers ------------------------------------------------------------------------------------------------------

    def transaction(self, write: bool = True) -> AbstractContextManager[None]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.transaction`."""
        return self._transaction(write)

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[None]:
        with self._explained(), self._engine.connect() as connection:
            if not write:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                self._connection = connection
                try:
                    if write:  # one writer of a study at a time, so that revisions are committed in their order
                        self._run(sa.select(db.STUDY.c.id).where(db.STUDY.c.id == self._study).with_for_update())
                    yield
                finally:
                    self._connection = None

    def now(self) -> float:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.now`."""
        return _now(self._connection)

    def revision(self) -> int:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.revision`."""
        latest = sa.select(sa.func.coalesce(sa.func.max(db.CHANGE.c.revision), 0)).where(
            db.CHANGE.c.study == self._study
        )
        return int(self._run(latest).scalar_one())

    def changes(self, since: int = 0) -> dict[int, int]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.changes`."""
        mine = (db.CHANGE.c.study == self._study) & (db.CHANGE.c.revision > since)
        found = self._run(sa.select(db.CHANGE.c.trial, db.CHANGE.c.revision).where(mine).order_by(db.CHANGE.c.trial))
        return {trial: revision for trial, revision in found}

    def mark(self, number: int, revision: int) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.mark`."""
        insert = pg.insert(db.CHANGE).values(study=self._study, trial=number, revision=revision)
        self._run(insert.on_conflict_do_update(index_elements=["study", "trial"], set_={"revision": revision}))

    def running(self, worker: str) -> list[int]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.running`."""
        e = db.EVALUATION.c
        mine = (e.study == self._study) & (e.status == RUNNING) & (e.worker == worker)
        return list(self._run(sa.select(e.trial).where(mine).distinct().order_by(e.trial)).scalars())

    def silent(self, but: str) -> dict[str, Silence]:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.silent`."""
        e, w, other = db.EVALUATION, db.WORKER, db.WORKER.alias()
        known = e.outerjoin(w, (w.c.study == e.c.study) & (w.c.name == e.c.worker))
        late = (w.c.name.is_(None)) | (w.c.seen + w.c.promised < db.NOW)
        theirs = (e.c.study == self._study) & (e.c.status == RUNNING) & (e.c.worker != but)
        there = (other.c.study == w.c.study) & (other.c.since <= w.c.seen) & (other.c.seen + other.c.promised >= db.NOW)
        witnessed = sa.exists().where(there).correlate(w)
        silent = sa.select(e.c.worker, w.c.promised, witnessed).select_from(known).where(theirs & late).distinct()
        return {worker: Silence(promised, witnessed) for worker, promised, witnessed in self._run(silent)}

    def beat(self, worker: str, seconds: float) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.beat`."""
        insert = pg.insert(db.WORKER).values(
            study=self._study, name=worker, since=db.NOW, seen=db.NOW, promised=seconds
        )
        new = {"seen": insert.excluded.seen, "promised": insert.excluded.promised}
        with self._explained(), self._engine.begin() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["study", "name"], set_=new))

    def leave(self, worker: str) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.leave`."""
        self._run(sa.delete(db.WORKER).where((db.WORKER.c.study == self._study) & (db.WORKER.c.name == worker)))

    def close(self) -> None:
        """See :meth:`mipcash.study.storage.shared.trial_tables.Tables.close`."""
        self._engine.dispose()

    # -- talking to the server ----------------------------------------------------------------------------------------

    def _run(self, statement: Any, rows: Any = None) -> Any:
        return self._connection.execute(statement, rows)

    def _find(self, connection: Any, name: str) -> str | None:
        found = connection.execute(sa.select(db.STUDY.c.id).where(db.STUDY.c.name == name)).scalar()
        return None if found is None else str(found)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the database as ones that name it, the cause and the cure, without what may hold a password."""
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise StorageError(self._explanation(error)) from None
        except DamageError as error:
            raise StorageError(
                f"{self.title} is damaged or was edited: {error}; restore the database from a copy, or give another name, "
                "?study=NAME"
            ) from error

    def _explanation(self, error: Exception) -> str:
        cause = one_line(str(getattr(error, "orig", None) or error), 400)
        for secret in self._address.secrets:
            for text in (secret, quote(secret, safe=""), quote(secret)):
                cause = cause.replace(text, "...")
        if self._address.user:
            cause = cause.replace(f'"{self._address.user}"', "...")
        where = f"host {self._address.host or 'of this machine'}, port {self._address.port or 5432}"
        if isinstance(error, sa.exc.OperationalError):
            cure = (
                "see that the server runs and takes connections from here (pg_isready -h HOST -p PORT), that host, port, user and "
                "database of the address are right, and that the password is in PGPASSWORD or ~/.pgpass"
            )
            return f"{self.title} cannot be reached ({where}): {cause}; {cure}. Nothing that was told is lost"
        cure = "check the rights of the user there (tables are made in the first schema of its search_path)"
        return f"{self.title} cannot be used ({where}): {cause}; {cure}"


def _now(connection: Any) -> float:
    return float(connection.execute(sa.select(db.NOW)).scalar_one())
