"""Addresses of storages.

``run.db``
    a file, of one writer.
``sqlite:///run.db``
    the same file, which several processes of one machine may write to (``sqlite:////data/run.db``: an absolute path).
``postgresql://user@host:5432/database``
    a database, which several machines may write to. It holds several studies, selected by ``?study=NAME``; default: the space's
    name.

The option ``heartbeat_seconds=60`` sets the time of silence after which a worker counts as dead. Other options are passed to the
database's own library: ``sslmode=require``, ``connect_timeout=5``. Preferably leave the password to ``PGPASSWORD`` or
``~/.pgpass``; a password in the address appears in no message and no journal. Messages quote an address as ``str(address)``, and a
text that may have been meant as an address by ``without_credentials``; both leave out user and password.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mipcash.errors import StorageError
from mipcash.text import one_line, shown

HEARTBEAT = 60.0
"""Default for the seconds of silence after which a worker counts as dead."""

SQLITE, POSTGRESQL = "sqlite", "postgresql"
KNOWN = f"{SQLITE}:///run.db, {POSTGRESQL}://user@host/database"
SCHEMES = {SQLITE: SQLITE, POSTGRESQL: POSTGRESQL, "postgres": POSTGRESQL, "postgresql+psycopg": POSTGRESQL}

SHOWN = {
    *("host", "port", "dbname", "sslmode", "sslnegotiation"),
    *("sslcompression", "sslrootcert", "sslcert", "sslkey", "sslcrl"),
    *("sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "connect_timeout"),
    *("client_encoding", "application_name", "fallback_application_name", "keepalives", "keepalives_idle"),
    *("keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "gsslib"),
    *("krbsrvname", "channel_binding", "require_auth", "target_session_attrs", "load_balance_hosts"),
    *("hostaddr", "passfile", "service", "options", "replication"),
    "requirepeer",
}
"""Options of libpq that messages show. Any other option may be a password under a misspelt name."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.I)
_KNOWN = "postgres(?:ql)?(?:\\+psycopg)?|sqlite"
_MEANT = re.compile(
    r"[a-z][a-z0-9+.-]+:/"  # scheme:/ or scheme://, since a Path keeps one slash
    r"|.*://|.*//.*@"  # an invalid scheme, or a missing colon
    rf"|(?:{_KNOWN})(?::|//|\b.*:.*@)"  # a known scheme, slashes or colon missing
    r"|(?![a-z]:[/\\])[^/@]*:[^@]*@"  # user:password@host, but not C:/folder@home
    r"|(?:.*\s)?(?:host|port|user|dbname|password|passwd|pwd)\s*=",  # a libpq connection string
    re.I | re.S,
)
_PASSWORD = re.compile(r"(?:pass(?:word|wd)?|pwd)\s*=", re.I)


def is_address(storage: object) -> bool:
    """Return True if a storage is given by an address rather than by the path of a file.

    A text that was meant as an address counts as one, for example an address without its first colon. ``Address.of`` refuses
    it, so that no file gets a name that contains a password.
    """
    return _MEANT.match(_bare(str(storage))) is not None


def without_credentials(text: object) -> str:
    """Return a text that may be an address in the form for messages, without user, password and options.

    For an address, keep the scheme, and of SQLite the path. For a path, the part before an ``@`` is left out if it contains a
    colon. Any other text is returned on one line. Percent-encoded characters are decoded first.
    """
    given = str(text)
    plain = _bare(given)
    hidden = _PASSWORD.split(plain)[0]
    at = hidden.rfind("@")
    if is_address(given):
        known = re.match(rf"(?:{_KNOWN})\b", plain, re.I)
        if known is not None and known[0].lower() == SQLITE and at < 0:
            return one_line(re.split(r"[?#&=]", hidden)[0], 200)  # the path of a file
        return f"{'' if known is None else known[0] + '://'}..."
    if ":" in hidden[: max(at, 0)] and not re.match(r"[A-Za-z]:[/\\]", plain):
        hidden = f"...{hidden[at:]}"
    return one_line(given if hidden == plain else hidden)


@dataclass(frozen=True)
class Address:
    """A parsed address.

    Attributes:
        kind: ``sqlite`` or ``postgresql``.
        path: path of the file, for ``sqlite``.
        user, password, host, port, database: those of the server; None: defaults of the database's library. Messages show neither
            user nor password, because a password without its colon would be parsed as part of the user.
        study: name of the study there; empty: the space's name.
        heartbeat_seconds: seconds of silence after which a worker counts as dead.
        query: options for the database's library.
    """

    kind: str
    path: str = ""
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    database: str | None = None
    study: str = ""
    heartbeat_seconds: float = HEARTBEAT
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Parse an address.

        Raises:
            StorageError: the text is no address, or its kind is not supported.
        """
        text = text.strip()
        scheme = _SCHEME.match(text)
        if scheme is None:
            raise StorageError(
                f"the storage {without_credentials(text)} is no address; give one such as {KNOWN}; before the path of a file of "
                "such a name write ./"
            )
        kind = SCHEMES.get(scheme[1].lower())
        if kind is None:
            raise StorageError(
                f"there is no storage of the kind {one_line(scheme[1], 60)!r}; give the path of a file, or an address such as "
                f"{KNOWN}"
            )
        try:
            parts = urlsplit(f"{kind}://{_without_slashes(text[scheme.end() :])}")
            query, port = dict(parse_qsl(parts.query, keep_blank_values=True)), parts.port
        except ValueError:
            raise StorageError(
                f"the storage {without_credentials(text)} is no address; give one such as {KNOWN}"
            ) from None
        if any(
            _PASSWORD.search(unquote(each)) for each in (parts.netloc.rpartition("@")[2], parts.path, *query.values())
        ):
            raise StorageError(
                f"the storage {without_credentials(text)} has password= in another place than behind a ? or &; write it there, or "
                "leave the password to PGPASSWORD or ~/.pgpass"
            )
        study, seconds = query.pop("study", ""), _seconds(query.pop("heartbeat_seconds", None))
        if kind == SQLITE:
            # parts.path of sqlite:///run.db is /run.db, and of sqlite:////data/run.db //data/run.db
            path = unquote(parts.path[1:])
            if parts.fragment or parts.netloc or not path:
                raise StorageError(
                    f"the storage {without_credentials(text)} names no file; give {SQLITE}:///run.db, with three slashes, and "
                    "write a # of its name as %23"
                )
            if study or query:
                raise StorageError(
                    f"the storage {without_credentials(text)}: a file holds one study, and takes the option heartbeat_seconds "
                    f"only; leave out {'study' if study else 'the other options'}, or give each study a file of its own"
                )
            return cls(kind, path=path, heartbeat_seconds=seconds)
        if "@" in parts.path + parts.query or parts.fragment or "/" in parts.path.strip("/"):
            raise StorageError(
                f"the storage {without_credentials(text)} has an @, a # or a second / behind its first /: write a / of a password "
                "as %2F, a ? as %3F, a # as %23 and an @ as %40, or leave the password to PGPASSWORD or ~/.pgpass"
            )
        if not parts.path.strip("/"):
            raise StorageError(
                f"the storage {without_credentials(text)} names no database; give {POSTGRESQL}://user@host/database (createdb "
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
        """Texts that no message may contain."""
        hidden = [self.password]
        for name, value in self.query.items():
            if name not in SHOWN:
                # an option named passwordabc is taken for password=abc with the = missing
                hidden += [value, name if re.match("pass|pwd", name, re.I) and name != "password" else None]
        return tuple(text for text in hidden if text)

    @property
    def with_password(self) -> str:
        """Address with user and password, for connecting. It must never be shown."""
        return self._text(user=True, secret=True)

    @property
    def without_password(self) -> str:
        """Address with the user but without the password, for a command that the user can enter."""
        return self._text(user=True, secret=False)

    def __str__(self) -> str:
        """Return the address as messages show it, without user and password."""
        return self._text(user=False, secret=False)

    def _text(self, user: bool, secret: bool) -> str:
        reported = {"study": self.study} if self.study else {}
        reported |= {name: value for name, value in self.query.items() if secret or name in SHOWN}
        if self.heartbeat_seconds != HEARTBEAT:
            reported["heartbeat_seconds"] = f"{self.heartbeat_seconds:g}"
        query = f"?{urlencode(reported)}" if reported else ""
        if self.kind == SQLITE:
            return f"{SQLITE}:///{quote(self.path)}{query}"
        host = f"[{self.host}]" if self.host and ":" in self.host else quote(self.host or "", safe="")
        password = f":{quote(self.password, safe='')}" if secret and self.password else ""
        name = quote(self.user or "", safe="") if user else "..." if self.user or self.password else ""
        at = f"{name}{password}@" if name or password else ""
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
        raise StorageError(
            f"heartbeat_seconds in the storage's address must be a number above 0, got {shown(without_credentials(text))}"
        )
    return seconds


def _bare(text: str) -> str:
    """Return a text decoded, without surrounding blanks and quotation marks."""
    return unquote(text).strip(" \t\r\n'\"")


def _without_slashes(text: str) -> str:
    """Return the part of an address after ``scheme:``, without the leading slashes."""
    return text[2:] if text.startswith("//") else text.lstrip("/")
