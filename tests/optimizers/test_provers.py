"""Who proved what is said of a proposal, and of what the value is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.methods.mivabo.decomposition.search import DecompositionSettings
from mipcash.space.solution import LOCAL_SEARCH

PROVERS = {"enumeration", "highs"}


def make_space() -> mc.Space:
    space = mc.Space("small")
    a, b = space.integer("a", 1, 4), space.ordinal("b", [1, 2, 4])
    space.categorical("c", ["x", "y"])
    space.rule("r", a * b <= 8)
    space.real("lr", 0, 1)
    return space


def loss(config: dict[str, Any]) -> float:
    return config["a"] * config["b"] + (config["c"] == "x") + config["lr"]


@pytest.mark.parametrize(
    ("optimizer", "settings", "value"),
    [
        ("hybrid", None, "structured part of the predicted loss"),
        ("hybrid", {"acquisition": "thompson"}, "sampled loss"),
        ("mivabo", {"n_initial": 4}, "sampled loss"),
    ],
)
def test_provers_are_solvers(optimizer: str, settings: Any, value: str) -> None:
    result = mc.minimize(loss, make_space(), 10, optimizer=mc.Method(optimizer, settings=settings), progress=False)
    for trial in result.history:
        proof = trial.proof
        assert proof is not None
        assert proof.solver in PROVERS if proof.bound > float("-inf") else proof.solver == LOCAL_SEARCH
        expected = "negated coverage of values" if trial.origin == "initial design" else value
        assert proof.of == expected
        assert re.match(rf"(optimal|feasible), {expected} [-\d]", str(proof))
        assert expected in proof._repr_html_()
    assert {t.proof.solver for t in result.history if t.proof} <= {*PROVERS, LOCAL_SEARCH}


def test_bounds_of_the_dual_decomposition_say_so() -> None:
    settings = {"certificate": DecompositionSettings(), "n_initial": 4}
    result = mc.minimize(loss, make_space(), 8, optimizer=mc.Method("mivabo", settings=settings), progress=False)
    later = [t.proof for t in result.history if t.origin == "thompson"]
    assert {p.solver for p in later} == {"dual decomposition"}


def test_earlier_journals_do_not_say_what_the_value_is(tmp_path: Path) -> None:
    from mipcash.study.records.encoding import decode_solution, encode_solution

    space = make_space()
    assert str(space.optimum(space["a"] * space["b"])).startswith("optimal, value 1, proven by enumeration")
    proof = mc.minimize(loss, space, 1, progress=False).history[0].proof
    text = encode_solution(space, proof)
    assert decode_solution(space, text) == proof
    earlier = re.sub(r', "of": "[^"]*"', "", text)
    assert earlier != text
    assert decode_solution(space, earlier).of == ""
