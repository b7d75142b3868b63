"""Domains of parameters: ranges with a step, listed values, refused declarations and warnings."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipcash as mc
from mipcash.errors import SpaceError, StepWarning
from mipcash.modelling.domains import Categorical, Ordinal, Real, Value, level_of, same_value

decimals = st.decimals(-1000, 1000, places=3, allow_nan=False)
steps = st.decimals("0.001", 100, places=3)


@given(decimals, steps, st.integers(1, 5000))
def test_values_with_a_step_are_those_of_decimal_arithmetic(low: Decimal, step: Decimal, count: int) -> None:
    domain = Real(float(low), float(low + count * step), step=float(step))
    expected = [float(low + k * step) for k in range(count + 1)]
    assert list(domain.values) == expected
    assert (domain.low, domain.high, domain.unreached) == (expected[0], expected[-1], None)
    for k in {0, 1, count // 2, count}:
        value = expected[k]
        assert domain.level(value) == k
        assert domain.from_unit(domain.to_unit(value)) == value
        assert domain.problem(value) is None
        assert domain.problem(float(low) + k * float(step)) is None  # calculated in floats
        assert domain.canonical(float(low) + k * float(step)) == value
        middle = value + 0.5 * float(step)
        assert "in steps of" in str(domain.problem(middle)) or "outside" in str(domain.problem(middle))
    assert domain.values[-1] == domain.values[count]
    assert list(domain.values[1:3]) == expected[1:3]
    assert pickle.loads(pickle.dumps(domain)) == domain


def test_tenths_are_free_of_rounding_errors() -> None:
    assert list(Real(0, 0.5, step=0.1).values) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert Real(0, 0.1 + 0.7, step=0.1).high == 0.8  # 0.1 + 0.7 is 0.7999999999999999
    assert Real(0, 0.1 * 3, step=0.1).high == 0.3


def test_a_wide_range_is_not_listed() -> None:
    domain = Real(0, 1, step=1e-12)
    assert len(domain.values) == 10**12 + 1
    assert domain.from_unit(0.123456789012) == 0.123456789012
    assert domain.level(0.123456789012) == 123456789012
    assert level_of(mc.Integer(-(10**15), 10**15), 7) == 10**15 + 7
    assert level_of(mc.Integer(0, 10**9, 7), 8) is None


@pytest.mark.parametrize("number", [True, "0.25", None, float("nan"), 0.3, 1.25, -0.25])
def test_numbers_outside_of_the_values_have_no_level(number: Any) -> None:
    domain = Real(0, 1, step=0.25)
    assert domain.problem(number)
    assert level_of(domain, number) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"step": 0}, "parameter 'x': step must be positive, got 0.0; leave it out"),
        ({"step": -0.5}, "step must be positive"),
        ({"step": "0.5"}, "step must be a number, got the text '0.5'; write it without quotes"),
        ({"step": float("nan")}, "step must be finite"),
        ({"step": 0.5, "log": True, "low": 0.5}, "log=True and step=0.5 do not go together.* drop one of them"),
        ({"step": 3}, "step=3.0 is wider than the range from 0.0 to 2.0, which leaves 0.0 alone"),
        ({"step": 1e-15}, "step=1e-15 is too small for floats between 0.0 and 2.0; give a wider step"),
    ],
)
def test_invalid_steps_of_reals_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        mc.Space().real("x", **{"low": 0, "high": 2, **arguments})


@pytest.mark.parametrize("values", [[16, 32, 64], [16], "ab", 5, (1, "a"), (True, 3), {1: 2, 3: 4}])
def test_invalid_values_of_ordinals_with_a_step_are_refused(values: Any) -> None:
    with pytest.raises(SpaceError, match="parameter 'w': step=16 needs the lowest and the highest number, such as"):
        mc.Space().ordinal("w", values, step=16)


def test_ordinals_with_a_step() -> None:
    space = mc.Space()
    w, x = space.ordinal("w", (16, 128), step=16), space.ordinal("x", (0, 1), step=0.25)
    assert w.domain == Ordinal([16, 32, 48, 64, 80, 96, 112, 128])
    assert all(type(v) is int for v in w.domain.values)
    assert x.domain.values == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert mc.Ordinal((1, 7), step=2) == mc.Ordinal([1, 3, 5, 7])
    with pytest.raises(
        SpaceError, match=r"makes 1,001 of them .at most 1,000.; declare an integer with step=1 instead"
    ):
        space.ordinal("y", (0, 1000), step=1)
    with pytest.raises(SpaceError, match="low > high"):
        space.ordinal("y", (9, 1), step=1)


@pytest.mark.parametrize(
    ("declare", "last", "bound"),
    [
        (lambda s: s.integer("p", 1, 10, step=4), 9, 10),
        (lambda s: s.real("p", 0, 1, step=0.3), 0.9, 1.0),
        (lambda s: s.ordinal("p", (16, 100), step=16), 96, 100),
        (lambda s: s.module("m", {"a": {"p": mc.Real(0, 1, step=0.3)}, "b": {}}), 0.9, 1.0),
    ],
)
def test_a_bound_that_no_step_reaches_gives_a_warning(declare: Any, last: float, bound: float) -> None:
    space = mc.Space()
    said = (
        rf"parameter '(m\.a\.)?p' ends at {last!r} and not at {bound!r}, .*; give the upper bound {last!r}, or another"
    )
    with pytest.warns(StepWarning, match=said) as caught:
        declare(space)
    assert caught[0].filename == __file__
    parameter = next(p for name, p in space.parameters.items() if name.endswith("p"))
    assert parameter.domain.values[-1] == last


def test_a_bound_that_is_reached_up_to_rounding_gives_no_warning() -> None:
    space = mc.Space()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space.real("x", 0.1, 0.1 + 7 * 0.1, step=0.1)
        space.integer("n", 1, 9, step=4)
        space.ordinal("w", (16, 128), step=16)


def test_texts_of_reals_with_a_step() -> None:
    assert str(mc.Real(0, 1, step=0.25)) == "real in [0.0, 1.0], step 0.25"
    assert repr(mc.Real(0, 1, step=0.25)) == "Real(low=0.0, high=1.0, log=False, step=0.25)"
    assert repr(mc.Real(0, 1)) == "Real(low=0.0, high=1.0, log=False)"  # the form that journals contain
    space = mc.Space(expand_limit=2)
    x = space.real("x", 0, 1, step=0.25)
    with pytest.raises(SpaceError, match=r"up to Space.expand_limit=5."):
        x.is_(0.5)
    with pytest.raises(SpaceError, match=r"write y\.map"):
        np.log(mc.Space().real("y", 1, 2, step=0.5))


# -- listed values: found by their hash, in any equivalent form --------------------------------------------------------

VALUES: list[Value] = [True, 1, "1", 2.5, (1, 2), [1, 2], None, {"a": 1}, b"1", 0, False]


def test_the_level_of_a_value_agrees_with_comparing_all_values() -> None:
    domain = Categorical(VALUES)
    asked = [*VALUES, np.int64(1), np.float64(2.5), np.bool_(True), 1.0, [1, 2], (1, 2), "2", [3], {"a": 1}, 7]
    for value in asked:
        expected = next((l for l, v in enumerate(VALUES) if same_value(v, value)), None)
        assert domain.level(value) == expected
        assert (domain.problem(value) is None) == (expected is not None)


@pytest.mark.parametrize("twice", [1.0, np.int64(1), [1, 2], "1", True])
def test_a_value_cannot_be_listed_twice_in_equivalent_forms(twice: Value) -> None:
    with pytest.raises(SpaceError, match="twice"):
        Categorical([*VALUES, twice])


def test_the_level_among_thousands_of_values_needs_few_comparisons() -> None:
    compared = 0

    class Counted:
        def __init__(self, k: int) -> None:
            self.k = k

        def __hash__(self) -> int:
            return self.k

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return isinstance(other, Counted) and other.k == self.k

    domain = Ordinal([Counted(k) for k in range(3000)])
    assert [domain.level(Counted(k)) for k in range(0, 3000, 100)] == list(range(0, 3000, 100))
    assert compared < 10 * len(domain)


def test_a_log_scale_has_no_values_of_zero_and_below() -> None:
    space = mc.Space("log")
    space.real("rate", 1e-12, 1.0, log=True)
    assert space.is_legal({"rate": 1e-12 * (1 - 1e-12)})
    assert not any(space.is_legal({"rate": v}) for v in (0.0, -5e-10, 10**400))
    assert space.nearest({"rate": -5e-10}) == {"rate": 1e-12}


def test_levels_of_mixed_types_and_orders_of_texts_are_read() -> None:
    space = mc.Space("mixed")
    space.categorical("a", [(1, 2), np.int64(7), "u"])
    for name in ("1", "2"):
        space.categorical(name, ["p", "q"])
    space.ordering("o", ["1", "2"])
    assert len(space.sample(6)) == 6
    assert space.validate({"a": "u", "1": "p", "2": "q", "o": (1, 2)}) == []


def test_the_tolerance_of_a_real_is_a_share_of_its_range() -> None:
    assert mc.Real(1e9, 1e9 + 1).problem(1e9 + 1.9) is not None
    assert mc.Real(1e9, 1e9 + 1).problem(1e9 + 1 + 1e-7) is None
    assert mc.Real(0, 1).problem(1 + 1e-10) is None


def test_conditions_survive_copies_and_one_that_never_holds_is_named() -> None:
    space = mc.Space("copied")
    a, b = space.categorical("a", ["p", "q"]), space.integer("b", 1, 3)
    space.real("c", 0, 1, when=a["p"] | b[2])
    wrong = {"a": "zzz", "b": 1}
    expected = [str(v) for v in space.validate(wrong)]
    assert [str(v) for v in pickle.loads(pickle.dumps(space)).validate(wrong)] == expected
    numbers = mc.Space("numbers")
    x = numbers.real("x", 0, 1)
    with pytest.raises(SpaceError, match="parameter 'y': its condition never holds"):
        numbers.real("y", 0, 1, when=~x.is_active())
    named = mc.Space("named")
    named.real("x", 0, 1, when=~named.categorical("what is it", ["p", "q", "r"])["p"])
    assert "what is it is not 'p'" in repr(named["x"])


def test_values_are_found_in_a_process_with_other_hashes() -> None:
    """Texts hash differently there. A domain once kept the hashes of the process that declared it."""
    domain = Categorical(["u", ("v", "w")])
    assert [domain.level("u"), domain.level(("v", "w"))] == [0, 1]
    code = (
        "import pickle, sys; d = pickle.load(sys.stdin.buffer); print(d.level('u'), d.level(('v', 'w')), d.level('v'))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        found = subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(domain), capture_output=True, env=environment
        )
        assert found.stdout.split() == [b"0", b"1", b"None"], found.stderr
