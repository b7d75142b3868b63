"""What a run found: the best configuration, the history that led to it, and how both stand by the limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipcash.display import counted, table, value_text
from mipcash.errors import MipcashError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.goals import Goals
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import PENDING
from mipcash.study.finalists import Finalist, estimate_of, finalists_of, text_of
from mipcash.study.front import Front, front_of
from mipcash.study.standing import Breach, Nearest, Standing, goals_of_all, observation, told
from mipcash.study.text import one_line, shown, visible, without_address
from mipcash.study.tradeoffs import LimitTable
from mipcash.study.trial import Trial
from mipcash.study.unreturned import unreturned

if TYPE_CHECKING:
    from mipcash.space.space import Space

SUSPICIOUS = 5
"""So many equal failures from the start are one broken objective; where half the space fails, chance makes one run of 32 so."""
LEAST = 2
"""Equal failures that are one broken objective where they are all that a budget gave: one may be its configuration's."""
BY_LOSS = -1
"""In the place of a recommended trial: whichever has the lowest loss."""


class Convergence(NamedTuple):
    """Arrays of shape (n,), one entry per trial by number.

    Attributes:
        number: trial numbers.
        loss: as it was told; nan where a trial failed, is pending, was not asked for its loss, is a known one that is illegal, or a
            repeat.
        incumbent: best loss so far of what keeps all limits, nan before the first.
        feasible: whether a loss is that of a configuration that keeps all limits, for all that is known by now.
    """

    number: NDArray[np.int64]
    loss: NDArray[np.float64]
    incumbent: NDArray[np.float64]
    feasible: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a study.

    Attributes:
        history: all trials by number, failed and pending ones included, and known ones, which ``trial.known`` tells apart.
        space: name of the space.
        stopped: why the run ended: ``budget``, ``timeout``, ``space exhausted``, ``callback``, ``optimizer: ...`` (its wish);
            empty while it goes on. Where every legal configuration has an outcome, ``space exhausted`` goes on to say that the
            answer is the best of all, if the objective is deterministic.
        recommended: number of the trial that the optimizer recommends; None: it recommends none.
        under: the limits of the study.
        declared: the space itself, which questions to the model need; None: the journal was read without it.
        objective: what was minimised, for those who evaluate its answer again; None: nobody said. It is not pickled with a result.
    """

    history: tuple[Trial, ...] = field(repr=False)
    space: str = "space"
    stopped: str = ""
    recommended: int | None = field(default=BY_LOSS, repr=False)
    under: tuple[Limit, ...] = field(default=(), repr=False)
    declared: Space | None = field(default=None, repr=False)
    objective: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "objective": None}

    @property
    def goals(self) -> Goals:
        """What the study optimises."""
        return goals_of_all(self.history)

    @property
    def best(self) -> Trial | None:
        """The trial that the optimizer recommends, or that ``confirm=`` chose among finalists; None: there is none.

        As a rule it is the first that keeps all limits with the lowest loss (or the highest, where it is maximised). It is always
        one of the search, and no repeat. Of several objectives it is a compromise, the balanced trial of the front
        (:mod:`mipcash.study.front`).
        """
        if self.goals.several:
            return Front.of(self.standing).balanced
        if self.recommended != BY_LOSS:
            return None if self.recommended is None else self.history[self.recommended]
        return self.standing.best

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that nothing is better than in all objectives, of what is legal and keeps all limits: the Pareto front.

        By the first objective, best first; of trials with equal values the first.

        Raises:
            MipcashError: there is one objective.
        """
        return front_of(self.standing).members

    def hypervolume(self, reference: Mapping[str, float] | Sequence[float] | None = None) -> float:
        """How much the front dominates, up to a reference point, in the units of the objectives multiplied.

        Args:
            reference: a value of each objective that is just not good enough, by name or in their order; what does not reach it
                counts nothing. None: the worst that this study saw of each, which tells the progress of one run alone.

        Raises:
            ValueError: no such point.
            MipcashError: there is one objective.
        """
        return front_of(self.standing).hypervolume(reference)

    @property
    def config(self) -> Configuration | None:
        """The best configuration (a fresh dict); None where there is none."""
        return None if self.best is None else dict(self.best.config)

    @property
    def value(self) -> float:
        """What the best configuration is worth, with the objective's own sign; nan where there is none.

        Of a deterministic objective it is the loss. The lowest of many noisy losses is too low: where a configuration was evaluated
        again the value is the mean of its repeats, and otherwise, where evaluations show their noise, its loss; either is moved
        towards the mean of all that it was chosen among, by the share of noise in what sets these apart.
        """
        best = self.best
        if best is None or best.loss is None or self.goals.several:
            return math.nan if best is None or best.loss is None else best.loss
        again = next((f for f in self.finalists if f.number == best.number and f.fresh), None)
        return best.loss + self._correction if again is None else estimate_of(self.finalists, again)

    @cached_property
    def _correction(self) -> float:
        """What selection among noisy losses is expected to have cost the best one: v / (v + tau^2) of its distance to the mean.

        v is the noise that is evident, v + tau^2 the variance of the losses of what keeps all limits (James and Stein 1961).
        """
        from mipcash.optimizers.noise import evident_noise  # brings surrogates along

        best = self.best
        noise = evident_noise([told(t) for t in self.history])
        losses = [
            t.loss for t in self.history if self.standing.feasible(t.number) and t.loss is not None and not t.repeat
        ]
        if not noise or best is None or best.loss is None or len(losses) < 2:
            return 0.0
        whole, mean = float(np.var(losses, ddof=1)), float(np.mean(losses))
        # the squares of losses beyond 1e150 overflow
        return min(1.0, noise / whole) * (mean - best.loss) if whole and math.isfinite(whole + mean) else 0.0

    @cached_property
    def finalists(self) -> tuple[Finalist, ...]:
        """Configurations that ``confirm=`` had evaluated again, with their losses in the search and on fresh repeats."""
        return tuple(finalists_of([told(t) for t in self.history], self.under))

    @property
    def fresh(self) -> float:
        """The mean loss of the best configuration on fresh repeats; nan where it was not evaluated again.

        Of finalists the best on the same repeats, it is a little optimistic still.
        """
        best = self.best
        found = (f.mean for f in self.finalists if best is not None and f.number == best.number)
        return next(found, math.nan)

    @property
    def values(self) -> dict[str, float]:
        """Further named values of the best configuration: of the best trial, and of those that evaluated other outputs there."""
        best = self.best
        if best is None:
            return {}
        beside = (t for t in self.history if t.evaluate and t is not best and t.config == best.config)
        found = {name: value for t in beside for name, value in t.values.items()}
        return {**found, **best.values}

    # -- limits -------------------------------------------------------------------------------------------------

    @cached_property
    def standing(self) -> Standing:
        """How the trials stand by the limits."""
        return Standing.of(self.history, self.under)

    @property
    def limits(self) -> LimitTable:
        """How each limit trades against the loss: print it, or ``pandas.DataFrame(result.limits)``."""
        return LimitTable.of(self.standing)

    @property
    def nearest(self) -> Nearest | None:
        """The trial that breaks the limits by the least, and which; the best one as soon as one keeps them all.

        None where nothing is known of any.
        Distances are on the scale on which outputs are learned, so that the unit of none counts more than that of another.
        """
        return self.standing.nearest

    def breaks(self, trial: Trial | int) -> tuple[Breach, ...]:
        """The limits that a trial does not keep, those included whose output failed or is not known; empty: it keeps all."""
        return self.standing.breaks(trial if isinstance(trial, int) else trial.number)

    def probability(self, trial: Trial | int | None = None) -> float:
        """The posterior probability that a trial keeps all limits and does not fail; see :meth:`safe`.

        Args:
            trial: None: the best.

        Returns:
            nan where nothing is known of the trial, of some limited output, or where there is no best.

        Raises:
            MipcashError: the result was read from a journal without its space.
        """
        found = self.best if trial is None else trial
        number = found.number if isinstance(found, Trial) else found
        rows = zip(self.standing.rows, self._probabilities, strict=True)
        return next((float(p) for row, p in rows if number in row.parts), math.nan)

    def safe(self, probability: float = 0.95) -> Trial | None:
        """The trial with the best loss whose limits hold with a posterior probability, and that broke none when it was evaluated.

        The probability is that of the outputs' values without noise, by a model of each limited output and of failures (the default
        optimizer's, fitted to all evaluations, whatever optimizer made them); outputs count as independent. It says how sure it is
        that a configuration keeps the limits, not how often one more noisy measurement would show it to; outputs that repeat
        exactly leave it little to doubt at what was evaluated.

        Returns:
            None where there is none.

        Raises:
            ValueError: no probability.
            MipcashError: the result was read from a journal without its space.
        """
        if not isinstance(probability, Real) or not 0.0 <= float(probability) <= 1.0:
            raise ValueError(f"safe() takes a probability between 0 and 1, such as 0.95; got {shown(probability)}")
        rows = zip(self.standing.rows, self._probabilities, strict=True)
        sure = [self.standing.tells(row) for row, p in rows if p >= probability and row.whole.legal]
        found = [t for t in (self.history[k] for k in sure) if t.done and t.loss is not None and t.whole]
        kept = (t for t in found if not any(breach.known for breach in self.breaks(t)))
        return min(kept, key=lambda t: math.inf if t.minimised is None else t.minimised, default=None)

    @cached_property
    def _probabilities(self) -> NDArray[np.float64]:
        """Of ``standing.rows``: shape (r,)."""
        if self.declared is None:
            raise MipcashError(
                "the probability of limits needs the space, which a journal that is only read does not bring; open it with its "
                "space, mc.Study(space, storage=...).result"
            )
        from mipcash.optimizers.safety import probabilities  # brings surrogates and solvers along
        from mipcash.space.domain import Domain

        limits = self.goals.turned(self.under)
        return probabilities(Domain.of(self.declared), [observation(t) for t in self.history], limits)

    # -- counts and tables --------------------------------------------------------------------------------------

    @property
    def n_feasible(self) -> int:
        """Evaluations of this study after which it was known that all limits are kept; without limits, those that succeeded."""
        return sum(self.standing.feasible(t.number) is True for t in self.history if t.done and not t.known)

    @property
    def n_done(self) -> int:
        """Evaluations of this study that succeeded."""
        return sum(t.done for t in self.history if not t.known)

    @property
    def n_evaluations(self) -> int:
        """Evaluations of this study, as a budget counts them: of single outputs, where they are evaluated apart."""
        return sum(max(1, len(t.evaluate)) for t in self.history if not (t.pending or t.known))

    @property
    def n_failed(self) -> int:
        """Evaluations of this study that failed."""
        return sum(t.failed for t in self.history if not t.known)

    @property
    def n_fits(self) -> int:
        """Fits that evaluations of this study took: what a generator yields is one, an objective that returns makes one."""
        return sum(t.fits for t in self.history)

    @property
    def n_stopped(self) -> int:
        """Evaluations of this study that racing stopped before their last fit."""
        return sum(not (t.whole or t.known) for t in self.history)

    @property
    def n_fits_saved(self) -> int:
        """Fits that those would have taken besides, by how many whole evaluations took."""
        return _saved(self.history)

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
        shows = (t.done and t.legal and not t.repeat for t in self.history)
        told = [t.loss if s and t.loss is not None else math.nan for s, t in zip(shows, self.history, strict=True)]
        losses = np.array(told, dtype=np.float64)
        numbers = np.array([t.number for t in self.history], dtype=np.int64)
        kept = {k for row in self.standing.kept for k in row.parts}
        feasible = np.array([bool(np.isfinite(l)) and k in kept for k, l in enumerate(losses)], dtype=bool)
        return Convergence(numbers, losses, self.standing.incumbents(), feasible)

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat dict per trial, for ``pandas.DataFrame(result.to_rows())``.

        Columns: number, status, loss, duration, message, origin, then ``config.<name>``, ``values.<name>``,
        ``texts.<name>`` and ``seconds.<part>``. Under limits besides: ``feasible`` (None: it is not known), and
        ``violation.<name>``, how far an output lies outside its limit, in its own unit (0: it keeps it; None: it failed, or is
        not known).
        """
        rows = [{**_flat(trial), **self._stands(trial)} for trial in self.history]
        front = {t.number for t in self.front} if self.goals.several else set()
        return [{**row, "front": row["number"] in front} for row in rows] if self.goals.several else rows

    def _stands(self, trial: Trial) -> dict[str, Any]:
        if not self.under:
            return {}
        outside = {b.limit.output: None if math.isinf(b.by) else b.by for b in self.breaks(trial)}
        row: dict[str, Any] = {"feasible": None if trial.pending else self.standing.feasible(trial.number)}
        return row | {f"violation.{limit.output}": outside.get(limit.output, 0.0) for limit in self.under}

    def problem(self) -> str:
        """A sentence when the run found nothing, its objective looks broken or gives no output of some limit; empty otherwise."""
        told = [t for t in self.history if not (t.pending or t.known)]
        first = told[:SUSPICIOUS]
        if told and len(same_failures(first)) == len(first):
            rest = "" if self.n_done else " and no evaluation succeeded"
            which = "the only evaluation" if len(first) == 1 else f"each of the first {len(first)} evaluations"
            return f"{which} failed with the same message{rest}: {told[0].message}"
        for missing in unreturned(self.history, self.under):
            if len(missing.trials) >= (SUSPICIOUS if missing.stated else LEAST):
                return missing.text
        if told and not self.n_done:
            return f"none of {len(told)} evaluations succeeded; the latest message: {told[-1].message}"
        return ""

    def __repr__(self) -> str:
        return f"<result of {self.space!r}: {self._summary()}>"

    def _summary(self) -> str:
        best = self.best
        nothing = "nothing keeps all limits" if self.under and self.n_done else "nothing found"
        found = nothing if best is None else f"best {self.value:.6g} (trial {best.number})"
        if best is not None and self.goals.several:
            found = f"front of {len(self.front)} ({', '.join(self.goals.names)})"
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{found} in {counted(self.n_evaluations, 'evaluation')}{failed}{stopped}"

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
        counts += f", {self.n_stopped} stopped early" if self.n_stopped else ""
        counts += f", {self.n_feasible} within all limits" if self.under else ""
        yield f"{self.space}: {counts}" + (f", stopped: {self.stopped}" if self.stopped else "")
        if self.problem():
            yield f"  {' '.join(self.problem().split())}"
        best = self.best
        if best is None and self.under and self.nearest is not None:
            yield f"{'nothing keeps all limits' if self.nearest.breaks else 'no loss is known'} yet; {self.nearest}"
        if best is not None and self.goals.several:
            yield from front_of(self.standing).lines()
            yield f"balanced (trial {best.number})"
        elif best is not None:
            yield f"best value {self.value:.6g} (trial {best.number})"
        if best is not None:
            yield from (f"  {name} = {value!r}" for name, value in best.config.items())
            yield from (f"  [{name}] {value:.6g}" for name, value in self.values.items())
            yield from (f"  [{name}] {one_line(text, 160)}" for name, text in best.texts.items())
        if self.finalists:
            yield from text_of(self.finalists, None if best is None else best.number, self.goals.maximised)
        if self.n_fits > self.n_evaluations:
            yield f"fits: {self.n_fits}" + (f", {self.n_fits_saved} saved by racing" if self.n_stopped else "")
        yield f"seconds: {self.seconds['ask']:.1f} asking, {self.seconds['evaluation']:.1f} evaluating"


def _saved(trials: Sequence[Trial]) -> int:
    whole = max((t.fits for t in trials if t.done and t.whole), default=0)
    return sum(max(0, whole - t.fits) for t in trials if not (t.whole or t.known))


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
