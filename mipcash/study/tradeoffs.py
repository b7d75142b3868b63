"""What each limit costs: how the best loss changes as the limit is moved, among what was evaluated.

For one end of one limit, the others kept: the observations that no other has both a lower loss and a value farther inside than
(the Pareto front of loss and value). Each is a step: from its value on, its loss can be had.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from mipcash.display import table
from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import FAILED
from mipcash.study.standing import Standing

SHOWN = 4
"""Steps on either side of a bound that are printed; ``rows`` has all."""


@dataclass(frozen=True)
class Step:
    """A bound, and the best loss that it admits.

    Attributes:
        bound: where the end of the limit would be.
        loss: the best among the evaluations that keep it and all other limits.
        trial: number of the evaluation.
        keeps: whether it keeps the limit as it is.
    """

    bound: float
    loss: float
    trial: int
    keeps: bool


@dataclass(frozen=True)
class TradeOff:
    """One end of a limit against the loss.

    Attributes:
        limit: the limit.
        end: ``high`` or ``low``.
        steps: tightest bound first.
        binds: whether a lower loss was seen beyond the bound, the other limits kept.
        broken: evaluations that lie outside of this end.
        told: evaluations of which the output is known.
        failed: evaluations of which it failed.
        goals: what the study optimises.
    """

    limit: Limit
    end: str
    steps: tuple[Step, ...]
    binds: bool
    broken: int
    told: int
    failed: int
    goals: Goals = MINIMISED

    @property
    def given(self) -> float:
        """The bound as it is."""
        return self.limit.high if self.end == "high" else self.limit.low

    @property
    def share(self) -> float:
        """Of the evaluations whose output is known, those that break it; nan where there is none."""
        return self.broken / self.told if self.told else math.nan

    @property
    def name(self) -> str:
        """``latency_ms <= 5``."""
        return f"{self.limit.output} {'<=' if self.end == 'high' else '>='} {self.given:g}"

    @classmethod
    def of(cls, standing: Standing, m: int, end: str) -> TradeOff:
        """Of the m-th limit."""
        limit, sign = standing.limits[m], 1.0 if end == "high" else -1.0
        given = limit.high if end == "high" else limit.low
        outputs = [row.whole.outcome[limit.output] for row in standing.rows]
        values = np.array([math.nan if o.value is None or not math.isfinite(o.value) else o.value for o in outputs])
        goals = standing.goals
        opposite = values < limit.low if end == "high" else values > limit.high
        others = (np.delete(standing.violations, m, axis=1) == 0.0).all(axis=1) & ~opposite
        told = np.isfinite(values)
        ranked = []
        for k in np.flatnonzero(others & told).tolist():
            whole = standing.rows[k].whole
            if whole.legal and whole.loss is not None and not whole.outcome.stopped:
                ranked.append((sign * values[k], whole.loss, standing.tells(standing.rows[k])))
        steps: list[Step] = []
        best = math.inf
        for value, loss, number in sorted(ranked):
            if loss < best:
                best = loss
                steps.append(Step(float(sign * value), goals.sign * loss, number, bool(value <= sign * given)))
        broken, failed = int((sign * values > sign * given).sum()), sum(o.status == FAILED for o in outputs)
        return cls(limit, end, tuple(steps), any(not s.keeps for s in steps), broken, int(told.sum()), failed, goals)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per step; one without a bound where nothing keeps the other limits."""
        shared = {"limit": self.name, "output": self.limit.output, "end": self.end}
        last = {"binds": self.binds, "broken": self.broken, "told": self.told, "failed": self.failed}
        steps = self.steps or (Step(math.nan, math.nan, -1, False),)
        return [{**shared, "bound": s.bound, "loss": s.loss, "trial": s.trial, "keeps": s.keeps, **last} for s in steps]

    def said(self) -> str:
        """How the limit stands, in a sentence."""
        share = f"broken by {self.broken} of {self.told} evaluations" if self.told else "its output is not known yet"
        failed = f", failed in {self.failed}" if self.failed else ""
        if not self.steps:
            return f"{share}{failed}; no evaluation keeps the other limits"
        if not any(s.keeps for s in self.steps):
            return f"{share}{failed}; nothing keeps it together with the other limits yet"
        binds = (
            f"binds: a {self.goals.better} was seen beyond it"
            if self.binds
            else f"does not bind: nothing {self.goals.better.split()[0]} was seen beyond it"
        )
        return f"{share}{failed}; {binds}"

    def cells(self) -> list[tuple[str, str, str, str]]:
        """Bound, loss, trial and a remark, of the steps about the bound as it is."""
        inside = [s for s in self.steps if s.keeps]
        outside = [s for s in self.steps if not s.keeps]
        found = []
        for s in [*inside[-SHOWN:], *outside[:SHOWN]]:
            remark = "breaks it" if not s.keeps else "best within the limit" if s is inside[-1] else ""
            found.append((f"{s.bound:.6g}", f"{s.loss:.6g}", str(s.trial), remark))
        return found


@dataclass(frozen=True, repr=False)
class LimitTable(Sequence[dict[str, Any]]):
    """``result.limits``: how each limit trades against the loss, a sequence of flat dicts: ``pandas.DataFrame(result.limits)``.

    Attributes:
        trade_offs: one per end of each limit.
    """

    trade_offs: tuple[TradeOff, ...]

    @classmethod
    def of(cls, standing: Standing) -> LimitTable:
        ends = [
            (m, end)
            for m, limit in enumerate(standing.limits)
            for end, bound in (("low", limit.low), ("high", limit.high))
            if math.isfinite(bound)
        ]
        return cls(tuple(TradeOff.of(standing, m, end) for m, end in ends))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per step: limit, output, end, bound, loss, trial, keeps, binds, broken, told, failed.

        ``loss`` is the best that was found with this end of the limit at ``bound`` and all else as it is.
        """
        return [row for t in self.trade_offs for row in t.rows()]

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if not self.trade_offs:
            yield "no limits were given"
            return
        best = self.trade_offs[0].goals.best
        yield f"what each limit costs: the {best} that was found if it stood elsewhere, the other limits as they are"
        for each in self.trade_offs:
            yield f"{each.name}: {each.said()}"
            head = (
                f"{each.limit.output} {'at most' if each.end == 'high' else 'at least'}",
                each.goals.best,
                "trial",
                "",
            )
            cells = [head, *each.cells()] if each.steps else []
            widths = [max((len(row[c]) for row in cells), default=0) for c in range(3)]
            for row in cells:
                yield ("  " + "  ".join(f"{row[c]:>{widths[c]}}" for c in range(3)) + f"  {row[3]}").rstrip()

    def _repr_html_(self) -> str:
        parts = [
            table(f"{t.name}: {t.said()}", (f"{t.limit.output} bound", t.goals.best, "trial", ""), t.cells())
            for t in self.trade_offs
        ]
        return "\n".join(parts) or table("no limits were given", (), ())
