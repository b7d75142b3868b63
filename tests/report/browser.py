"""Headless Chromium, controlled by its DevTools protocol over a pipe: requests, logs, values and pictures of a page."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
SECONDS = 120.0


class Browser:
    """Browser with one page. ``events`` are the events since the page was opened last."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        (child_in, self._out), (self._in, child_out) = os.pipe(), os.pipe()

        def place() -> None:  # the browser reads commands from descriptor 3 and answers on 4
            spare_in, spare_out = os.dup(child_in), os.dup(child_out)
            os.dup2(spare_in, 3)
            os.dup2(spare_out, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,
        )
        os.close(child_in)
        os.close(child_out)
        self._read, self._number, self.events = b"", 0, list[dict[str, Any]]()
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            order["sessionId"] = self._session
        os.write(self._out, json.dumps(order).encode() + b"\0")
        while True:
            said = self._next(SECONDS)
            if said.get("id") == self._number:
                assert "error" not in said, said
                return dict(said["result"])
            self.events.append(said)

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError
            self._read += os.read(self._in, 1 << 16)
        text, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(text))

    def open(self, address: str, width: int, height: int, dark: bool) -> None:
        """Open a page at a window width and in a colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events = []
        self.call("Page.navigate", url=address)
        end = time.monotonic() + SECONDS
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next(end - time.monotonic()))

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaiting promises."""
        said = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def picture(self, path: Path) -> None:
        """Save the window as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def requests(self) -> list[str]:
        """Return the addresses that the page requested."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self) -> list[dict[str, Any]]:
        """Return the page's log entries, exceptions and dialogues."""
        kinds = (
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        return [e for e in self.events if e.get("method") in kinds]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        os.close(self._out)
        os.close(self._in)
