"""Server of the page of a run in progress, for a browser on this machine.

The server listens on 127.0.0.1 only. Other users of this machine can reach it, so every address contains a random token, which is
only in the printed address. It only answers requests that name this machine, since a page on the web may let its own name point
here (DNS rebinding). It reads the journal as ``mipcash show`` does and changes nothing.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mipcash.errors import MipcashError, StorageError
from mipcash.report.data.run import Place, Run
from mipcash.report.page.document import content, page
from mipcash.space.space import Space

HOST = "127.0.0.1"
PORT = 8765
TRIED = 20
"""Number of ports that are tried in turn if the user gives none."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Watched:
    """A journal and its page, updated when the journal changes. Methods are thread-safe."""

    def __init__(self, journal: Path | str, place: Space | Place | None = None) -> None:
        self.journal, self.place = journal, place
        self._lock = threading.Lock()
        self._stamp: tuple[float, ...] = ()
        self._version = ""
        self._run: Run | None = None
        self._content: tuple[str, str] = ("", "")

    def run(self) -> tuple[str, Run]:
        """Return the version of the run, and the run.

        Raises:
            StorageError: the journal cannot be read, and no earlier version is known.
        """
        with self._lock:
            return self._read()

    def news(self) -> tuple[str, str]:
        """Return the version, and the variable part of the page, computed once per version."""
        with self._lock:
            version, run = self._read()
            if self._content[0] != version:
                self._content = version, content(run, live=True)
            return self._content

    def page(self) -> str:
        """Return the whole page."""
        with self._lock:
            version, run = self._read()
            return page(run, live=version)

    def _read(self) -> tuple[str, Run]:
        stamp = _stamp(self.journal)
        if self._run is None or stamp != self._stamp:
            try:
                self._run = Run.of(self.journal, self.place)
            except StorageError:  # a writer may be active; the earlier version remains valid
                if self._run is None:
                    raise
                return self._version, self._run
            self._stamp, self.place = stamp, self._run.place
            trials = self._run.result.history
            reported = sum(not t.pending for t in trials)
            parts = sum(len(t.outcome.outputs) for t in trials)
            message = f"{len(trials)} {reported} {parts} {self._run.result.stopped}"
            self._version = hashlib.sha256(message.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        return self._version, self._run


def _stamp(path: Path | str) -> tuple[float, ...]:
    """Return a stamp that changes when a journal is written; for a database that is no file, every second."""
    if isinstance(path, str):
        return (math.floor(time.monotonic()),)
    found: list[float] = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            stat = file.stat()
        except OSError:
            continue
        found += [stat.st_mtime_ns, stat.st_size]
    return tuple(found)


class Dashboard(ThreadingHTTPServer):
    """HTTP server for one journal on this machine. Make one with ``dashboard``, and run it with ``serve_forever()``."""

    daemon_threads = True

    def __init__(self, watched: Watched, port: int) -> None:
        self.watched = watched
        self.token = secrets.token_urlsafe(16)
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Address to open in a browser, with the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def names(self) -> set[str]:
        """Host names with which a request may address this machine."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a request: a browser may close the connection."""


def dashboard(watched: Watched, port: int | None = None) -> Dashboard:
    """Return a server for a journal.

    Args:
        port: port to listen on; None: PORT, or the next free one.

    Raises:
        MipcashError: the port is in use, or all tried ports are.
    """
    tried = range(PORT, PORT + TRIED) if port is None else [port]
    for each in tried:
        try:
            return Dashboard(watched, each)
        except (OSError, OverflowError) as error:
            cause = error
    if port is not None:
        raise MipcashError(f"port {port} cannot be listened on ({cause}); give another --port, or none for a free one")
    raise MipcashError(f"no port from {PORT} to {PORT + TRIED - 1} is free ({cause}); give one with --port")


class _Handler(BaseHTTPRequestHandler):
    server: Dashboard
    server_version = "mipcash"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Send the page at ``/TOKEN/``, or its variable part at ``/TOKEN/news`` if it changed since the given version."""
        if (self.headers.get("Host") or "").lower() not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN)
            return
        asked = urlsplit(self.path)
        token, _, name = asked.path.removeprefix("/").partition("/")
        known = secrets.compare_digest(token.encode("utf-8", "surrogateescape"), self.server.token.encode())
        if not known or not asked.path.startswith(f"/{token}/"):
            self._answer(HTTPStatus.NOT_FOUND)
            return
        try:
            if name == "":
                self._answer(HTTPStatus.OK, self.server.watched.page(), "text/html")
            elif name == "news":
                since = parse_qs(asked.query).get("since", [""])[0]
                version, _ = self.server.watched.run()
                if version == since:
                    self._answer(HTTPStatus.NO_CONTENT)
                else:
                    version, text = self.server.watched.news()
                    self._answer(HTTPStatus.OK, text, "text/html", version)
            else:
                self._answer(HTTPStatus.NOT_FOUND)
        except MipcashError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _answer(self, status: HTTPStatus, text: str = "", kind: str = "text/plain", version: str = "") -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if version:
            self.send_header("X-Version", version)
        if body:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
