"""What one run is given: the command line, completed by the model's own defaults and by what holds where neither says more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipcash.cli import archive, modelfile
from mipcash.cli.limits import Pairs, together
from mipcash.study.records.limits import limits_of, stored_limits

STANDARD = {
    "budget": 50,
    "seed": 0,
    "solver": "auto",
    "optimizer": "hybrid",
    "timeout": None,
    "workers": 1,
    "seconds_per_proposal": 5.0,
    "evaluation_timeout": None,
}
"""Of ``mipcash run``, where neither the command nor the model says more."""


@dataclass(frozen=True)
class Plan:
    """One run: what ``mipcash run`` was given, completed by the model's defaults."""

    budget: int
    seed: int
    solver: str
    optimizer: str
    timeout: float | None
    workers: int
    seconds_per_proposal: float
    evaluation_timeout: float | None
    storage: Path
    options: Mapping[str, str]
    limits: Pairs
    quiet: bool

    @classmethod
    def of(
        cls,
        loaded: modelfile.Model,
        given: Mapping[str, Any],
        storage: Path | None,
        options: Mapping[str, str],
        limits: Pairs,
        quiet: bool,
    ) -> Plan:
        """Of a model.

        Args:
            given: what the command line says of STANDARD; None: nothing.
            limits: those of the command line.
        """
        chosen = {**STANDARD, **loaded.defaults, **{name: value for name, value in given.items() if value is not None}}
        path = storage or archive.default_path(loaded.title, chosen["seed"])
        return cls(**chosen, storage=path, options=options, limits=together(loaded.limits, limits), quiet=quiet)

    def differs(self, old: archive.Archive) -> bool:
        """Whether a journal is of another study; opening it then says how."""
        record = old.record
        then = (record.seed, record.solver, record.optimizer, dict(record.options), dict(record.limits))
        now = (self.seed, self.solver, self.optimizer, dict(self.options), stored_limits(limits_of(self.limits)))
        return then != now
