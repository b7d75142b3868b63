"""Convergence of a run: losses, infeasible and failed evaluations, and the best value so far; by evaluations and by seconds.

Seconds count the time in which the run was asking or evaluating. A pause between two runs of one journal does not count, and
overlapping evaluations count once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import MipcashError
from mipcash.optimizers.objectives import MINIMISED, Objective, Objectives
from mipcash.program.forms import Booleans, Vector
from mipcash.study.result import Result
from mipcash.study.trial import Trial

LOG_FROM, MOST_FROM = 20.0, 3.0
"""Ratios of the maximum and of the 90 % quantile of the losses to the minimum, from which their axis is logarithmic."""


@dataclass(frozen=True)
class Curve:
    """Data of the convergence picture; x counts trials from 1.

    Attributes:
        x, seconds, loss: (d,) of the evaluations that succeeded.
        infeasible: (d,) True if they violate an outcome constraint.
        incomplete: (d,) True if they were pruned or at a low fidelity, so that the loss is an estimate.
        failed, failed_seconds: (f,) of the failed evaluations.
        step_x, step_seconds, step_y: (s,) the incumbent, from the first success on.
        low, high, log: limits of the loss axis, and True if it is logarithmic. Worse losses are drawn at ``rim``.
        last, last_seconds: the right ends of the x axes.
        objectives: the objectives.
    """

    x: Vector
    seconds: Vector
    loss: Vector
    infeasible: Booleans
    incomplete: Booleans
    failed: Vector
    failed_seconds: Vector
    step_x: Vector
    step_seconds: Vector
    step_y: Vector
    low: float
    high: float
    log: bool
    last: int
    last_seconds: float
    objectives: Objectives = MINIMISED

    @property
    def inside(self) -> Booleans:
        """True for losses within the axis: (d,)."""
        return np.asarray((self.loss >= self.low) & (self.loss <= self.high))

    @property
    def reason(self) -> str:
        """Reason why evaluations are incomplete."""
        return "pruned" if self.objectives.fidelity is None else "low fidelity"

    @property
    def rim(self) -> float:
        """Axis value at which losses beyond the axis are drawn: the limit on the side of worse losses."""
        return self.low if self.objectives.maximised else self.high

    @property
    def found(self) -> int:
        """Index of the step that found the best loss."""
        return self.reached(self.objectives.sign * float(self.step_y[-1]))

    def reached(self, bound: float) -> int:
        """Return the index of the step from which on the loss stays at a bound, in minimisation form, or below it.

        The mean of several measurements may rise again.
        """
        worst_later = np.maximum.accumulate((self.objectives.sign * self.step_y)[::-1])[::-1]
        return int(np.argmax(worst_later <= bound))


def curve(result: Result) -> Curve:
    """Return the convergence data of a result."""
    number, loss, incumbent, _ = result.convergence()
    infeasible = np.array([result.feasibility.feasible(k) is False for k in range(len(number))], dtype=bool)
    x, at = number.astype(float) + 1, at_work(result)
    done, known = np.isfinite(loss), np.isfinite(incumbent)
    failed = np.array([t.failed and t.legal and not t.repeat for t in result.history], dtype=bool)
    last, end = (int(x[-1]), float(at.max())) if x.size else (1, 0.0)
    low, high, log = loss_limits(result.objectives, loss[done])
    return Curve(
        x[done],
        at[done],
        loss[done],
        infeasible[done],
        np.array([not t.complete for t in result.history], dtype=bool)[done],
        x[failed],
        at[failed],
        np.append(x[known], np.full(int(known.any()), last)),
        np.append(at[known], np.full(int(known.any()), end)),
        np.append(incumbent[known], incumbent[known][-1:]),
        low,
        high,
        log,
        last,
        end,
        result.objectives,
    )


def shared_objective(of_runs: Iterable[Objectives]) -> Objectives:
    """Return the single objective that some runs share.

    Raises:
        MipcashError: the runs have several objectives, or different ones.
    """
    found = {replace(objectives, fidelity=None) for objectives in of_runs}
    if len(found) > 1 or any(o.several for o in found):
        words = sorted({", ".join(f"{o.direction} {o.output}" for o in objectives.each) for objectives in found})
        raise MipcashError(
            f"these runs cannot be compared: their objectives are {' and '.join(map(repr, words))}; compare runs with the same "
            "single objective"
        )
    (objective,) = found
    return objective


def loss_limits(objectives: Objectives | Objective, loss: Vector) -> tuple[float, float, bool]:
    """Return the limits of the loss axis, and True if it is logarithmic; the best losses are never cut off.

    Args:
        loss: losses as the user sees them, not in minimisation form.
    """
    low, high, log = axis_limits(objectives.sign * loss)
    return (-high, -low, False) if objectives.sign < 0 else (low, high, log)


def span_of(t: Trial) -> tuple[float, float]:
    """Return the start and the end of the evaluation of a started trial, in seconds since the epoch; equal while it is pending."""
    if t.finished is None:
        return t.started, t.started
    end = max(t.finished, t.started)
    return max(t.started, end - (t.duration or 0.0)), end


def at_work(result: Result) -> NDArray[np.float64]:
    """Return the seconds of work up to the end of each trial; for a pending trial, up to its start: (n,)."""
    spans = []
    for t in result.history:
        if t.known or not (t.attempt and t.started):
            spans.append((np.inf, np.inf))
            continue
        begin, end = span_of(t)
        spans.append((begin - t.seconds.get("ask", 0.0), end))
    begins, ends = np.array(spans, dtype=float).reshape(-1, 2).T
    known = np.isfinite(ends)
    order = np.lexsort((ends, begins))
    order = order[known[order]]
    found = np.zeros(len(spans))
    stop = np.maximum.accumulate(ends[order])
    start = np.maximum(begins[order], np.append(-np.inf, stop[:-1]))
    start, stop = start[stop > start], stop[stop > start]  # the union of the spans, in pieces that do not overlap
    total = np.cumsum(stop - start)
    if total.size:
        corners = np.c_[start, stop].ravel(), np.c_[total - (stop - start), total].ravel()
        found[known] = np.interp(ends[known], *corners)
    return found


def axis_limits(loss: NDArray[np.float64]) -> tuple[float, float, bool]:
    """Return the limits of the loss axis, and True if it is logarithmic.

    They cover the whole range, unless a few outliers would flatten the rest. Positive losses that span enough decades have a
    logarithmic scale.
    """
    if not loss.size:
        return 0.0, 1.0, False
    low, high = float(loss.min()), float(loss.max())
    most = float(np.quantile(loss, 0.9))
    if low > 0.0 and math.inf > high / low >= LOG_FROM and most / low >= MOST_FROM:
        far = math.log(most / low) * 3
        if math.log(high / low) > 2 * far:
            high = float(loss[loss <= low * math.exp(far)].max())
        margin = (high / low) ** 0.04
        return low / margin, high * margin, True
    reach = low + 3 * (most - low)
    if high - low > 2 * (reach - low) > 0:
        high = float(loss[loss <= reach].max())
    margin = 0.08 * (high - low) or 0.05 * max(1e-12, abs(high)) or 0.5
    return low - margin, high + margin, False


def time_unit(last: float) -> tuple[float, str]:
    """Return the seconds in a unit that suits a time axis, and the name of the unit."""
    return (1.0, "s") if last < 180 else (60.0, "min") if last < 10800 else (3600.0, "h")
