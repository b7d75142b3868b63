"""The legal configuration nearest to a given one, and the explanation of an illegal configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from mipcash.backends.task import Answer, Task
from mipcash.errors import ConfigurationError, InfeasibleSpaceError, SolverError
from mipcash.modelling.domains import Configuration, Value, is_number, same_value
from mipcash.modelling.validation import check
from mipcash.program.forms import QuadraticForm, Vector
from mipcash.program.program import BinaryProgram, Group
from mipcash.program.rewriting import with_columns, with_rows
from mipcash.space.compiled import QUESTION, CompiledSpace
from mipcash.space.conflict import decided
from mipcash.space.explanation import explained

NEAR = replace(QUESTION, time_limit=10.0, gap=1e-3)
"""Solver limits of the search. A legal configuration is enough; proof that none is nearer by a thousandth is not needed."""
SOFT = 1e-3
"""Weight of a value that is given for want of a better one."""
WIDE = 2**24
"""Range of an integer from which on its distance is an integer too."""
ABSENT_COST = 1.0
"""Cost of activating a parameter that the given configuration leaves out, or of deactivating one that it contains."""


def nearest(space: CompiledSpace, config: Configuration, soft: Collection[str] | None = None) -> Configuration:
    """Return the nearest legal configuration; see ``mipcash.Space.nearest``.

    Args:
        soft: parameters whose values count by SOFT only; activity then does not count. None: all values and activities count.
    """
    if not isinstance(config, Mapping):
        raise ConfigurationError(f"a configuration is a dict of parameter values, got {type(config).__name__}")
    if space.is_legal(config):
        return {
            **config,
            **space.fixed,
        }  # the fixed values of a sub-space are met within a tolerance only: make them exact
    wide = space.wider({x.label for x in space.tuned})
    answer = _nearest_point(space, wide.program, config, soft)
    if decided(answer).columns is None:
        raise InfeasibleSpaceError(explained(space, space.backend, empty=True))
    assert answer.columns is not None
    levels, at = wide.program.levels_of(answer.columns), {x.label: x.column for x in wide.program.numbers}
    values = {l: float(answer.columns[c]) for l, c in at.items()}
    for x in space.tuned:
        if x.label not in space.in_rules:
            given = config.get(x.label)
            values[x.label] = x.domain.nearest(float(given)) if is_number(given) else x.domain.from_unit(0.5)  # type: ignore[arg-type]
    # columns of auxiliary variables in the space's own program are unknown (nan); they are computed again
    found = space.decoded(levels, np.full(space.program.n, np.nan), space.active(levels, values))
    return _restored(space, found, config)


def _restored(space: CompiledSpace, found: Configuration, config: Configuration) -> Configuration:
    """Restore the values of the given configuration one by one, as far as the result stays legal.

    Within its tolerance, a solver may change values needlessly. A value is restored only if the largest violation, as a
    fraction of a rule's tolerance, does not grow. Otherwise restored values could violate a rule over a tiny range.
    """
    missed = _missed(space, found)
    for label in found:
        domain, given = space.declaration.parameters[label].domain, config.get(label)
        if label in config and domain.problem(given) is None and label not in space.fixed:
            trial = {**found, label: domain.canonical(given)}
            with suppress(SolverError):  # the solver could not decide in time
                if space.is_legal(trial) and (now := _missed(space, trial)) <= missed:
                    found, missed = trial, now
    return found


def _missed(space: CompiledSpace, config: Configuration) -> float:
    """Return the largest violation of a rule by a legal configuration, as a fraction of the rule's tolerance."""
    values = check(space.declaration, config, space.rules).assignment
    most = 0.0
    for rule in space.rules:
        if rule.slack and rule.ids <= values.keys() and rule.applies(values):
            value = rule.body.value(values)
            most = max(most, (rule.lower - value) / rule.slack, (value - rule.upper) / rule.slack)
    return most


def why_illegal(space: CompiledSpace, config: Configuration) -> str:
    """Return why a configuration is illegal; see ``mipcash.Space.why_illegal``."""
    violations = space.violations(config)
    if not violations:
        return ""
    text = "; ".join(map(str, violations))
    try:
        repaired = nearest(space, config)
    except ConfigurationError:
        return text
    except InfeasibleSpaceError:
        return f"{text}. No configuration is legal: {explained(space, space.backend)}"
    changes = [
        f"{name} = {repaired[name]!r}" if name in repaired else f"no {name}"
        for name in {**repaired, **config}
        if not (name in config and name in repaired and config[name] == repaired[name])
    ]
    return f"{text}. The nearest legal configuration has {', '.join(changes)}"


def _nearest_point(
    space: CompiledSpace, program: BinaryProgram, config: Configuration, soft: Collection[str] | None
) -> Answer:
    """Minimise the distance to a configuration (which may be illegal, incomplete, or name unknown parameters) over legal points.

    The distance is a sum over parameters. A different category, position of a module in an order, or activity costs 1. A change
    of an ordered value costs the fraction of its levels in between, a change of a numerical value its fraction of the range. If the
    given value of an ordered parameter is a number that is not among its levels, a level costs its distance from that number, as a
    fraction of the range of the levels.

    Args:
        program: with columns for every numerical parameter. The values of those that are in no rule do not count: they are kept.
        soft: see ``nearest``.
    """
    linear, constant = np.zeros(program.n), 0.0
    for group in program.groups:
        linear[group.start : group.stop] = _group_costs(group, config, soft)
    wanted: dict[int, float] = {}
    for number in program.numbers:
        given: Value = config.get(number.label)
        low, high = program.low[number.latent], program.high[number.latent]
        if is_number(given) and number.label in space.in_rules and low < high:
            # of an inactive parameter the latent column is free, so only the change of activity counts
            wanted[number.latent] = min(high, max(low, float(given)))
        if number.conditions:
            switch, sign = program.switch(number.label), -1.0 if number.label in config else 1.0
            price = ABSENT_COST if soft is None else 0.0
            constant += price * (float(sign < 0) + sign * switch.constant)
            np.add.at(linear, switch.columns, sign * price * switch.coefficients)
    (lifted, costs), label = with_distances(program, wanted), {n.latent: n.label for n in program.numbers}
    cost = np.concatenate([linear, costs * [SOFT if label[c] in (soft or ()) else 1.0 for c in wanted]])
    form = replace(QuadraticForm.zero(lifted.n), constant=constant, linear=cost)
    return space.backend.solve(Task(lifted, form), NEAR)


def _group_costs(group: Group, config: Configuration, soft: Collection[str] | None) -> Vector:
    cost = _costs(group, config)
    if soft is not None and group.conditional:
        cost[-1] = 0.0
    return SOFT * cost if group.parameter in (soft or ()) else cost


def _costs(group: Group, config: Configuration) -> Vector:
    values, label, kind, conditional = group.values, group.parameter, group.kind, group.conditional
    cost = np.zeros(group.size)
    if label not in config:
        if conditional:
            cost[:-1] = ABSENT_COST
        return cost
    if conditional:
        cost[-1] = ABSENT_COST
    given = config[label]
    if kind == "ordering":
        member = group.label[len(label) + 1 :]
        order = list(given) if isinstance(given, (list, tuple)) else []
        if member in order:
            cost[: len(values)] = [float(t != order.index(member)) for t in range(len(values))]
        return cost
    ordered = kind in ("integer", "ordinal")
    at = next((l for l, v in enumerate(values) if same_value(v, given)), None)
    if at is not None and ordered:
        steps = np.abs(np.arange(len(values)) - at) / max(1, len(values) - 1)
        cost[: len(values)] = steps
    elif at is not None:
        cost[: len(values)] = np.arange(len(values)) != at
    elif ordered and is_number(given) and all(is_number(v) for v in values):
        natural = np.array([float(v) for v in values])
        low, high = float(natural.min()), float(natural.max())
        # of two numbers outside the range the same level is nearest, and costs without bound would hide those of other parameters
        cost[: len(values)] = np.abs(natural - min(max(float(given), low), high)) / ((high - low) or 1.0)
    return cost


def with_distances(program: BinaryProgram, wanted: Mapping[int, float]) -> tuple[BinaryProgram, Vector]:
    """Return the program with a column ``d >= |v - target| / unit`` per column and target in ``wanted``, and the costs of the d.

    The unit is the range of v, and the cost 1. For an integer of a range beyond WIDE, d is an integer with the unit and the cost
    1 / range, since a solver drops coefficients that are too small.
    """
    if not wanted:
        return program, np.zeros(0)
    k, columns, target = len(wanted), np.array([*wanted]), np.array([*wanted.values()], dtype=float)
    low, high = program.low[columns], program.high[columns]
    width = np.where(high > low, high - low, 1.0)
    wide = (program.integer[columns] > 0) & (width > WIDE)
    target = np.where(wide, np.round(target), target)  # else no whole d is near
    unit, far = np.where(wide, 1.0, width), np.maximum(np.abs(high - target), np.abs(target - low))
    names = tuple(f"|{program.names[c]} - {v!r}|" for c, v in wanted.items())
    lifted = with_columns(program, names, np.zeros(k), 1.0 + np.where(wide, np.ceil(far), far / unit), integer=wide)
    rows = np.zeros((2, k, lifted.n_columns))  # unit d - v >= -target, unit d + v >= target
    rows[:, np.arange(k), program.n + np.arange(k)] = unit
    rows[:, np.arange(k), columns] = np.array([[-1.0], [1.0]])
    ends = np.concatenate([-target, target])
    return with_rows(lifted, sparse.csr_array(rows.reshape(2 * k, -1)), ends, np.full(2 * k, np.inf)), unit / width
