"""Storage of studies in a PostgreSQL database, through psycopg."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from mipcash.errors import StorageError
from mipcash.study.storage.address import Address
from mipcash.study.storage.checks import DamageError, check_format
from mipcash.study.storage.database import Database, Rows
from mipcash.study.storage.protocol import StudyRecord, TrialRow
from mipcash.study.storage.tables import Tables
from mipcash.text import one_line, storable

try:
    import psycopg
except ImportError as missing:
    raise StorageError(
        f"a storage in PostgreSQL needs psycopg ({missing}); pip install 'mipcash[postgres]'"
    ) from missing

PREFIX = "mipcash_"
"""Prefix of the table names, because a database may hold other tables."""

MAKING = 0x6D697063
"""Advisory lock under which tables and studies are created."""

CONNECTION = {
    "application_name": "mipcash",
    "connect_timeout": "10",
    **{"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"},
}
"""Options of libpq, which the address can override: a lost connection is noticed within a minute or so."""

LOST = (
    *(sa.exc.OperationalError, sa.exc.InterfaceError, psycopg.OperationalError, psycopg.InterfaceError),
    psycopg.errors.ReadOnlySqlTransaction,
)
"""Exceptions of a server that is down, starting, full, unreachable or not promoted yet, and of a connection that was closed."""


class Server(Database):
    """PostgreSQL database; see ``mipcash.study.storage.database.Database``.

    Args:
        address: of the database, and of the study in it.
    """

    errors = (sa.exc.SQLAlchemyError, psycopg.Error)
    restore = "restore the database from a copy, or give another name, ?study=NAME"
    another = "give another name, ?study=NAME"

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address, self.title = address, str(address)
        url = sa.URL.create(
            "postgresql+psycopg",
            address.user,
            address.password,
            address.host,
            address.port,
            address.database,
            {**CONNECTION, **address.query},
        )
        self._engine = sa.create_engine(url, pool_pre_ping=True)
        self.tables = Tables(self._engine.dialect, postgresql.insert, PREFIX)

    def make(self, record: StudyRecord) -> None:
        name = self._address.study or storable(record.space)
        with self.transaction() as rows:
            if not self._has_tables(rows):
                for statement in self.tables.create:
                    rows.execute(statement)
            if name not in self._studies(rows):
                rows.add_study(record, name=name)
            self._name(name, self._studies(rows)[name])

    def find(self) -> bool:
        """Find the study that the address names, or the only one. Return False if there is none.

        Raises:
            StorageError: no name is given, and the database holds several.
        """
        with self.transaction(write=False) as rows:
            found = self._studies(rows) if self._has_tables(rows) else {}
        if not self._address.study and len(found) > 1:
            names = " or ".join(f"?study={quote(name, safe='')}" for name in found)
            raise StorageError(f"{self.title} holds {len(found)} studies; say which one: {names}")
        name = self._address.study or next(iter(found), "")
        if name in found:
            self._name(name, found[name])
        return name in found

    def read(self) -> tuple[StudyRecord, list[TrialRow]]:
        if not self.find():
            raise StorageError(f"{self.title} holds no such study; `mipcash work ADDRESS --model FILE` begins one")
        return super().read()

    def check(self, rows: Rows) -> None:
        found = rows.run("format")
        if not found:
            raise DamageError("the study was deleted")
        check_format(self.title, found[0][0], "start a new study in another database")

    def connect(self, write: bool) -> Any:
        return self._engine.raw_connection()

    def release(self, connection: Any) -> None:
        connection.close()  # back to the pool

    def begin(self, rows: Rows, write: bool) -> None:
        if not write:
            rows.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        elif self.study:  # one writer of a study at a time, so that revisions are committed in their order
            rows.execute(f"SELECT id FROM {PREFIX}study WHERE id = %(study)s FOR UPDATE")
        else:
            rows.execute(f"SELECT pg_advisory_xact_lock({MAKING})")

    def unreachable(self, error: Exception) -> bool:
        return isinstance(error, LOST)

    def explanation(self, error: Exception) -> str:
        cause = one_line(str(getattr(error, "orig", None) or error), 400)
        for secret in self._address.secrets:
            for text in (secret, quote(secret, safe=""), quote(secret)):
                cause = cause.replace(text, "...")
        if self._address.user:
            cause = cause.replace(f'"{self._address.user}"', "...")
        query = self._address.query
        host, port = (query.get(key) or getattr(self._address, key) for key in ("host", "port"))
        where = f"host {host or 'of this machine'}, port {port or 5432}"
        if self.unreachable(error):
            cure = (
                "see that the server runs and takes connections from here (pg_isready -h HOST -p PORT), that host, port, user and "
                "database of the address are right, and that the password is in PGPASSWORD or ~/.pgpass"
            )
            return f"{self.title} cannot be reached ({where}): {cause}; {cure}. All recorded outcomes are kept"
        cure = "check the rights of the user there (tables are made in the first schema of its search_path)"
        return f"{self.title} cannot be used ({where}): {cause}; {cure}"

    def close(self) -> None:
        self._engine.dispose()

    def _has_tables(self, rows: Rows) -> bool:
        return rows.execute(f"SELECT to_regclass('{PREFIX}study')")[0][0] is not None

    def _studies(self, rows: Rows) -> dict[str, str]:
        """Return a dict from the names of all studies, the oldest first, to their ids."""
        return dict(rows.execute(f"SELECT name, id FROM {PREFIX}study ORDER BY created"))

    def _name(self, name: str, study: str) -> None:
        self.title, self.study = str(replace(self._address, study=name)), {"study": study}
