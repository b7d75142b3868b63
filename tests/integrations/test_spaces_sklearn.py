"""``Space.from_sklearn``: spaces from the grids and distributions of GridSearchCV and RandomizedSearchCV."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import mipcash as mc
from mipcash.errors import SpaceError


def test_lists_and_distributions_are_domains() -> None:
    for given, domain in (
        ([1, 3, 5], mc.Integer(1, 5, 2)),
        (range(2, 9), mc.Integer(2, 8)),
        ([3, 1, 10], mc.Ordinal([1, 3, 10])),
        (np.array([0.1, 1.0, 0.01]), mc.Ordinal([0.01, 0.1, 1.0])),
        (["a", "b"], mc.Categorical(["a", "b"])),
        ([None, 5], mc.Categorical([None, 5])),
        ([True, False], mc.Categorical([True, False])),
        ([(50,), (20, 20)], mc.Categorical([(50,), (20, 20)])),
        ([7, 7], mc.Categorical([7])),
        (stats.uniform(2, 3), mc.Real(2.0, 5.0)),
        (stats.loguniform(1e-3, 10), mc.Real(1e-3, 10.0, log=True)),
        (stats.randint(2, 9), mc.Integer(2, 8)),
        (mc.Real(0, 1), mc.Real(0, 1)),
    ):
        space = mc.Space.from_sklearn({"p": given})
        found = space["p"].domain
        assert found == domain
        assert [*map(type, getattr(found, "values", ()))] == [*map(type, getattr(domain, "values", ()))]
        if hasattr(given, "rvs"):
            assert all(space.is_legal({"p": value}) for value in given.rvs(50, random_state=0).tolist())


def test_objects_are_values_and_rules_may_be_added() -> None:
    svc, logistic = SVC(), LogisticRegression()
    space = mc.Space.from_sklearn({"clf": [svc, logistic, "passthrough"], "f": [math.log, None]})
    space.rule("no logs with machines", space["clf"][svc] + space["f"][math.log] <= 1)
    assert space.count() == 5
    assert space.is_legal({"clf": logistic, "f": math.log})
    assert not space.is_legal({"clf": svc, "f": math.log})
    assert all(any(c["clf"] is known for known in (svc, logistic, "passthrough")) for c in space.sample(5))


def test_arrays_are_values() -> None:
    first, second = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.3, 0.4])
    space = mc.Space.from_sklearn({"priors": [None, first, second]})
    result = mc.minimize(lambda c: 0.0 if c["priors"] is None else c["priors"][0], space, 9, progress=False)
    assert {t.loss for t in result.history} == {0.0, 0.2, 0.3}


def test_dicts_that_one_parameter_distinguishes_become_conditions() -> None:
    space = mc.Space.from_sklearn(
        [
            {"kernel": ["linear"], "C": [1, 10, 100]},
            {"kernel": ["rbf", "poly"], "C": [1, 10, 100], "gamma": stats.loguniform(1e-3, 1)},
            {"kernel": ["poly2"], "C": [1, 10, 100], "degree": [2, 3]},
        ]
    )
    assert space.is_legal({"kernel": "linear", "C": 1})
    assert space.is_legal({"kernel": "poly", "C": 1, "gamma": 0.5})
    assert space.is_legal({"kernel": "poly2", "C": 100, "degree": 3})
    assert not space.is_legal({"kernel": "linear", "C": 1, "gamma": 0.5})
    assert not space.is_legal({"kernel": "poly", "C": 1})


@pytest.mark.parametrize(
    "given",
    [
        [{"kernel": ["linear"], "C": [1, 2]}, {"kernel": ["rbf"], "C": [1, 5]}],  # two different domains of C
        [{"C": [1, 2]}, {"C": [1, 2], "gamma": [1, 2]}],  # no parameter distinguishes the two dicts
        [{"kernel": ["linear", "rbf"]}, {"kernel": ["rbf"], "gamma": [1, 2]}],  # rbf occurs in both dicts
    ],
)
def test_other_dicts_become_algorithms_of_a_module(given: Any) -> None:
    space = mc.Space.from_sklearn(given)
    assert space["grid"].domain == mc.Categorical(["1", "2"])
    expected = {f"grid.{k}.{name}" for k, block in enumerate(given, 1) for name in block}
    assert set(space.parameters) == expected | {"grid"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"C": stats.norm()}, "'C': the distribution 'norm' has no bounds, .* mc.Real"),
        ({"C": stats.beta(1, 2)}, "'C': the distribution 'beta' .*not known here; give scipy.stats.uniform"),
        ({"C": stats.loguniform(1, 2, loc=3)}, "'C': a loguniform with loc other than 0"),
        ({"C": "linear"}, r"'C': expected a list of values.*\['linear'\]"),
        ({"C": 5}, r"'C': expected a list.*\[5\]"),
        ({"C": []}, "'C': the categorical domain is empty"),
        ({1: [2]}, "a parameter's name is a text"),
        (3, "takes a dict"),
        ([], "takes a dict"),
    ],
)
def test_invalid_spaces_are_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        mc.Space.from_sklearn(given)


@pytest.mark.parametrize(
    ("given", "range_"),
    [
        ((0.1, 100.0), r"mc.Real\(0.1, 100.0\)"),
        ((1, 10), r"mc.Integer\(1, 10\)"),
        ((1e-6, 1e6, "log-uniform"), "log=True"),
    ],
)
def test_a_tuple_that_looks_like_a_range_is_a_list_with_a_warning(given: Any, range_: str) -> None:
    with pytest.warns(UserWarning, match=f"'C': the tuple .* is a list of its .* {range_}"):
        mc.Space.from_sklearn({"C": given})


@pytest.mark.filterwarnings("error")
def test_other_tuples_are_lists() -> None:
    space = mc.Space.from_sklearn({"C": (1, 2, 3), "kernel": ("rbf", "linear"), "size": [1, 10]})
    assert len(space.parameters) == 3
