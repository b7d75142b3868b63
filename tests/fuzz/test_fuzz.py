"""Fuzzing tests: the library agrees with brute force on random spaces and on small spaces with a known difficulty."""

from __future__ import annotations

import pytest

from tests.fuzz import runs
from tests.fuzz.described import Choice, Drawn, Is, Parameter, Relation, Rule, Term, Value
from tests.fuzz.engine import Plan, examine
from tests.fuzz.kinds import KINDS, Case
from tests.fuzz.questions import begin, interview
from tests.fuzz.record import COMPARED, Record
from tests.fuzz.test_exact import TRIANGLE, numbers, rule, truth_of

PARTS, SPACES_PER_PART = 4, 3
"""Together 12 spaces; each part is a separate test, so that workers share them. ``python -m tests.fuzz`` runs more."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_disagreement(part: int) -> None:
    records = [examine(Plan(), k) for k in range(part * SPACES_PER_PART, (part + 1) * SPACES_PER_PART)]
    assert not "\n".join(str(d) for r in records for d in r.disagreements)
    assert all(r.asked["default"] >= 5 for r in records)


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_disagreement_on_a_space_of_each_kind(kind: str) -> None:
    record = examine(Plan(seed=1, kinds=(kind,)), 0)
    assert not "\n".join(map(str, record.disagreements))


# -- spaces that once had a wrong answer ----------------------------------------------------------------------------


def real(name: str, low: float, high: float, *when: Is) -> Parameter:
    return Parameter(name, "real", (), low, high, when=when)


def on(name: str) -> Parameter:
    return Parameter(name, "categorical", ("off", "on"))


def either(*sides: tuple[dict[str, float], str, float]) -> Choice:
    return Choice("choice_0", tuple((rule("", *side).relation,) for side in sides))


HUGE = (1e-3, 1e6)
SCALED = Rule("r0", Relation((Term(-1e6, (Value("x"),)),), "<=", -5e9), (Is("c", (0,), True),))
KNOWN = {
    "a triangle": Drawn(numbers("a", "b", "c"), (), TRIANGLE),
    "a disjunction": Drawn(
        numbers("a", "b"), (), (either(({"a": 1.0}, ">=", 8.0), ({"a": 1.0, "b": 1.0}, ">=", 9.0)),)
    ),
    "a disjunction over a real": Drawn(
        (*numbers("a"), real("x", 0.0, 1.0)), (), (either(({"x": 1.0, "a": 1.0}, "<=", 2.5), ({"a": 1.0}, ">=", 9.0)),)
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
        (Parameter("k", "integer", tuple(range(0, 301, 3)), 0, 300, 3),), (), (rule("r0", {"k": 1.0}, "<=", 5.0),)
    ),
    "a mixture": Drawn(
        tuple(real(n, 0.0, 1.0) for n in "xyz"), (), (rule("r0", {"x": 1.0, "y": 1.0, "z": 1.0}, "==", 1.0),)
    ),
    "small coefficients": Drawn(numbers("a", "b"), (), (rule("r0", {"a": 2e-6, "b": 3e-6}, "==", 7e-6),)),
    "a rule under a negated condition": Drawn(
        (
            Parameter("c", "integer", (1, 2, 3), 1, 3),
            real("x", 0.0, 1e4, Is("c", (1,))),
            real("y", *HUGE, Is("c", (0,))),
        ),
        (),
        (SCALED,),
    ),
}


@pytest.mark.parametrize("name", list(KNOWN))
def test_no_disagreement_on_a_known_space(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in runs.SHARES:
        monkeypatch.setitem(runs.SHARES, kind, 1.0)
    record = Record(0, name)
    asked = begin(Case(0, name, KNOWN[name], truth_of(KNOWN[name]), 0), record, seed=0)
    assert asked is not None
    interview(asked, COMPARED)
    runs.check_run(asked)
    assert not "\n".join(map(str, record.disagreements))
