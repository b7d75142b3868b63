"""Conversion from and to Optuna's distributions."""

from __future__ import annotations

import math

import pytest

import mipcash as mc
from mipcash.errors import SpaceError

distributions = pytest.importorskip("optuna.distributions")
Float, Int, Cat = (getattr(distributions, f"{kind}Distribution") for kind in ("Float", "Int", "Categorical"))

ALL = {
    "lr": Float(1e-5, 1.0, log=True),
    "x": Float(-1.0, 1.0),
    "grid": Float(-1.2, 1.2, step=0.1),
    "n": Int(1, 9, step=2),
    "width": Int(1, 4096, log=True),
    "kind": Cat([None, True, "a", 1.5, 3]),
}


def test_round_trip() -> None:
    space = mc.Space.from_optuna(ALL)
    assert space.to_optuna() == ALL
    assert mc.Space.from_optuna({"a": Float(2.0, 2.0), "b": Int(3, 3)}).sample() == [{"a": 2.0, "b": 3}]
    assert space["grid"].domain == mc.Real(-1.2, 1.2, step=0.1)
    assert tuple(space["grid"].domain.values[2:4]) == (-1.0, -0.9)  # rounded as decimals, not -0.8999999999999999
    for config in space.sample(20):
        for name, distribution in ALL.items():
            assert distribution._contains(distribution.to_internal_repr(config[name]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": Float(0.0, 1.0, step=1e-17)}, "parameter 'x': step=1e-17 is too small for floats between 0.0 and 1.0"),
        ({"x": Cat([1.0, math.inf])}, "parameter 'x': .* must be finite"),
        ({"x": (0.0, 1.0)}, "parameter 'x': expected Optuna's"),
        ([("x", Float(0.0, 1.0))], "takes a dict, name -> distribution, got list"),
    ],
)
def test_unsupported_distributions_are_refused(given: object, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        mc.Space.from_optuna(given)  # type: ignore[arg-type]


def test_spaces_that_optuna_cannot_express_are_refused() -> None:
    space = mc.Space()
    a = space.integer("a", 1, 4)
    space.real("b", 0, 1, when=a.is_(2))
    space.rule("even", a.is_(2, 4) >= 1)
    space.ordinal("sizes", [1, 2, 4])
    with pytest.raises(SpaceError, match=r"the rule 'even', where 'b' is active; keep the space and give it to"):
        space.to_optuna()
    plain = mc.Space()
    plain.ordinal("sizes", [1, 2, 4])
    assert plain.to_optuna() == {"sizes": Cat((1, 2, 4))}
    plain.integer("k", 1, 9, step=2, log=True)
    with pytest.raises(SpaceError, match="parameter 'k': Optuna has no integers on the log scale in steps of 2"):
        plain.to_optuna()
