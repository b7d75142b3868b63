"""Distributions of Optuna as a declaration, and back.

    FloatDistribution                  real, with its step
    IntDistribution                    integer, with its step
    CategoricalDistribution            categorical: None, bools, numbers and texts as they are
    a range of one value, a constant   a categorical of one value

Back, an ordinal of evenly spaced numbers is a range with a step, and any other ordinal a categorical: Optuna cannot express an
order of other values. It cannot express rules and activity either; an objective of Optuna has ``if`` statements instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from numbers import Integral
from typing import Any

from mipcash.errors import SpaceError
from mipcash.integrations.spaces.shared import list_domain, number_domain, package
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Categorical, Integer, Ordinal, ParameterDomain, Real, is_number
from mipcash.modelling.live.components import relations_of


def declare_distributions(declaration: Declaration, distributions: Mapping[str, Any]) -> None:
    """Declare a parameter for each distribution.

    Args:
        distributions: name -> distribution, as of ``trial.distributions`` or ``optuna.search_space.intersection_search_space``.

    Raises:
        SpaceError: no mapping, a value that is no distribution, or choices that are listed twice or not finite.
    """
    if not isinstance(distributions, Mapping):
        raise SpaceError(
            f"from_optuna takes a dict, name -> distribution, got {type(distributions).__name__}; of a study: "
            "optuna.search_space.intersection_search_space(study.trials)"
        )
    for name, distribution in distributions.items():
        declaration.declare(name, domain_of(name, distribution), None)


def domain_of(name: str, distribution: Any) -> Real | Integer | Ordinal | Categorical:
    """Return the domain of a distribution.

    Raises:
        SpaceError: see ``declare_distributions``.
    """
    theirs = package("optuna.distributions", "optuna", "a space from Optuna's distributions")
    if isinstance(distribution, theirs.CategoricalDistribution):
        return list_domain(name, distribution.choices)
    if isinstance(distribution, theirs.IntDistribution):
        return number_domain(
            name, distribution.low, distribution.high, whole=True, log=distribution.log, step=distribution.step
        )
    if isinstance(distribution, theirs.FloatDistribution):
        low, high, log, step = distribution.low, distribution.high, distribution.log, distribution.step
        return number_domain(name, low, high, whole=False, log=log, step=step)
    raise SpaceError(
        f"parameter {name!r}: expected Optuna's FloatDistribution, IntDistribution or CategoricalDistribution, got {distribution!r}"
    )


def distributions_of(declaration: Declaration) -> dict[str, Any]:
    """Return Optuna's distributions of a declaration.

    Raises:
        SpaceError: it has rules, constraints on the model, conditions or orderings, which Optuna cannot express; the message names
            them.
    """
    unsaid = [f"the rule {name!r}" for name in declaration.rules]
    unsaid += [f"the constraint {relation.name!r} of the model" for relation in relations_of(declaration)]
    unsaid += [f"where {label!r} is active" for label in declaration.conditions]
    unsaid += [] if declaration.fidelity is None else [f"the fidelity {declaration.fidelity.label!r}"]
    if unsaid:
        raise SpaceError(
            f"Optuna's distributions cannot express {', '.join(unsaid)}; keep the space and give it to "
            "mipcash.integrations.optuna.MipcashSampler(space), which proposes only what it allows"
        )
    return {name: distribution_of(name, p.domain) for name, p in declaration.parameters.items()}


def distribution_of(name: str, domain: ParameterDomain) -> Any:
    """Return the distribution of a domain.

    Raises:
        SpaceError: an ordering, or an integer on the log scale with a step.
    """
    theirs = package("optuna.distributions", "optuna", "to_optuna")
    if isinstance(domain, Real):
        return theirs.FloatDistribution(domain.low, domain.high, log=domain.log, step=domain.step)
    if isinstance(domain, Integer):
        if domain.log and domain.step > 1:
            raise SpaceError(
                f"parameter {name!r}: Optuna has no integers on the log scale in steps of {domain.step}; drop log=True or the step"
            )
        return theirs.IntDistribution(domain.low, domain.high, log=domain.log, step=domain.step)
    if isinstance(domain, Ordinal) and (step := spacing(domain)) is not None:
        kind = (
            theirs.IntDistribution if all(isinstance(v, Integral) for v in domain.values) else theirs.FloatDistribution
        )
        return kind(domain.values[0], domain.values[-1], step=step)
    if isinstance(domain, (Ordinal, Categorical)):
        return theirs.CategoricalDistribution(tuple(domain.values))
    raise SpaceError(f"parameter {name!r} is {domain}; Optuna has no distribution of orders, leave it out")


def spacing(domain: Ordinal) -> float | int | None:
    """Return the step between the numbers of an increasing ordinal; None if they are not evenly spaced, or fewer than two."""
    values = domain.values
    if len(values) < 2 or not all(is_number(v) for v in values):
        return None
    numbers = [Decimal(str(v)) for v in values]
    steps = {b - a for a, b in pairwise(numbers)}
    step = steps.pop()
    if steps or step <= 0:
        return None
    return int(step) if all(isinstance(v, Integral) for v in values) else float(step)
