"""Where Optuna's distributions and the domains of a space meet: the same values or not, and values from one to the other."""

from __future__ import annotations

import math
from typing import Any

from mipcash.errors import SpaceError
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
from mipcash.modelling.exchange.optuna import domain_of, spacing

NEAR = 1e-9
"""Relative difference up to which two numbers of a list are the same: 0.1 + 2 * 0.1 and 0.3 are."""


def same_values(name: str, domain: ParameterDomain, distribution: Any) -> bool:
    """Whether a distribution of Optuna holds the values of a domain, no more and no less; log scales aside."""
    try:
        theirs = domain_of(name, distribution)
    except SpaceError:
        return False
    if isinstance(domain, Real) or isinstance(theirs, Real):
        both = isinstance(domain, Real) and isinstance(theirs, Real)
        return both and all(_close(a, b) for a, b in ((domain.low, theirs.low), (domain.high, theirs.high)))  # type: ignore[union-attr]
    if isinstance(domain, Integer) and isinstance(theirs, Integer):
        return (domain.low, domain.high, domain.step) == (theirs.low, theirs.high, theirs.step)
    if isinstance(domain, Permutation) or len(domain) != len(theirs):
        return False
    return all(_level(domain, v) is not None for v in theirs.values)


def suggestion(name: str, domain: ParameterDomain) -> str:
    """How an objective of Optuna asks for a parameter: the line of code."""
    log = ", log=True" if isinstance(domain, (Real, Integer)) and domain.log else ""
    if isinstance(domain, Real):
        return f"trial.suggest_float({name!r}, {domain.low!r}, {domain.high!r}{log})"
    if isinstance(domain, Integer) and not (log and domain.step > 1):
        step = f", step={domain.step}" if domain.step > 1 else ""
        return f"trial.suggest_int({name!r}, {domain.low!r}, {domain.high!r}{step}{log})"
    values = domain.members if isinstance(domain, Permutation) else domain.values
    if isinstance(domain, Ordinal) and (step_of := spacing(domain)) is not None:
        kind = "int" if isinstance(step_of, int) else "float"
        return f"trial.suggest_{kind}({name!r}, {values[0]!r}, {values[-1]!r}, step={step_of!r})"
    return f"trial.suggest_categorical({name!r}, {list(values)!r})"


def as_asked(value: Value, distribution: Any) -> Any:
    """A value of a configuration as a distribution of the same values has it: the very choice, a Python int or float."""
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        level = level_of(Categorical(choices), value)
        return value if level is None else choices[level]
    return int(value) if type(distribution).__name__.startswith("Int") else float(value)


def as_declared(domain: ParameterDomain, value: Any) -> Value:
    """A value that Optuna has as a domain has it.

    Raises:
        ValueError: it is none of its values.
    """
    if isinstance(domain, (Ordinal, Categorical)) and (level := _level(domain, value)) is not None:
        return domain.values[level]
    if (problem := domain.problem(value)) is not None:
        raise ValueError(problem)
    return domain.canonical(value)


def _level(domain: Integer | Ordinal | Categorical, value: Any) -> int | None:
    level = level_of(domain, value)
    if level is None and is_number(value):
        return next((l for l, v in enumerate(domain.values) if is_number(v) and _close(v, value)), None)
    return level


def _close(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=NEAR, abs_tol=1e-12)
