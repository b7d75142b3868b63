"""Inference of the space of a define-by-run objective from its complete trials.

A parameter that all trials have is unconditional. A parameter that only some trials have is conditional if another discrete
parameter, its parent, decides: at each value of the parent either all trials have the parameter or none has it. A parameter with
several ranges, or without such a parent, is left out and sampled independently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.trial import TrialState

from mipcash.errors import SpaceError
from mipcash.integrations.optuna.history import Key, key_of
from mipcash.integrations.spaces.optuna_distributions import domain_of
from mipcash.space.space import Space

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
    active = {n for n, p in parameters.items() if not p.parent or (p.parent in params and params[p.parent] in p.values)}
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
        seen = [(t.params[parent], name in t.params) for t in complete if parent in t.params]
        on, off = ([v for v, has in seen if has is kind] for kind in (True, False))
        if on and (off or candidate.parent) and not any(v in off for v in on):
            return InferredParameter(distribution, parent, tuple(v for v in values if v in on))
    return None


def _has_domain(name: str, distribution: Any) -> bool:
    try:
        domain_of(name, distribution)
    except SpaceError:
        return False
    return True
