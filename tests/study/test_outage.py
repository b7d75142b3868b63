"""A PostgreSQL server that goes away during a run: stopped and started again, with commits whose answers are lost, or for good."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sharing
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.storage import sql
from mipcash.study.storage.protocol import UnreachableError
from tests import servers

psycopg = pytest.importorskip("psycopg")
BUDGET = 8


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "PAUSE", 0.01)


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


def test_a_run_goes_on_after_its_server_was_stopped(server: servers.Server, address: str) -> None:
    evaluated: list[float] = []

    def objective(config: Any) -> float:
        if len(evaluated) == 3:
            server.stop()
            threading.Timer(0.5, server.start).start()
        evaluated.append(loss(config))
        return evaluated[-1]

    with pytest.warns(UserWarning, match="reached") as told:
        result = run(address, objective)
    texts = [str(each.message) for each in told]
    assert any(text.startswith("waiting for up to 600 seconds: ") and "cannot be reached" in text for text in texts)
    assert any("is reached again after" in text for text in texts)
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
    for name in ("insert", "write", "start", "note"):
        original = getattr(sql.SQLStorage, name)

        def interrupted(self: Any, *given: Any, original: Any = original) -> Any:
            nonlocal losing
            losing = True
            try:
                return original(self, *given)
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


def test_a_server_that_stays_away_ends_the_run_with_an_error(
    server: servers.Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PATIENCE", 0.2)
    address += "&heartbeat_seconds=1"  # the evaluation that the run leaves is taken over after this time
    stopped = False

    def objective(config: Any) -> float:
        nonlocal stopped
        if not stopped:
            server.stop()
            stopped = True
        return loss(config)

    try:
        with pytest.raises(StorageError, match="cannot be reached"), pytest.warns(UserWarning, match="waiting"):
            run(address, objective)
        with pytest.raises(StorageError, match="cannot be reached"):
            run(address, objective)  # a server that is not there at the beginning is reported at once
    finally:
        server.start()
    assert len(run(address, objective).history) == BUDGET
