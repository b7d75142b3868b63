"""Classify failure messages, so that failures can be counted and modelled by kind.

The kind is derived from the message that the journal keeps, so it is available for every journal. An exception is classified by its
type, and ``Failed`` by its message. A dead worker, an exceeded time or memory limit and an invalid loss are
recognised by the wording of their messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mipcash.study.trial import Trial
from mipcash.text import one_line

TIMED_OUT, OUT_OF_MEMORY, WORKER_DIED = "timed out", "out of memory", "worker died"
NAN, INF, TOO_LARGE, NO_LOSS = "nan", "inf", "too large", "no loss"
LIMIT = 60
"""Largest number of characters that the name of a kind takes from an objective's message."""
_EXCEPTION = re.compile(r"([^\W\d]\w*)(?:: .*)? \(.*:\d+\)$", re.DOTALL)
_MEMORY = re.compile(r"MemoryError|OutOfMemory", re.IGNORECASE)
_KILLED = re.compile(r"OutOfMemory|OOM|SIGKILL")
_NUMBER = re.compile(r"[-+]?\b\d[\d.,_]*(?:e[-+]?\d+)?", re.IGNORECASE)
_SAID = (
    (re.compile(r"it took longer than evaluation_timeout="), TIMED_OUT),
    (re.compile(r"it took more memory than evaluation_memory="), OUT_OF_MEMORY),
    (re.compile(r"the objective returned (?:'loss': )?nan;"), NAN),
    (re.compile(r"the objective returned (?:'loss': )?-?inf;"), INF),
    (re.compile(r"the objective returned (?:'loss': )?\S+; a loss must lie within"), TOO_LARGE),
    (re.compile(r"(?:\w+: )?nan, which is no finite number"), NAN),
    (re.compile(r"(?:\w+: )?-?inf, which is no finite number"), INF),
    (re.compile(r"the objective returned "), NO_LOSS),
    (re.compile(r"the returned value cannot be unpickled"), NO_LOSS),
)


def kind_of_failure(message: str) -> str:
    """Return the kind of a failure message.

    Kinds are ``timed out``, ``out of memory``, ``worker died``, ``nan``, ``inf``, ``too large`` and ``no loss`` (the returned value
    is no loss). Any other kind is the type of an exception, or ``Failed: ...`` with the objective's message, its numbers replaced
    by ``#``. A worker process that the system killed (SIGKILL) counts as out of memory, the usual reason for such a kill.
    """
    for pattern, kind in _SAID:
        if pattern.match(message):
            return kind
    if message.startswith("its worker died"):
        return OUT_OF_MEMORY if _KILLED.search(message) else WORKER_DIED
    if (raised := _EXCEPTION.match(message.removeprefix("the executor failed: "))) is not None:
        return OUT_OF_MEMORY if _MEMORY.search(raised.group(1)) else raised.group(1)
    return f"Failed: {one_line(_NUMBER.sub('#', message), LIMIT)}" if message else "Failed"


def kinds(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the failed trials by kind, the most frequent kind first."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.failed:
            found.setdefault(kind_of_failure(trial.message), []).append(trial)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))
