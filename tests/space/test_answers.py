"""Samples, designs, incumbents and explanations of a space."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError
from mipcash.program.legality import Legality
from mipcash.space.compiled import compiled
from mipcash.space.conflict import _largest_violation
from mipcash.space.domain import Domain
from tests.slow import SOLVES, counted
from tests.spaces import designed

# -- samples --------------------------------------------------------------------------------------------------------


def conditional_space() -> mc.Space:
    space = mc.Space("conditional")
    layers = space.integer("layers", 0, 3)
    act = space.categorical("act", ["relu", "tanh", "selu"])
    model = space.module(
        "model", {"tree": {"depth": mc.Integer(1, 6)}, "linear": {}, "svm": {"kernel": mc.Categorical(["rbf", "poly"])}}
    )
    space.integer("degree", 2, 4, when=model.parameter("svm", "kernel")["poly"])
    space.rule("selu deep", act["selu"] <= layers / 2)
    space.rule("tree flat", model.parameter("tree", "depth") <= 4, when=layers.is_(0))
    return space


def levels_of(config: dict[str, object]) -> set[tuple[str, str]]:
    return {(name, repr(value)) for name, value in config.items()}


def possible_levels(space: mc.Space) -> set[tuple[str, str]]:
    """Return every (parameter, value) of the legal configurations, by one optimization per indicator."""
    found = set()
    for group in compiled(space).program.groups:
        for value in group.values:
            solution = space.optimum(1 * space[group.parameter].is_(value), "max")
            if solution.value > 0.5:
                found.add((group.parameter, repr(value)))
    return found


def test_samples_and_designs_show_every_possible_level() -> None:
    space = conditional_space()
    possible = possible_levels(space)
    samples = space.sample(200, seed=0)
    assert len(samples) == 200
    assert all(space.is_legal(c) for c in samples)
    assert set().union(*map(levels_of, samples)) == possible
    assert min(sum(c["act"] == a for c in samples) for a in ("relu", "tanh", "selu")) >= 20
    design = designed(Domain.of(space), 40, np.random.default_rng(0))
    assert all(map(space.is_legal, design))
    assert set().union(*map(levels_of, design)) == possible
    config, solution = Domain.of(space).design(np.random.default_rng(0))
    assert config == solution.config == design[0]
    first = [c["model"] for c in design[:3]]
    assert sorted(first) == ["linear", "svm", "tree"], "the structure comes first"


def test_small_structures_are_shown_as_often_as_large_ones() -> None:
    space = mc.Space("one, many or none")
    kind = space.categorical("kind", ["bare", "rich", "plain"])
    for k in range(8):
        space.integer(f"p{k}", 0, 20, when=kind["rich"])
    inner = space.categorical("inner", ["a", "b"], when=kind["rich"])
    space.integer("q", 0, 9, when=inner["b"])
    space.real("x", 0.0, 1.0)
    design = designed(Domain.of(space), 12, np.random.default_rng(0))
    counts = {name: sum(c["kind"] == name for c in design) for name in ("bare", "rich", "plain")}
    assert max(counts.values()) - min(counts.values()) <= 2, counts
    assert {c["inner"] for c in design if "inner" in c} == {"a", "b"}


def test_samples_of_a_tight_space_are_found_by_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three legal configurations among 10^6 are found with one solve per sample, not by rejection."""
    space = mc.Space("tight")
    digits = [space.integer(f"d{k}", 0, 9) for k in range(6)]
    number = sum(10 ** (5 - k) * d for k, d in enumerate(digits))
    space.rule("low", number >= 271_828)
    space.rule("high", number <= 271_830)
    calls = counted(monkeypatch, *SOLVES, (Legality, "check"))
    samples = space.sample(40, seed=0)
    assert len(calls) <= 60
    assert len(samples) == 40
    found = {int("".join(str(c[f"d{k}"]) for k in range(6))) for c in samples}
    assert found == {271_828, 271_829, 271_830}
    assert not space.is_legal({f"d{k}": 0 for k in range(6)})


def test_an_empty_space_raises_an_error_with_the_conflicting_rule() -> None:
    space = conditional_space()
    space.rule("never", space["layers"] >= 4)
    with pytest.raises(InfeasibleSpaceError, match="never"):
        space.sample(5)
    with pytest.raises(InfeasibleSpaceError, match="never"):
        Domain.of(space).design(np.random.default_rng(0))
    assert space.sample(0) == []


def test_samples_are_determined_by_the_seed() -> None:
    space = conditional_space()
    assert space.sample(5, seed=1) == conditional_space().sample(5, seed=1)
    assert space.sample(5, seed=1) == space.sample(5, seed=1), "earlier questions must not change a sample"
    assert space.sample(5, seed=1) != space.sample(5, seed=2)


# -- explanations ---------------------------------------------------------------------------------------------------


def test_explain_names_an_irreducible_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among forty rules, three conflict, although any two of them can be satisfied together."""
    space = mc.Space("forty rules")
    p = [space.integer(f"p{k}", 0, 5) for k in range(14)]
    for k in range(37):
        i, j = k % 14, (3 * k + 1) % 14
        if i != j:
            space.rule(f"harmless {k}", p[i] + (1 + k % 3) * p[j] <= 18)
    space.rule("trio a", p[2] + p[5] >= 8)
    space.rule("trio b", p[5] + p[9] <= 5)
    space.rule("trio c", p[2] * 1 - p[9] <= 1)
    extra = 40 - len(space.rules)
    for k in range(extra):
        space.rule(f"spare {k}", p[k] - p[k + 1] <= 5)
    space.rule("the last", p[0] + p[1] >= 1)
    trio = {"trio a", "trio b", "trio c"}
    # p2 >= 3 and p5 >= 3 (a), p9 <= 5 - p5 (b), p2 <= 1 + p9 <= 6 - p5, so p2 + p5 <= 6 < 8
    calls = counted(monkeypatch, *SOLVES)
    text = space.explain()
    assert len(calls) <= 60
    assert {name for name in space.rules if repr(name) in text} == trio
    assert "relax or drop" in text
    for name in trio:
        space.model.rules[name].deactivate()
        assert space.explain() == "space 'forty rules' is not empty"
        assert space.is_legal(space.sample(1)[0])
        space.model.rules[name].activate()


def test_explain_a_single_rule_and_a_direct_constraint() -> None:
    space = mc.Space("single")
    a, b = space.integer("a", 0, 3), space.integer("b", 0, 3)
    space.rule("fine", a <= b)
    space.model.direct = pyo.Constraint(expr=a * b >= 10)
    assert "'direct'" in space.explain()
    assert "'fine'" not in space.explain()


def test_a_configuration_without_legal_auxiliary_values_is_explained_by_its_rules() -> None:
    """The auxiliary variables are too many to enumerate, so the solver names an irreducible set of rules."""
    space = mc.Space("helpers")
    a = space.integer("a", 0, 9)
    auxiliaries = [space.auxiliary(f"h{k}", 0, 50) for k in range(4)]
    space.rule("sum", sum(auxiliaries) == 7 * a)
    space.rule("small", auxiliaries[0] + auxiliaries[1] <= 10)
    space.rule("smaller", auxiliaries[2] + auxiliaries[3] <= 10)
    space.rule("beside", auxiliaries[0] <= 40)
    assert [v for v in range(10) if space.is_legal({"a": v})] == [0, 1, 2]
    text = str(space.validate({"a": 5})[0])
    assert all(repr(n) in text for n in ("sum", "small", "smaller"))
    assert "'beside'" not in text


def test_objectives_over_wide_integers_alone() -> None:
    space = mc.Space("wide alone", expand_limit=4)
    a, b = space.integer("a", 2, 23, step=3), space.integer("b", 0, 4)
    for _ in range(3):  # later calls start the local search from earlier solutions
        assert space.optimum(-2 * a + b, "min").config == {"a": 23, "b": 0}
        assert space.optimum(-2 * a + b, "max").config == {"a": 2, "b": 4}


@pytest.mark.parametrize("seed", range(6))
def test_no_configuration_violates_a_rule_by_more_than_the_largest_slack(seed: int) -> None:
    """Over all corners of the domain, for bounds on either side and of either sign; and the slack is not needlessly large."""
    rng, space = np.random.default_rng(seed), mc.Space("slack")
    x = [space.integer(f"x{k}", int(low), int(low) + 3) for k, low in enumerate(rng.integers(-4, 3, 3))]
    y = space.real("y", float(rng.uniform(-3, 0)), float(rng.uniform(0, 3)))
    c, bound = rng.integers(-3, 4, 4), int(rng.integers(-30, 30))
    body = sum(int(a) * v for a, v in zip(c, [*x, y], strict=True)) + 0.5 * y
    space.rule("one", body <= bound if seed % 2 else body >= bound)
    program = compiled(space).program
    rows = [k for k, name in enumerate(program.row_rule) if name == "one"]
    most = _largest_violation(program, rows)
    ends = itertools.product(*((v.domain.low, v.domain.high) for v in [*x, y]))
    values = [sum(int(a) * v for a, v in zip(c, e, strict=True)) + 0.5 * e[-1] for e in ends]
    assert most >= max((v - bound) if seed % 2 else (bound - v) for v in values)
    assert most <= 2.1 * (sum(abs(int(a)) * 7 for a in c) + 2 + abs(bound))
