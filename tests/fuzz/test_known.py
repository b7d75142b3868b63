"""Spaces that were once answered wrongly, each as small as it can be, under every question of the harness."""

from __future__ import annotations

import pytest

from tests.fuzz.described import Choice, Drawn, Is, Parameter, Relation, Rule, Term, Value
from tests.fuzz.kinds import Case
from tests.fuzz.questions import begin, interview
from tests.fuzz.record import COMPARED, Record
from tests.fuzz.runs import SHARES, check_run
from tests.fuzz.test_exact import numbers, rule, truth_of


def real(name: str, low: float, high: float, *when: Is) -> Parameter:
    return Parameter(name, "real", (), low, high, when=when)


def on(name: str) -> Parameter:
    return Parameter(name, "categorical", ("off", "on"))


def either(name: str, *sides: tuple[dict[str, float], str, float]) -> Choice:
    return Choice(name, tuple((rule("", *side).relation,) for side in sides))


HUGE, WIDE = (1e-3, 1e6), tuple(range(0, 301, 3))
KNOWN = {
    "a triangle": Drawn(
        numbers("a", "b", "c"),
        (),
        (
            rule("r0", {"a": 1.0, "b": 1.0}, "<=", 9.0),
            rule("r1", {"a": 1.0, "c": -1.0}, ">=", 2.0),
            rule("r2", {"b": 1.0, "c": 1.0}, ">=", 9.0),
        ),
    ),
    "a disjunction": Drawn(
        numbers("a", "b"), (), (either("choice_0", ({"a": 1.0}, ">=", 8.0), ({"a": 1.0, "b": 1.0}, ">=", 9.0)),)
    ),
    "a disjunction over a real": Drawn(
        (*numbers("a"), real("x", 0.0, 1.0)),
        (),
        (either("choice_0", ({"x": 1.0, "a": 1.0}, "<=", 2.5), ({"a": 1.0}, ">=", 9.0)),),
    ),
    "conditional reals of a large range": Drawn(
        (on("c"), on("d"), real("x", *HUGE, Is("c", (1,))), real("y", *HUGE, Is("d", (1,)))),
        (),
        (rule("r0", {"x": 1.0, "y": 1.0}, ">=", 1.0),),
    ),
    "a conditional rule over a large range": Drawn(
        (on("c"), real("x", 0.0, 1e6)), (), (Rule("r0", rule("", {"x": 1.0}, "<=", 5.0).relation, (Is("c", (1,)),)),)
    ),
    "a wide integer with steps": Drawn(
        (Parameter("k", "integer", WIDE, 0, 300, 3),), (), (rule("r0", {"k": 1.0}, "<=", 5.0),)
    ),
    "a mixture": Drawn(
        tuple(real(f"x{i}", 0.0, 1.0) for i in range(3)),
        (),
        (rule("r0", {"x0": 1.0, "x1": 1.0, "x2": 1.0}, "==", 1.0),),
    ),
    "small coefficients": Drawn(numbers("a", "b"), (), (rule("r0", {"a": 2e-6, "b": 3e-6}, "==", 7e-6),)),
    "a rule under a negated condition": Drawn(
        (
            Parameter("c", "integer", (1, 2, 3), 1, 3),
            real("x", 0.0, 1e4, Is("c", (1,))),
            real("y", *HUGE, Is("c", (0,))),
        ),
        (),
        (Rule("r0", Relation((Term(-1e6, (Value("x"),)),), "<=", -5e9), (Is("c", (0,), True),)),),
    ),
}


@pytest.mark.parametrize("name", list(KNOWN))
def test_no_disagreement(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in SHARES:
        monkeypatch.setitem(SHARES, kind, 1.0)
    for seed in range(2):
        record = Record(0, name)
        asked = begin(Case(0, name, KNOWN[name], truth_of(KNOWN[name]), 0), record, seed)
        assert asked is not None
        interview(asked, COMPARED)
        check_run(asked)
        assert not "\n".join(map(str, record.disagreements))
