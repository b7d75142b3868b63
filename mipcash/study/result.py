"""What a run found: the best configuration and the history that led to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipcash.display import counted, table, value_text
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.outcome import PENDING
from mipcash.study.text import one_line, visible, without_address
from mipcash.study.trial import Trial

SUSPICIOUS = 5
"""So many equal failures from the start are one broken objective; where half the space fails, chance makes one run of 32 so."""
BY_LOSS = -1
"""In the place of a recommended trial: whichever has the lowest loss."""


class Convergence(NamedTuple):
    """Arrays of shape (n,), one entry per trial by number.

    Attributes:
        number: trial numbers.
        loss: nan where the trial failed, is pending, was not asked for its loss, or is a known one that is illegal.
        incumbent: lowest loss so far, nan before the first.
    """

    number: NDArray[np.int64]
    loss: NDArray[np.float64]
    incumbent: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a study.

    Attributes:
        history: all trials by number, failed and pending ones included, and known ones, which ``trial.known`` tells apart.
        space: name of the space.
        stopped: why the run ended: ``budget``, ``timeout``, ``space exhausted`` (``: proven optimum`` where
            nothing failed), ``callback``, ``optimizer: ...`` (its wish, and why); empty while it goes on.
        recommended: number of the trial that the optimizer recommends; None: it recommends none.
    """

    history: tuple[Trial, ...] = field(repr=False)
    space: str = "space"
    stopped: str = ""
    recommended: int | None = field(default=BY_LOSS, repr=False)

    @property
    def best(self) -> Trial | None:
        """The trial that the optimizer recommends, as a rule the first with the lowest loss; None where there is none."""
        if self.recommended != BY_LOSS:
            return None if self.recommended is None else self.history[self.recommended]
        done = [t for t in self.history if t.done and t.legal and t.loss is not None]
        return min(done, key=lambda t: math.inf if t.loss is None else t.loss, default=None)

    @property
    def config(self) -> Configuration | None:
        """The best configuration (a fresh dict); None where there is none."""
        return None if self.best is None else dict(self.best.config)

    @property
    def value(self) -> float:
        """The loss of the best configuration, as a rule the lowest; nan where there is none."""
        best = self.best
        return math.nan if best is None or best.loss is None else best.loss

    @property
    def values(self) -> dict[str, float]:
        """Further named values of the best configuration: of the best trial, and of those that evaluated other outputs there."""
        best = self.best
        if best is None:
            return {}
        beside = (t for t in self.history if t.evaluate and t is not best and t.config == best.config)
        found = {name: value for t in beside for name, value in t.values.items()}
        return {**found, **best.values}

    @property
    def n_done(self) -> int:
        """Evaluations of this study that succeeded."""
        return sum(t.done for t in self.history if not t.known)

    @property
    def n_failed(self) -> int:
        """Evaluations of this study that failed."""
        return sum(t.failed for t in self.history if not t.known)

    @property
    def n_known(self) -> int:
        """Evaluations made elsewhere."""
        return sum(t.known for t in self.history)

    @property
    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds of all asks and of all evaluations; parallel evaluations add up."""
        asks = sum(t.seconds.get("ask", 0.0) for t in self.history)
        return {"ask": asks, "evaluation": sum(t.duration or 0.0 for t in self.history)}

    def convergence(self) -> Convergence:
        told = [t.loss if t.done and t.legal and t.loss is not None else math.nan for t in self.history]
        losses = np.array(told, dtype=np.float64)
        numbers = np.array([t.number for t in self.history], dtype=np.int64)
        return Convergence(numbers, losses, np.fmin.accumulate(losses) if losses.size else losses)

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat dict per trial, for ``pandas.DataFrame(result.to_rows())``.

        Columns: number, status, loss, duration, message, origin, then ``config.<name>``, ``values.<name>``,
        ``texts.<name>`` and ``seconds.<part>``.
        """
        return [_flat(trial) for trial in self.history]

    def problem(self) -> str:
        """A sentence when the run found nothing or its objective looks broken; empty otherwise."""
        told = [t for t in self.history if not (t.pending or t.known)]
        first = told[:SUSPICIOUS]
        if told and len(same_failures(first)) == len(first):
            rest = "" if self.n_done else " and no evaluation succeeded"
            which = "the only evaluation" if len(first) == 1 else f"each of the first {len(first)} evaluations"
            return f"{which} failed with the same message{rest}: {told[0].message}"
        if told and not self.n_done:
            return f"none of {len(told)} evaluations succeeded; the latest message: {told[-1].message}"
        return ""

    def __repr__(self) -> str:
        return f"<result of {self.space!r}: {self._summary()}>"

    def _summary(self) -> str:
        best = self.best
        found = "nothing found" if best is None else f"best {self.value:.6g} (trial {best.number})"
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{found} in {counted(self.n_done + self.n_failed, 'evaluation')}{failed}{stopped}"

    def _repr_html_(self) -> str:
        best = self.best
        rows = [] if best is None else [(name, value_text(value)) for name, value in best.config.items()]
        rows += [] if best is None else [(f"[{name}]", value_text(value)) for name, value in self.values.items()]
        return table(f"{self.space}: {self._summary()}", (), rows)

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines()))

    def _lines(self) -> Iterator[str]:
        counts = f"{self.n_done} done, {self.n_failed} failed"
        pending = sum(t.pending for t in self.history)
        counts += f", {pending} {PENDING}" if pending else ""
        counts += f", {self.n_known} known" if self.n_known else ""
        yield f"{self.space}: {counts}" + (f", stopped: {self.stopped}" if self.stopped else "")
        if self.problem():
            yield f"  {' '.join(self.problem().split())}"
        best = self.best
        if best is not None:
            yield f"best value {self.value:.6g} (trial {best.number})"
            yield from (f"  {name} = {value!r}" for name, value in best.config.items())
            yield from (f"  [{name}] {value:.6g}" for name, value in self.values.items())
            yield from (f"  [{name}] {one_line(text, 160)}" for name, text in best.texts.items())
        yield f"seconds: {self.seconds['ask']:.1f} asking, {self.seconds['evaluation']:.1f} evaluating"


def same_failures(told: Sequence[Trial]) -> list[Trial]:
    """All of some trials, if they failed with one message, memory addresses aside; else none."""
    same = all(t.failed for t in told) and len({without_address(t.message) for t in told}) == 1
    return list(told) if same else []


def _flat(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = {
        "number": trial.number,
        "status": trial.status,
        "loss": trial.loss,
        "duration": trial.duration,
        "message": trial.message,
        "origin": trial.origin,
    }
    further = (("values", trial.values), ("texts", trial.texts), ("seconds", trial.seconds))
    for prefix, entries in (("config", trial.config), *further):
        row.update({f"{prefix}.{name}": value for name, value in entries.items()})
    return row
