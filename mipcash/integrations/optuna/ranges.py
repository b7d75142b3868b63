"""Comparison of Optuna's distributions with the domains of a space, and conversion of values between them."""

from __future__ import annotations

import math
from typing import Any

from mipcash.errors import SpaceError
from mipcash.integrations.spaces.optuna_distributions import domain_of, spacing
from mipcash.modelling.domains import (
    Categorical,
    Integer,
    Ordinal,
    ParameterDomain,
    Permutation,
    Real,
    Value,
    is_number,
    level_of,
)
from mipcash.study.records.tables import NEAR


def same_values(name: str, domain: ParameterDomain, distribution: Any) -> bool:
    """Return True if a distribution of Optuna has exactly the values of a domain; log scales are ignored."""
    try:
        theirs = domain_of(name, distribution)
    except SpaceError:
        return False
    if isinstance(domain, (Real, Integer)) and isinstance(theirs, (Real, Integer)):
        steps = (domain.step, theirs.step)
        same_step = steps == (None, None) if None in steps else _close(*steps)
        return same_step and _close(domain.low, theirs.low) and _close(domain.high, theirs.high)
    if isinstance(domain, Permutation) or not (hasattr(domain, "values") and hasattr(theirs, "values")):
        return False
    if len(domain.values) != len(theirs.values):
        return False
    return all(_level(domain, v) is not None for v in theirs.values)


def suggestion(name: str, domain: ParameterDomain) -> str:
    """Return the line of code with which an objective of Optuna suggests a parameter."""
    log = ", log=True" if isinstance(domain, (Real, Integer)) and domain.log else ""
    if isinstance(domain, Real):
        step = "" if domain.step is None else f", step={domain.step!r}"
        return f"trial.suggest_float({name!r}, {domain.low!r}, {domain.high!r}{step}{log})"
    if isinstance(domain, Integer) and not (log and domain.step > 1):
        step = f", step={domain.step}" if domain.step > 1 else ""
        return f"trial.suggest_int({name!r}, {domain.low!r}, {domain.high!r}{step}{log})"
    values = domain.members if isinstance(domain, Permutation) else domain.values
    if isinstance(domain, Ordinal) and (step_of := spacing(domain)) is not None:
        kind = "int" if isinstance(step_of, int) else "float"
        return f"trial.suggest_{kind}({name!r}, {values[0]!r}, {values[-1]!r}, step={step_of!r})"
    return f"trial.suggest_categorical({name!r}, {list(values)!r})"


def as_asked(value: Value, distribution: Any) -> Any:
    """Return a value of a configuration in the form of a distribution: the same choice object, a Python int or float."""
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        level = level_of(Categorical(choices), value)
        return value if level is None else choices[level]
    return int(value) if type(distribution).__name__.startswith("Int") else float(value)


def as_declared(domain: ParameterDomain, value: Any) -> Value:
    """Return a value of Optuna in the form of a domain.

    Raises:
        ValueError: the domain does not have the value.
    """
    if isinstance(domain, (Ordinal, Categorical)) and (level := _level(domain, value)) is not None:
        return domain.values[level]
    if (problem := domain.problem(value)) is not None:
        raise ValueError(problem)
    return domain.canonical(value)


def _level(domain: Real | Integer | Ordinal | Categorical, value: Any) -> int | None:
    level = level_of(domain, value)
    if level is None and is_number(value):
        if isinstance(domain, (Real, Integer)):
            return domain.level(near) if _close(near := domain.nearest(float(value)), value) else None
        return next((l for l, v in enumerate(domain.values) if is_number(v) and _close(v, value)), None)
    return level


def _close(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=NEAR, abs_tol=1e-12)
