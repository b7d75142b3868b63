"""Public members of a space: exactly the methods and attributes for users, all documented."""

from __future__ import annotations

import mipcash as mc

DECLARE = "real integer fidelity ordinal categorical module ordering auxiliary rule from_pyomo"
EXCHANGE = "from_sklearn from_optuna to_optuna from_configspace"
DECLARED = "name expand_limit model parameters auxiliaries rules"
LEGAL = "validate is_legal why_illegal nearest expect default"
ASK = "sample optimum count bounds conflict explain"
PROGRAM = "sizes to_lp to_mps"


def test_a_space_has_exactly_these_public_members() -> None:
    expected = sorted(" ".join((DECLARE, EXCHANGE, DECLARED, LEGAL, ASK, PROGRAM)).split())
    assert [name for name in dir(mc.Space("public")) if not name.startswith("_")] == expected


def test_everything_public_is_documented() -> None:
    for name in dir(mc.Space):
        if not name.startswith("_"):
            assert getattr(mc.Space, name).__doc__, name
