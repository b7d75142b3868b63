"""Questions with a time limit: what is known by then, and never a wrong answer."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.registry import solvers
from mipcash.backends.timed import timed
from mipcash.deadline import Deadline
from mipcash.errors import InfeasibleSpaceError, MipcashError, SolverError
from mipcash.program.legality import Legality
from mipcash.space.bounds import Extent, extents
from mipcash.space.compiled import QUESTION, compiled, minimiser_of
from mipcash.space.counting import Count, count
from mipcash.space.minimiser import Minimiser
from mipcash.space.sampling import sample
from tests.fuzz.cases import on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.slow import FakeClock, SlowBackend
from tests.spaces import bound_numbers, conv_net, discrete

LIMITS = (0.0, 1e-3, 0.05)
SPACES = {"conv net": conv_net, "discrete": discrete, "bound numbers": bound_numbers}


@on_drawn_spaces(12, 0, LIMITS, most=100)
def test_what_is_known_in_no_time_is_true(drawn: Drawn, limit: float) -> None:
    """Counts are never above the truth, bounds never within it, samples legal, and a limit is no proof of emptiness."""
    space = build(drawn)
    number = space.count(time_limit=None)
    assert number.exact
    truth = space.bounds(time_limit=None) if number else {}
    quick = build(drawn)  # nothing is known of it yet
    said = quick.count(time_limit=limit)
    assert said <= number
    assert said == number or not said.exact
    try:
        found = quick.bounds(time_limit=limit)
    except InfeasibleSpaceError:
        assert number == 0
        return
    assert found.keys() >= truth.keys()
    for name in truth:
        assert holds(found[name], truth[name])
    try:
        with warnings.catch_warnings(), suppress(SolverError):  # it says that the time was over
            warnings.simplefilter("ignore")
            assert all(space.is_legal(c) for c in quick.sample(5, time_limit=limit))
    except InfeasibleSpaceError:
        assert number == 0


def holds(extent: Extent, truth: Extent) -> bool:
    """Whether an extent has all that a parameter can be, and no more where it says that it is proven."""
    if extent.always and not truth.always:
        return False
    if extent.values is None or truth.values is None:
        ends = extent.low, extent.high
        return (extent.low <= truth.low and truth.high <= extent.high) and (
            not extent.proven or ends == (truth.low, truth.high)
        )
    if extent.proven:
        return extent.values == truth.values
    if extent.values and isinstance(extent.values[0], tuple) and extent.low is None and len(extent.values[0]) == 2:
        return True  # positions in an ordering, or tuples
    return all(value in extent.values for value in truth.values)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("seconds", [0.5, 3.0, 20.0])
def test_each_question_takes_no_more_than_it_was_given(name: str, seconds: float) -> None:
    """By a clock, with a solver that takes a second for each answer."""
    clock, space = FakeClock(), SPACES[name]()
    here, slow = compiled(space), SlowBackend(clock, 1.0)
    truth, number = extents(here, slow.backend), space.count()
    for ask in ("bounds", "count", "sample"):
        began, deadline = clock.now, Deadline.after(seconds, clock)
        minimiser = Minimiser(here.program, slow).until(deadline)
        if ask == "bounds":
            for label, extent in extents(here, timed(slow, deadline)).items():
                assert holds(extent, truth[label])
        elif ask == "count":
            assert count(minimiser, 1000, QUESTION, deadline) <= number
        else:
            try:
                found = sample(here.until(deadline), minimiser, 12, np.random.default_rng(0))
                assert all(space.is_legal(c) for c in found)
            except SolverError:
                assert seconds < 1.0
        assert clock.now - began <= seconds + 1e-9


def test_a_count_is_an_integer_that_says_whether_it_is_exact() -> None:
    said = discrete().count()
    assert isinstance(said, int)
    assert said.exact
    assert said == said.number == int(said)
    assert said + 1 > said
    least = Count(1234, False)
    assert (str(least), repr(least)) == ("at least 1,234", "<count: at least 1,234>")
    copied = pickle.loads(pickle.dumps(least))
    assert copied == least
    assert not copied.exact


def test_fewer_samples_than_asked_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.program.legality.make_elimination", lambda *_: None)
    monkeypatch.setattr(Legality, "_tabulate", lambda *_: None)
    clock, space = FakeClock(), conv_net()  # only the solver tells what is legal
    slow = SlowBackend(clock, 1.0)
    monkeypatch.setattr("mipcash.space.space.Deadline", clock.deadlines)
    monkeypatch.setattr("mipcash.space.space.minimiser_of", lambda _: Minimiser(compiled(space).program, slow))
    with pytest.warns(UserWarning, match=r"of 30 samples .* in 2.5 s; give a larger time_limit"):
        found = space.sample(30, time_limit=2.5)
    assert 0 < len(found) < 30
    assert all(space.is_legal(c) for c in found)
    with pytest.raises(SolverError, match="give it more time"):
        space.sample(3, time_limit=0.5)


def test_where_moves_tell_what_is_legal_all_samples_come() -> None:
    clock, space = FakeClock(), discrete()
    deadline = Deadline.after(1.5, clock)
    minimiser = Minimiser(compiled(space).program, SlowBackend(clock, 1.0)).until(deadline)
    found = sample(compiled(space).until(deadline), minimiser, 200, np.random.default_rng(0))
    assert all(space.is_legal(c) for c in found)
    assert len(found) >= 1


def test_a_limit_is_no_proof_that_a_space_is_empty_nor_why() -> None:
    space = mc.Space("empty")
    x, y = space.integer("x", 0, 9), space.real("y", 0, 1)
    space.rule("low", x + y <= 2)
    space.rule("high", x * y >= 3)
    assert "could not tell" in space.explain(time_limit=0.0)
    with pytest.raises(MipcashError, match="could not tell"):
        space.conflict(time_limit=0.0)
    assert space.bounds(time_limit=0.0)["x"].values == tuple(range(10))
    with pytest.raises(SolverError):
        space.sample(1, time_limit=0.0)
    assert space.optimum(x, time_limit=0.0).status in ("unknown", "infeasible")
    assert space.explain().startswith("space 'empty' is empty: rules 'low', 'high'")


def test_time_limits_are_seconds() -> None:
    space = discrete()
    for ask in (space.count, space.bounds, space.sample, space.explain, space.conflict):
        with pytest.raises(MipcashError, match="number of seconds"):
            ask(time_limit=-1.0)
        with pytest.raises(MipcashError, match="number of seconds"):
            ask(time_limit=math.nan)


def test_layers_of_shapes_do_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only a solver decides: at least some are counted, and bounds hold what samples have. By a clock of its readings."""
    from tests.spaces import shape_space

    monkeypatch.setattr("mipcash.program.legality.make_elimination", lambda *_: None)
    space = shape_space(6)
    assert not minimiser_of(space).free_legality.complete
    assert isinstance(minimiser_of(space).free_legality, Legality)
    readings = itertools.count()
    ticking = SimpleNamespace(after=lambda seconds: Deadline.after(seconds, lambda: next(readings) / 100))
    monkeypatch.setattr("mipcash.space.space.Deadline", ticking)
    said = space.count(time_limit=1.0)
    assert said > 0
    assert not said.exact
    bounds = space.bounds(time_limit=1.0)
    for config in space.sample(3, time_limit=20.0):
        for name, value in config.items():
            assert bounds[name].low <= value <= bounds[name].high


@pytest.mark.parametrize("solver", [s.name for s in solvers() if s.installed and s.name in ("highs", "scip", "gurobi")])
def test_a_solve_may_be_without_a_limit(solver: str) -> None:
    space = mc.Space("small")
    x, y = space.integer("x", 0, 5), space.real("y", 0, 1)
    space.rule("sum", x + y <= 4.5)
    assert space.optimum(x, "max", solver=solver, time_limit=None).value == 4
