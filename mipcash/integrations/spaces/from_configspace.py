"""A space of ConfigSpace as a declaration: hyperparameters, conditions as activity, forbidden clauses as rules.

    Float, Integer                     real and integer, with their log scale; of beta distributions only the bounds.
    Categorical, Ordinal, Constant     the same; a constant is a categorical of one value.
    conditions                         ``when=``: a conjunction of disjunctions over the levels of discrete parents.
    forbidden clauses                  one rule for each conjunction of literals: they do not all hold.

As in ConfigSpace, an inactive parameter satisfies no condition except "not equal", and violates no forbidden clause. Strict
inequalities of reals keep a margin of ``MARGIN`` of the range, or of the value on a log scale.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from scipy import stats

from mipcash.errors import SpaceError, warn
from mipcash.integrations.spaces.shared import list_domain, number_domain, package
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import LISTED, Integer, Ordinal, Real, Value, is_number
from mipcash.modelling.formulas import all_of, any_of
from mipcash.modelling.parameters import NumericParameter, Parameter
from mipcash.modelling.rules import TOLERANCE

MARGIN, LEAST = 1e-6, 2.0 * TOLERANCE
"""Share of a range, and the least margin that a rule can tell."""


def declare_configspace(declaration: Declaration, space: Any) -> None:
    """Declare the hyperparameters, conditions and forbidden clauses of a ``ConfigurationSpace``.

    Raises:
        SpaceError: no such space; a condition on a parent that is no list of at most ``LISTED`` values.

    Defaults, weights of categories and normal distributions on a linear scale are kept; other priors are dropped with a warning.
    """
    theirs = package("ConfigSpace", "configspace", "a space from ConfigSpace")
    if not isinstance(space, theirs.ConfigurationSpace):
        raise SpaceError(f"from_configspace takes a ConfigSpace.ConfigurationSpace, got {type(space).__name__}")
    deciding = {parent.name for name in space for parent in space.parents_of[name]}
    for hyperparameter in _parents_first(space):
        name = hyperparameter.name
        domain = _domain(hyperparameter)
        stepped = isinstance(domain, (Real, Integer)) and domain.step is not None
        if name in deciding and stepped and declaration.expand_limit < len(domain.values) <= LISTED:
            domain = Ordinal(domain.values)  # activity follows from levels
        when = _when(declaration, space, name)
        if when is not NEVER:
            declaration.declare(name, domain, when)
            default, prior = _plain(hyperparameter.default_value), _prior(hyperparameter)
            declaration.expect(name, None if domain.problem(default) else default, prior)
    dropped = [hp.name for hp in space.values() if _has_prior(hp) and _prior(hp) is None]
    if dropped:
        warn(f"the priors of {', '.join(map(repr, dropped))} are dropped; their ranges and defaults are kept")
    for clause in space.forbidden_clauses:
        for literals in _disjuncts(clause):
            _forbid(declaration, str(clause), literals)


def _parents_first(space: Any) -> Iterator[Any]:
    left = dict(space.items())
    while left:
        ready = [hp for name, hp in left.items() if not any(p.name in left for p in space.parents_of[name])]
        for hp in ready:
            yield left.pop(hp.name)


def _domain(hyperparameter: Any) -> Any:
    name, kind = hyperparameter.name, type(hyperparameter).__name__
    if kind == "Constant":
        return list_domain(name, [hyperparameter.value])
    if kind == "CategoricalHyperparameter":
        return list_domain(name, [_plain(v) for v in hyperparameter.choices])
    if kind == "OrdinalHyperparameter":
        return list_domain(name, [_plain(v) for v in hyperparameter.sequence], ordered=True)
    low, high = getattr(hyperparameter, "lower", None), getattr(hyperparameter, "upper", None)
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        raise SpaceError(f"hyperparameter {name!r} ({kind}) has no finite bounds; give lower= and upper=")
    whole, step = kind.endswith("IntegerHyperparameter"), getattr(hyperparameter, "q", None)  # q: before ConfigSpace 1
    return number_domain(name, low, high, whole=whole, log=bool(hyperparameter.log), step=step)


def _plain(value: Any) -> Value:
    """Return a choice without a wrapper of NumPy."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _has_prior(hyperparameter: Any) -> bool:
    if type(hyperparameter).__name__.startswith(("Normal", "Beta")):
        return True
    weights = getattr(hyperparameter, "weights", None)
    return weights is not None and len(set(map(float, weights))) > 1


def _prior(hyperparameter: Any) -> Any:
    """Return weights, or a normal distribution of values; None if there is no prior, or it is of another kind."""
    if not _has_prior(hyperparameter):
        return None
    if (weights := getattr(hyperparameter, "weights", None)) is not None:
        return {_plain(v): float(w) for v, w in zip(hyperparameter.choices, weights, strict=True)}
    if type(hyperparameter).__name__ == "NormalFloatHyperparameter" and not hyperparameter.log:
        return stats.norm(float(hyperparameter.mu), float(hyperparameter.sigma))
    return None


# -- conditions -----------------------------------------------------------------------------------------------------


NEVER = "never"
"""The condition of a hyperparameter that is never active."""


def _when(declaration: Declaration, space: Any, child: str) -> Any:
    """Return a formula for the activity of a hyperparameter; None: it is always active, NEVER: it never is."""
    return _all([_condition(declaration, each, child) for each in space.parent_conditions_of[child]])


def _all(parts: Sequence[Any]) -> Any:
    left = [part for part in parts if part is not None]
    never = any(part is NEVER for part in left)
    return NEVER if never else None if not left else left[0] if len(left) == 1 else all_of(*left)


def _condition(declaration: Declaration, condition: Any, child: str) -> Any:
    """Return a condition as a formula of indicators; None: it always holds, NEVER: it never does."""
    kind = type(condition).__name__
    if kind == "AndConjunction":
        return _all([_condition(declaration, part, child) for part in condition.components])
    if kind == "OrConjunction":
        parts = [_condition(declaration, part, child) for part in condition.components]
        left = [part for part in parts if part is not NEVER]
        always = any(part is None for part in left)
        return None if always else NEVER if not left else left[0] if len(left) == 1 else any_of(*left)
    name, off = condition.parent.name, kind == "NotEqualsCondition"
    if name not in declaration.parameters:  # it is never active
        return None if off else NEVER
    parent = declaration.parameters[name]
    values = _levels_of(declaration, parent)
    if values is None:
        raise SpaceError(
            f"the condition {condition} of {child!r}: activity follows from lists of values in mipcash, and {parent.label!r} is "
            f"{parent.domain}; make it an ordinal of the values that matter"
        )
    present = [v for v in values if condition.satisfied_by_value({parent.label: v})]
    missing = [v for v in values if v not in present]
    always = name not in declaration.conditions
    if (off or always) and not missing:
        return None
    if off or (always and present and len(missing) < len(present)):
        return 1 - parent.is_(*missing)
    return parent.is_(*present) if present else NEVER


def _levels_of(declaration: Declaration, parameter: Parameter) -> Sequence[Value] | None:
    """Return the values of a parameter with a binary for each; None if it is a numerical parameter."""
    values: Sequence[Value] | None = getattr(parameter.domain, "values", None)
    if values is None or declaration.model.parameters[parameter.label].component("z") is None:
        return None
    return values


# -- forbidden clauses ----------------------------------------------------------------------------------------------


def _disjuncts(clause: Any) -> list[list[Any]]:
    """Return a clause as a disjunction of conjunctions of literals, each of which is forbidden."""
    kind = type(clause).__name__
    if kind == "ForbiddenAndConjunction":
        parts = [_disjuncts(part) for part in clause.components]
        return [[literal for part in chosen for literal in part] for chosen in itertools.product(*parts)]
    if kind == "ForbiddenOrConjunction":
        return [disjunct for part in clause.components for disjunct in _disjuncts(part)]
    return [[clause]]


def _forbid(declaration: Declaration, text: str, literals: Sequence[Any]) -> None:
    """Declare one rule, or several, by which not all of the literals hold."""
    holding, relations = list[Any](), list[list[Any]]()
    about = {hp.name for x in literals for hp in ((x.left, x.right) if hasattr(x, "left") else (x.hyperparameter,))}
    if not about <= declaration.parameters.keys():
        return None  # some parameter is never active
    for literal in literals:
        if hasattr(literal, "left"):
            left, right = (declaration.parameters[hp.name] for hp in (literal.left, literal.right))
            values = [_levels_of(declaration, p) for p in (left, right)]
            if all(v is not None for v in values) and len(values[0]) * len(values[1]) <= LISTED:  # type: ignore[arg-type]
                return _forbid_pairs(declaration, text, literal, [x for x in literals if x is not literal])
            holding += [left.is_active(), right.is_active()]
            relations.append(_apart(literal, left, right))
        else:
            parameter = declaration.parameters[literal.hyperparameter.name]
            levels = _levels_of(declaration, parameter)
            if levels is None:
                holding.append(parameter.is_active())
                relations.append(_outside(literal, parameter))
                continue
            forbidden = [v for v in levels if literal.is_forbidden_value({parameter.label: v})]
            if not forbidden:
                return None
            holding.append(parameter.is_(*forbidden))
    _write(declaration, text, holding, relations)
    return None


def _forbid_pairs(declaration: Declaration, text: str, relation: Any, others: Sequence[Any]) -> None:
    """Forbid a relation between two lists of values: for each value of the first, the forbidden values of the second."""
    theirs = package("ConfigSpace", "configspace", "a space from ConfigSpace")
    left, right = (declaration.parameters[hp.name] for hp in (relation.left, relation.right))
    for a in _levels_of(declaration, left) or ():
        try:
            against = [
                b
                for b in _levels_of(declaration, right) or ()
                if relation.is_forbidden_value({left.label: a, right.label: b})
            ]
        except TypeError as error:
            raise SpaceError(f"{text}: {error}; compare values of one kind") from error
        if against:
            pair = [
                theirs.ForbiddenEqualsClause(relation.left, a),
                theirs.ForbiddenInClause(relation.right, against),
            ]
            _forbid(declaration, text, [*pair, *others])


def _write(declaration: Declaration, text: str, holding: Sequence[Any], relations: Sequence[list[Any]]) -> None:
    """Declare rules: if all of ``holding`` hold, one of the relations does, each a list of relations that all hold."""
    conditions = [u for u in holding if not isinstance(u, int)]
    if not relations:
        declaration.rule(_free(declaration, text), sum(conditions) <= len(conditions) - 1)
        return
    for chosen in itertools.product(*relations):
        relation = chosen[0] if len(chosen) == 1 else any_of(*chosen)
        declaration.rule(_free(declaration, text), relation, when=conditions or None)


def _outside(literal: Any, parameter: Any) -> list[Any]:
    """Return relations that hold together exactly if a numerical parameter is outside a forbidden clause."""
    kind, domain = type(literal).__name__, parameter.domain
    if kind in ("ForbiddenEqualsClause", "ForbiddenInClause"):
        values = [(v, _margin(domain, v)) for v in getattr(literal, "values", None) or [literal.value]]
        return [any_of(parameter <= v - apart, parameter >= v + apart) for v, apart in values]
    value, apart = literal.value, _margin(domain, literal.value)
    return {
        "ForbiddenGreaterThanClause": [parameter <= value],
        "ForbiddenGreaterThanEqualsClause": [parameter <= value - apart],
        "ForbiddenLessThanClause": [parameter >= value],
        "ForbiddenLessThanEqualsClause": [parameter >= value + apart],
    }[kind]


def _apart(relation: Any, left: Parameter, right: Parameter) -> list[Any]:
    """Return relations that hold together if two parameters, one of them numerical, do not satisfy a relation."""
    a, b = (_as_number(p, str(relation)) for p in (left, right))
    kind = type(relation).__name__
    if kind == "ForbiddenLessThanRelation":
        return [a >= b]
    if kind == "ForbiddenGreaterThanRelation":
        return [a <= b]
    spans = [span for span in (_span(left.domain), _span(right.domain)) if span]
    margin = 1.0 if _all_whole(left, right) else max(LEAST, MARGIN * min(spans, default=1.0))
    return [any_of(a <= b - margin, a >= b + margin)]


def _all_whole(*parameters: Parameter) -> bool:
    def whole(domain: Any) -> bool:
        values = getattr(domain, "values", None)
        return values is not None and all(is_number(v) and float(v).is_integer() for v in values)

    return all(
        isinstance(p.domain, Integer) or (not isinstance(p.domain, Real) and whole(p.domain)) for p in parameters
    )


def _margin(domain: Any, value: float) -> float:
    """Return 1 for whole numbers, half a step for reals with a step, and a share of the range or, on a log scale, of the value."""
    if not isinstance(domain, Real):
        return 1.0
    if domain.step is not None:
        return 0.5 * domain.step
    return max(LEAST, MARGIN * (value if domain.log else _span(domain)))


def _span(domain: Any) -> float:
    """Return the width of the range of a domain of numbers."""
    ends = getattr(domain, "values", None) or (domain.low, domain.high)
    return float(max(ends) - min(ends))


def _as_number(parameter: Parameter, text: str) -> Any:
    if isinstance(parameter, NumericParameter):
        return parameter
    values = getattr(parameter.domain, "values", ())
    if not all(is_number(v) for v in values):
        raise SpaceError(f"{text}: {parameter.label!r} is {parameter.domain}, which has no numbers to compare")
    return parameter.map(float)


def _free(declaration: Declaration, text: str) -> str:
    """Return a name for a rule: the clause as ConfigSpace writes it, numbered if there are several."""
    if text not in declaration.rules:
        return text
    return next(f"{text} ({k})" for k in itertools.count(2) if f"{text} ({k})" not in declaration.rules)
