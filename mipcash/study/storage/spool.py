"""Outcomes that a server has not received yet, kept on this machine: a file of JSON for each.

The writer deletes a file when the server has its outcome. If it is killed before, the next writer of this machine records the
outcome. The folder is ``MIPCASH_SPOOL``, by default ``~/.mipcash/spool``.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from mipcash.errors import warn
from mipcash.study.storage.lock import create_private
from mipcash.study.storage.protocol import EvaluationRow, TrialRow

FOLDER = "MIPCASH_SPOOL"
Kept = tuple[TrialRow, tuple[EvaluationRow, ...]]
"""The row of a trial, without its evaluations, and the evaluations that changed."""


class Spool:
    """Files of a study.

    Args:
        study: its id, whatever the address by which it is reached.
        worker: the writer that keeps outcomes.
    """

    def __init__(self, study: str, worker: str) -> None:
        # "~" stays as it is where a user has no home, as in a container
        self._folder = Path(os.environ.get(FOLDER) or Path(os.path.expanduser("~")) / ".mipcash" / "spool")
        self._study = hashlib.sha256(study.encode()).hexdigest()[:16]
        self._mine = f"{self._study}-{hashlib.sha256(worker.encode()).hexdigest()[:16]}-"

    def keep(self, row: TrialRow, changed: Sequence[EvaluationRow]) -> Path | None:
        """Write what the server is to receive. Return the file, or None if the folder cannot be written."""
        told = {"trial": asdict(replace(row, evaluations=())), "evaluations": [asdict(e) for e in changed]}
        path = self._folder / f"{self._mine}{uuid.uuid4().hex[:16]}.json"
        part = path.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            create_private(part)
            part.write_text(json.dumps(told), encoding="utf-8")
            part.replace(path)
        except OSError:
            return None
        return path

    def others(self) -> Iterator[tuple[Path, Kept]]:
        """Yield what other writers of this machine have kept. A file that cannot be read is named in a warning."""
        for path in sorted(self._folder.glob(f"{self._study}-*.json")):
            if path.name.startswith(self._mine):
                continue
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                kept = TrialRow(**told["trial"]), tuple(EvaluationRow(**e) for e in told["evaluations"])
            except FileNotFoundError:  # its writer was faster
                continue
            except (OSError, ValueError, TypeError, KeyError) as error:
                warn(f"the outcome in {path} cannot be read ({error}); delete the file")
                continue
            yield path, kept
