"""Samples, designs, incumbents and explanations: what a space promises beyond a single optimum."""

from __future__ import annotations

import contextlib
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.heuristics.local_search import LocalSearch
from mipcash.backends.task import SolverSettings
from mipcash.errors import InfeasibleSpaceError
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion, Exclusions
from tests.backends.tasks import form_of
from tests.slow import SOLVES, counted

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
    """Every (parameter, value) that some legal configuration shows: one proof per indicator."""
    found = set()
    for group in compiled(space).program.groups:
        for value in group.values:
            solution = space.optimum(1 * space[group.parameter].is_(value), "max")
            if solution.value > 0.5:
                found.add((group.parameter, repr(value)))
    return found


def test_every_possible_level_is_sampled() -> None:
    space = conditional_space()
    possible = possible_levels(space)
    samples = space.sample(600, seed=0)
    assert len(samples) == 600
    assert all(space.is_legal(c) for c in samples)
    assert set().union(*map(levels_of, samples)) == possible
    counts = {a: sum(c["act"] == a for c in samples) for a in ("relu", "tanh", "selu")}
    assert min(counts.values()) >= 60, counts


def test_a_design_covers_every_possible_level() -> None:
    space = conditional_space()
    possible = possible_levels(space)
    design = Domain.of(space).design(40, np.random.default_rng(0))
    assert all(space.is_legal(c) and s.config == c for c, s in design)
    assert set().union(*(levels_of(c) for c, _ in design)) == possible
    first = [c["model"] for c, _ in Domain.of(space).design(3, np.random.default_rng(1))]
    assert sorted(first) == ["linear", "svm", "tree"], "the structure comes first"


@pytest.mark.parametrize("seed", range(3))
def test_small_structures_are_shown_as_often_as_large_ones(seed: int) -> None:
    space = mc.Space("one, many or none")
    kind = space.categorical("kind", ["bare", "rich", "plain"])
    for k in range(8):
        space.integer(f"p{k}", 0, 20, when=kind["rich"])
    inner = space.categorical("inner", ["a", "b"], when=kind["rich"])
    space.integer("q", 0, 9, when=inner["b"])
    space.real("x", 0.0, 1.0)
    design = [c for c, _ in Domain.of(space).design(12, np.random.default_rng(seed))]
    counts = {name: sum(c["kind"] == name for c in design) for name in ("bare", "rich", "plain")}
    assert max(counts.values()) - min(counts.values()) <= 2, counts
    assert {c["inner"] for c in design if "inner" in c} == {"a", "b"}


def test_a_deep_structure_is_shown_at_many_depths() -> None:
    space = mc.Space("one more, and one more")
    more = space.categorical("m0", ["stop", "go"])
    for k in range(1, 9):
        more = space.categorical(f"m{k}", ["stop", "go"], when=more["go"])
    space.real("x", 0.0, 1.0)
    depths = [sum(v == "go" for v in c.values()) for c, _ in Domain.of(space).design(20, np.random.default_rng(0))]
    assert {0, 1, 2, 3} <= set(depths), depths
    assert max(depths) >= 8, depths


@pytest.mark.parametrize("legal", [1, 3])
def test_tight_spaces(legal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 or 3 legal configurations among 10^6: no rejection, a solve for each sample, all of them found."""
    space = mc.Space("tight")
    digits = [space.integer(f"d{k}", 0, 9) for k in range(6)]
    number = sum(10 ** (5 - k) * d for k, d in enumerate(digits))
    space.rule("low", number >= 271_828)
    space.rule("high", number <= 271_827 + legal)
    calls = counted(monkeypatch, *SOLVES, (Legality, "check"))
    samples = space.sample(40, seed=0)
    assert len(calls) <= 60
    assert len(samples) == 40
    found = {int("".join(str(c[f"d{k}"]) for k in range(6))) for c in samples}
    assert found == set(range(271_828, 271_828 + legal))
    assert not space.is_legal({f"d{k}": 0 for k in range(6)})


def test_an_empty_space_says_so() -> None:
    space = conditional_space()
    space.rule("never", space["layers"] >= 4)
    with pytest.raises(InfeasibleSpaceError, match="never"):
        space.sample(5)
    with pytest.raises(InfeasibleSpaceError, match="never"):
        Domain.of(space).design(5, np.random.default_rng(0))
    assert space.sample(0) == []


PROGRAM = """
import numpy as np, sys
sys.path.insert(0, {root!r})
import mipcash as mc
from tests.space.test_answers import conditional_space
space = conditional_space()
x = space.real("x", 0.0, 1.0)
space.rule("mixed", 3 * x <= 1 + space["layers"])
print([sorted(c.items()) for c in space.sample(12, seed=3)])
print(space.optimum(space["layers"] - 2 * x).config)
"""


def test_samples_are_determined_by_the_seed_across_processes() -> None:
    root = str(__import__("pathlib").Path(__file__).parents[2])

    code, here = PROGRAM.format(root=root), io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    env = {"PYTHONHASHSEED": "12345", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == here.getvalue()
    space = conditional_space()
    assert space.sample(30, seed=1) == conditional_space().sample(30, seed=1)
    assert space.sample(30, seed=1) == space.sample(30, seed=1), "earlier questions must not change a sample"
    assert space.sample(30, seed=1) != space.sample(30, seed=2)


# -- local search ---------------------------------------------------------------------------------------------------


def test_local_search_finds_legal_points_of_consistent_value() -> None:
    space = conditional_space()
    program = compiled(space).program
    legality = Legality(program)
    assert legality.complete
    search = LocalSearch(program, legality)
    rng = np.random.default_rng(0)
    starts = np.array([program.encode(c) for c in space.sample(4, seed=5)])
    everything = list(_all_legal(space))
    reached = 0
    for _ in range(20):
        linear = np.zeros(program.n)
        linear[: program.n_z] = rng.normal(size=program.n_z)
        form = program.folded(form_of(0.7, linear, np.triu(rng.normal(size=(program.n, program.n)), 1)))
        levels, values = search.descend(form, starts, 16, rng)
        assert np.all(np.diff(values) >= -1e-12)
        assert len(np.unique(levels, axis=0)) == len(levels)
        for row, value in zip(levels, values, strict=True):
            assert value == pytest.approx(form.value(program.one_hot(row)))
            assert space.is_legal(program.decode(row, {}))
        best = min(form.value(program.one_hot(program.encode(c))) for c in everything)
        assert values[0] >= best - 1e-9
        reached += values[0] <= best + 1e-9
    assert reached >= 15, "descent from 16 starts finds most optima of a space this small"


def test_local_search_passes_over_what_is_excluded() -> None:
    space = mc.Space("few")
    for name, size in (("a", 4), ("b", 5), ("c", 3)):
        space.categorical(name, list(range(size)))
    minimiser, program = minimiser_of(space), compiled(space).program
    linear = np.zeros(program.n)
    linear[: program.n_z] = np.random.default_rng(0).normal(size=program.n_z)
    empty = np.zeros(0, dtype=np.int64)
    form = QuadraticForm(0.0, linear, empty, empty, np.zeros(0))
    points = np.array(list(itertools.product(range(4), range(5), range(3))))
    ranked = points[np.argsort([form.value(program.one_hot(p)) for p in points])]
    for k in (0, 1, 31, 32, 33, 59):
        excluded = [Exclusion(p) for p in ranked[:k]]
        found = minimiser.incumbent(form, {}, excluded, [ranked[0]], np.random.default_rng(1))
        assert found is not None
        assert found[0].tolist() == ranked[k].tolist()
        assert Exclusions.of(excluded).admitted(ranked).tolist() == [False] * k + [True] * (60 - k)
    everything = [Exclusion(p) for p in ranked]
    assert minimiser.incumbent(form, {}, everything, [ranked[0]], np.random.default_rng(1)) is None
    away = Exclusion(ranked[0], 3)
    assert Exclusions.of([away]).admitted(ranked).tolist() == [int(np.sum(p != ranked[0])) >= 3 for p in ranked]
    assert [away.admits(p) for p in ranked] == [int(np.sum(p != ranked[0])) >= 3 for p in ranked]


def _all_legal(space: mc.Space) -> list[dict[str, object]]:
    found = []
    for layers, act, model in itertools.product(range(4), ("relu", "tanh", "selu"), ("tree", "linear", "svm")):
        base = {"layers": layers, "act": act, "model": model}
        if act == "selu" and layers < 2:
            continue
        if model == "linear":
            found.append(base)
        elif model == "tree":
            found += [base | {"model.tree.depth": d} for d in range(1, 7) if layers or d <= 4]
        else:
            found.append(base | {"model.svm.kernel": "rbf"})
            found += [base | {"model.svm.kernel": "poly", "degree": d} for d in (2, 3, 4)]
    assert all(space.is_legal(c) for c in found)
    return found


# -- explanations ---------------------------------------------------------------------------------------------------


def test_explain_names_an_irreducible_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rules that conflict, every two of them fine, among forty."""
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
    # by hand: p2 >= 3 and p5 >= 3 (a), p9 <= 5 - p5 (b), p2 <= 1 + p9 <= 6 - p5, so p2 + p5 <= 6 < 8
    legal = [
        {name for name, ok in (("trio a", a + b >= 8), ("trio b", b + c <= 5), ("trio c", a - c <= 1)) if ok}
        for a, b, c in itertools.product(range(6), repeat=3)
    ]
    assert trio not in legal
    assert all(any(trio - {name} <= kept for kept in legal) for name in trio)
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
    import pyomo.environ as pyo

    space = mc.Space("single")
    a, b = space.integer("a", 0, 3), space.integer("b", 0, 3)
    space.rule("fine", a <= b)
    space.model.direct = pyo.Constraint(expr=a * b >= 10)
    assert "'direct'" in space.explain()
    assert "'fine'" not in space.explain()


def test_a_configuration_that_no_helper_can_save_is_explained_by_name() -> None:
    """Auxiliaries too many to enumerate: the solver decides, and blames an irreducible set of rules."""
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


def test_spaces_of_reals_alone() -> None:
    space = mc.Space("reals")
    x, y = space.real("x", 1, 2), space.real("y", 1, 4)
    space.rule("order", x >= y)
    samples = space.sample(200, seed=0)
    assert len(samples) == 200
    assert all(c["x"] >= c["y"] - 2e-6 for c in samples)
    assert np.ptp([c["x"] for c in samples]) > 0.5


def test_objectives_over_wide_integers_alone() -> None:
    space = mc.Space("wide alone", expand_limit=4)
    a, b = space.integer("a", 2, 23, step=3), space.integer("b", 0, 4)
    for _ in range(3):  # later questions start local search from earlier answers
        assert space.optimum(-2 * a + b, "min").config == {"a": 23, "b": 0}
        assert space.optimum(-2 * a + b, "max").config == {"a": 2, "b": 4}
        form = QuadraticForm.zero(compiled(space).program.n)
        answer = minimiser_of(space).minimise(form, SolverSettings(), rng=np.random.default_rng(0))
        assert answer.columns is not None
        assert answer.value == 0.0
