"""Temporary PostgreSQL server from the installed binaries, for a test session."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

USER = "tester"


def binaries() -> Path | None:
    """Return the folder of ``initdb`` and ``postgres``, or None. Debian keeps these programs outside the PATH."""
    found = [Path(p).resolve().parent for p in [shutil.which("initdb")] if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if (folder / "postgres").exists() and (folder / "initdb").exists()), None)


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server and yield the address of an empty database. Nothing is synced, since its data are discarded."""
    with interruptible() as server:
        yield server.address


@contextmanager
def interruptible() -> Iterator[Server]:
    """Start a server that a test may stop and start again."""
    # pytest's temporary folders are readable by their owner only, and the server may have to run as another user
    kept = tempfile.TemporaryDirectory(prefix="mipcash-postgres-", ignore_cleanup_errors=True)
    with kept as folder, _server(Path(folder)) as server:
        yield server


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        address: of an empty database.
        control: calls ``pg_ctl`` with some arguments.
        folder: which the server can read, for its files.
    """

    address: str
    control: Callable[..., None]
    folder: Path

    def stop(self) -> None:
        """Stop as a machine does that fails: connections are cut, and nothing is written any more."""
        self.control("-m", "immediate", "stop")

    def start(self, *options: str) -> None:
        """Start again, with further options of ``postgres``."""
        self.control("-o", " ".join(options), "start")

    def certify(self) -> tuple[list[str], Path]:
        """Make a certificate for 127.0.0.1. Return the options of a server with TLS, and the certificate."""
        certificate, key = self.folder / "server.crt", self.folder / "server.key"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
        subprocess.run(command, capture_output=True, check=True)
        account = _account()
        if account is not None:
            os.chown(key, account.pw_uid, account.pw_gid)
        return ["-c ssl=on", f"-c ssl_cert_file={certificate}", f"-c ssl_key_file={key}"], certificate


@contextmanager
def _server(folder: Path) -> Iterator[Server]:
    tools = binaries()
    assert tools is not None
    account = _account()
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    data, port = folder / "data", free_port()

    def call(*command: str) -> None:
        options = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    call(str(tools / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
    settings = f"-p {port} -h 127.0.0.1 -k {folder} -F -c full_page_writes=off -c max_connections=40"
    always = (str(tools / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", settings)
    server = Server(f"postgresql://{USER}@127.0.0.1:{port}/postgres", partial(call, *always), folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _account() -> pwd.struct_passwd | None:
    """Return the user account of the server, or None for the current user. PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("PostgreSQL does not run as root, and there is no other user")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
