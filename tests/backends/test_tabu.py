"""Tabu search: legal, consistent, and as good as enumeration on random spaces and larger networks."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.enumeration.network import PairwiseNetwork, make_network
from mipcash.backends.heuristics.local_search import (
    REPORTED,
    LocalSearch,
    all_states,
    evaluated,
    random_states,
    tabu_search,
)
from mipcash.backends.task import SolverSettings, Task
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from tests.backends.tasks import all_points, bits, random_form
from tests.backends.test_enumeration import over_binaries
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.fuzz.points import TooLargeError


def of(drawn: Drawn) -> tuple[BinaryProgram, PairwiseNetwork, set[tuple[int, ...]]] | None:
    """The program of a space, its network and its legal levels; None where there is no network."""
    program = compiled(build(drawn)).program
    if not program.n_z or program.numbers:
        return None
    try:
        legal = {tuple(point[: program.n_z].round().astype(int)) for point in all_points(program)}
    except TooLargeError:
        return None
    network = make_network(Legality(program), np.ones(program.n_z, dtype=bool))
    return None if network is None or not np.all(np.diff(network.starts)) else (program, network, legal)


@on_drawn_spaces(30, 7, range(30))
def test_what_it_reports_is_legal_and_exact(drawn: Drawn, number: int) -> None:
    if (found_of := of(drawn)) is None:
        return
    (program, network, known), rng = found_of, np.random.default_rng(number)
    form = over_binaries(program, random_form(program, rng))
    theta, pairs = network.costs(form)
    found, costs = tabu_search(network, theta, pairs, random_states(network, 8, rng), 60, rng)
    levels = network.levels_of(found)
    assert len(np.unique(levels, axis=0)) == len(levels)
    for row, cost in zip(levels, costs, strict=True):
        z = program.one_hot(row)
        assert tuple(z.astype(int)) in known
        point = np.concatenate([z, np.zeros(program.n - program.n_z)])
        assert form.constant + cost == pytest.approx(form.value(point), abs=1e-9)
    assert bool(len(found)) == bool(known)
    assert np.all(np.diff(costs) >= 0)


@on_drawn_spaces(30, 8, range(30))
def test_a_network_with_few_solutions_is_looked_at_whole(drawn: Drawn, number: int) -> None:
    if (found_of := of(drawn)) is None or len(found_of[1].low):
        return
    program, network, legal = found_of
    states = all_states(network)
    if states is None:
        assert np.prod(np.diff(network.starts).astype(float)) > REPORTED
        return
    form = over_binaries(program, random_form(program, np.random.default_rng(number)))
    found, costs = evaluated(network, *network.costs(form), states)
    assert {tuple(program.one_hot(row).astype(int)) for row in network.levels_of(found)} == legal
    assert len(found) == len(legal)
    assert np.all(np.diff(costs) >= 0)


def test_it_finds_optima_that_enumeration_proves() -> None:
    program = compiled(bits(24)).program
    search, prover = LocalSearch(program, Legality(program)), EnumerationBackend()
    start, found = np.zeros((1, 24), dtype=np.int64), 0
    for trial in range(10):
        form = random_form(program, np.random.default_rng(trial), 1.0)
        proof = prover.solve(Task(program, form), SolverSettings())
        assert proof.status == "optimal"
        _, values = search.descend(form, start, 16, np.random.default_rng(trial))
        assert values[0] >= proof.value - 1e-9
        found += values[0] <= proof.value + 1e-9
    assert found >= 9


def test_random_states_respect_what_excludes() -> None:
    from tests.backends.tasks import SPACES

    program = compiled(SPACES["layers"]()).program
    network = make_network(Legality(program), np.ones(program.n_z, dtype=bool))
    assert network is not None
    states = random_states(network, 200, np.random.default_rng(0))
    legal = [network.admits(s) for s in states]
    assert np.mean(legal) > 0.9
    assert len(np.unique(states, axis=0)) > 20
