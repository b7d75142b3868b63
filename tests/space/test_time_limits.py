"""Methods of a space with a time limit: partial results, but no wrong ones."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.timed import timed
from mipcash.deadline import Deadline
from mipcash.errors import MipcashError, SolverError
from mipcash.program.legality import Legality
from mipcash.space.bounds import Extent, extents
from mipcash.space.compiled import compiled
from mipcash.space.counting import Count, count
from mipcash.space.minimiser import Minimiser
from mipcash.space.sampling import sample
from tests.slow import FakeClock, SlowBackend
from tests.spaces import bound_numbers, conv_net, discrete

SPACES = {"conv net": conv_net, "discrete": discrete, "bound numbers": bound_numbers}


def holds(extent: Extent, truth: Extent) -> bool:
    """Return True if the extent has every possible value of a parameter, and no further ones if it is proven."""
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
@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_each_method_keeps_its_time_limit(name: str, seconds: float) -> None:
    """A fake clock measures the time, with a solver that takes one second per solve."""
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
            assert count(minimiser, 1000) <= number
        else:
            try:
                found = sample(here.until(deadline), minimiser, 12, np.random.default_rng(0))
                assert all(space.is_legal(c) for c in found)
            except SolverError:
                assert seconds < 1.0
        assert clock.now - began <= seconds + 1e-9


def test_a_count_is_an_integer_with_an_exact_flag() -> None:
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


def test_fewer_samples_than_asked_for_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.program.legality.make_elimination", lambda *_: None)
    monkeypatch.setattr(Legality, "_tabulate", lambda *_: None)
    clock, space = FakeClock(), conv_net()  # only the solver decides legality
    slow = SlowBackend(clock, 1.0)
    monkeypatch.setattr("mipcash.space.space.Deadline", clock.deadlines)
    monkeypatch.setattr("mipcash.space.space.minimiser_of", lambda _: Minimiser(compiled(space).program, slow))
    with pytest.warns(UserWarning, match=r"of 30 samples .* in 2.5 s; give a larger time_limit"):
        found = space.sample(30, time_limit=2.5)
    assert 0 < len(found) < 30
    assert all(space.is_legal(c) for c in found)
    with pytest.raises(SolverError, match="give it more time"):
        space.sample(3, time_limit=0.5)


def test_a_time_limit_proves_neither_emptiness_nor_a_conflict() -> None:
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
