"""A sampler of Optuna whose proposals come from mipcash: legal under the rules of a space.

A proposal depends on the seed, the number of its trial and the trials in the storage of the study, including running ones.
Everything else is only cached. Several threads, processes or machines may therefore share a study.

The space of a define-by-run objective is inferred from its complete trials. A parameter that all trials have is unconditional. A
parameter that only some trials have is conditional if another discrete parameter, its parent, decides: at each value of the parent
either all trials have the parameter or none has it. A parameter with several ranges, or without such a parent, is left out and
sampled independently.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import TrialState

from mipcash.errors import SpaceError, SpaceExhaustedError, warn
from mipcash.integrations.optuna.history import Key, key_of, number_of, objectives_of
from mipcash.integrations.optuna.notes import Note
from mipcash.integrations.optuna.ranges import as_asked, as_declared, same_values, suggestion
from mipcash.integrations.optuna.search import Search
from mipcash.integrations.spaces.optuna_distributions import domain_of
from mipcash.modelling.domains import Permutation, short_list
from mipcash.optimizers.registry import optimizer_names
from mipcash.space.space import Space
from mipcash.study.arguments import positive, whole_number
from mipcash.study.method import SECONDS_PER_PROPOSAL
from mipcash.study.records.limits import LimitsGiven, limits_of
from mipcash.text import did_you_mean

FINISHED = "every legal configuration of space {} has been proposed; the study stops"


class MipcashSampler(BaseSampler):  # type: ignore[misc]
    """Proposals of mipcash for a study of Optuna.

    With several objectives each proposal minimises a random weighting of them, so that the trials spread over the Pareto front.
    Pruned trials count as noisier observations of their last value, failed trials as failures; see
    ``mipcash.integrations.optuna.history``. The study is stopped when every legal configuration has been evaluated. If only a
    proposal can show that (numerical parameters, more than 10,000 settings, fixed values), the best one is evaluated once more
    first.

    Args:
        space: the parameters that objectives suggest, with the same names and ranges, and the rules between them. The objective
            stays define-by-run: it suggests the active parameters. None: a space without rules is inferred from the complete
            trials, with the conditions under which parameters are suggested (``mipcash.integrations.optuna.sampler``), and
            ``independent_sampler`` samples the rest.
        optimizer, settings, solver: as in [`mipcash.Study`][mipcash.study.study.Study]; by name.
        limits: outcome constraints on user attributes that the objective sets, by name: an upper end or (low, high). The sampler
            passes them to Optuna as constraints. Constraints set by ``trial.set_constraint`` are modelled without being listed
            here.
        seed: a whole number; the same seed gives the same proposals for the same trials, also if threads draw at the same time.
            None: another seed for each sampler.
        seconds_per_proposal: maximum wall-clock seconds of a proposal; None: no limit.
        constraints_func: takes a trial and returns its constraints, as in Optuna's other samplers; ``set_constraint`` is the newer
            way.
        independent_sampler: for parameters that no space contains; None: random.

    Raises:
        TypeError: ``space`` is no space, or ``optimizer`` no name.
        ValueError: an invalid argument. While a study runs: the objective suggests a parameter that the
            space does not have, that has other values in the space, or that is not active in the proposal.
        MipcashError: there is no such optimizer, or the settings belong to another optimizer.

    Examples:
        >>> import mipcash as mc
        >>> import optuna
        >>> from mipcash.integrations.optuna import MipcashSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("sum", a + b >= 5)
        >>> study = optuna.create_study(sampler=MipcashSampler(space, seed=0))
        >>> study.optimize(lambda trial: trial.suggest_int("a", 0, 9) + 2 * trial.suggest_int("b", 0, 9), n_trials=3)
        >>> all(space.is_legal(trial.params) for trial in study.trials)
        True
    """

    def __init__(
        self,
        space: Space | None = None,
        *,
        optimizer: str = "hybrid",
        settings: Any = None,
        limits: LimitsGiven = None,
        seed: int | None = None,
        solver: str = "auto",
        seconds_per_proposal: float | None = SECONDS_PER_PROPOSAL,
        constraints_func: Callable[[Any], Sequence[float]] | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if not isinstance(space, (Space, type(None))):
            raise TypeError(
                f"space must be a mipcash.Space or None, got {space!r}; of distributions: Space.from_optuna"
            )
        if not isinstance(optimizer, str):
            raise TypeError(f"optimizer is a name ({', '.join(optimizer_names())}), got {optimizer!r}")
        self._space, self._how = space, (optimizer, settings, solver)
        self._limits = limits_of(limits)
        self._seconds = positive("seconds_per_proposal", seconds_per_proposal)
        self._seed = (
            int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else whole_number("seed", seed, 0)
        )
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._constraints_func = constraints_func
        self._search: Search | None = None
        self._lock, self._warned = threading.RLock(), set[str]()
        self._lacking = set[str]()
        self._inference = Inference()
        self._inferred_for: dict[int, dict[str, InferredParameter]] = {}  # by number of the trial
        if space is not None:
            _refuse_inexpressible(space)
            self._searching(space)  # raises an error for a wrong name now

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies, without caches."""
        return {**self.__dict__, "_lock": None, "_search": None, "_inference": Inference()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def reseed_rng(self) -> None:
        """Reseed the independent sampler; proposals are drawn by the number of their trial, and differ anyway."""
        self._independent.reseed_rng()

    # -- the interface of Optuna --------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the parameters that are sampled jointly; none if there is a space, whose values are returned one by one."""
        if self._space is not None:
            return {}
        with self._lock:
            parameters = self._inference.of(study.get_trials(deepcopy=False))
        self._inferred_for[trial.number] = parameters
        return {name: each.distribution for name, each in parameters.items()}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        """Make the proposal, and store it as a note on the trial."""
        if self._space is not None:
            self._proposed(study, trial, self._space)
            return {}
        # a sampler around this one may remove parameters, whose values it fixes, or have a search space of its own
        parameters = self._inferred_for.pop(trial.number, {})
        parameters |= {n: InferredParameter(d) for n, d in search_space.items() if n not in parameters}
        if not search_space:
            return {}
        with self._lock:  # another thread may infer other parameters meanwhile
            note = self._proposed(study, trial, self._inferred(parameters))
        return {n: as_asked(note.config[n], d) for n, d in search_space.items() if n in note.config}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Return the value of a parameter in the proposal of its trial, or an independent sample if there is no space."""
        if self._space is None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        self._check_asked(self._space, param_name, param_distribution)
        note = self._searching(self._space).reader.note(trial) or self._proposed(study, trial, self._space)
        if param_name not in note.config:
            # fixed values may activate other parameters
            if _held(study.sampler) or "fixed_params" in trial.system_attrs:
                return self._independent.sample_independent(study, trial, param_name, param_distribution)
            raise ValueError(
                f"the objective suggests {param_name!r}, which is not active in the proposal {note.config}: it is "
                f"{self._space[param_name].described()}. Suggest it under the same condition, or declare it without when="
            )
        return as_asked(note.config[param_name], param_distribution)

    def before_trial(self, study: Any, trial: Any) -> None:
        """See Optuna."""
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Sequence[float] | None) -> None:
        """Set Optuna's constraints of a trial, from ``limits`` and ``constraints_func``."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        if state in (TrialState.COMPLETE, TrialState.PRUNED):
            for limit in self._limits:
                value = number_of(trial.user_attrs.get(limit.output))
                if value is None and state == TrialState.COMPLETE:
                    self._warn_of_lacking(trial, limit.output)
                apart = math.inf if value is None else max(limit.low - value, value - limit.high)
                key = f"constraints:{limit.output}"
                study._storage.set_trial_system_attr(trial._trial_id, key, math.inf if math.isnan(apart) else apart)
        if state == TrialState.COMPLETE and self._space is not None:
            self._warn_of_unasked(trial)
        self._independent.after_trial(study, trial, state, values)

    # -- proposals ----------------------------------------------------------------------------------------------

    def _proposed(self, study: Any, trial: Any, space: Space) -> Note:
        """Return a proposal for a trial, stored as a note on it."""
        with self._lock:  # the next call sees this proposal as pending
            search = self._searching(space)
            trials = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, trial.number]))
            fixed = {**_held(study.sampler), **trial.system_attrs.get("fixed_params", {}), **trial.params}
            try:
                note = search.proposal(trials, objectives_of(study.directions), rng, self._seconds, fixed)
            except SpaceExhaustedError:
                note = search.again(trials, objectives_of(study.directions), rng)
                if self._space is not None:  # an inferred space may lack parameters
                    self._warn(FINISHED.format(repr(space.name)))
                    with suppress(RuntimeError):  # ``study.ask`` without ``optimize``: there is no loop to stop
                        study.stop()
            search.write(study._storage, trial._trial_id, note)
            for text in search.warnings():
                self._warn(text)
            return note

    def _searching(self, space: Space) -> Search:
        if self._search is None or self._search.space is not space:
            self._search = Search(space, *self._how, self._limits)
        return self._search

    def _inferred(self, parameters: Mapping[str, InferredParameter]) -> Space:
        """Return the space of inferred parameters; it is reused while they stay the same."""
        if self._search is None or self._search.inferred != parameters:
            self._search = Search(space_of(parameters), *self._how, self._limits, parameters)
        return self._search.space

    # -- errors and warnings ------------------------------------------------------------------------------------

    def _check_asked(self, space: Space, name: str, distribution: Any) -> None:
        if name not in space.parameters:
            raise ValueError(
                f"the objective suggests {name!r} ({distribution}), which space {space.name!r} does not have; it has "
                f"{short_list(list(space.parameters))}. Declare it there, or suggest one of these"
            )
        domain = space.parameters[name].domain
        if not same_values(name, domain, distribution):
            raise ValueError(
                f"the objective suggests {name!r} from {distribution}, and space {space.name!r} has it as {domain}. Make them the "
                f"same: {suggestion(name, domain)}, or another range in the space"
            )

    def _warn_of_unasked(self, trial: Any) -> None:
        assert self._space is not None
        note = self._searching(self._space).reader.note(trial)
        if note is None:
            return
        domains = {name: self._space.parameters[name].domain for name in note.config.keys() - trial.params.keys()}
        left = sorted(n for n, domain in domains.items() if len(getattr(domain, "values", (0, 0))) > 1)
        if left:
            self._warn(
                f"the objective never suggested {short_list(left)}, which space {self._space.name!r} has as active; suggest all "
                "that is active, or take it out of the space"
            )

    def _warn_of_lacking(self, trial: Any, name: str) -> None:
        """Warn that a trial has no value for an outcome constraint; once for each constraint."""
        if name in self._lacking:
            return
        self._lacking.add(name)
        reported = trial.user_attrs
        if name in reported:
            why = f"the user attribute {name!r} is {reported[name]!r}, which is no number"
        else:
            why = f"it has no such user attribute; {did_you_mean(name, reported)}"
        self._warn(
            f"trial {trial.number} has no value for the limit on {name!r} and counts as breaking it: {why}. Call "
            f"trial.set_user_attr({name!r}, value) in the objective, with a number"
        )

    def _warn(self, text: str) -> None:
        """Warn once per text."""
        if text not in self._warned:
            self._warned.add(text)
            warn(text)


def _held(sampler: Any) -> dict[str, Any]:
    """Return the parameters that a ``PartialFixedSampler`` around this one fixes."""
    held: dict[str, Any] = {}
    while sampler is not None and not isinstance(sampler, MipcashSampler):
        held = {**getattr(sampler, "_fixed_params", {}), **held}
        sampler = getattr(sampler, "_base_sampler", None)
    return held


def _refuse_inexpressible(space: Space) -> None:
    if (fidelity := space._declaration.fidelity) is not None:
        raise SpaceError(
            f"Optuna knows no fidelity, such as {fidelity.label!r} of space {space.name!r}; search it with mc.minimize or mc.Study"
        )
    orders = [name for name, p in space.parameters.items() if isinstance(p.domain, Permutation)]
    if orders:
        raise SpaceError(
            f"Optuna cannot suggest the order {orders[0]!r} of space {space.name!r}; search it with mc.minimize or mc.Study"
        )


MOST = 32
"""Largest number of values of a parent."""


@dataclass(frozen=True)
class InferredParameter:
    """A parameter of the objective.

    Attributes:
        distribution: of Optuna.
        parent: name of the parameter that decides whether it is active; empty: it is always active.
        values: values of the parent at which it is active.
    """

    distribution: Any
    parent: str = ""
    values: tuple[Any, ...] = ()


@dataclass
class Inference:
    """The parameters of a study that grows; they are inferred anew once a complete trial does not agree with them."""

    _parameters: dict[str, InferredParameter] = field(default_factory=dict)
    _seen: set[Key] = field(default_factory=set)

    def of(self, trials: Sequence[Any]) -> dict[str, InferredParameter]:
        """Return ``inferred`` of the complete trials among ``trials``."""
        complete = {key_of(t): t for t in trials if t.state == TrialState.COMPLETE}
        new = [t for key, t in complete.items() if key not in self._seen]
        if not (self._seen <= complete.keys() and all(_agrees(self._parameters, t) for t in new)):
            self._parameters = inferred(list(complete.values()))
        self._seen = set(complete)
        return dict(self._parameters)


def _agrees(parameters: Mapping[str, InferredParameter], trial: Any) -> bool:
    """Return True if a trial has exactly the parameters that are active in it, in their ranges."""
    params = {n: v for n, v in trial.params.items() if not trial.distributions[n].single()}
    parents = {p.parent for p in parameters.values()} & params.keys()
    declared = {n: _declared(n, trial.distributions[n], params[n]) for n in parents}
    active = {
        n for n, p in parameters.items() if not p.parent or (p.parent in parents and declared[p.parent] in p.values)
    }
    return params.keys() == active and all(trial.distributions[n] == parameters[n].distribution for n in active)


def inferred(complete: Sequence[Any]) -> dict[str, InferredParameter]:
    """Return the parameters that can be sampled jointly, parents first; empty without complete trials."""
    ranges: dict[str, list[Any]] = {}
    for trial in complete:
        for name, distribution in trial.distributions.items():
            if distribution not in ranges.setdefault(name, []):
                ranges[name].append(distribution)
    left = {n: d[0] for n, d in ranges.items() if len(d) == 1 and not d[0].single() and _has_domain(n, d[0])}
    found = {n: InferredParameter(d) for n, d in left.items() if all(n in t.params for t in complete)}
    while True:
        known = {name: _parent(name, d, found, complete) for name, d in left.items() if name not in found}
        new = {name: parameter for name, parameter in known.items() if parameter is not None}
        if not new:
            return found
        found |= new


def space_of(parameters: Mapping[str, InferredParameter]) -> Space:
    """Return the space of inferred parameters."""
    space = Space("the study")
    for name, each in parameters.items():
        when = None if not each.parent else space[each.parent].is_(*each.values)
        space._declaration.declare(name, domain_of(name, each.distribution), when)
    return space


def _parent(
    name: str, distribution: Any, found: Mapping[str, InferredParameter], complete: Sequence[Any]
) -> InferredParameter | None:
    """Return the parameter with the first parent that decides whether it is active; None if there is none."""
    for parent, candidate in found.items():
        values = getattr(domain_of(parent, candidate.distribution), "values", ())
        if not 2 <= len(values) <= MOST or any(name in t.params and parent not in t.params for t in complete):
            continue
        seen = [
            (_declared(parent, candidate.distribution, t.params[parent]), name in t.params)
            for t in complete
            if parent in t.params
        ]
        on, off = ([v for v, has in seen if has is kind] for kind in (True, False))
        active = tuple(v for v in values if v in on)
        if active and (off or candidate.parent) and not any(v in off for v in on):
            return InferredParameter(distribution, parent, active)
    return None


def _declared(name: str, distribution: Any, value: Any) -> Any:
    """Return a value as the domain of a distribution has it, 0.3 for 0.1 + 2 * 0.1; unchanged if there is no such value."""
    with suppress(SpaceError, ValueError):
        return as_declared(domain_of(name, distribution), value)
    return value


def _has_domain(name: str, distribution: Any) -> bool:
    try:
        space_of({name: InferredParameter(distribution)})
    except SpaceError:
        return False
    return True
