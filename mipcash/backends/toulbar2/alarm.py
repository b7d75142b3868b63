"""The alarm that ends a search of toulbar2: the signal that toulbar2 expects, sent by wall-clock time.

toulbar2 ends when SIGVTALRM comes, for which it sets up a handler. Its own timer counts whole seconds of processor time, and
``setitimer`` counts processor time, too; on a busy machine that may be any number of seconds. On Linux a POSIX timer sends the
signal by the monotonic clock (timer_create(2)); other systems use processor time.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CLOCK_MONOTONIC, SIGEV_SIGNAL = 1, 0
LEAST = 1e-3
"""Shortest alarm in seconds: an immediate one would come before the search starts."""


class _Event(ctypes.Structure):
    """struct sigevent, the notification at the end of a timer; 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Spec(ctypes.Structure):
    """struct itimerspec: interval and first expiry, each in seconds and nanoseconds."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_ns", "first", "first_ns"))


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Send SIGVTALRM once, ``seconds`` from now, unless the block ends before; the caller has set up its handler."""
    library = _library()
    if library is None:
        with _processor_alarm(seconds):
            yield
        return
    timer = ctypes.c_void_p()
    event = _Event(None, signal.SIGVTALRM, SIGEV_SIGNAL)
    if library.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) != 0:
        with _processor_alarm(seconds):
            yield
        return
    whole, part = divmod(max(LEAST, min(seconds, 1e9)), 1.0)
    library.timer_settime(timer, 0, ctypes.byref(_Spec(0, 0, int(whole), int(part * 1e9))), None)
    try:
        yield
    finally:
        library.timer_delete(timer)


@contextmanager
def _processor_alarm(seconds: float) -> Iterator[None]:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, max(LEAST, min(seconds, 1e9)))
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _library() -> Any | None:
    """Return the C library if it has POSIX timers, else None."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timer_create") else None
