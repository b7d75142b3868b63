"""Proof by enumeration: against brute force on random spaces, its bounds along the way, and its limits."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.enumeration.backend import EnumerationBackend, make_legal_levels
from mipcash.backends.enumeration.bounds import make_potentials
from mipcash.backends.enumeration.branching import BATCH, Best, Effort, _Search, prove
from mipcash.backends.enumeration.network import PairwiseNetwork, make_network
from mipcash.backends.highs import HighsBackend
from mipcash.backends.task import Cut, SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import without_rules
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points, bits, no_good, optimum, random_form
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.fuzz.points import TooLargeError

EXACT = SolverSettings(gap=0.0)


def over_binaries(program: BinaryProgram, form: QuadraticForm) -> QuadraticForm:
    """The form without its terms in other columns."""
    keep = (form.rows < program.n_z) & (form.cols < program.n_z)
    linear = np.where(np.arange(program.n) < program.n_z, form.linear, 0.0)
    return QuadraticForm(form.constant, linear, form.rows[keep], form.cols[keep], form.values[keep])


def network_of(program: BinaryProgram, numbers: dict[str, float] | None = None) -> PairwiseNetwork:
    legality = Legality(program, numbers or {})
    assert legality.complete
    network = make_network(legality, np.ones(program.n_z, dtype=bool))
    assert network is not None
    return network


@on_drawn_spaces(40, 5, range(20), (5_000, 6, 5_000, 0))
def test_random_spaces(drawn: Drawn, number: int, table: int) -> None:
    """With small tables, rules stay linear rows."""
    with mock.patch("mipcash.backends.enumeration.network.JOINED", table):
        check(compiled(build(drawn)).program, number)


@on_drawn_spaces(40, 6, range(40))
def test_random_spaces_listed(drawn: Drawn, number: int) -> None:
    """The same where no network is to be had, so that all levels are looked at."""
    with mock.patch("mipcash.backends.enumeration.backend.network_at", return_value=None):
        check(compiled(build(drawn)).program, number)


def check(program: BinaryProgram, number: int) -> None:
    """Fixings, cuts and starts on one space against the enumeration of its points."""
    if not program.n_z:
        with pytest.raises(SolverError, match="enumeration cannot take this program: it has no levels"):
            EnumerationBackend().solve(Task(program, QuadraticForm.zero(program.n)), EXACT)
        return
    try:
        legal = all_points(program)
    except TooLargeError:
        return
    rng, prover = np.random.default_rng(number), EnumerationBackend()
    fixed = {}
    if program.numbers:
        if not len(legal):
            return
        point = legal[rng.integers(len(legal))]
        fixed = {n.latent: float(point[n.latent]) for n in program.numbers}
    form, cuts, start = over_binaries(program, random_form(program, rng)), [], None
    for k in range(4):
        task = Task(program, form, fixed, cuts, start)
        try:
            answer, best = prover.solve(task, EXACT), optimum(task, legal)
        except SolverError as error:
            if "enumeration cannot take this program" not in str(error):
                raise
            return
        if best == math.inf:
            assert (answer.status, answer.columns) == ("infeasible", None)
            return
        assert answer.status == "optimal"
        assert answer.value == pytest.approx(best, abs=1e-6)
        assert best - 1e-6 <= answer.bound <= answer.value + 1e-12
        kept = [c for c in range(program.n) if not any(c == n.column != n.latent for n in program.numbers)]
        assert np.min(np.abs(legal[:, kept] - answer.columns[kept]).max(axis=1)) < 1e-9, "not a legal point"
        if k == 1:
            fixed = {**fixed, int(rng.integers(program.n_z)): float(rng.integers(2))}
        else:
            cuts = [*cuts, no_good(program, answer.columns)]
        start = legal[rng.integers(len(legal))]


@pytest.mark.parametrize("space", ["layers", "ordered"])
def test_states_are_the_legal_levels(space: str) -> None:
    """What the network admits is what the program admits, and its costs are the form's."""
    program = compiled(SPACES[space]()).program
    network, legal = network_of(program), all_points(program)
    form = random_form(program, np.random.default_rng(2))
    form = over_binaries(program, form)
    theta, pairs = network.costs(form)
    levels = {tuple(program.levels_of(point)) for point in legal}
    admitted = set()
    for combination in np.ndindex(*np.diff(network.starts)):
        states = network.starts[:-1] + np.array(combination)
        if network.admits(states):
            found = network.levels_of(states)
            admitted.add(tuple(found))
            assert np.array_equal(network.states_of(found), states)
            value = form.constant + theta[states].sum() + pairs[np.ix_(states, states)].sum() / 2
            point = np.concatenate([program.one_hot(found), np.zeros(program.n - program.n_z)])
            assert value == pytest.approx(form.value(point), abs=1e-9)
    assert admitted == levels


def triangle() -> mc.Space:
    """A rule over three groups that leaves thousands of combinations, at any value of a number."""
    space = mc.Space("triangle")
    a, b, c = (space.integer(name, 0, 11) for name in "abc")
    x = space.real("x", 1.0, 2.0)
    space.rule("area", a * b + b * c + a * c + 10 * x >= 60)
    space.rule("slope", a * x <= 18)
    return space


def test_rules_that_are_no_pairs_are_listed() -> None:
    """No network, and still the optimum of HiGHS alone; what is listed is what is legal."""
    program = compiled(triangle()).program
    (x,) = program.numbers
    numbers = {x.label: 1.7}
    legality = Legality(program, numbers)
    allowed = np.ones(program.n_z, dtype=bool)
    legal_levels = make_legal_levels(legality, allowed)
    assert make_network(legality, allowed) is None
    assert legal_levels is not None
    legal = [
        s for s in np.ndindex(12, 12, 12) if s[0] * s[1] + s[1] * s[2] + s[0] * s[2] + 17 >= 60 and s[0] * 1.7 <= 18
    ]
    assert {tuple(s) for s in legal_levels.levels.tolist()} == set(legal)
    rng, prover, alone = np.random.default_rng(0), EnumerationBackend(), HighsBackend()
    cuts: list[Cut] = []
    for _ in range(4):
        form = over_binaries(program, random_form(program, rng))
        task = Task(program, form, {x.latent: 1.7}, cuts)
        answer, other = prover.solve(task, EXACT), alone.solve(task, EXACT)
        assert answer.status == other.status == "optimal"
        assert answer.value == pytest.approx(other.value, abs=1e-6)
        assert answer.bound <= answer.value
        assert answer.columns is not None
        cuts = [*cuts, no_good(program, answer.columns)]


def test_moving_costs_changes_none() -> None:
    """Sweeps leave the cost of every solution below the bound asked for as it is, and what they drop is above it."""
    program = compiled(SPACES["layers"]()).program
    network = network_of(program)
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta, pairs = network.costs(over_binaries(program, random_form(program, rng, 1.0)))
        all_states = [network.starts[:-1] + np.array(c) for c in np.ndindex(*np.diff(network.starts))]
        legal = [s for s in all_states if network.admits(s)]
        values = np.array([theta[s].sum() + pairs[np.ix_(s, s)].sum() / 2 for s in legal])
        upper = float(np.quantile(values, 0.2))
        for sweeps in (0, 1, 10):
            moved = make_potentials(network, theta, pairs)
            moved.tighten(upper, sweeps)
            assert moved.lower <= values.min() + 1e-9
            position = {int(s): k for k, s in enumerate(moved.states)}
            for states, value in zip(legal, values, strict=True):
                left = all(int(s) in position for s in states)
                assert left or value >= upper - 1e-9
                if left and not moved.empty:
                    at = [position[int(s)] for s in states]
                    total = moved.lower + moved.theta[at].sum() + moved.pairs[np.ix_(at, at)].sum() / 2
                    assert total == pytest.approx(value, abs=1e-6)
            assert moved.theta.min() >= -1e-9
            assert moved.pairs.min() >= -1e-9


def test_splitting_and_sweeping_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """However early a search is split, whatever the batches, every solution is looked at."""
    program = compiled(bits(14)).program
    network = network_of(program)
    points = program.one_hot(np.array(list(np.ndindex(*[2] * 14))))
    for trial in range(3):
        form = random_form(program, np.random.default_rng(trial), 1.0)
        theta, pairs = network.costs(form)
        best = float((points @ form.linear + (points[:, form.rows] * points[:, form.cols]) @ form.values).min())
        for limits in ({}, {"SLICE": 3}, {"SLICE": 3, "BATCH": 2}, {"BATCH": 1, "SWEEPS": 0}):
            with monkeypatch.context() as patch:
                patch.setattr("mipcash.backends.enumeration.bounds.FEW", 1.0)
                for name, value in limits.items():
                    patch.setattr(f"mipcash.backends.enumeration.branching.{name}", value)
                for upper in (math.inf, best + 0.5):
                    found, effort = Best(upper, 1e-9), Effort(math.inf, math.inf, math.inf)
                    assert prove(make_potentials(network, theta, pairs), found, effort)
                    assert found.value == pytest.approx(best, abs=1e-9)
                    assert effort.done == pytest.approx(1.0)
                found = Best(best, 1e-9)
                assert prove(make_potentials(network, theta, pairs), found, Effort(math.inf, math.inf, math.inf))
                assert found.states is None, "nothing is better than the optimum"


def test_what_is_not_proven_is_said_so() -> None:
    program = compiled(bits(44)).program
    form = random_form(program, np.random.default_rng(0), 1.0)
    start = np.zeros(program.n)
    start[program.starts] = 1.0
    for begin in (None, start):
        answer = EnumerationBackend(nodes=1000).solve(Task(program, form, start=begin), EXACT)
        assert answer.status in ("feasible", "unknown")
        assert math.isfinite(answer.bound)
        if answer.columns is not None:
            assert answer.bound <= answer.value == pytest.approx(form.value(answer.columns))
    assert answer.value <= form.value(start)


def test_bounds_of_unfinished_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a proof is interrupted, between the splits too, its bound is one."""
    program = compiled(bits(14)).program
    form = random_form(program, np.random.default_rng(3), 1.0)
    points = program.one_hot(np.array(list(np.ndindex(*[2] * 14))))
    values = points @ form.linear + (points[:, form.rows] * points[:, form.cols]) @ form.values + form.constant
    start = points[np.argsort(values)[5]]
    monkeypatch.setattr("mipcash.backends.enumeration.bounds.FEW", 1.0)
    monkeypatch.setattr("mipcash.backends.enumeration.branching.BATCH", 2)
    seen = set()
    for slices in (5, 20_000):
        monkeypatch.setattr("mipcash.backends.enumeration.branching.SLICE", slices)
        monkeypatch.setattr("mipcash.backends.enumeration.branching.WHOLE", 1)
        for nodes in range(0, 120, 3):
            answer = EnumerationBackend(nodes=nodes).solve(Task(program, form, start=start), EXACT)
            assert answer.bound <= values.min() + 1e-9 <= answer.value + 2e-9
            seen.add((answer.status, round(answer.bound, 6)))
    assert {"feasible", "optimal"} == {status for status, _ in seen}
    assert len(seen) >= 4, "the bound rises on the way"


def test_the_time_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by a second each time that it is read."""
    readings = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(readings)))
    for module in ("backend", "branching"):
        monkeypatch.setattr(f"mipcash.backends.enumeration.{module}.time", clock)
    program = compiled(bits(60)).program
    task = Task(program, random_form(program, np.random.default_rng(0), 1.0))
    answer = EnumerationBackend(nodes=10**9).solve(task, SolverSettings(time_limit=20.0))
    assert answer.status != "optimal"
    assert 20 <= next(readings) <= 30


def test_out_of_reach() -> None:
    wide = compiled(SPACES["wide"]()).program
    free = over_binaries(wide, random_form(wide, np.random.default_rng(0)))
    enumeration = EnumerationBackend()
    with pytest.raises(SolverError, match=r"its number '.*' is not fixed; use solver='auto'"):
        enumeration.solve(Task(wide, free), EXACT)
    layers = compiled(SPACES["layers"]()).program
    auxiliary = QuadraticForm.zero(layers.n)
    auxiliary = QuadraticForm(0.0, auxiliary.linear + 1.0, auxiliary.rows, auxiliary.cols, auxiliary.values)
    with pytest.raises(SolverError, match="its objective is about more than levels"):
        enumeration.solve(Task(layers, auxiliary), EXACT)
    (x, *_) = wide.numbers
    outside = {n.latent: wide.high[n.latent] + (n is x) for n in wide.numbers}
    with pytest.raises(SolverError, match=f"its number {x.label!r} is fixed outside its domain"):
        enumeration.solve(Task(wide, free, outside), EXACT)


def test_a_program_without_some_rules_is_another_one() -> None:
    space = SPACES["layers"]()
    space.rule("never", space["layers"] >= 3)
    rest = without_rules(compiled(space).program, ["never"])
    for program, status in (
        (compiled(space).program, "infeasible"),
        (rest, "optimal"),
        (compiled(space).program, "infeasible"),
    ):
        answer = EnumerationBackend().solve(Task(program, QuadraticForm.zero(program.n)), EXACT)
        assert answer.status == status


def test_under_hundreds_of_dense_rows_batches_are_small_and_the_optimum_is_the_same() -> None:
    """What is kept of a batch is a value per row and partial solution."""
    rng = np.random.default_rng(0)
    space = mc.Space("dense")
    parameters = [space.integer(f"i{k}", 0, 4) for k in range(5)]
    for r in range(900):
        weights = rng.normal(size=5).round(2)
        bound = float(weights.sum() + np.abs(weights).sum() * rng.uniform(0.2, 1.5))
        space.rule(f"rule {r}", sum(w * p for w, p in zip(weights.tolist(), parameters, strict=True)) <= bound)
    program = compiled(space).program
    task = Task(program, over_binaries(program, random_form(program, rng)))
    searches: list[_Search] = []
    run = _Search.run

    def kept(search: _Search, splittable: bool) -> bool | None:
        searches.append(search)
        return run(search, splittable)

    module = "mipcash.backends.enumeration"  # rules stay linear rows, and bounds leave fewer of them
    with (
        mock.patch.object(_Search, "run", kept),
        mock.patch(f"{module}.network.JOINED", 6),
        mock.patch(f"{module}.branching.ROWS", 100),
    ):
        found = EnumerationBackend().solve(task, EXACT)
    expected = HighsBackend().solve(task, EXACT)
    assert found.status == expected.status == "optimal"
    assert found.value == pytest.approx(expected.value, abs=1e-6)
    assert searches
    assert max(s._weight for s in searches) > 1
    assert all(s._batch * max(100, len(s.potentials.low)) <= BATCH * 100 for s in searches)
