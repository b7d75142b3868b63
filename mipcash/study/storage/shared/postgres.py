"""A PostgreSQL database that holds studies, through SQLAlchemy and psycopg."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mipcash import __version__
from mipcash.errors import StorageError
from mipcash.study.records.fingerprint import fingerprint
from mipcash.study.storage.address import Address
from mipcash.study.storage.base import FORMAT, RUNNING, EvaluationRow, StudyRecord, TrialRow
from mipcash.study.storage.checks import DamageError, study_record, trial_row
from mipcash.study.storage.compare import compare
from mipcash.study.storage.sqlite.schema import EVALUATION, STUDY, TRIAL, coded_name, decoded_name
from mipcash.study.storage.sqlite.storage import storable_budget
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
    """See :class:`mipcash.study.storage.shared.tables.Tables`.

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
        """See :meth:`mipcash.study.storage.shared.tables.Tables.open`."""
        name = self._address.study or storable(record.space)
        with self._explained(), self._engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
            if not sa.inspect(connection).has_table(db.CHANGE.name):  # the last of them
                db.METADATA.create_all(connection)
            stored = self._find(connection, name)
            if stored is None:
                columns = _coded({**asdict(record), "created": _now(connection)})
                connection.execute(sa.insert(db.STUDY).values(name=name, **columns))
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
        """See :meth:`mipcash.study.storage.shared.tables.Tables.record`."""
        row = (
            self._run(sa.select(*(db.STUDY.c[n] for n in STUDY)).where(db.STUDY.c.id == self._study)).mappings().first()
        )
        if row is None:
            raise StorageError(f"the study {self.title} was deleted while it was open; start a new one")
        if row["schema"] != FORMAT:
            raise StorageError(
                f"{self.title} has journal format {row['schema']} and this mipcash ({__version__}) works with format {FORMAT}; use "
                "the version that wrote it, or give another name, ?study=NAME"
            )
        record = study_record(row)
        if fingerprint(record.listing) != record.fingerprint:
            raise DamageError("what it lists of its space does not agree with its fingerprint")
        return record

    def note(self, changes: Mapping[str, Any]) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.note`."""
        self._run(sa.update(db.STUDY).where(db.STUDY.c.id == self._study).values(**_coded(changes)))

    # -- trials -------------------------------------------------------------------------------------------------------

    def rows(self, numbers: Collection[int] | None = None) -> list[TrialRow]:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.rows`."""
        some = None if numbers is None else sorted(numbers)
        trials = sa.select(*(db.TRIAL.c[n] for n in TRIAL)).where(db.TRIAL.c.study == self._study)
        told = sa.select(*(db.EVALUATION.c[n] for n in EVALUATION)).where(db.EVALUATION.c.study == self._study)
        if some is not None:
            trials = trials.where(db.TRIAL.c.number == sa.any_(sa.literal(some, pg.ARRAY(sa.Integer))))
            told = told.where(db.EVALUATION.c.trial == sa.any_(sa.literal(some, pg.ARRAY(sa.Integer))))
        evaluations: dict[int, list[dict[str, Any]]] = {}
        for row in self._run(
            told.order_by(db.EVALUATION.c.trial, db.EVALUATION.c.attempt, db.EVALUATION.c.place)
        ).mappings():
            evaluations.setdefault(row["trial"], []).append({**row, "output": decoded_name(row["output"])})
        found = self._run(trials.order_by(db.TRIAL.c.number)).mappings().all()
        expected = range(len(found)) if some is None else some
        return [trial_row(dict(row), evaluations.get(k, []), k) for row, k in zip(found, expected, strict=False)]

    def insert(self, row: TrialRow) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.insert`."""
        self._run(sa.insert(db.TRIAL).values(study=self._study, **{n: getattr(row, n) for n in TRIAL}))
        self._put(row.evaluations)

    def update(self, row: TrialRow, evaluations: Sequence[EvaluationRow]) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.update`."""
        this = (db.TRIAL.c.study == self._study) & (db.TRIAL.c.number == row.number)
        became = {"status": row.status, "finished": row.finished, "duration": row.duration}
        self._run(sa.update(db.TRIAL).where(this).values(**became))
        self._put(evaluations)

    def _put(self, evaluations: Sequence[EvaluationRow]) -> None:
        if not evaluations:
            return
        rows = [{**vars(e), "output": coded_name(e.output), "study": self._study} for e in evaluations]
        insert = pg.insert(db.EVALUATION)
        new = {n: insert.excluded[n] for n in EVALUATION if n not in ("trial", "attempt", "output")}
        self._run(insert.on_conflict_do_update(index_elements=["study", "trial", "attempt", "output"], set_=new), rows)

    # -- writers ------------------------------------------------------------------------------------------------------

    def transaction(self, write: bool = True) -> AbstractContextManager[None]:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.transaction`."""
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
        """See :meth:`mipcash.study.storage.shared.tables.Tables.now`."""
        return _now(self._connection)

    def revision(self) -> int:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.revision`."""
        latest = sa.select(sa.func.coalesce(sa.func.max(db.CHANGE.c.revision), 0)).where(
            db.CHANGE.c.study == self._study
        )
        return int(self._run(latest).scalar_one())

    def changes(self, since: int = 0) -> dict[int, int]:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.changes`."""
        mine = (db.CHANGE.c.study == self._study) & (db.CHANGE.c.revision > since)
        found = self._run(sa.select(db.CHANGE.c.trial, db.CHANGE.c.revision).where(mine).order_by(db.CHANGE.c.trial))
        return {trial: revision for trial, revision in found}

    def mark(self, number: int, revision: int) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.mark`."""
        insert = pg.insert(db.CHANGE).values(study=self._study, trial=number, revision=revision)
        self._run(insert.on_conflict_do_update(index_elements=["study", "trial"], set_={"revision": revision}))

    def running(self, worker: str) -> list[int]:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.running`."""
        e = db.EVALUATION.c
        mine = (e.study == self._study) & (e.status == RUNNING) & (e.worker == worker)
        return list(self._run(sa.select(e.trial).where(mine).distinct().order_by(e.trial)).scalars())

    def silent(self, but: str) -> dict[str, float | None]:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.silent`."""
        e, w = db.EVALUATION, db.WORKER
        known = e.outerjoin(w, (w.c.study == e.c.study) & (w.c.name == e.c.worker))
        late = (w.c.name.is_(None)) | (w.c.seen + w.c.promised < db.NOW)
        theirs = (e.c.study == self._study) & (e.c.status == RUNNING) & (e.c.worker != but)
        found = self._run(sa.select(e.c.worker, w.c.promised).select_from(known).where(theirs & late).distinct())
        return {worker: promised for worker, promised in found}

    def beat(self, worker: str, seconds: float) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.beat`."""
        insert = pg.insert(db.WORKER).values(study=self._study, name=worker, seen=db.NOW, promised=seconds)
        new = {"seen": insert.excluded.seen, "promised": insert.excluded.promised}
        with self._explained(), self._engine.begin() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["study", "name"], set_=new))

    def leave(self, worker: str) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.leave`."""
        self._run(sa.delete(db.WORKER).where((db.WORKER.c.study == self._study) & (db.WORKER.c.name == worker)))

    def close(self) -> None:
        """See :meth:`mipcash.study.storage.shared.tables.Tables.close`."""
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


def _coded(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a study as the database holds them."""
    coded = storable_budget(columns)
    for name in ("listing", "settings", "limits", "options"):
        if name in coded:
            coded[name] = json.dumps(coded[name] if name == "settings" else dict(coded[name]))
    for name in ("space", "optimizer", "solver", "model"):
        if coded.get(name) is not None:
            coded[name] = storable(coded[name])
    if "seed" in coded:
        coded["seed"] = str(coded["seed"])  # it may be larger than 64 bits
    return coded
