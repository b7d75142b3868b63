"""``--json`` of ``mipcash run`` and ``resume``: one JSON object per line, and nothing else on standard output.

There is one line per finished trial, {"type": "trial", ...}, and one at the end, {"type": "result", ...}. nan and infinity are
written as null.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from mipcash.cli.archive import Archive
from mipcash.study.feasibility import violated
from mipcash.study.progress import Progress
from mipcash.study.records.encoding import plain
from mipcash.study.result import Result
from mipcash.study.trial import Trial
from mipcash.text import storable


@contextmanager
def kept_for_json(wanted: bool) -> Iterator[TextIO | None]:
    """Reserve standard output for JSON. All other output, including that of child processes, goes to standard error.

    Args:
        wanted: True to reserve it; False to change nothing and yield None.
    """
    if not wanted:
        yield None
        return
    out = sys.stdout
    out.flush()
    try:
        descriptor, other = out.fileno(), sys.stderr.fileno()
    except (io.UnsupportedOperation, ValueError):  # not a file of the operating system, as in a test
        with redirect_stdout(sys.stderr):
            yield out
        return
    kept = os.dup(descriptor)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream, redirect_stdout(sys.stderr):
            os.dup2(other, descriptor)
            yield stream
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)


class JsonLines(Progress):
    """Write one line per finished trial; notes go to standard error."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def evaluated(self, trial: Trial) -> None:
        super().evaluated(trial)
        broken = () if trial.failed else violated(trial.outcome, self.limits)
        best = None if self.best_number is None else {"number": self.best_number, "loss": self.best}
        write(
            self._stream,
            {
                "type": "trial",
                "number": trial.number,
                "status": trial.status,
                "complete": trial.done and trial.complete,
                "loss": trial.loss,
                "values": trial.values,
                "texts": trial.texts,
                "config": trial.config,
                "message": trial.message,
                "origin": trial.origin,
                "violations": {b.limit.output: b.by for b in broken if b.known},
                "seconds": {"suggestion": trial.seconds.get("ask"), "evaluation": trial.duration},
                "best": best,
                "spent": self.evaluated_count,
                "budget": self.budget,
                "seconds_left": self.left(),
            },
        )

    def note(self, text: str) -> None:
        print(f"note: {' '.join(text.split())}", file=sys.stderr, flush=True)


def write_result(stream: TextIO, old: Archive) -> None:
    """Write the result of a run."""
    result, best = old.result, old.result.best
    answer = None
    if best is not None:
        described = {
            "number": best.number,
            "loss": best.loss,
            "value": result.value,
            "values": result.values,
            "config": best.config,
        }
        answer = {**described, "loss_on_fresh_repeats": result.fresh}
    seconds = {"suggestions": result.seconds["ask"], "evaluations": result.seconds["evaluation"]}
    write(
        stream,
        {
            "type": "result",
            "space": result.space,
            "best": answer,
            "front": _front(result) if result.objectives.several else None,
            "stopped": result.stopped,
            "problem": result.problem(),
            "evaluations": result.n_evaluations,
            "done": result.n_done,
            "failed": result.n_failed,
            "feasible": result.n_feasible if result.under else None,
            "seconds": seconds,
            "journal": str(old.path),
        },
    )


def _front(result: Result) -> list[dict[str, Any]]:
    names = result.objectives.names
    return [
        {"number": t.number, "values": {n: t.outcome[n].value for n in names} | t.values, "config": t.config}
        for t in result.front
    ]


def write(stream: TextIO, record: dict[str, Any]) -> None:
    """Write one object on one line of ASCII, and flush."""
    print(json.dumps(_finite(plain(record)), allow_nan=False), file=stream, flush=True)


def _finite(value: Any) -> Any:
    """Replace nan and infinity by None, and make texts storable in UTF-8."""
    if isinstance(value, dict):
        return {storable(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return storable(value) if isinstance(value, str) else value
