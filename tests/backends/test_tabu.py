"""Tabu search: legal, consistent, and as good as enumeration on random spaces and larger networks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from mipcash.backends.enumeration.backend import EnumerationBackend
from mipcash.backends.enumeration.network import PairwiseNetwork, make_network
from mipcash.backends.heuristics.local_search import (
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
from tests.fuzz.described import Drawn, build
from tests.strategies.points import TooLargeError
from tests.strategies.spaces import drawn_spaces


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


@seed(7)
@settings(max_examples=20, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn_spaces(), st.integers(0, 2**32))
def test_what_it_reports_is_legal_and_exact_and_a_small_network_is_looked_at_whole(drawn: Drawn, number: int) -> None:
    if (found_of := of(drawn)) is None:
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


def test_it_finds_optima_that_enumeration_proves() -> None:
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
