"""Where a study is kept, by its address.

``run.db``
    a file, of one writer.
``sqlite:///run.db``
    the same file, which several processes of one machine may write to (``sqlite:////data/run.db``: an absolute path).
``postgresql://user@host:5432/database``
    a database, which several machines may write to. It holds several studies: ``?study=NAME``, else the space's name.

``heartbeat_seconds=60`` after the ``?`` says after how much silence a worker counts as gone. What else stands there goes to the
database's own library: ``sslmode=require``, ``connect_timeout=5``. A password is better left to ``PGPASSWORD`` or ``~/.pgpass``;
one that stands in the address is in no message and in no journal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mipcash.errors import StorageError
from mipcash.study.storage.shared.storage import HEARTBEAT
from mipcash.study.text import one_line, shown

SQLITE, POSTGRESQL = "sqlite", "postgresql"
KNOWN = f"{SQLITE}:///run.db, {POSTGRESQL}://user@host/database"
SCHEMES = {SQLITE: SQLITE, POSTGRESQL: POSTGRESQL, "postgres": POSTGRESQL, "postgresql+psycopg": POSTGRESQL}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_address(storage: object) -> bool:
    """Whether a storage is given by an address, and not by the path of a file; one that lost a ``/`` as a path is one too."""
    return _SCHEME.match(str(storage)) is not None


@dataclass(frozen=True)
class Address:
    """An address, read.

    Attributes:
        kind: ``sqlite`` or ``postgresql``.
        path: of the file, where it is one.
        user, password, host, port, database: of a server; None: its library's defaults.
        study: name of the study there; empty: the space's.
        heartbeat_seconds: of silence after which a worker counts as gone.
        query: what goes to the database's library.
    """

    kind: str
    path: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    database: str | None = None
    study: str = ""
    heartbeat_seconds: float = HEARTBEAT
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address.

        Raises:
            StorageError: it is none, or of a kind that there is not.
        """
        scheme, _, rest = text.partition(":")
        rest = f"//{rest.lstrip('/')}" if not rest.startswith("//") else rest
        kind = SCHEMES.get(scheme.lower())
        if kind is None:
            raise StorageError(
                f"there is no storage of the kind {one_line(scheme, 60)!r}; give the path of a file, or an address such as {KNOWN}"
            )
        try:
            parts = urlsplit(f"{kind}:{rest}")
            query, port = dict(parse_qsl(parts.query, keep_blank_values=True)), parts.port
        except ValueError:
            raise StorageError(
                f"the storage {_without_password(text)} is no address; give one such as {KNOWN}"
            ) from None
        study, seconds = query.pop("study", ""), _seconds(query.pop("heartbeat_seconds", None))
        if kind == SQLITE:
            # parts.path of sqlite:///run.db is /run.db, and of sqlite:////data/run.db //data/run.db
            path = unquote(parts.path[1:])
            if parts.netloc or not path:
                raise StorageError(
                    f"the storage {one_line(text)} names no file; give {SQLITE}:///run.db, with three slashes"
                )
            if study or query:
                raise StorageError(
                    f"the storage {one_line(text)}: a file holds one study, and is told heartbeat_seconds alone; leave out "
                    f"{', '.join(['study'] * bool(study) + [*query])}, or give each study a file of its own"
                )
            return cls(kind, path=path, heartbeat_seconds=seconds)
        if "@" in parts.path:
            raise StorageError(
                f"the storage {_without_password(text)} has an @ behind its first /: write a / of a password as %2F, a ? as %3F "
                "and an @ as %40, or leave the password to PGPASSWORD or ~/.pgpass"
            )
        if not parts.path.strip("/"):
            raise StorageError(
                f"the storage {_without_password(text)} names no database; give {POSTGRESQL}://user@host/database (createdb "
                "makes one)"
            )
        return cls(
            kind,
            user=_unquoted(parts.username),
            password=_unquoted(parts.password),
            host=_unquoted(parts.hostname),
            port=port,
            database=_unquoted(parts.path.strip("/")),
            study=study,
            heartbeat_seconds=seconds,
            query=query,
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold."""
        hidden = [self.password, *(value for name, value in self.query.items() if is_secret(name))]
        return tuple(text for text in hidden if text)

    @property
    def whole(self) -> str:
        """With the password, to open it by; not to be shown."""
        return self._text(secret=True)

    def __str__(self) -> str:
        """Without the password."""
        return self._text(secret=False)

    def _text(self, secret: bool) -> str:
        told = {"study": self.study} if self.study else {}
        told |= {name: value for name, value in self.query.items() if secret or not is_secret(name)}
        if self.heartbeat_seconds != HEARTBEAT:
            told["heartbeat_seconds"] = f"{self.heartbeat_seconds:g}"
        query = f"?{urlencode(told)}" if told else ""
        if self.kind == SQLITE:
            return f"{SQLITE}:///{quote(self.path)}{query}"
        host = f"[{self.host}]" if self.host and ":" in self.host else quote(self.host or "", safe="")
        password = f":{quote(self.password, safe='')}" if secret and self.password else ""
        at = f"{quote(self.user or '', safe='')}{password}@" if self.user or password else ""
        port = "" if self.port is None else f":{self.port}"
        return f"{POSTGRESQL}://{at}{host}{port}/{quote(self.database or '', safe='')}{query}"


def _unquoted(text: str | None) -> str | None:
    return unquote(text) if text else None


def _seconds(text: str | None) -> float:
    if text is None:
        return HEARTBEAT
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise StorageError(f"heartbeat_seconds in the storage's address must be a number above 0, got {shown(text)}")
    return seconds


def _without_password(text: str) -> str:
    """An address that cannot be read, without what may be a password in it: it may hold any sign, unquoted."""
    hidden = re.sub(r"^([^:]*:/*).*@", r"\1...@", text, flags=re.S)
    return one_line(hidden.partition("?")[0], 200)


def is_secret(name: str) -> bool:
    """Whether an option of an address is not to be shown: ``password``, ``sslpassword``."""
    return "password" in name.lower()
