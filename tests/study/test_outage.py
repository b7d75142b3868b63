"""A PostgreSQL server that goes away during a run: stopped and started again, with commits whose answers are lost, or for good."""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sharing
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.optimizers.outcome import Outcome
from mipcash.study.storage import sql
from mipcash.study.storage.attempts import recorded
from mipcash.study.storage.protocol import UnreachableError
from mipcash.study.storage.spool import FOLDER, Spool
from tests import servers

psycopg = pytest.importorskip("psycopg")
BUDGET = 8


@pytest.fixture(autouse=True)
def spool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Shorten the pauses, and return the folder of outcomes that wait."""
    monkeypatch.setattr(sql, "PAUSE", 0.01)
    monkeypatch.setenv(FOLDER, str(tmp_path / "spool"))
    return tmp_path / "spool"


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    if servers.binaries() is None:
        pytest.skip("PostgreSQL's binaries (initdb, postgres) are not installed")
    with servers.interruptible() as started:
        yield started


@pytest.fixture
def address(server: servers.Server) -> str:
    return f"{server.address}?study={uuid.uuid4().hex}"


def run(address: str, objective: Callable[[Any], float]) -> mc.Result:
    return mc.minimize(objective, tiny.tiny_space(), BUDGET, optimizer="random", storage=address, progress=False)


def losses(result: mc.Result) -> list[float | None]:
    return [trial.loss for trial in result.history]


def loss(config: Any) -> float:
    return float(sum(v for v in config.values() if isinstance(v, (int, float))))


@pytest.mark.parametrize("standby", [False, True], ids=["away", "not promoted yet"])
def test_a_run_goes_on_after_its_server_was_stopped(
    server: servers.Server, address: str, spool: Path, standby: bool
) -> None:
    evaluated: list[float] = []

    def promoted() -> None:
        if standby:
            server.stop()
        server.start()

    def objective(config: Any) -> float:
        if len(evaluated) == 3:
            server.stop()
            if standby:
                server.start("-c", "default_transaction_read_only=on")
            threading.Timer(0.5, promoted).start()
        evaluated.append(loss(config))
        return evaluated[-1]

    with pytest.warns(UserWarning, match="reached") as told:
        result = run(address, objective)
    texts = [str(each.message) for each in told]
    assert any(text.startswith("waiting for up to 600 seconds: ") and "cannot be reached" in text for text in texts)
    assert any("is reached again after" in text for text in texts)
    assert any(f"the outcome is kept in {spool}" in text for text in texts)
    assert not list(spool.iterdir())
    assert losses(result) == evaluated
    assert len(evaluated) == BUDGET
    assert losses(result) == losses(mc.minimize(loss, tiny.tiny_space(), BUDGET, optimizer="random", progress=False))


@pytest.mark.parametrize("after", [True, False], ids=["committed", "not committed"])
def test_a_commit_whose_answer_is_lost_is_not_repeated(
    server: servers.Server, address: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mipcash.study.storage.postgres import Server

    evaluated: list[float] = []
    losing = False

    def objective(config: Any) -> float:
        evaluated.append(loss(config))
        return evaluated[-1]

    connect = Server.connect

    class Flaky:
        """A connection whose writing transactions lose their first answer."""

        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def commit(self) -> None:
            nonlocal losing
            if losing:
                losing = False
                if after:
                    self.connection.commit()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            self.connection.commit()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.connection, name)

    def flaky(self: Any, write: bool) -> Any:
        return Flaky(connect(self, write))

    monkeypatch.setattr(Server, "connect", flaky)
    for name in ("insert", "write", "note"):
        original = getattr(sql.SQLStorage, name)

        def interrupted(self: Any, *given: Any, original: Any = original, **more: Any) -> Any:
            nonlocal losing
            losing = True
            try:
                return original(self, *given, **more)
            finally:
                losing = False

        monkeypatch.setattr(sql.SQLStorage, name, interrupted)
    with pytest.warns(UserWarning, match="reached again"):
        result = run(address, objective)
    assert losses(result) == evaluated
    assert len(evaluated) == BUDGET
    monkeypatch.undo()
    again = run(address, objective)
    assert losses(again) == evaluated == losses(result)
    assert [t.status for t in again.history] == ["done"] * BUDGET


def test_a_writer_that_was_cut_off_takes_over_no_trial_until_the_others_can_send_heartbeats(
    server: servers.Server, address: str
) -> None:
    place = sharing.at(address)
    mine, other = place.writer(""), place.writer("")
    assert isinstance(mine, sql.SQLStorage)
    with mc.Study(tiny.tiny_space(), storage=mine), mc.Study(tiny.tiny_space(), storage=other) as study:
        study.ask()
        place.vanish(other)  # its heartbeat is late
        server.stop()
        with pytest.raises(UnreachableError):
            mine._beat()
        server.start()
        (row,) = mine.news()
        assert row.running
        mine._beat()
        assert not mine.news()
        mine._steady -= mine._seconds  # the others had their time
        (row,) = mine.news()
        assert not row.running


def test_a_miss_long_after_the_latest_one_begins_a_new_wait(server: servers.Server, address: str) -> None:
    place = sharing.at(address)
    mine = place.writer("")
    assert isinstance(mine, sql.SQLStorage)
    with mc.Study(tiny.tiny_space(), storage=mine):
        server.stop()
        try:
            now = time.monotonic()
            mine._away = now - 2000.0, now - 1000.0
            with pytest.warns(UserWarning, match="waiting for up to 600 seconds"):
                assert not mine.news()
            mine._away = now - 2000.0, now - 10.0
            with pytest.raises(UnreachableError):
                mine.news()
        finally:
            server.start()


def test_the_message_names_host_and_port_of_the_address() -> None:
    space = mc.Space("s")
    space.integer("a", 0, 9)
    for address in ("ann@nowhere.invalid:6000/studies", "ann@/studies?host=nowhere.invalid&port=6000"):
        with pytest.raises(StorageError, match=r"cannot be reached \(host nowhere.invalid, port 6000\)"):
            mc.Study(space, storage=f"postgresql://{address}")


def test_a_server_that_stays_away_ends_the_run_with_an_error_and_loses_no_outcome(
    server: servers.Server, address: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PATIENCE", 0.2)
    address += "&heartbeat_seconds=1"  # the evaluation that the run leaves is taken over after this time
    evaluated: list[float] = []

    def objective(config: Any) -> float:
        if len(evaluated) == 2:
            server.stop()
        evaluated.append(loss(config))
        return evaluated[-1]

    try:
        with pytest.raises(StorageError, match="cannot be reached"), pytest.warns(UserWarning, match="waiting"):
            run(address, objective)
        with pytest.raises(StorageError, match="cannot be reached"):
            run(address, objective)  # a server that is not there at the beginning is reported at once
        (kept,) = spool.iterdir()
        assert kept.stat().st_mode & 0o077 == 0
    finally:
        server.start()
    with pytest.warns(UserWarning, match=f"the outcome of trial 2, left in {kept}, is recorded"):
        result = run(address, objective)
    assert losses(result) == evaluated
    assert len(evaluated) == BUDGET
    assert not kept.exists()


@pytest.mark.parametrize("returns", [True, False], ids=["comes back", "stays away"])
def test_all_outcomes_of_concurrent_evaluations_are_kept(
    server: servers.Server, address: str, spool: Path, returns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    address += "&heartbeat_seconds=1"
    evaluated: list[float] = []
    together, miss = threading.Barrier(3, lambda: server.stop()), sql.SQLStorage._miss

    def objective(config: Any) -> float:
        if not evaluated:  # all three have started before the first one ends
            together.wait()
        evaluated.append(loss(config))
        return evaluated[-1]

    def missed(storage: sql.SQLStorage, error: UnreachableError) -> None:
        if len([*spool.glob("*.json")]) < 3:
            miss(storage, error)
        elif returns:
            server.start()
        else:
            raise error

    def parallel() -> mc.Result:
        space, execution = tiny.tiny_space(), mc.Execution(workers=3)
        given = {"optimizer": "random", "storage": address, "progress": False}
        return mc.minimize(objective, space, BUDGET, execution=execution, **given)

    monkeypatch.setattr(sql.SQLStorage, "_miss", missed)
    if returns:
        with pytest.warns(UserWarning, match="is reached again"):
            result = parallel()
    else:
        try:
            with pytest.raises(StorageError, match="cannot be reached"), pytest.warns(UserWarning, match="is kept in"):
                parallel()
        finally:
            server.start()
        with pytest.warns(UserWarning, match="is recorded") as told:
            result = parallel()
        assert len([each for each in told if str(each.message).endswith("is recorded")]) == 3
    assert not list(spool.iterdir())
    assert sorted(evaluated) == sorted(t.loss for t in result.history if t.loss is not None)
    assert len(evaluated) == BUDGET


def test_a_run_goes_on_at_another_host_of_its_address(server: servers.Server, address: str) -> None:
    evaluated: list[float] = []
    other = str(servers.free_port())

    def objective(config: Any) -> float:
        if len(evaluated) == 3:
            server.stop()
            threading.Timer(0.5, lambda: server.start(f"-p {other}")).start()
        evaluated.append(loss(config))
        return evaluated[-1]

    here = urlsplit(address)
    both = f"postgresql://{here.username}@{here.path}?{here.query}&host=127.0.0.1,127.0.0.1&port={here.port},{other}"
    try:
        with pytest.warns(UserWarning, match="reached again"):
            result = run(both, objective)
        assert losses(result) == evaluated
        assert len(evaluated) == BUDGET
    finally:
        server.stop()
        server.start()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_connection_is_encrypted_and_its_certificate_checked(
    server: servers.Server, address: str, tmp_path: Path
) -> None:
    options, certificate = server.certify()
    (tmp_path / "other").mkdir()
    _, other = replace(server, folder=tmp_path / "other").certify()
    server.stop()
    server.start(*options)
    try:
        checked = f"{address}&sslmode=verify-full&sslrootcert={certificate}"
        encrypted: list[bool] = []

        def objective(config: Any) -> float:
            with psycopg.connect(server.address) as connection:
                query = (
                    "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'mipcash'"
                )
                encrypted.extend(row[0] for row in connection.execute(query))
            return loss(config)

        run(checked, objective)
        assert encrypted
        assert all(encrypted)
        with pytest.raises(StorageError, match="certificate verify failed"):
            run(checked.replace(str(certificate), str(other)), objective)
    finally:
        server.stop()
        server.start()
    with pytest.raises(StorageError, match="server does not support SSL"):
        run(checked, objective)


def test_a_password_is_read_from_the_usual_places_and_occurs_in_no_message(
    server: servers.Server, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE walled SUPERUSER LOGIN PASSWORD 'sesame'")
    rules = server.folder / "hba.conf"
    rules.write_text("host all walled 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n", encoding="utf-8")
    rules.chmod(0o644)
    server.stop()
    server.start(f"-c hba_file={rules}")
    try:
        walled = address.replace(f"{servers.USER}@", "walled@")
        passwords = tmp_path / "pgpass"
        monkeypatch.setenv("PGPASSFILE", str(passwords))
        for password in ("", "wrong"):
            passwords.write_text(f"*:*:*:walled:{password}\n" if password else "", encoding="utf-8")
            passwords.chmod(0o600)
            with pytest.raises(StorageError, match="password") as refused:
                run(walled, loss)
            assert "wrong" not in str(refused.value)
        passwords.write_text("*:*:*:walled:sesame\n", encoding="utf-8")
        assert run(walled, loss).n_done == BUDGET
        passwords.unlink()
        monkeypatch.setenv("PGPASSWORD", "sesame")
        assert run(walled, loss).n_done == BUDGET  # a finished run, which is read again
        monkeypatch.setenv("PGSSLMODE", "require")
        with pytest.raises(StorageError, match="server does not support SSL"):
            run(walled, loss)
    finally:
        server.stop()
        server.start()


def test_the_outcome_of_a_living_writer_is_left_to_it(address: str, spool: Path) -> None:
    with mc.Study(tiny.tiny_space(), storage=address) as study:
        trial = study.ask()
        mine = study._storage
        assert isinstance(mine, sql.SQLStorage)
        (row,) = mine.rows()
        file = mine._spool.keep(*recorded(row, Outcome.of(1.0), "done", mine.worker, 0.0, None))
        assert file is not None
        with mc.Study(tiny.tiny_space(), storage=address) as other:
            assert other.trials[0].status == "pending"
        assert file.exists()
        study.tell(trial, 2.0)
    mc.Study(tiny.tiny_space(), storage=address).close()  # the outcome is recorded, the file is not needed any more
    assert not file.exists()
    with mc.Study(tiny.tiny_space(), storage=address) as study:
        assert study.trials[0].loss == 2.0


def test_an_outcome_that_cannot_be_read_is_named(spool: Path) -> None:
    spool.mkdir()
    (spool / f"{Spool('there', 'me')._study}-0.json").write_text("{", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"the outcome in .*-0.json cannot be read .*; delete the file"):
        assert not list(Spool("there", "me").others())
