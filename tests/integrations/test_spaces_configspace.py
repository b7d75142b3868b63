"""Conversion from and to ConfigSpace: both spaces have the same legal configurations."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("ConfigSpace")

import ConfigSpace as CS
from ConfigSpace.exceptions import ForbiddenValueError

import mipcash as mc
from mipcash.errors import SpaceError


def admitted(theirs: Any, config: dict[str, Any]) -> bool:
    """Return True if ConfigSpace accepts a configuration."""
    try:
        CS.Configuration(theirs, values=config).check_valid_configuration()
    except ValueError:  # base class of all its exceptions
        return False
    return True


def agree(space: mc.Space, theirs: Any, n: int = 60) -> None:
    """Assert that configurations sampled from either space are legal in the other one."""
    for configuration in theirs.sample_configuration(n):
        # ConfigSpace's sampler reverses ForbiddenLessThanEqualsClause
        if admitted(theirs, dict(configuration)):
            assert space.validate(dict(configuration)) == [], configuration
    for config in space.sample(n // 3):
        assert admitted(theirs, config), config


# -- spaces of benchmarks ---------------------------------------------------------------------------------------


def random_forest() -> Any:
    space = CS.ConfigurationSpace(name="forest", seed=1)
    depth = CS.Integer("max_depth", (1, 50), log=True)
    leaf = CS.Integer("min_samples_leaf", (1, 20))
    split = CS.Integer("min_samples_split", (2, 128), log=True)
    features, bootstrap = CS.Float("max_features", (0.0, 1.0)), CS.Categorical("bootstrap", [True, False])
    samples, trees = CS.Float("max_samples", (0.1, 1.0)), CS.Constant("n_estimators", 500)
    space.add(depth, leaf, split, features, bootstrap, samples, trees)
    space.add(
        CS.EqualsCondition(samples, bootstrap, True),
        CS.ForbiddenLessThanRelation(split, leaf),
        CS.ForbiddenAndConjunction(CS.ForbiddenGreaterThanClause(depth, 20), CS.ForbiddenLessThanClause(leaf, 2)),
        CS.ForbiddenAndConjunction(CS.ForbiddenEqualsClause(bootstrap, True), CS.ForbiddenLessThanClause(samples, 0.2)),
    )
    return space


def xgboost() -> Any:
    space = CS.ConfigurationSpace(name="xgboost", seed=1)
    booster = CS.Categorical("booster", ["gbtree", "gblinear", "dart"])
    eta = CS.Float("eta", (2**-10, 1.0), log=True)
    depth, rounds = CS.Integer("max_depth", (1, 50), log=True), CS.Integer("n_rounds", (1, 2000), log=True)
    rate, skip = CS.Float("rate_drop", (0.0, 1.0)), CS.Float("skip_drop", (0.0, 1.0))
    grow = CS.OrdinalHyperparameter("grow_policy", ["depthwise", "lossguide"])
    bins = CS.OrdinalHyperparameter("max_bin", [64, 128, 256, 512])
    colsample, subsample = CS.Float("colsample", (0.1, 1.0)), CS.Float("subsample", (0.1, 1.0))
    lam = CS.NormalFloatHyperparameter("lambda", mu=1.0, sigma=5.0, lower=2**-10, upper=2.0**10, log=True)
    space.add(booster, eta, depth, rounds, rate, skip, grow, bins, colsample, subsample, lam)
    trees = ["gbtree", "dart"]
    space.add(
        *(CS.InCondition(child, booster, trees) for child in (depth, grow, colsample, subsample)),
        CS.AndConjunction(CS.InCondition(bins, booster, trees), CS.GreaterThanCondition(bins, grow, "depthwise")),
        CS.EqualsCondition(rate, booster, "dart"),
        CS.AndConjunction(CS.EqualsCondition(skip, booster, "dart"), CS.NotEqualsCondition(skip, grow, "lossguide")),
        CS.ForbiddenAndConjunction(
            CS.ForbiddenGreaterThanRelation(colsample, subsample), CS.ForbiddenEqualsClause(booster, "dart")
        ),
        CS.ForbiddenAndConjunction(
            CS.ForbiddenGreaterThanEqualsClause(rounds, 1500),
            CS.ForbiddenInClause(bins, [256, 512]),
            CS.ForbiddenLessThanEqualsClause(eta, 0.01),
        ),
        CS.ForbiddenEqualsRelation(rate, skip),
    )
    return space


def test_conditions_and_forbidden_clauses() -> None:
    theirs = random_forest()
    agree(mc.Space.from_configspace(theirs), theirs)


def test_values_scales_and_priors() -> None:
    with pytest.warns(UserWarning, match="the priors of 'lambda' are dropped; their ranges and defaults are kept"):
        space = mc.Space.from_configspace(xgboost())
    agree(space, xgboost())
    assert space.name == "xgboost"
    assert space["lambda"].domain == mc.Real(2**-10, 2**10, log=True)
    assert space["n_rounds"].domain == mc.Integer(1, 2000, log=True)
    assert space["max_bin"].domain == mc.Ordinal([64, 128, 256, 512])
    weighted = CS.ConfigurationSpace({"a": CS.Categorical("a", ["x", "y"], weights=[0.9, 0.1]), "n": 7})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = mc.Space.from_configspace(weighted)
        assert kept.count() == 2
        assert kept.default() == {"a": "x", "n": 7}
        both = CS.ConfigurationSpace(seed=0)
        both.add(
            CS.Float("y", (-5, 5), default=2.0), CS.Float("x", (-5, 5), default=1.0, distribution=CS.Normal(3, 0.5))
        )
        kept = mc.Space.from_configspace(both)
        assert kept.default() == {"y": 2.0, "x": 1.0}
        table = kept._declaration.expectations["x"].table
        assert table is not None
        assert np.argmax(table) == round(0.8 * (len(table) - 1))  # at 3
        assert mc.Space.from_configspace(CS.ConfigurationSpace({"a": ["x", "y"]}), "other").name == "other"


# -- against brute force -----------------------------------------------------------------------------------------------


@st.composite
def drawn_spaces(draw: Any) -> Any:
    """Draw a space of two to five short lists, with conditions on earlier parameters and forbidden clauses."""
    hyperparameters: list[Any] = []
    for k in range(draw(st.integers(2, 5))):
        kind, size = draw(st.sampled_from(["categorical", "integer", "ordinal"])), draw(st.integers(2, 3))
        name = f"h{k}"
        if kind == "integer":
            hyperparameters.append(CS.Integer(name, (0, size - 1)))
        elif kind == "ordinal":
            # not in numerical order
            hyperparameters.append(CS.OrdinalHyperparameter(name, [1, 4, 2][:size]))
        else:
            choices = draw(st.sampled_from([[1, 2, 3], ["a", "b", "c"]]))
            hyperparameters.append(CS.Categorical(name, choices[:size]))

    def value(of: Any) -> Any:
        return draw(st.sampled_from(values_of(of)))

    def condition(child: Any, earlier: list[Any], depth: int) -> Any:
        if depth and draw(st.booleans()):
            kind = draw(st.sampled_from([CS.AndConjunction, CS.OrConjunction]))
            return kind(condition(child, earlier, depth - 1), condition(child, earlier, depth - 1))
        parent = draw(st.sampled_from(earlier))
        kinds = [CS.EqualsCondition, CS.NotEqualsCondition, CS.InCondition]
        if not isinstance(parent, CS.CategoricalHyperparameter):
            kinds += [CS.GreaterThanCondition, CS.LessThanCondition]
        kind = draw(st.sampled_from(kinds))
        given = values_of(parent)[: draw(st.integers(1, 2))] if kind is CS.InCondition else value(parent)
        return kind(child, parent, given)

    def forbidden(depth: int) -> Any:
        if depth and draw(st.booleans()):
            kind = draw(st.sampled_from([CS.ForbiddenAndConjunction, CS.ForbiddenOrConjunction]))
            return kind(forbidden(depth - 1), forbidden(depth - 1))
        hp, other = draw(st.sampled_from(hyperparameters)), draw(st.sampled_from(hyperparameters))
        numeric = all(isinstance(v, int) for each in (hp, other) for v in values_of(each))
        kinds: list[Any] = [CS.ForbiddenEqualsClause, CS.ForbiddenInClause]
        if numeric and hp is not other:
            kinds += [CS.ForbiddenLessThanRelation, CS.ForbiddenGreaterThanRelation, CS.ForbiddenEqualsRelation]
        if not isinstance(hp, CS.CategoricalHyperparameter):
            kinds += [CS.ForbiddenGreaterThanClause, CS.ForbiddenLessThanEqualsClause]
        kind = draw(st.sampled_from(kinds))
        if kind.__name__.endswith("Relation"):
            return kind(hp, other)
        return kind(hp, values_of(hp)[:2] if kind is CS.ForbiddenInClause else value(hp))

    conditions = [
        condition(hp, hyperparameters[:k], 2) for k, hp in enumerate(hyperparameters) if k and draw(st.booleans())
    ]
    clauses = [forbidden(2) for _ in range(draw(st.integers(0, 2)))]
    space = CS.ConfigurationSpace(seed=0)
    try:
        space.add(*hyperparameters, *conditions, *clauses)
    except (ForbiddenValueError, ValueError):  # the default is forbidden, or the clauses contradict each other
        assume(False)
    return space


def values_of(hyperparameter: Any) -> list[Any]:
    if hasattr(hyperparameter, "choices"):
        return list(hyperparameter.choices)
    if hasattr(hyperparameter, "sequence"):
        return list(hyperparameter.sequence)
    return list(range(hyperparameter.lower, hyperparameter.upper + 1))


def brute_force(theirs: Any) -> list[dict[str, Any]]:
    """Return every configuration that ConfigSpace accepts."""
    choices = [[(name, v) for v in values_of(hp)] + [(name, None)] for name, hp in theirs.items()]
    drawn = [{name: v for name, v in chosen if v is not None} for chosen in itertools.product(*choices)]
    return [config for config in drawn if admitted(theirs, config)]


@given(drawn_spaces())
@settings(max_examples=16)
def test_drawn_spaces_against_brute_force(theirs: Any) -> None:
    legal = brute_force(theirs)
    space = mc.Space.from_configspace(theirs)
    choices = [[(name, v) for v in values_of(hp)] + [(name, None)] for name, hp in theirs.items()]
    for chosen in itertools.product(*choices):
        config = {name: v for name, v in chosen if v is not None}
        assert space.is_legal(config) == (config in legal), config
    assert space.count() == len(legal)  # counted by the binary program


# -- unsupported spaces --------------------------------------------------------------------------------------------


def test_unsupported_configspaces_are_refused() -> None:
    with pytest.raises(SpaceError, match=r"takes a ConfigSpace\.ConfigurationSpace, got dict"):
        mc.Space.from_configspace({"a": [1, 2]})
    theirs = CS.ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    theirs.add(CS.GreaterThanCondition(theirs["y"], theirs["x"], 0.5))
    said = r"the condition y \| x > 0.5 of 'y': .* make it an ordinal of the values that matter"
    with pytest.raises(SpaceError, match=said):
        mc.Space.from_configspace(theirs)


def test_margins_of_strict_inequalities_follow_the_scale() -> None:
    near = CS.ConfigurationSpace(seed=0)
    x, y = CS.Float("x", (1e-8, 1e-7), log=True), CS.Float("y", (1e-8, 1e-7))
    near.add(x, y)
    near.add(CS.ForbiddenEqualsRelation(x, y))
    assert mc.Space.from_configspace(near).is_legal({"x": 3e-8, "y": 6e-8})
    wide = CS.ConfigurationSpace(seed=0)
    z = CS.Float("z", (1e-9, 1e3), log=True, default=1.0)
    wide.add(z)
    wide.add(CS.ForbiddenLessThanEqualsClause(z, 1e-3))
    space = mc.Space.from_configspace(wide)
    assert space.is_legal({"z": 1.1e-3})
    assert not space.is_legal({"z": 1e-3})
    assert not space.is_legal({"z": 9e-4})
