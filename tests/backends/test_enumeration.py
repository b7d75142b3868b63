"""Tests of enumeration and of tabu search on its networks: brute force on random spaces, bounds, and time limits."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.enumeration.network import PairwiseNetwork, make_network, network_at
from mipcash.backends.heuristics.local_search import LocalSearch, all_states, evaluated, random_states, tabu_search
from mipcash.backends.task import SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality, legality_at
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import without_rules
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES, all_points, bits, no_good, optimum, random_form
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.fuzz.points import TooLargeError

EXACT = SolverSettings(gap=0.0)
MODULE = "mipcash.backends.enumeration"


def over_binaries(program: BinaryProgram, form: QuadraticForm) -> QuadraticForm:
    """Return the form restricted to the one-hot binaries."""
    keep = (form.rows < program.n_z) & (form.cols < program.n_z)
    linear = np.where(np.arange(program.n) < program.n_z, form.linear, 0.0)
    return QuadraticForm(form.constant, linear, form.rows[keep], form.cols[keep], form.values[keep])


@on_drawn_spaces(40, 5, range(40), (5_000, 6, 0, None))
def test_answers_on_random_spaces_agree_with_brute_force(drawn: Drawn, number: int, table: int | None) -> None:
    """Small tables leave rules as linear rows. Without a network every level vector is enumerated."""
    listed = mock.patch(f"{MODULE}.backend.network_at", return_value=None)
    with listed if table is None else mock.patch(f"{MODULE}.network.JOINED", table):
        check(compiled(build(drawn)).program, number)


def check(program: BinaryProgram, number: int) -> None:
    """Compare solves with fixings, cuts and starts with the enumeration of all points of one space."""
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


@pytest.mark.parametrize("limits", [{"SLICE": 5, "BATCH": 2, "WHOLE": 1}, {"SLICE": 20_000, "BATCH": 1, "SWEEPS": 0}])
def test_bounds_of_unfinished_proofs_are_valid(limits: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is valid wherever the proof stops, also between splits. With enough nodes the optimum is proven."""
    program = compiled(bits(14)).program
    form = random_form(program, np.random.default_rng(3), 1.0)
    points = program.one_hot(np.array(list(np.ndindex(*[2] * 14))))
    values = points @ form.linear + (points[:, form.rows] * points[:, form.cols]) @ form.values + form.constant
    start = points[np.argsort(values)[5]]
    monkeypatch.setattr(f"{MODULE}.bounds.FEW", 1.0)
    for name, value in limits.items():
        monkeypatch.setattr(f"{MODULE}.branching.{name}", value)
    bounds, statuses = set(), []
    for nodes in [*range(0, 120, 8), 100_000]:
        answer = EnumerationBackend(nodes=nodes).solve(Task(program, form, start=start), EXACT)
        assert answer.bound <= values.min() + 1e-9 <= answer.value + 2e-9
        bounds.add(round(answer.bound, 6))
        statuses.append(answer.status)
    assert (statuses[0], statuses[-1]) == ("feasible", "optimal")
    assert answer.value == pytest.approx(values.min(), abs=1e-9)
    assert len(bounds) >= 3, "the bound rises on the way"


def test_the_time_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a clock that advances by one second at each reading."""
    readings = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(readings)))
    for module in ("backend", "branching"):
        monkeypatch.setattr(f"{MODULE}.{module}.time", clock)
    program = compiled(bits(60)).program
    task = Task(program, random_form(program, np.random.default_rng(0), 1.0))
    answer = EnumerationBackend(nodes=10**9).solve(task, SolverSettings(time_limit=20.0))
    assert answer.status != "optimal"
    assert 20 <= next(readings) <= 30


def test_programs_beyond_enumeration_are_refused() -> None:
    wide = compiled(SPACES["wide"]()).program
    free = over_binaries(wide, random_form(wide, np.random.default_rng(0)))
    enumeration = EnumerationBackend()
    with pytest.raises(SolverError, match=r"its number '.*' is not fixed; use solver='auto'"):
        enumeration.solve(Task(wide, free), EXACT)
    layers = compiled(SPACES["layers"]()).program
    auxiliary = QuadraticForm.zero(layers.n)
    auxiliary = QuadraticForm(0.0, auxiliary.linear + 1.0, auxiliary.rows, auxiliary.cols, auxiliary.values)
    with pytest.raises(SolverError, match="its objective contains numerical parameters or auxiliary variables"):
        enumeration.solve(Task(layers, auxiliary), EXACT)
    (x, *_) = wide.numbers
    outside = {n.latent: wide.high[n.latent] + (n is x) for n in wide.numbers}
    with pytest.raises(SolverError, match=f"its number {x.label!r} is fixed outside its domain"):
        enumeration.solve(Task(wide, free, outside), EXACT)


def test_few_configurations_are_listed_where_rules_bind_three_parameters() -> None:
    space = mc.Space("triple")
    a, b, c = (space.integer(name, 0, 12) for name in "abc")
    space.rule("together", a * b + b * c + a * c <= 120)
    program = compiled(space).program
    assert network_at(legality_at(program, None), np.ones(program.n_z, dtype=bool)) is None
    best = max(x + 2 * y + 2 * z for x, y, z in itertools.product(range(13), repeat=3) if x * y + y * z + x * z <= 120)
    assert space.optimum(a + 2 * b + 2 * c, "max", solver="enumeration").value == best


def test_a_program_without_some_rules_is_solved_separately() -> None:
    space = SPACES["layers"]()
    space.rule("never", space["layers"] >= 3)
    whole = compiled(space).program
    rest, enumeration = without_rules(whole, ["never"]), EnumerationBackend()
    tasks = [Task(p, QuadraticForm.zero(p.n)) for p in (whole, rest, whole)]
    assert [enumeration.solve(t, EXACT).status for t in tasks] == ["infeasible", "optimal", "infeasible"]


# -- tabu search ----------------------------------------------------------------------------------------------------


def network_of(drawn: Drawn) -> tuple[BinaryProgram, PairwiseNetwork, set[tuple[int, ...]]] | None:
    """Return the program of a space, its network and its legal levels; None if it has no network."""
    program = compiled(build(drawn)).program
    if not program.n_z or program.numbers:
        return None
    try:
        legal = {tuple(point[: program.n_z].round().astype(int)) for point in all_points(program)}
    except TooLargeError:
        return None
    network = make_network(Legality(program), np.ones(program.n_z, dtype=bool))
    return None if network is None or not np.all(np.diff(network.starts)) else (program, network, legal)


@on_drawn_spaces(20, 7, range(20))
def test_tabu_search_returns_legal_levels_with_exact_costs(drawn: Drawn, number: int) -> None:
    if (found_of := network_of(drawn)) is None:
        return
    (program, network, legal), rng = found_of, np.random.default_rng(number)
    form = over_binaries(program, random_form(program, rng))
    theta, pairs = network.costs(form)
    states = all_states(network)
    for whole in (False, True):
        if whole and (states is None or len(network.low)):
            break
        if whole:
            found, costs = evaluated(network, theta, pairs, states)
        else:
            found, costs = tabu_search(network, theta, pairs, random_states(network, 8, rng), 60, rng)
        levels = network.levels_of(found)
        assert len(np.unique(levels, axis=0)) == len(levels)
        binaries = [program.one_hot(row) for row in levels]
        assert {tuple(z.astype(int)) for z in binaries} <= legal
        assert len(found) == len(legal) if whole else bool(len(found)) == bool(legal)
        for z, cost in zip(binaries, costs, strict=True):
            value = form.value(np.pad(z, (0, program.n - program.n_z)))
            assert form.constant + cost == pytest.approx(value, abs=1e-9)
        assert np.all(np.diff(costs) >= 0)


def test_tabu_search_finds_optima_that_enumeration_proves() -> None:
    program = compiled(bits(24)).program
    search, prover = LocalSearch(program, Legality(program)), EnumerationBackend()
    start, found = np.zeros((1, 24), dtype=np.int64), 0
    for trial in range(6):
        form = random_form(program, np.random.default_rng(trial), 1.0)
        proof = prover.solve(Task(program, form), SolverSettings())
        assert proof.status == "optimal"
        _, values = search.descend(form, start, 16, np.random.default_rng(trial))
        assert values[0] >= proof.value - 1e-9
        found += values[0] <= proof.value + 1e-9
    assert found >= 5
