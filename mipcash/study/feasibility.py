"""Feasibility of the trials of a study under its outcome constraints: feasible trials, violations, and the nearest trial.

Decoupled evaluations of one configuration are combined (``mipcash.optimizers.optimizer.joined``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from mipcash.modelling.domains import Configuration
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Joined, Limit, Observation, averaged, joined
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, MISSING, PENDING, PRESENT, Outcome
from mipcash.optimizers.violations import violations
from mipcash.study.trial import Trial
from mipcash.text import one_line


@dataclass(frozen=True)
class Violation:
    """An outcome constraint that an outcome violates.

    Attributes:
        limit: the constraint.
        value: value of the constrained output; None: the output failed, or is unknown.
        message: why the output failed; empty otherwise.
        by: violation in the unit of the output; inf if there is no value.
    """

    limit: Limit
    value: float | None
    message: str = ""
    by: float = math.inf

    @property
    def known(self) -> bool:
        """True if the output is known, or known to have failed."""
        return self.value is not None or bool(self.message)

    def __str__(self) -> str:
        name = self.limit.output
        if self.value is None:
            return f"{name} failed: {one_line(self.message, 80)}" if self.message else f"{name} is not known"
        end, sign = (self.limit.low, "<") if self.value < self.limit.low else (self.limit.high, ">")
        text = f"{self.value:.6g}"
        return f"{name} {text if float(text) != end else repr(self.value)} {sign} {end:g}"


def violated(outcome: Outcome, limits: Sequence[Limit]) -> tuple[Violation, ...]:
    """Return the constraints that an outcome is not known to satisfy."""
    found = []
    for limit in limits:
        output = outcome[limit.output]
        value = output.value if output.status == PRESENT else None
        if value is None:
            found.append(Violation(limit, None, (output.message or "failed") if output.status != MISSING else ""))
        elif by := limit.violation(value):
            found.append(Violation(limit, value, by=by))
    return tuple(found)


@dataclass(frozen=True)
class Nearest:
    """The trial with the least total violation, and the constraints that it violates.

    Attributes:
        trial: the trial; of decoupled evaluations, the one that has the loss.
        violations: its violated constraints; empty if it is feasible.
        violation: total violation on the scale on which outputs are modelled, a logarithm of the distance to the bound relative to
            its median (``mipcash.surrogates.limit_scale``), so that the units of outputs do not matter.
    """

    trial: Trial
    violations: tuple[Violation, ...]
    violation: float

    @property
    def config(self) -> Configuration:
        """Its configuration (a fresh dict)."""
        return dict(self.trial.config)

    def __str__(self) -> str:
        if not self.violations and self.trial.loss is None:
            return f"trial {self.trial.number} satisfies all constraints, and its loss is not known"
        if not self.violations:
            return f"trial {self.trial.number} satisfies all constraints"
        return f"trial {self.trial.number} comes nearest: {', '.join(map(str, self.violations))}"


@dataclass(frozen=True)
class Feasibility:
    """Feasibility of trials; see the module's description. Make one with ``of``.

    Attributes:
        trials: of the study, by number.
        limits: the m outcome constraints, with the objective's own sign.
        rows: r configurations with a known outcome, each with the numbers of its trials. Several measurements of one count by their
            means. Repeats are left out, because they come after the search, unless there are several objectives.
        violations: shape (r, m).
        objectives: of the study, with their directions.
        ruled_out: numbers of trials whose configurations failed or violated a constraint when they were evaluated again.
    """

    trials: Sequence[Trial]
    limits: tuple[Limit, ...]
    rows: Sequence[Joined]
    violations: NDArray[np.float64]
    objectives: Objectives
    ruled_out: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        trials: Sequence[Trial],
        limits: Sequence[Limit],
        directions: Objectives = MINIMISED,
        observed: Sequence[Observation] | None = None,
    ) -> Feasibility:
        """Make it.

        Args:
            directions: the objectives of a study without trials.
            observed: the trials as observations in minimisation form, if the caller has them.
        """
        objectives = trials[0].objectives if trials else directions
        observed = [observation(t) for t in trials] if observed is None else observed
        observed = observed if objectives.several else without_repeats(observed)
        rows = averaged(joined(observed, (LOSS, *(limit.output for limit in limits))))
        seen = objectives.in_minimisation_form(limits)
        return cls(trials, tuple(limits), rows, violations([row.merged for row in rows], seen)[0], objectives)

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """Outcome of every trial, combined with the other trials of its configuration."""
        found = [t.outcome for t in self.trials]
        for row in self.rows:
            for number in row.parts:
                if len(row.parts) > 1:
                    whole = row.merged.outcome
                    found[number] = whole.negated() if self.objectives.maximised else whole
        return found

    def violations_of(self, number: int) -> tuple[Violation, ...]:
        """Return the constraints that a trial is not known to satisfy."""
        return violated(self.outcomes[number], self.limits)

    def feasible(self, number: int) -> bool | None:
        """Return True if a trial is feasible, False if it violates a constraint or a constrained output failed, else None."""
        if number in self.ruled_out:
            return False
        found = self.violations_of(number)
        return None if found and not any(b.known for b in found) else not found

    def tells(self, row: Joined) -> int:
        """Return the number of the trial that represents a row: the first with a loss, else the last."""
        return next((k for k in row.parts if self.trials[k].loss is not None), row.parts[-1])

    @cached_property
    def inside(self) -> list[Joined]:
        """Rows that are legal, feasible and have a loss. Estimates of pruned evaluations are included."""
        inside = (self.violations == 0.0).all(axis=1)
        return [
            r
            for r, feasible in zip(self.rows, inside, strict=True)
            if feasible and _has_loss(r.merged) and r.merged.legal and not self.ruled_out.intersection(r.parts)
        ]

    def usable(self, row: Joined) -> bool:
        """Return True if a row is legal, complete and not ruled out."""
        return row.merged.legal and not row.merged.outcome.pruned and not self.ruled_out.intersection(row.parts)

    @cached_property
    def kept(self) -> list[Joined]:
        """Rows that are legal, feasible and have the loss of a complete evaluation."""
        return [row for row in self.inside if not row.merged.outcome.pruned]

    @cached_property
    def best(self) -> Trial | None:
        """The first feasible trial with the best loss; None if there is none."""
        found = ((row.merged.loss, self.tells(row)) for row in self.kept)
        _, number = min(((l, k) for l, k in found if l is not None), default=(None, None))
        return None if number is None else self.trials[number]

    def incumbents(self) -> NDArray[np.float64]:
        """Return the best feasible loss up to each trial, with the objective's own sign: shape (n,), nan before the first.

        Several measurements of one configuration count by their mean so far.
        """
        told: dict[int, tuple[int, float]] = {}
        for r, row in enumerate(self.kept):
            losses = {k: loss for k in row.parts if (loss := self.trials[k].minimised) is not None}
            if len(losses) == 1 and self.limits:  # counts from the last trial on, which may have a constrained output
                losses = {row.parts[-1]: min(losses.values())}
            told |= {k: (r, loss) for k, loss in losses.items()}
        measured: dict[int, list[float]] = {}
        means, best, found = dict[int, float](), math.nan, np.full(len(self.trials), math.nan)
        for k in range(len(self.trials)):
            if k in told:
                r, loss = told[k]
                measured.setdefault(r, []).append(loss)
                before, means[r] = means.get(r, math.inf), fmean(measured[r])
                rises = before == best and means[r] > best
                best = min(means.values()) if rises else float(np.fmin(best, means[r]))
            found[k] = best
        return np.asarray(self.objectives.sign * found)

    @property
    def ranked(self) -> list[int]:
        """Numbers of the trials sorted by violation, then by loss (Deb 2000); only legal, complete ones whose loss did not fail.

        Rows with fewer unknown constrained outputs come first. At equal violation, an unknown loss comes last.
        """
        return [number for *_, number, _ in self._ranked]

    @property
    def nearest(self) -> Nearest | None:
        """The first of ``ranked`` with a known constrained output; None if there is none."""
        for unknown, outside, _, number, _ in self._ranked:
            if unknown < len(self.limits) or not self.limits:
                return Nearest(self.trials[number], self.violations_of(number), math.inf if unknown else outside)
        return None

    @cached_property
    def _ranked(self) -> list[tuple[int, float, float, int, int]]:
        """Sort keys: number of constraints with unknown output, violation, loss, number of the trial, row."""
        ranked = []
        for k, row in enumerate(self.rows):
            here, whole = self.violations[k], row.merged
            if not self.usable(row) or whole.status == PENDING or whole.outcome[LOSS].status == FAILED:
                continue
            loss = math.inf if whole.loss is None else whole.loss
            outside = float(here[np.isfinite(here)].sum())
            ranked.append((int(np.isinf(here).sum()), outside, loss, self.tells(row), k))
        return sorted(ranked)


def without_repeats(observed: Sequence[Observation]) -> list[Observation]:
    """Return observations of which repeats count as pending."""
    return [Observation(o.config, PENDING) if o.repeat else o for o in observed]


def observation(trial: Trial) -> Observation:
    """Return a trial as an optimizer sees it, with its loss in minimisation form."""
    return observation_of(trial.in_minimisation_form())


def observation_of(trial: Trial) -> Observation:
    """Return a trial as an observation, with its loss in the objective's own sign."""
    outcome = (trial.status, trial.loss, trial.values, trial.outcome)
    elsewhere = trial.known or trial.repeat > 0
    legal = trial.legal and trial.at_full_fidelity
    return Observation(dict(trial.config), *outcome, elsewhere, legal, trial.evaluate, trial.repeat)


def _has_loss(whole: Observation) -> bool:
    return whole.loss is not None and whole.status == DONE
