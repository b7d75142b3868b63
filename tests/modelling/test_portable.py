"""Declarations as JSON: drawn spaces come back as they were, and data of somebody else run nothing and fill nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import count, islice
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy import stats

import mipcash as mc
from mipcash.errors import MipcashError, SpaceError
from mipcash.modelling.portable import as_json, from_json
from mipcash.report.data.run import Run
from mipcash.space.compiled import declaration_of
from mipcash.space.space import space_of
from mipcash.study.records.fingerprint import listing
from tests.fuzz.described import build
from tests.fuzz.kinds import draw
from tests.spaces import ALL


def returned(space: mc.Space) -> mc.Space:
    """Return the space that the text of a journal describes."""
    return space_of(json.loads(json.dumps(as_json(declaration_of(space)))))


def same(space: mc.Space, other: mc.Space) -> None:
    """Compare listings, samples and violations."""
    assert listing(other) == listing(space)
    assert list(other.parameters) == list(space.parameters)
    samples = space.sample(4, seed=0)
    assert other.sample(4, seed=0) == samples
    for config in samples:
        changed = {**config, next(iter(config)): "no level"}
        assert [str(v) for v in other.validate(changed)] == [str(v) for v in space.validate(changed)]


@pytest.mark.parametrize("name", ALL)
def test_a_space_comes_back(name: str) -> None:
    same(ALL[name](), returned(ALL[name]()))


def test_drawn_spaces_come_back() -> None:
    """Spaces without Pyomo constraints: conditions, auxiliary variables, products, functions, logic, steps, wide ranges."""
    spaces = (build(draw(23, k).drawn) for k in count())
    written = (space for space in spaces if as_json(declaration_of(space)) is not None)
    for space in islice(written, 40):
        other = returned(space)
        assert listing(other) == listing(space)
        assert [str(r) for r in other.rules.values()] == [str(r) for r in space.rules.values()]


def test_rules_that_were_switched_off_do_not_come_back() -> None:
    space = mc.Space("off")
    a, b = space.integer("a", 0, 9), space.categorical("b", ["x", (1, 2), None, True])
    space.rule("low", a <= 3)
    space.rule("either", (a >= 2) | b["x"])
    space.model.rules["low"].deactivate()
    same(space, returned(space))


def test_levels_of_numpy_come_back_as_such() -> None:
    space = mc.Space("numpy")
    space.ordinal("rate", np.logspace(-3, 0, 4))
    space.ordinal("n", np.array([1, 2, 4]))
    space.categorical("kind", np.array(["a", "b"]))
    n = space.integer("k", np.int64(0), np.int8(9))
    space.rule("low", np.float32(0.5) * n <= np.int64(3))
    same(space, returned(space))
    space.categorical("how", [print, object()])
    assert as_json(declaration_of(space)) is None


def test_defaults_and_priors_come_back() -> None:
    space = mc.Space("expected")
    space.categorical("kind", ["a", "b"], default="b")
    space.real("x", 0.0, 1.0, prior=stats.norm(0.3, 0.1))
    space.ordinal("width", [1, 2, 4], prior={1: 1.0, 4: 3.0}, default=2)
    space.ordering("order", ["width", "kind"])
    space.expect("order", default=("kind", "width"))
    other = returned(space)
    same(space, other)
    assert other.default() == space.default()
    data = json.loads(json.dumps(as_json(declaration_of(space))))
    of_no_use = ([[], None], [0, None], ["b", None], [["a", "b"], None], [None, [float("nan"), 0.0]])
    for wrong in ([["c"], None], [None, [0.5]], [["a"], [[1.0, 2.0]]], *of_no_use):
        data["parameters"]["kind"]["expected"] = wrong
        with pytest.raises(SpaceError, match="describe no space"):
            from_json(data)


def test_a_space_on_a_pyomo_model_is_not_described() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    assert as_json(declaration_of(mc.Space.from_pyomo(model))) is None
    space = mc.Space()
    x = space.real("x", 0.0, 1.0)
    space.model.low = pyo.Constraint(expr=x <= 0.5)
    assert as_json(declaration_of(space)) is None


def test_a_change_of_the_live_model_is_noticed(tmp_path: Any) -> None:
    space = mc.Space()
    x = space.real("x", 0.0, 1.0)
    x.expr.setub(0.5)
    mc.minimize(lambda c: c["x"], space, 4, optimizer="random", storage=tmp_path / "run.db", progress=False)
    assert Run.of(tmp_path / "run.db").place is None


def test_data_that_describe_no_space_are_refused() -> None:
    space = mc.Space()
    a = space.integer("a", 0, 9)
    space.rule("low", a <= 3)
    data = json.loads(json.dumps(as_json(declaration_of(space))))
    wide = {**data, "expand_limit": 10**12}
    wide["parameters"] = {"a": {"domain": {"kind": "integer", "low": 0, "high": 10**11}, "when": []}}
    (rule,) = data["rules"]
    for large in (wide, {**data, "rules": [{**rule, "selectors": 10**12}]}):
        with pytest.raises(SpaceError, match="variables are more than the 100000 that are read"):
            from_json(large)
    for part in data:
        for wrong in (3, "a", None, [[1]], {"a": {}}):
            with suppress(MipcashError):  # any other error fails the test
                from_json({**data, part: wrong})
