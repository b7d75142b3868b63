"""Storage addresses: parsing, error messages, and passwords that no output contains."""

from __future__ import annotations

import contextlib
import math
import os
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
SQLITE = "sqlite:///run.db"
POSTGRES = "postgresql"
ADDRESSES = (
    f"{SQLITE} {POSTGRES}://u@h/d {POSTGRES}+psycopg://h/d {POSTGRES}:/u@h/d mysql://h/d {POSTGRES}//u:p@h/d u:p@h/d"
)
PATHS = "run.db /data/ann@lab/run.db runs/a:b.db C:/a@b/run.db runs/100%25.db /data/a@b:c.db :memory:"


def test_addresses_are_distinguished_from_paths() -> None:
    assert all(map(is_address, [*ADDRESSES.split(), " postgresql://u@h/d", "host=h dbname=d"]))
    for text in PATHS.split():
        assert not is_address(text)
        assert without_credentials(Path(text)) == text


def test_addresses_are_parsed() -> None:
    rest = f"ann%40lab:{ENCODED}@db.lab:5433/studies?study=a%20b&heartbeat_seconds=9&sslmode=require"
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        address = Address.of(f"{scheme}://{rest}")
        assert (address.user, address.password, address.host, address.port) == ("ann@lab", PASSWORD, "db.lab", 5433)
        assert (address.database, address.study, address.heartbeat_seconds) == ("studies", "a b", 9.0)
        assert address.query == {"sslmode": "require"}
        assert Address.of(address.with_password) == address
        assert str(address) == "postgresql://...@db.lab:5433/studies?study=a+b&sslmode=require&heartbeat_seconds=9"
        assert "s3cr3t" not in repr(address)
        assert address.without_password == str(address).replace("...", "ann%40lab")
    assert Address.of("postgresql://db.lab/studies").port is None
    assert Address.of("sqlite:///runs/a%20b.db?heartbeat_seconds=5").path == "runs/a b.db"
    address = Address.of("postgresql://u@host/db?sslpassword=topsecret&password=topsecret&sslmode=require")
    assert "topsecret" not in f"{address} {address!r}"
    assert address.secrets == ("topsecret", "topsecret")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mysql://u:p@h/d", "no storage of the kind 'mysql'; give the path of a file, or an address such as sqlite:"),
        ("postgresql://u@h", "names no database; give postgresql://user@host/database"),
        ("postgresql://u@h/d/e", "a second / behind its first /: write a / of a password as %2F"),
        ("postgresql://u@h/d?study=a@b", "has an @, .* and an @ as %40"),
        ("postgresql://u@h/dpassword=s3cr3t", "has password= in another place than behind a [?] or &"),
        ("host=h dbname=d password=s3cr3t", "is no address; give one such as .*before the path of a file of such a"),
        (f"postgresql://u:{ENCODED}@h:port/d", "is no address; give one such as"),
        ("sqlite://run.db", "names no file; give sqlite:///run.db, with three slashes"),
        ("sqlite:///run#1.db", "names no file; .*write a # of its name as %23"),
        ("sqlite:///run.db?study=a", "a file holds one study, .*leave out study, or give each study a file of its own"),
        ("sqlite:///run.db?password=s3cr3t", "sqlite:///run.db: .*leave out the other options"),
        ("sqlite:///run.db?heartbeat_seconds=soon", "heartbeat_seconds in the storage's address must be a number"),
    ],
)
def test_invalid_addresses_are_refused(space: mc.Space, text: str, said: str) -> None:
    with pytest.raises(StorageError, match=said) as error:
        mc.Study(space, storage=text)
    assert "s3cr3t" not in str(error.value)


def test_an_unreachable_server_is_named_without_its_password(
    space: mc.Space, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("psycopg")
    address = f"postgresql://ann:{ENCODED}@127.0.0.1:1/studies?connect_timeout=2"
    with pytest.raises(StorageError, match="see that the server runs and takes connections from here") as error:
        mc.minimize(tiny.loss, space, 3, storage=address, progress=False)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__
    with pytest.raises(StorageError, match=r"host 127\.0\.0\.1, port 1"):
        read_study(address)
    assert "s3cr3t" not in str(error.value) + "".join(capfd.readouterr())


def test_a_missing_driver_names_the_extra_to_install(space: mc.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "mipcash.study.storage.postgres", raising=False)
    with pytest.raises(StorageError, match=r"needs psycopg .*pip install 'mipcash\[postgres\]'"):
        mc.Study(space, storage="postgresql://h/d")


# -- databases ------------------------------------------------------------------------------------------------------


class Rows:
    """SQL statements on a server, and the rows of one study on it."""

    def __init__(self, address: str, study: str = "") -> None:
        import sqlalchemy

        server = address.partition("?study=")[0].replace("postgresql", "postgresql+psycopg")
        self._engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT")
        self._text, self._study = sqlalchemy.text, study

    def held(self, table: str) -> dict[str, Any]:
        """Return the columns of the only row of a table."""
        return dict(self.run(f"SELECT * FROM {table} WHERE {self._key(table)} = :study").mappings().one())

    def edit(self, table: str, column: str, value: Any) -> None:
        self.run(f"UPDATE {table} SET {column} = :value WHERE {self._key(table)} = :study", value=value)

    def _key(self, table: str) -> str:
        return "id" if table == "mipcash_study" else "study"

    def run(self, statement: str, **values: Any) -> Any:
        with self._engine.connect() as connection:
            return connection.execute(self._text(statement), {"study": self._study, **values})


def test_a_database_holds_several_studies_and_no_password(postgres_server: str) -> None:
    address = postgres_server.replace("tester@", f"tester:{ENCODED}@").replace("/postgres", "/several")
    with pytest.raises(StorageError, match='database "several" does not exist'):
        read_study(address)
    Rows(postgres_server).run("CREATE DATABASE several")
    with pytest.raises(StorageError, match="holds no such study"):
        read_study(address)
    space = tiny.tiny_space(name="few")  # the name of the space is the default name of the study
    for name, loss in (("", 1.0), ("?study=more", 2.0)):
        with mc.Study(space, tiny.Sampler(space), storage=address + name) as study:
            study.tell(study.ask(), loss)
            assert "s3cr3t" not in repr(study) + repr(study.record) + repr(study.result)
    assert "study=more" in repr(study)
    with pytest.raises(StorageError, match=r"holds 2 studies; say which one: [?]study=few or [?]study=more"):
        read_study(address)
    for name, loss in (("few", 1.0), ("more", 2.0)):
        assert [row.loss for row in read_study(f"{address}?study={name}")[1]] == [loss]
    with pytest.raises(StorageError, match=r"belongs to another study: .*give another name, [?]study=NAME") as error:
        mc.Study(space, tiny.Sampler(space), seed=3, storage=address)
    assert "s3cr3t" not in str(error.value)
    for table in ("study", "trial", "evaluation", "worker"):
        assert "s3cr3t" not in str(Rows(address).run(f"SELECT * FROM mipcash_{table}").all())


def test_a_changed_value_in_any_column_of_a_database_is_refused_with_table_and_row(
    postgres: str, space: mc.Space
) -> None:
    with mc.Study(space, tiny.Counter(space), storage=postgres) as study:
        study.tell(study.ask(), 1.0)
        rows = Rows(postgres, study.record.id)
    name, changes = postgres.partition("?study=")[2], 0
    for table in ("mipcash_study", "mipcash_trial", "mipcash_evaluation"):
        for column, value in rows.held(table).items():
            # skipped: keys (another row or none), the format (a separate message), the order of outputs (no digest)
            if column in ("id", "name", "study", "schema", "number", "trial", "place"):
                continue
            missing: Any = "x" if column in ("model", "proof") else 7
            other = missing if value is None else f"{value} " if isinstance(value, str) else value + 1
            rows.edit(table, column, math.nextafter(value, math.inf) if isinstance(value, float) else other)
            with pytest.raises(
                StorageError, match=rf"study={name} is damaged .*: the row of table '{table}' with .*dig"
            ):
                read_study(postgres)
            rows.edit(table, column, value)
            changes += 1
    assert changes > 30
    assert len(read_study(postgres)[1]) == 1
    rows.edit("mipcash_trial", "exact", "{}")
    rows.edit("mipcash_trial", DIGEST, digest_of({n: v for n, v in rows.held("mipcash_trial").items() if n != DIGEST}))
    with pytest.raises(
        StorageError, match=f"study={name} is damaged or was edited: the configuration of trial 0 is illegal"
    ):
        mc.Study(space, tiny.Counter(space), storage=postgres)
    rows.edit("mipcash_study", "schema", 9)
    with pytest.raises(
        StorageError, match=r"has journal format 9 and this mipcash .* works with format 2; start a new"
    ):
        mc.Study(space, tiny.Counter(space), storage=postgres)


# -- passwords in malformed addresses -------------------------------------------------------------------------------

KEY = "KeY7zq"
BASES = (
    "postgresql://ann:{0}@db.lab:5433/studies?study=first&sslmode=require",
    "postgresql+psycopg://{0}@db.lab/studies",
    "postgresql://ann@db.lab/studies?password={0}&study=first",
    "postgres://ann@db.lab/studies?heartbeat_seconds=9&PASSWD={0}",
    "postgresql%3A%2F%2Fann%3A{0}%40db.lab%2Fstudies",
    "host=db.lab user=ann password='{0}' dbname=studies",
    "dbname=studies pwd={0}",
    "sqlite:///run.db?password={0}",
)
passwords = st.tuples(*[st.text("ab1/:@?#%&= '+\\", max_size=3)] * 2).map(lambda parts: f"{parts[0]}{KEY}{parts[1]}")
changes = st.sampled_from(["delete", "double", "swap", "upper", *" :/@?#&=x7"])


@st.composite
def malformed(draw: st.DrawFn) -> str:
    """Return an address with one mistake outside its password. The password contains KEY and may be quoted."""
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
    """Return the texts of the error and its chained errors, or the text of the result."""
    try:
        found = action()
    except StorageError as error:
        return "".join(traceback.format_exception_only(error)) + "".join(
            str(e) for e in (error.__cause__, error.__suppress_context__ or error.__context__) if e is not None
        )
    return f"{found} {found!r}"


def said_of(text: str) -> str:
    return what_is_said(lambda: Address.of(text)) if is_address(text) else ""


@given(malformed())
def test_no_message_about_a_malformed_address_contains_its_password(text: str) -> None:
    assert KEY not in without_credentials(text)
    assert KEY not in without_credentials(Path(text))
    assert KEY not in said_of(text)


@settings(max_examples=8)
@given(malformed())
def test_no_message_of_opening_a_storage_contains_its_password(text: str) -> None:
    if is_address(text) and "StorageError" not in said_of(text) and Address.of(text).kind == "postgresql":
        return  # opening it might connect to a server
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        said = what_is_said(lambda: read_study(text)) + what_is_said(lambda: read_study(Path(text)))
        said += what_is_said(lambda: mc.Study(tiny.tiny_space(), storage=text).close())
        shown = CliRunner().invoke(app, ["show", text])
        assert not [name for name in os.listdir() if KEY in name]
    assert KEY not in said + shown.output + shown.stderr


def test_error_messages_of_a_server_are_shown_without_passwords() -> None:
    option = "sslpassword=KeY7zq%2F"
    pytest.importorskip("psycopg")
    from mipcash.study.storage.postgres import Server

    server = Server(Address.of(f"postgresql://annKeY7zq@127.0.0.1:1/studies?connect_timeout=2&{option}"))
    for cause in (option, unquote(option), 'FATAL: password authentication failed for user "annKeY7zq"'):
        said = server.explanation(ValueError(cause))
        assert KEY not in said
        assert "postgresql://...@127.0.0.1:1/studies" in said
    server.close()


def test_the_path_of_a_file_is_shown_and_a_user_before_an_at_is_not() -> None:
    assert without_credentials("sqlite:////data/run.db?study=a") == "sqlite:////data/run.db"
    assert without_credentials("sqlite://ann:s3cr3t@lab/run.db") == "sqlite://..."
