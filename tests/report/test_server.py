"""Live page: the server answers on this machine only and never writes."""

from __future__ import annotations

import http.client
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import tinyrun

from mipcash.errors import MipcashError, StorageError
from mipcash.report import server as served
from mipcash.report.server import Dashboard, Watched, dashboard


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Dashboard]:
    tinyrun.started(tmp_path / "run.db", 3)
    with dashboard(Watched(tmp_path / "run.db"), 0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()


def ask(server: Dashboard, name: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Request a resource that the page links to."""
    return ask_for(server, f"/{server.token}/{name}", method, **headers)


def ask_for(server: Dashboard, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=90)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    said = answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
    connection.close()
    return said


def test_the_server_listens_on_localhost_and_checks_the_host_header(live: Dashboard) -> None:
    assert live.server_address[0] == "127.0.0.1"
    port = live.server_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert ask(live, "", Host=host)[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert ask(live, "", Host=host)[:2] == (403, "")
    assert ask(live, "", "POST")[0] == 501
    assert ask(live, "../etc/passwd")[:2] == (404, "")
    headers = ask(live, "")[2]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_requests_without_the_token_are_refused(
    live: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert live.url == f"http://127.0.0.1:{live.server_port}/{live.token}/"
    assert len(live.token) >= 22  # 128 bits
    compared: list[bytes] = []
    digest = secrets.compare_digest
    monkeypatch.setattr(secrets, "compare_digest", lambda given, kept: compared.append(given) or digest(given, kept))
    wrong = live.token[:-1] + ("A" if live.token[-1] != "A" else "B")
    for path in (
        *("/", "/news?since=", "//", f"/{live.token}", f"/{wrong}/", f"/{wrong}/news", f"/{live.token}x/", "/%ff/"),
        *(f"/x/{live.token}/", f"/?{live.token}/", f"/{live.token[:-1]}/", f"{live.token}/"),
    ):
        assert ask_for(live, path)[:2] == (404, ""), path
    assert wrong.encode() in compared
    assert ask(live, "")[0] == 200
    assert live.token not in ask(live, "")[1]
    with dashboard(Watched(tmp_path / "run.db"), 0) as other:
        assert other.token != live.token


def test_updates_are_sent_on_changes_and_the_journal_is_not_written(live: Dashboard, tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    before = journal.read_bytes()
    _, text, headers = ask(live, "news?since=")
    assert "3 of 3" in text
    version = headers["x-version"]
    assert ask(live, f"news?since={version}")[:2] == (204, "")
    assert journal.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.db"]
    tinyrun.started(journal, 5)
    status, text, headers = ask(live, f"news?since={version}")
    assert status == 200
    assert "5 of 5" in text
    assert headers["x-version"] != version
    journal.write_bytes(b"no journal")  # if the journal is unreadable for a moment, the server keeps its last state
    assert ask(live, "news?since=")[0] == 200


def test_a_port_that_is_taken_is_reported_or_the_next_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tinyrun.started(tmp_path / "run.db", 1)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        taken = busy.getsockname()[1]
        with pytest.raises(MipcashError, match=rf"port {taken} cannot be listened on .*give another --port"):
            dashboard(Watched(tmp_path / "run.db"), taken)
        monkeypatch.setattr(served, "PORT", taken)
        with dashboard(Watched(tmp_path / "run.db")) as server:
            assert server.server_port > taken
        monkeypatch.setattr(served, "TRIED", 1)
        with pytest.raises(MipcashError, match=r"no port from .* is free"):
            dashboard(Watched(tmp_path / "run.db"))
    with pytest.raises(StorageError, match="does not exist"):
        Watched(tmp_path / "none.db").run()
