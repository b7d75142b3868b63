"""Trade-off between each outcome constraint and the loss: how the best evaluated loss changes with the bound.

For one end of one constraint, with the other constraints satisfied, the Pareto front of loss and output value is computed. Each
point of the front is a step: its loss is reached if the bound is at its value or looser.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.display import aligned, table
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import FAILED, LOSS
from mipcash.optimizers.pareto import on_front
from mipcash.optimizers.scalarising import values_of
from mipcash.program.forms import Booleans, Indices
from mipcash.study.feasibility import Feasibility

SHOWN = 4
"""Number of steps printed on either side of a bound; ``rows`` has all."""


@dataclass(frozen=True)
class Step:
    """A bound, and the best loss that it admits.

    Attributes:
        bound: value of the bound.
        loss: best loss of the evaluations that satisfy this bound and all other constraints.
        trial: number of the evaluation.
        feasible: True if the evaluation satisfies the constraint with its actual bound.
    """

    bound: float
    loss: float
    trial: int
    feasible: bool


@dataclass(frozen=True)
class TradeOff:
    """Trade-off between one end of a constraint and the loss.

    Attributes:
        limit: the constraint.
        end: ``high`` or ``low``.
        steps: the steps, tightest bound first.
        binds: True if a better loss was found beyond the bound, with the other constraints satisfied; with several objectives, if
            a trial beyond it would be on the front.
        violated: number of evaluations that violate this end.
        known: number of evaluations whose output is known.
        failed: number of evaluations whose output failed.
        objectives: the objectives.
    """

    limit: Limit
    end: str
    steps: tuple[Step, ...]
    binds: bool
    violated: int
    known: int
    failed: int
    objectives: Objectives = MINIMISED

    @property
    def given(self) -> float:
        """The actual bound, as given in ``limits=``."""
        return self.limit.high if self.end == "high" else self.limit.low

    @property
    def share(self) -> float:
        """Share of the evaluations with known output that violate the bound; nan if there are none."""
        return self.violated / self.known if self.known else math.nan

    @property
    def name(self) -> str:
        """Name such as ``latency_ms <= 5``."""
        return f"{self.limit.output} {'<=' if self.end == 'high' else '>='} {self.given:g}"

    @classmethod
    def of(cls, feasibility: Feasibility, m: int, end: str) -> TradeOff:
        """Make the trade-off of the m-th constraint."""
        limit, sign = feasibility.limits[m], 1.0 if end == "high" else -1.0
        given = limit.high if end == "high" else limit.low
        outputs = [row.merged.outcome[limit.output] for row in feasibility.rows]
        values = np.array([math.nan if o.value is None or not math.isfinite(o.value) else o.value for o in outputs])
        objectives = feasibility.objectives
        if limit.output == LOSS:  # in its own sign, as its limit is
            values = objectives.sign * values
        opposite = values < limit.low if end == "high" else values > limit.high
        others = (np.delete(feasibility.violations, m, axis=1) == 0.0).all(axis=1) & ~opposite
        reported = np.isfinite(values)
        ranked = []
        for k in np.flatnonzero(others & reported).tolist():
            whole = feasibility.rows[k].merged
            if whole.loss is not None and feasibility.usable(feasibility.rows[k]):
                ranked.append((sign * values[k], whole.loss, feasibility.tells(feasibility.rows[k])))
        steps: list[Step] = []
        best = math.inf
        for value, loss, number in sorted(ranked):
            if loss < best:
                best = loss
                steps.append(Step(float(sign * value), objectives.sign * loss, number, bool(value <= sign * given)))
        violated, failed = int((sign * values > sign * given).sum()), sum(o.status == FAILED for o in outputs)
        binds = any(not s.feasible for s in steps)
        if objectives.several:
            binds = _adds_to_front(feasibility, np.flatnonzero(others & reported), sign * values > sign * given)
        return cls(
            limit,
            end,
            tuple(steps),
            binds,
            violated,
            int(reported.sum()),
            failed,
            objectives,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dict per step; one dict without a bound if no evaluation satisfies the other constraints."""
        shared = {"limit": self.name, "output": self.limit.output, "end": self.end}
        last = {"binds": self.binds, "violated": self.violated, "known": self.known, "failed": self.failed}
        steps = self.steps or (Step(math.nan, math.nan, -1, False),)
        return [
            {**shared, "bound": s.bound, "loss": s.loss, "trial": s.trial, "feasible": s.feasible, **last}
            for s in steps
        ]

    def text(self) -> str:
        """Return a sentence on the violations of the constraint and whether it binds."""
        share = (
            f"violated by {self.violated} of {self.known} evaluations" if self.known else "its output is not known yet"
        )
        failed = f", failed in {self.failed}" if self.failed else ""
        if not self.steps:
            return f"{share}{failed}; no evaluation satisfies the other limits"
        if not any(s.feasible for s in self.steps):
            return f"{share}{failed}; nothing satisfies it together with the other limits yet"
        seen = f"{'a' if self.binds else 'no'} {self.objectives.better} was seen beyond it"
        if self.objectives.several:
            seen = f"{'a' if self.binds else 'no'} trial beyond it would be on the front"
        binds = f"{'binds' if self.binds else 'does not bind'}: {seen}"
        return f"{share}{failed}; {binds}"

    def cells(self) -> list[tuple[str, str, str, str]]:
        """Return bound, loss, trial and a remark for the steps around the actual bound."""
        inside = [s for s in self.steps if s.feasible]
        outside = [s for s in self.steps if not s.feasible]
        found = []
        for s in [*inside[-SHOWN:], *outside[:SHOWN]]:
            remark = "violates it" if not s.feasible else "best within the limit" if s is inside[-1] else ""
            found.append((f"{s.bound:.6g}", f"{s.loss:.6g}", str(s.trial), remark))
        return found


def _adds_to_front(feasibility: Feasibility, rows: Indices, beyond: Booleans) -> bool:
    """Return True if a row beyond a bound would be on the Pareto front of these rows."""
    usable = [k for k in rows if feasibility.usable(feasibility.rows[k])]
    known, values = values_of([feasibility.rows[k].merged for k in usable], feasibility.objectives)
    order = sorted(
        range(len(known)), key=lambda k: bool(beyond[usable[known[k]]])
    )  # of equal rows, the first is on the front
    return any(on and beyond[usable[known[k]]] for k, on in zip(order, on_front(values[order]), strict=True))


class LimitTable(list[dict[str, Any]]):
    """``result.limits``: the trade-off of each outcome constraint with the loss, a list of flat dicts for pandas.

    One dict per step: limit, output, end, bound, loss, trial, feasible, binds, violated, known, failed. ``loss`` is the best that
    was found with this end of the constraint at ``bound`` and the other constraints unchanged.

    Attributes:
        trade_offs: one per end of each constraint.
    """

    def __init__(self, feasibility: Feasibility) -> None:
        ends = [
            (m, end)
            for m, limit in enumerate(feasibility.limits)
            for end, bound in (("low", limit.low), ("high", limit.high))
            if math.isfinite(bound)
        ]
        self.trade_offs = tuple(TradeOff.of(feasibility, m, end) for m, end in ends)
        super().__init__(row for t in self.trade_offs for row in t.rows())

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if not self.trade_offs:
            yield "no limits were given"
            return
        best = self.trade_offs[0].objectives.best
        yield f"trade-offs: the {best} for other bounds of each outcome constraint, the other constraints unchanged"
        for each in self.trade_offs:
            yield f"{each.name}: {each.text()}"
            head = (
                f"{each.limit.output} {'at most' if each.end == 'high' else 'at least'}",
                each.objectives.best,
                "trial",
                "",
            )
            yield from aligned([head, *each.cells()]) if each.steps else ()

    def _repr_html_(self) -> str:
        parts = [
            table(f"{t.name}: {t.text()}", (f"{t.limit.output} bound", t.objectives.best, "trial", ""), t.cells())
            for t in self.trade_offs
        ]
        return "\n".join(parts) or table("no limits were given", (), ())
