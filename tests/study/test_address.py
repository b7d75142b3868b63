"""Storage by address: what is understood, what is refused, and that no password is ever said."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import StorageError
from mipcash.study.storage.address import Address, is_address, without_credentials
from mipcash.study.storage.checks import DIGEST, digest_of
from mipcash.study.storage.registry import read_study

PASSWORD = "s3cr3t/@:w0rd"
ENCODED = "s3cr3t%2F%40%3Aw0rd"


def test_addresses_are_told_from_paths() -> None:
    for text in (
        "sqlite:///run.db",
        "postgresql://u@h/d",
        "postgresql+psycopg://h/d",
        "postgresql:/u@h/d",
        "mysql://h/d",
        " postgresql://u@h/d",
        "postgresql//u:p@h/d",
        "u:p@h/d",
        "host=h dbname=d",
    ):
        assert is_address(text)
    for text in ("run.db", "/data/run.db", "C:/run.db", "runs/a:b.db", ":memory:", "runs/a@b.db", "/data/a@b:c.db"):
        assert not is_address(text)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_address_is_read(scheme: str) -> None:
    address = Address.of(
        f"{scheme}://ann%40lab:{ENCODED}@db.lab:5433/studies?study=a%20b&heartbeat_seconds=9&sslmode=require"
    )
    assert (address.user, address.password, address.host, address.port) == ("ann@lab", PASSWORD, "db.lab", 5433)
    assert (address.database, address.study, address.heartbeat_seconds) == ("studies", "a b", 9.0)
    assert address.query == {"sslmode": "require"}
    assert Address.of(address.whole) == address
    for text in (str(address), repr(address)):
        assert "s3cr3t" not in text
        assert "ann" not in text
    assert str(address) == "postgresql://...@db.lab:5433/studies?study=a+b&sslmode=require&heartbeat_seconds=9"
    assert address.without_password == str(address).replace("...", "ann%40lab")
    assert Address.of("postgresql://db.lab/studies").port is None


def test_a_file_is_read_from_an_address(tmp_path: Path) -> None:
    assert Address.of("sqlite:///runs/a%20b.db").path == "runs/a b.db"
    assert Address.of(f"sqlite:///{tmp_path}/run.db?heartbeat_seconds=5").path == f"{tmp_path}/run.db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "mysql://u:p@h/d",
            r"no storage of the kind 'mysql'; give the path of a file, or an address such as sqlite:///run.db",
        ),
        ("postgresql://u@h", "names no database; give postgresql://user@host/database"),
        ("postgresql://u@h/d/e", "a second / behind its first /: write a / of a password as %2F"),
        ("postgresql://u@h/d?study=a@b", "has an @, .* and an @ as %40"),
        ("postgresql://u@h/dpassword=s3cr3t", "has password= in another place than behind a [?] or &"),
        (
            "host=h dbname=d password=s3cr3t",
            "is no address; give one such as .*before the path of a file of such a name write ./",
        ),
        (f"postgresql://u:{ENCODED}@h:port/d", "is no address; give one such as"),
        ("sqlite://run.db", "names no file; give sqlite:///run.db, with three slashes"),
        ("sqlite:///run.db?study=a", "a file holds one study, .*leave out study, or give each study a file of its own"),
        ("sqlite:///run.db?password=s3cr3t", "sqlite:///run.db: .*leave out the other options"),
        (
            "sqlite:///run.db?heartbeat_seconds=soon",
            "heartbeat_seconds in the storage's address must be a number above 0",
        ),
        ("postgresql://h/d?heartbeat_seconds=0", "heartbeat_seconds in the storage's address must be a number above 0"),
    ],
)
def test_what_is_no_address_is_told(space: mc.Space, text: str, said: str) -> None:
    with pytest.raises(StorageError, match=said) as error:
        mc.Study(space, storage=text)
    assert "s3cr3t" not in str(error.value)


def test_a_server_that_is_not_there_is_named_and_its_password_is_not(
    space: mc.Space, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("psycopg")
    address = f"postgresql://ann:{ENCODED}@127.0.0.1:1/studies?connect_timeout=2"
    with pytest.raises(StorageError) as error:
        mc.minimize(tiny.loss, space, 3, storage=address, progress=False)
    said = str(error.value)
    assert "host 127.0.0.1, port 1" in said
    assert "see that the server runs and takes connections from here" in said
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__
    with pytest.raises(StorageError, match=r"host 127.0.0.1, port 1"):
        read_study(address)
    assert "s3cr3t" not in said + "".join(capfd.readouterr())


def test_a_database_that_does_not_exist_is_told(space: mc.Space, postgres_server: str) -> None:
    with pytest.raises(StorageError, match='database "none" does not exist'):
        mc.Study(space, storage=postgres_server.replace("/postgres", "/none"))


def test_a_password_is_in_no_message_and_no_row(space: mc.Space, postgres_server: str) -> None:
    import sqlalchemy

    address = postgres_server.replace("tester@", f"tester:{ENCODED}@") + "?study=quiet"
    with mc.Study(space, tiny.Sampler(space), storage=address) as study:
        study.tell(study.ask(), 1.0)
        assert "s3cr3t" not in repr(study) + repr(study.record) + repr(study.result)
        assert "study=quiet" in repr(study)
    engine = sqlalchemy.create_engine(postgres_server.replace("postgresql", "postgresql+psycopg"))
    with engine.connect() as connection:
        for table in ("study", "trial", "evaluation", "worker"):
            assert "s3cr3t" not in str(connection.execute(sqlalchemy.text(f"SELECT * FROM mipcash_{table}")).all())
    engine.dispose()
    with pytest.raises(StorageError, match=r"belongs to another study: .*give another name, [?]study=NAME") as error:
        mc.Study(space, tiny.Sampler(space), seed=3, storage=address)
    assert "s3cr3t" not in str(error.value)


def test_a_database_holds_several_studies(postgres_server: str) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres_server.replace("postgresql", "postgresql+psycopg"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sqlalchemy.text("CREATE DATABASE several"))
    engine.dispose()
    address = postgres_server.replace("/postgres", "/several")
    with pytest.raises(StorageError, match="holds no such study"):
        read_study(address)
    for name, losses in (("", [1.0]), ("more", [2.0, 3.0])):
        space = tiny.tiny_space(name="few")
        with mc.Study(space, tiny.Sampler(space), storage=address + (f"?study={name}" if name else "")) as study:
            for loss in losses:
                study.tell(study.ask(), loss)
    with pytest.raises(StorageError, match=r"holds 2 studies; say which one: [?]study=few or [?]study=more"):
        read_study(address)
    for name, losses in (("few", [1.0]), ("more", [2.0, 3.0])):  # the space's name is the default
        assert [row.loss for row in read_study(f"{address}?study={name}")[1]] == losses


class Rows:
    """The rows of one study in a database, for edits by SQL."""

    def __init__(self, address: str, study: str) -> None:
        import sqlalchemy

        server = address.partition("?study=")[0].replace("postgresql", "postgresql+psycopg")
        self._engine, self._text, self._study = sqlalchemy.create_engine(server), sqlalchemy.text, study

    def held(self, table: str) -> dict[str, Any]:
        """Return the columns of the only row of a table."""
        return dict(self._run(f"SELECT * FROM {table} WHERE {self._key(table)} = :study").mappings().one())

    def edit(self, table: str, column: str, value: Any) -> None:
        self._run(f"UPDATE {table} SET {column} = :value WHERE {self._key(table)} = :study", value=value)

    def _key(self, table: str) -> str:
        return "id" if table == "mipcash_study" else "study"

    def _run(self, statement: str, **values: Any) -> Any:
        with self._engine.begin() as connection:
            return connection.execute(self._text(statement), {"study": self._study, **values})


def test_another_value_in_any_column_of_a_database_is_refused_by_table_and_row(postgres: str, space: mc.Space) -> None:
    def look() -> None:
        mc.Study(space, tiny.Counter(space), storage=postgres).close()

    with mc.Study(space, tiny.Counter(space), storage=postgres) as study:
        study.tell(study.ask(), 1.0)
        rows = Rows(postgres, study.record.id)
    name, changes = postgres.partition("?study=")[2], 0
    for table in ("mipcash_study", "mipcash_trial", "mipcash_evaluation"):
        for column, value in rows.held(table).items():
            # keys lead to no row or to another study, the format has a message of its own, the order of outputs has no digest
            if column in ("id", "name", "study", "schema", "number", "trial", "place"):
                continue
            missing: Any = "x" if column in ("model", "proof") else 7
            other = missing if value is None else f"{value} " if isinstance(value, str) else value + 1
            rows.edit(table, column, math.nextafter(value, math.inf) if isinstance(value, float) else other)
            for attempt in (look, lambda: read_study(postgres)):
                with pytest.raises(
                    StorageError, match=rf"study={name} is damaged .*: the row of table '{table}' with .*digest"
                ):
                    attempt()
            rows.edit(table, column, value)
            changes += 1
    assert changes > 30
    look()


def test_what_a_database_holds_is_checked_when_it_is_read(postgres: str, space: mc.Space) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=postgres) as study:
        study.tell(study.ask(), 1.0)
        rows = Rows(postgres, study.record.id)
    name = postgres.partition("?study=")[2]
    rows.edit("mipcash_trial", "exact", "{}")
    rows.edit("mipcash_trial", DIGEST, digest_of({n: v for n, v in rows.held("mipcash_trial").items() if n != DIGEST}))
    with pytest.raises(
        StorageError, match=f"study={name} is damaged or was edited: the two records of the configuration"
    ):
        mc.Study(space, tiny.Sampler(space), storage=postgres)
    rows.edit("mipcash_study", "schema", 9)
    message = (
        r"has journal format 9 and this mipcash .* works with format 1; start a new study in another database, or open"
    )
    with pytest.raises(StorageError, match=message):
        mc.Study(space, tiny.Sampler(space), storage=postgres)


def test_without_its_packages_the_extra_is_named(space: mc.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "mipcash.study.storage.postgres", raising=False)
    with pytest.raises(StorageError, match=r"needs psycopg .*pip install 'mipcash\[postgres\]'"):
        mc.Study(space, storage="postgresql://h/d")


def test_the_tables_of_those_who_share_a_file_are_no_damage(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=f"sqlite:///{journal}") as study:
        study.tell(study.ask(), 1.0)
    tables = {
        name for (name,) in sqlite3.connect(journal).execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    assert tables == {"study", "trial", "evaluation", "worker"}
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        assert [t.loss for t in study.trials] == [1.0]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:pa/top@secret@host/db",
        "postgresql://u:topsecret/x@host/db",
        "postgresql://u:12/topsecret@host/db",
        "postgresql://u:topsecret?x@host/db",
        "postgresql:/u:topsecret@host/",
        "postgresql://u:topsecret@host:port/db",
    ],
)
def test_a_password_with_signs_that_were_to_be_quoted_is_in_no_message(address: str) -> None:
    with pytest.raises(StorageError) as error:
        Address.of(address)
    assert "secret" not in str(error.value)


def test_passwords_among_the_options_are_not_shown() -> None:
    address = Address.of("postgresql://u@host/db?sslpassword=topsecret&password=topsecret&sslmode=require")
    assert "topsecret" not in f"{address} {address!r}"
    assert "sslmode=require" in str(address)
    assert address.secrets == ("topsecret", "topsecret")
    assert address.whole.count("topsecret") == 2


KEY = "KeY7zq"
BASES = (
    "postgresql://ann:{0}@db.lab:5433/studies?study=first&sslmode=require",
    "postgres://ann:{0}@db.lab/studies",
    "postgresql+psycopg://{0}@db.lab/studies",
    "postgresql://ann@db.lab/studies?password={0}&study=first",
    "postgresql://ann@db.lab/studies?heartbeat_seconds=9&PASSWD={0}",
    "postgresql%3A%2F%2Fann%3A{0}%40db.lab%2Fstudies",
    "host=db.lab user=ann password='{0}' dbname=studies",
    "dbname=studies pwd={0}",
    "sqlite:///run.db?password={0}",
)
passwords = st.tuples(*[st.text("ab1/:@?#%&= '+\\", max_size=3)] * 2).map(lambda parts: f"{parts[0]}{KEY}{parts[1]}")
changes = st.sampled_from(["delete", "double", "swap", "upper", *" :/@?#&=x7"])


@st.composite
def malformed(draw: st.DrawFn) -> str:
    """Return an address with a password that holds KEY, quoted or not, and one mistake beside the password."""
    before, after = draw(st.sampled_from(BASES)).split("{0}")
    password = draw(passwords)
    password = quote(password, safe="") if draw(st.booleans()) else password
    at = draw(st.integers(0, len(before) + len(after) - 1))
    first, second = (before, after) if at < len(before) else (after, before)
    at = at if first is before else at - len(before)
    change = draw(changes)
    new = {"delete": "", "double": first[at] * 2, "upper": first[at].upper(), "swap": first[at : at + 2][::-1]}
    first = first[:at] + new.get(change, change + first[at]) + first[at + (2 if change == "swap" else 1) :]
    text = first + password + second if after is second else second + password + first
    return draw(st.sampled_from(["{}", " {}", "\t{}\n", "{} ", "'{}'"])).format(text)


def what_is_said(action: Callable[[], object]) -> str:
    """Return the traceback of the error, chained errors included, or what is printed of the result."""
    try:
        found = action()
    except StorageError as error:
        return "".join(traceback.format_exception_only(error)) + "".join(
            str(e) for e in (error.__cause__, error.__suppress_context__ or error.__context__) if e is not None
        )
    return f"{found} {found!r}"


@settings(max_examples=80)
@given(malformed())
def test_a_password_is_in_no_message_whatever_the_mistake(text: str) -> None:
    assert KEY not in without_credentials(text)
    assert KEY not in without_credentials(Path(text))
    said = what_is_said(lambda: Address.of(text)) if is_address(text) else ""
    if "StorageError" not in said and said and Address.of(text).kind == "postgresql":
        return  # a server may be asked
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        said += what_is_said(lambda: read_study(text)) + what_is_said(lambda: read_study(Path(text)))
        said += what_is_said(lambda: mc.Study(tiny.tiny_space(), storage=text).close())
        shown = CliRunner().invoke(app, ["show", text])
        assert not [name for name in os.listdir() if KEY in name]
    assert KEY not in said + shown.output + shown.stderr


@pytest.mark.parametrize("option", ["password=KeY7zq", "pasword=KeY7zq", "passwordKeY7zq", "sslpassword=KeY7zq%2F"])
def test_a_password_is_not_in_what_a_server_says(option: str) -> None:
    pytest.importorskip("psycopg")
    from mipcash.study.storage.postgres import Server

    server = Server(Address.of(f"postgresql://annKeY7zq@127.0.0.1:1/studies?connect_timeout=2&{option}"))
    for cause in (option, unquote(option), 'FATAL: password authentication failed for user "annKeY7zq"'):
        said = server.explanation(ValueError(cause))
        assert KEY not in said
        assert "postgresql://...@127.0.0.1:1/studies" in said
    server.close()


def test_paths_are_quoted_as_they_are() -> None:
    for text in ("run.db", "/data/ann@lab/run.db", "runs/a:b.db", "C:/a@b/run.db", "runs/100%25.db", "/data/a@b:c.db"):
        assert without_credentials(Path(text)) == text


def test_the_command_that_a_report_names_has_no_password() -> None:
    from types import SimpleNamespace

    from mipcash.cli.report import space_of

    record: Any = SimpleNamespace(model="/elsewhere/model.py", options={})
    known, again = space_of("postgresql://u:topsecret@host/db?study=s", record, None, [], (), "report")
    assert known is None
    assert again == "mipcash report 'postgresql://u@host/db?study=s' --model /elsewhere/model.py"
