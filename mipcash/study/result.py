"""Result of a run: the best trial, the history that led to it, and their feasibility."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from numbers import Real
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipcash.display import counted, table, value_text
from mipcash.errors import MipcashError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Limit, Observation, by_loss
from mipcash.optimizers.outcome import PENDING
from mipcash.study.arguments import whole_number
from mipcash.study.feasibility import (
    Feasibility,
    Nearest,
    Violation,
    observation,
    observation_of,
    without_repeats,
)
from mipcash.study.finalists import Finalist, answer, estimate_of, finalists_of, text_of
from mipcash.study.front import Front
from mipcash.study.storage.protocol import NOTHING
from mipcash.study.tradeoffs import LimitTable
from mipcash.study.trial import Trial, flat_row
from mipcash.study.unreturned import unreturned
from mipcash.text import no_attribute, one_line, shown, visible, without_address

if TYPE_CHECKING:
    from mipcash.space.space import Space

SUSPICIOUS = 5
"""So many equal failures at the start indicate a broken objective; if half of the space fails, 1 run in 32 shows this by chance."""
LEAST = 2
"""Number of equal failures that indicates a broken objective if they are all of the budget; one may be due to its configuration."""


class Convergence(NamedTuple):
    """Arrays of shape (n,), one entry per trial by number.

    Attributes:
        number: trial numbers.
        loss: with the objective's own sign; nan if a trial failed, is pending, did not evaluate the loss, is an illegal known one,
            or a repeat.
        incumbent: best feasible loss so far, nan before the first.
        feasible: True if a loss is that of a feasible configuration, as far as is known by now.
    """

    number: NDArray[np.int64]
    loss: NDArray[np.float64]
    incumbent: NDArray[np.float64]
    feasible: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a study.

    Args:
        history: all trials by number, including failed, pending and known ones (``trial.known``).
        space: name of the space.
        stopped: why the run ended: ``budget``, ``timeout``, ``space exhausted``, ``callback``, ``optimizer: ...`` (its stop
            reason); empty while it goes on. If every legal configuration has an outcome, ``space exhausted`` is followed by a note
            that the best trial is the optimum, provided that the objective is deterministic.
        recommended: number of the trial that the optimizer recommends, as in a journal; NOTHING: it recommends none; None: not
            known, and the feasible trial with the lowest loss is the best.
        under: the outcome constraints of the study.
        declared: the space itself, which ``probability`` and ``safe`` need; None: the journal was read without it.
        objective: the objective, for evaluating the best configuration again; None: unknown. It is not pickled with a result.
        directions: the objectives of a study without trials.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> result = mc.minimize(lambda config: config["a"] ** 2, space, 10, optimizer="random", progress=False)
        >>> result.config, result.value, result.n_done, len(result.history)
        ({'a': 0}, 0.0, 10, 10)
    """

    history: tuple[Trial, ...] = field(repr=False)
    space: str = "space"
    stopped: str = ""
    recommended: int | None = field(default=None, repr=False)
    under: tuple[Limit, ...] = field(default=(), repr=False)
    declared: Space | None = field(default=None, repr=False)
    objective: Any = field(default=None, repr=False)
    directions: Objectives = field(default=MINIMISED, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "objective": None}

    @property
    def objectives(self) -> Objectives:
        """Objectives of the study, with their directions."""
        return self.history[0].objectives if self.history else self.directions

    @property
    def best(self) -> Trial | None:
        """The recommended trial, by the optimizer or by ``confirm=``; None if there is none.

        It is usually the first feasible trial with the lowest loss (or the highest, if the loss is maximised). It is always a trial
        of the search, never a repeat. With several objectives it is a compromise, the balanced trial of the front
        (``mipcash.study.front``).
        """
        if self.objectives.several:
            return self._front.balanced
        if self.recommended is None:
            return self._best_by_loss
        return None if self.recommended == NOTHING else self.history[self.recommended]

    @cached_property
    def _front(self) -> Front:
        if not self.objectives.several:
            raise MipcashError(
                'a front is of several objectives, and this study has one; give them to it, direction=["loss", "latency_ms"]. The '
                "answer for one is result.best"
            )
        return Front.of(self.feasibility)

    @cached_property
    def _best_by_loss(self) -> Trial | None:
        """The best finalist, or else the feasible trial with the lowest loss, of a journal without a recommendation."""
        history = self._minimised
        seen = self.objectives.in_minimisation_form(self.under)
        chosen = answer(lambda searched, limits: next(iter(by_loss(searched, limits)), None), history, seen)
        return next((t for t, o in zip(self.history, history, strict=True) if o is chosen), None)

    @property
    def best_trial(self) -> Trial | None:
        """Same as ``best``; the name is Optuna's."""
        return self.best

    @property
    def front(self) -> tuple[Trial, ...]:
        """The Pareto front: the legal, feasible trials that no other trial dominates.

        Sorted by the first objective, best first. Of trials with equal values only the first is kept. The outcome of a
        configuration that was measured several times is the mean.

        Raises:
            MipcashError: the study has one objective.
        """
        return self._front.members

    def hypervolume(self, reference: Mapping[str, float] | Sequence[float] | None = None) -> float:
        """Return the hypervolume that the front dominates up to a reference point, in the product of the objectives' units.

        Args:
            reference: reference point, one value per objective, by name or in their order. Trials that are not better in every
                objective contribute nothing. None: the worst feasible value of each, which only measures the progress of a
                single run.

        Returns:
            The hypervolume.

        Raises:
            ValueError: the point is invalid.
            MipcashError: the study has one objective.
        """
        return self._front.hypervolume(reference)

    @property
    def config(self) -> Configuration | None:
        """The best configuration (a fresh dict); None if there is none."""
        return None if self.best is None else dict(self.best.config)

    @property
    def value(self) -> float:
        """Loss of the best configuration, with the objective's own sign, corrected for noise; nan if there is none.

        For a deterministic objective it is the loss itself. The lowest of many noisy losses is biased downwards. The value is
        therefore the mean of the repeats, if the configuration was evaluated again, and otherwise the loss. If there is noise,
        either is shrunk towards the mean of the candidates, by the share of noise in their variance. Of several objectives
        it is the first.
        """
        best = self.best
        if best is None or best.loss is None:
            return math.nan
        if self.objectives.several:
            first = self.feasibility.outcomes[best.number][self.objectives.names[0]].value
            return math.nan if first is None else first
        again = next((f for f in self.finalists if f.number == best.number and f.fresh), None)
        return best.loss + self._correction if again is None else estimate_of(self.finalists, again)

    @property
    def observed(self) -> str:
        """Text that says what was observed where ``value`` is corrected for noise; else empty."""
        best = self.best
        differs = best is not None and best.loss is not None and f"{best.loss + 0.0:.6g}" != f"{self.value:.6g}"
        return f"; observed {best.loss:.6g}, which is corrected for noise" if differs and best is not None else ""

    @cached_property
    def _correction(self) -> float:
        """Correction for the selection bias of the best of several noisy losses: v / (v + tau^2) times its distance to their mean.

        v is the noise variance shown by the evaluations, v + tau^2 the variance of the losses that are legal, feasible and complete
        (James and Stein 1961). If the configuration was measured several times (with known data), its loss is their mean.
        """
        from mipcash.optimizers.noise import evident_noise

        best = self.best
        noise = evident_noise(self._minimised)
        rows = self.feasibility.kept
        losses = [self.objectives.sign * row.merged.loss for row in rows if row.merged.loss is not None]
        if not noise or best is None or best.loss is None or len(losses) < 2:
            return 0.0
        measured = [
            t.loss
            for t in self.history
            if repr(t.config) == repr(best.config) and t.loss is not None and t.complete and not t.repeat
        ]
        own, noise = fmean(measured or [best.loss]), noise / max(1, len(measured))
        whole, mean = float(np.var(losses, ddof=1)), float(np.mean(losses))
        # the squares of losses beyond 1e150 overflow
        share = min(1.0, noise / whole) if whole and math.isfinite(whole + mean) else 0.0
        return own - best.loss + share * (mean - own)

    @cached_property
    def finalists(self) -> tuple[Finalist, ...]:
        """Configurations that ``confirm=`` re-evaluated, with their losses in the search and on fresh repeats."""
        return tuple(finalists_of(self._observations, self.under))

    @cached_property
    def _observations(self) -> list[Observation]:
        """The trials as observations, with their losses in the objective's own sign."""
        return [observation_of(t) for t in self.history]

    @cached_property
    def _minimised(self) -> list[Observation]:
        """The trials as observations, with their losses in minimisation form."""
        return [observation(t) for t in self.history] if self.objectives.maximised else self._observations

    @property
    def fresh(self) -> float:
        """Mean loss of the best configuration on fresh repeats; nan if it was not evaluated again.

        It is still slightly optimistic, because the best finalist was chosen on the same repeats.
        """
        best = self.best
        found = (f.mean for f in self.finalists if best is not None and f.number == best.number)
        return next(found, math.nan)

    @property
    def values(self) -> dict[str, float]:
        """Further named values of the best configuration, of all its trials: means, if it was measured several times."""
        return {} if self.best is None else self.feasibility.outcomes[self.best.number].values

    # -- limits -------------------------------------------------------------------------------------------------

    @cached_property
    def feasibility(self) -> Feasibility:
        """Feasibility of the trials under the outcome constraints."""
        found = Feasibility.of(self.history, self.under, self.directions, self._minimised)
        return replace(found, ruled_out=frozenset(f.number for f in self.finalists if f.problem))

    @property
    def limits(self) -> LimitTable:
        """Trade-off between each outcome constraint and the loss: print it, or ``pandas.DataFrame(result.limits)``."""
        return LimitTable(self.feasibility)

    @property
    def nearest(self) -> Nearest | None:
        """The trial with the least total violation, and its violated constraints; the best trial once one is feasible.

        None if no outcome is known. Violations are measured on the scale on which outputs are modelled, so that the units of
        outputs do not matter.
        """
        return self.feasibility.nearest

    def violations(self, trial: Trial | int) -> tuple[Violation, ...]:
        """Return the constraints that a trial violates, or whose output failed or is unknown; empty if the trial is feasible.

        Args:
            trial: a trial or its number.

        Returns:
            The violations.

        Raises:
            ValueError: there is no such trial.
        """
        return self.feasibility.violations_of(self._number(trial))

    def _number(self, trial: Trial | int) -> int:
        """Return the number of a trial that is in the result, or raise an error."""
        number = trial.number if isinstance(trial, Trial) else whole_number("the number of a trial", trial, 0)
        if number >= len(self.history):
            raise ValueError(f"there is no trial {number}; the last is {len(self.history) - 1}")
        return number

    def probability(self, trial: Trial | int | None = None) -> float:
        """Return the posterior probability that a trial is feasible and does not fail; see
        [`safe`][mipcash.study.result.Result.safe].

        Args:
            trial: a trial or its number; None: the best.

        Returns:
            The probability; nan if nothing is known of the trial or of some constrained output, or if there is no best trial.

        Raises:
            MipcashError: the result was read from a journal without its space.
            ValueError: there is no such trial.
        """
        found = self.best if trial is None else trial
        number = None if found is None else self._number(found)
        rows = zip(self.feasibility.rows, self._probabilities, strict=True)
        return next((float(p) for row, p in rows if number in row.parts), math.nan)

    def safe(self, probability: float = 0.95) -> Trial | None:
        """Return the best trial that is feasible with a posterior probability of at least ``probability``.

        With several objectives it is the balanced trial of the front of such trials. Its evaluation must have violated no
        constraint. The probability refers to the noise-free outputs, under a model of each constrained output and of failures
        (those of the default optimizer, fitted to all evaluations, whichever optimizer made them). Outputs count as independent.
        It expresses certainty about the feasibility of the configuration, not how often another noisy measurement would be
        feasible. For outputs without noise it is close to 0 or 1 at evaluated configurations.

        Args:
            probability: the least probability, between 0 and 1.

        Returns:
            The trial; None if there is none.

        Raises:
            ValueError: ``probability`` is not between 0 and 1.
            MipcashError: the result was read from a journal without its space.
        """
        if not isinstance(probability, Real) or not 0.0 <= float(probability) <= 1.0:
            raise ValueError(f"safe() takes a probability between 0 and 1, such as 0.95; got {shown(probability)}")
        if self.objectives.several:
            chosen = np.flatnonzero(self._probabilities >= probability)
            part = [self.feasibility.rows[k] for k in chosen]
            return Front.of(
                replace(self.feasibility, rows=part, violations=self.feasibility.violations[chosen])
            ).balanced
        rows = zip(self.feasibility.rows, self._probabilities, strict=True)
        sure = [self.feasibility.tells(row) for row, p in rows if p >= probability and row.merged.legal]
        found = [t for t in (self.history[k] for k in sure) if t.done and t.loss is not None and t.complete]
        found = [t for t in found if t.number not in self.feasibility.ruled_out]
        kept = (t for t in found if not any(violation.known for violation in self.violations(t)))
        return min(kept, key=lambda t: math.inf if t.minimised is None else t.minimised, default=None)

    @cached_property
    def _probabilities(self) -> NDArray[np.float64]:
        """Probabilities of ``feasibility.rows``: shape (r,)."""
        if self.declared is None:
            raise MipcashError(
                "the probability of limits needs the space, which a journal that is only read does not bring; open it with its "
                "space, mc.Study(space, storage=...).result"
            )
        from mipcash.optimizers.safety import probabilities  # imports surrogates and solvers
        from mipcash.space.domain import Domain

        limits = self.objectives.in_minimisation_form(self.under)
        configs = [row.merged.config for row in self.feasibility.rows]
        return probabilities(Domain.of(self.declared), without_repeats(self._minimised), limits, configs)

    # -- counts and tables --------------------------------------------------------------------------------------

    @property
    def n_feasible(self) -> int:
        """Number of evaluations of this study that are known to be feasible; without outcome constraints, that succeeded."""
        return sum(self.feasibility.feasible(t.number) is True for t in self.history if t.done and not t.known)

    @property
    def n_done(self) -> int:
        """Number of evaluations of this study that succeeded."""
        return sum(t.done for t in self.history if not t.known)

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of this study, as a budget counts them: for decoupled evaluations, of single outputs."""
        return sum(max(1, len(t.evaluate)) for t in self.history if not (t.pending or t.known))

    @property
    def n_failed(self) -> int:
        """Number of evaluations of this study that failed."""
        return sum(t.failed for t in self.history if not t.known)

    @property
    def n_steps(self) -> int:
        """Number of steps (folds, epochs) in evaluations of this study. Each yielded result is one, and so is a plain return."""
        return sum(t.steps for t in self.history)

    @property
    def n_pruned(self) -> int:
        """Number of evaluations of this study that were pruned."""
        return sum(t.pruned and not t.known for t in self.history)

    @property
    def n_steps_saved(self) -> int:
        """Number of steps that pruned evaluations saved, relative to the longest complete evaluation."""
        whole = max((t.steps for t in self.history if t.done and t.complete), default=0)
        return sum(max(0, whole - t.steps) for t in self.history if t.pruned and not t.known)

    @property
    def n_known(self) -> int:
        """Number of evaluations made outside this study."""
        return sum(t.known for t in self.history)

    @property
    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds of all asks and of all evaluations; parallel evaluations add up."""
        asks = sum(t.seconds.get("ask", 0.0) for t in self.history)
        return {"ask": asks, "evaluation": sum(t.duration or 0.0 for t in self.history)}

    def convergence(self) -> Convergence:
        """Return the loss of each trial and the best feasible loss so far, as arrays.

        Returns:
            A named tuple of arrays of shape (trials,): ``number``, ``loss``, ``incumbent`` and ``feasible``. A loss is nan
            if the trial failed, is pending, is a repeat or an illegal known one, or did not evaluate the loss. The
            incumbent is nan before the first feasible trial.
        """
        shows = (t.done and t.legal and not t.repeat for t in self.history)
        reported = [t.loss if s and t.loss is not None else math.nan for s, t in zip(shows, self.history, strict=True)]
        losses = np.array(reported, dtype=np.float64)
        numbers = np.array([t.number for t in self.history], dtype=np.int64)
        kept = {k for row in self.feasibility.kept for k in row.parts}
        feasible = np.array([bool(np.isfinite(l)) and k in kept for k, l in enumerate(losses)], dtype=bool)
        return Convergence(numbers, losses, self.feasibility.incumbents(), feasible)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one flat dict per trial, for ``pandas.DataFrame(result.to_rows())``.

        Columns: number, status, loss, duration, message, origin, then ``config.<name>``, ``values.<name>``, ``texts.<name>`` and
        ``seconds.<part>``. With outcome constraints also ``feasible`` (None: unknown) and ``violation.<name>``, the violation of
        each constraint in the unit of its output (0: satisfied; None: it failed, or is unknown). With several objectives also
        ``front``.

        Returns:
            The rows, in the order of the trials.
        """
        rows = [{**flat_row(trial), **self._stands(trial)} for trial in self.history]
        front = {t.number for t in self.front} if self.objectives.several else set()
        return [{**row, "front": row["number"] in front} for row in rows] if self.objectives.several else rows

    def trials_dataframe(self) -> Any:
        """Return ``to_rows()`` as a ``pandas.DataFrame``; the name is Optuna's.

        Returns:
            One row per trial.

        Raises:
            MipcashError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MipcashError(
                "trials_dataframe() needs the package pandas: pip install pandas; to_rows() needs none"
            ) from error
        return pandas.DataFrame(self.to_rows())

    def _stands(self, trial: Trial) -> dict[str, Any]:
        if not self.under:
            return {}
        outside = {b.limit.output: None if math.isinf(b.by) else b.by for b in self.violations(trial)}
        row: dict[str, Any] = {"feasible": None if trial.pending else self.feasibility.feasible(trial.number)}
        return row | {f"violation.{limit.output}": outside.get(limit.output, 0.0) for limit in self.under}

    def problem(self) -> str:
        """Return a sentence if the run found nothing, or its objective looks broken or lacks a constrained output; else empty.

        Returns:
            The sentence, or an empty text.
        """
        reported = [t for t in self.history if not (t.pending or t.known)]
        first = reported[:SUSPICIOUS]
        if reported and all(t.failed for t in first) and len({without_address(t.message) for t in first}) == 1:
            rest = "" if self.n_done else " and no evaluation succeeded"
            which = "the only evaluation" if len(first) == 1 else f"each of the first {len(first)} evaluations"
            return f"{which} failed with the same message{rest}: {one_line(reported[0].message, 400)}"
        for missing in unreturned(self.history, self.under):
            if len(missing.trials) >= (SUSPICIOUS if missing.stated else LEAST):
                return missing.text
        if reported and not self.n_done:
            return f"none of {len(reported)} evaluations succeeded; the latest message: {one_line(reported[-1].message, 400)}"
        return ""

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        return f"<result of {self.space!r}: {self._summary()}>"

    def _summary(self) -> str:
        best = self.best
        nothing = "nothing satisfies all constraints" if self.under and self.n_done else "nothing found"
        found = nothing if best is None else f"best {self.value:.6g} (trial {best.number})"
        if best is not None and self.objectives.several:
            found = f"front of {len(self.front)} ({', '.join(self.objectives.names)})"
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{found} in {counted(self.n_evaluations, 'evaluation')}{failed}{stopped}"

    def plot(self, kind: str = "convergence", *args: Any, **options: Any) -> Any:
        """Draw a picture of the run; a notebook shows it. ``result.plot("slice", "rate")`` is ``plot_slice(result, "rate")``.

        Args:
            kind: name of a function of ``mipcash.report`` without its ``plot_``: ``convergence``, ``importance``, ``slice`` ...
            args, options: further arguments of that function.

        Returns:
            The matplotlib axes.

        Raises:
            ValueError: there is no such picture.
            MipcashError: see the function.
        """
        report = import_module("mipcash.report")  # by name: the core does without its leaves
        kinds = [name.removeprefix("plot_") for name in report.__all__ if name.startswith("plot_")]
        if kind not in kinds:
            raise ValueError(f"there is no picture {shown(kind)}; there are {', '.join(kinds)}")
        return getattr(report, f"plot_{kind}")(self, *args, **options)

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
        lost = sum(t.lost for t in self.history)
        counts += f", {counted(lost, 'lost worker')}" if lost else ""
        counts += f", {self.n_known} known" if self.n_known else ""
        counts += f", {self.n_pruned} pruned" if self.n_pruned else ""
        counts += f", {self.n_feasible} within all limits" if self.under else ""
        yield f"{self.space}: {counts}" + (f", stopped: {self.stopped}" if self.stopped else "")
        if self.problem():
            yield f"  {' '.join(self.problem().split())}"
        best = self.best
        if best is None and self.under and self.nearest is not None:
            yield f"{'nothing satisfies all constraints' if self.nearest.violations else 'no loss is known'} yet; {self.nearest}"
            yield from (f"  {name} = {value!r}" for name, value in self.nearest.config.items())
        if best is not None and self.objectives.several:
            yield from self._front.lines()
            yield f"balanced (trial {best.number})"
        elif best is not None:
            yield f"best value {self.value:.6g} (trial {best.number}{self.observed})"
        if best is not None:
            yield from (f"  {name} = {value!r}" for name, value in best.config.items())
            yield from (f"  [{name}] {value:.6g}" for name, value in self.values.items())
            yield from (f"  [{name}] {one_line(text, 160)}" for name, text in best.texts.items())
        if self.finalists:
            yield from text_of(self.finalists, None if best is None else best.number, self.objectives.maximised)
        if self.n_steps > self.n_evaluations:
            yield f"steps: {self.n_steps}" + (f", {self.n_steps_saved} saved by pruning" if self.n_pruned else "")
        yield f"seconds: {self.seconds['ask']:.1f} asking, {self.seconds['evaluation']:.1f} evaluating"
