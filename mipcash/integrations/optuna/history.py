"""Trials of Optuna as observations of an optimizer.

    complete    done: its value, negated if the study maximizes.
    pruned      done: its last intermediate value estimates the value of a complete evaluation. Complete trials that reported at
                the same step give its bias (mean difference, added) and its variance. With fewer than THREE of them, the
                variance is that of all losses. The observation is noisier and never the incumbent. Pruned before a value was
                reported: failed.
    failed      failed: trains the feasibility model, so that the search avoids it.
    running     pending: the proposal is known from its note, before its parameters are asked for.
    waiting     pending, if it was enqueued with all of its parameters.

Of several objectives the first is the loss, and the other ones are outputs that ``objectives_of`` names.

Constraints of Optuna are outputs with an upper limit of 0; ``limits`` of the sampler are on user attributes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import TrialState

from mipcash.integrations.optuna import notes
from mipcash.integrations.optuna.ranges import as_declared
from mipcash.modelling.domains import Configuration
from mipcash.modelling.validation import check
from mipcash.optimizers.objectives import Objective, Objectives
from mipcash.optimizers.optimizer import History, Limit, Observation
from mipcash.optimizers.outcome import FAILED, LOSS, PENDING, PRESENT, Outcome, Output
from mipcash.space.compiled import compiled
from mipcash.space.direction import MAXIMIZE, MINIMIZE
from mipcash.space.space import Space
from mipcash.study.reading import loss_problem

THREE = 3
CONSTRAINT = "constraint {}"
"""Name of the output for a constraint of Optuna."""

Key = tuple[Any, ...]


def key_of(trial: Any) -> Key:
    """Return the identity of a trial, which stays the same once the trial is finished."""
    return (trial.number, trial.datetime_start, trial.datetime_complete)


@dataclass(frozen=True)
class TrialConfig:
    """A trial's configuration in the space.

    Attributes:
        config: None if the trial does not fit the space.
        problem: the reason.
        known: whether it was not proposed by this sampler.
    """

    config: Configuration | None
    problem: str = ""
    legal: bool = True
    known: bool = False


@dataclass
class Reader:
    """Reads the trials of a study; the configurations of finished trials are read once.

    Attributes:
        space: the space of the trials.
        limited: user attributes with an outcome constraint.
        misfits: number of a trial that does not fit the space -> reason.
    """

    space: Space
    limited: tuple[str, ...] = ()
    misfits: dict[int, str] = field(default_factory=dict)
    _placed: dict[Key, TrialConfig] = field(default_factory=dict)
    _seen: dict[Key, Observation] = field(default_factory=dict)

    def history(self, trials: Sequence[Any], objectives: Objectives) -> History:
        """Return observations of the trials that fit the space, in the given order."""
        whole = [t for t in trials if t.state == TrialState.COMPLETE]
        found = []
        for trial in trials:
            placed = self._place(trial)
            if placed.config is not None:
                found.append(self._observation(trial, placed, objectives, whole))
            elif placed.problem and trial.state != TrialState.FAIL:  # a failed trial may lack some parameters
                self.misfits[trial.number] = placed.problem
        return found

    def note(self, trial: Any) -> notes.Note | None:
        """Return the sampler's note on a trial, or None."""
        return notes.read(trial.system_attrs, self.space)

    def placed(self, params: Mapping[str, Any], proposed: Mapping[str, Any]) -> TrialConfig:
        """Return the configuration of parameters; missing ones have the proposed value, or their only value."""
        config: Configuration = {}
        for name, parameter in self.space.parameters.items():
            if name in proposed and params.get(name, proposed[name]) == proposed[name]:
                config[name] = proposed[name]  # Optuna stores True as an equal choice, 1
            elif name in params:
                try:
                    config[name] = as_declared(parameter.domain, params[name])
                except ValueError as error:
                    return TrialConfig(None, f"{name!r}: {error}")
            elif (values := getattr(parameter.domain, "values", None)) is not None and len(values) == 1:
                config[name] = values[0]
        config, problem = self._active(config)
        return TrialConfig(None, problem) if problem else TrialConfig(config)

    def _active(self, config: Configuration) -> tuple[Configuration, str]:
        """Return the configuration without inactive parameters, and its remaining problems, rules excluded."""
        declaration = compiled(self.space).declaration
        while True:
            wrong = check(declaration, config, ()).violations
            inactive = {v.name for v in wrong} & config.keys()
            if not inactive:
                return config, "; ".join(map(str, wrong))
            config = {name: value for name, value in config.items() if name not in inactive}

    def _place(self, trial: Any) -> TrialConfig:
        key = key_of(trial)
        if key in self._placed:
            return self._placed[key]
        note = self.note(trial)
        params = trial.params
        if trial.state == TrialState.WAITING:
            params = trial.system_attrs.get("fixed_params", {})
        placed = self.placed(params, {} if note is None else note.config)
        if placed.config is not None:
            legal = not self.space.validate(placed.config)
            placed = TrialConfig(placed.config, "", legal, note is None)
        elif not trial.state.is_finished():
            placed = TrialConfig(None)  # some values are not known yet
        if trial.state.is_finished():
            self._placed[key] = placed
        return placed

    def _observation(
        self, trial: Any, placed: TrialConfig, objectives: Objectives, whole: Sequence[Any]
    ) -> Observation:
        assert placed.config is not None
        if not trial.state.is_finished():
            return Observation(placed.config, PENDING, known=placed.known, legal=placed.legal)
        key = key_of(trial)
        before = self._seen.get(key)
        outcome = outcome_of(
            trial, objectives, self.limited, whole
        )  # that of a pruned trial depends on the complete ones
        if before is not None and before.outcome == outcome:
            return before  # optimizers cache results by the identity of an observation
        made = self._seen[key] = Observation(
            placed.config,
            outcome.status(),
            outcome.loss,
            outcome.values,
            outcome,
            known=placed.known,
            legal=placed.legal,
        )
        return made


def limits_from(trials: Sequence[Any], own: Sequence[Limit]) -> tuple[Limit, ...]:
    """Return the sampler's limits, and a limit of 0 for every constraint of a trial that the sampler did not set itself."""
    ours = {limit.output for limit in own}
    keys = {key: None for t in trials for key in t.constraints if key not in ours}
    return (*own, *(Limit(CONSTRAINT.format(key), high=0.0) for key in keys))


def objectives_of(directions: Sequence[Any]) -> Objectives:
    """Return the objectives of a study from its directions: the loss, ``objective 1``, ``objective 2`` ..."""
    words = [MAXIMIZE if d == StudyDirection.MAXIMIZE else MINIMIZE for d in directions]
    return Objectives(tuple(Objective(f"objective {k}" if k else LOSS, word) for k, word in enumerate(words)))


def outcome_of(trial: Any, objectives: Objectives, limited: Collection[str], whole: Sequence[Any]) -> Outcome:
    """Return the outcome of a finished trial.

    Args:
        objectives: those of the study.
        limited: user attributes that are outputs.
        whole: complete trials.
    """
    outputs = {LOSS: _loss(trial, objectives.sign, whole)}
    if trial.state == TrialState.COMPLETE:
        outputs |= {name: Output.of(v) for name, v in zip(objectives.names[1:], trial.values[1:], strict=True)}
    for key, value in trial.constraints.items():
        if key not in limited:
            sign = math.copysign(1.0, value)  # Optuna takes infinite constraints, which have no place in a model
            outputs[CONSTRAINT.format(key)] = Output.of(float(value) if math.isfinite(value) else sign)
    for name in limited:
        value = number_of(trial.user_attrs.get(name))
        if value is not None:
            outputs[name] = Output.of(value)
        elif trial.state == TrialState.COMPLETE:
            reported = trial.user_attrs.get(name)
            outputs[name] = Output(FAILED, message=f"the user attribute {name!r} is {reported!r}, which is no number")
    return Outcome(outputs)


def number_of(value: Any) -> float | None:
    """Return a user attribute as a number, or None if it is not one."""
    try:
        return None if value is None or isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return None


def _loss(trial: Any, sign: float, whole: Sequence[Any]) -> Output:
    if trial.state == TrialState.FAIL:
        return Output(FAILED, message="the trial failed")
    value = None if trial.values is None else trial.values[0]
    if value is None:
        return Output(FAILED, message="pruned before a value was reported")
    if problem := loss_problem(sign * value):
        return Output(FAILED, sign * value, problem)
    if trial.state == TrialState.COMPLETE:
        return Output(PRESENT, sign * value)
    shift, variance = _off(trial.last_step, whole)
    return Output(PRESENT, sign * (value + shift), variance=variance)


def _off(step: int, whole: Sequence[Any]) -> tuple[float, float]:
    """Return mean and variance of the difference between final values of complete trials and their values at a step."""
    usable = [t for t in whole if not loss_problem(t.value)]
    ends = np.array([t.value for t in usable])
    there = [t for t in usable if not loss_problem(t.intermediate_values.get(step, math.nan))]
    if len(there) >= THREE:
        off = np.array([t.value - t.intermediate_values[step] for t in there])
        return float(off.mean()), float(off.var(ddof=1))
    return 0.0, float(ends.var(ddof=1)) if len(ends) > 1 else 1.0
