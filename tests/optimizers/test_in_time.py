"""Time limit of a proposal: every step keeps it, proposals are legal and new, and a timeout is no proof."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipcash.acquisition.alternating import AlternatingSettings
from mipcash.backends.registry import make_backend
from mipcash.backends.task import SolverSettings
from mipcash.deadline import CUT, Deadline
from mipcash.errors import InfeasibleSpaceError, SolverError, SpaceExhaustedError
from mipcash.methods.mivabo.mivabo import MiVaBO
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.in_time import FIRST, PATIENCE
from mipcash.optimizers.optimizer import Observation, Optimizer, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.domain import Domain
from mipcash.space.space import Space
from mipcash.surrogates.maximum import maximum
from tests.fuzz.cases import FEW_LEVELS, on_drawn_spaces
from tests.fuzz.described import Drawn, build
from tests.proxies import proxy
from tests.slow import FakeClock, SlowBackend
from tests.spaces import bound_numbers, conv_net, discrete, shape_space

OPTIMIZERS = ("hybrid", "mivabo", "jopt", "mutation", "random")


def run(optimizer: Optimizer, space: Space, n: int, seconds: float | None) -> list[Observation]:
    """Return the observations of n proposals. Assert that each proposal is legal and new."""
    history, state, loss = list[Observation](), {}, proxy(space, 0)
    for k in range(n):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, seconds=seconds))
        assert space.is_legal(proposal.config)
        assert repr(proposal.config) not in [repr(o.config) for o in history]  # 0 is not False
        state = dict(proposal.state)
        history.append(Observation(proposal.config, DONE, loss(proposal.config)))
    return history


@on_drawn_spaces(9, 0, (1e-6, 1e-3, 0.05), ("hybrid", "random", "mivabo"), kinds=FEW_LEVELS, most=100)
def test_proposals_in_very_little_time_are_legal_and_new_until_exhaustion(
    drawn: Drawn, seconds: float, name: str
) -> None:
    """The optimizer reports an exhausted or empty space if and only if it is exhausted or empty."""
    space = build(drawn)
    number = space.count()
    try:
        history = run(make_optimizer(name, space), space, min(12, int(number)), seconds)
    except InfeasibleSpaceError:
        assert number == 0
        return
    if number <= 12:
        optimizer, state = make_optimizer(name, space), {}
        request = Request(history, np.random.default_rng(0), state, seconds=seconds)
        with pytest.raises(SpaceExhaustedError if history else InfeasibleSpaceError):
            optimizer.ask(request)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_proposes_in_very_little_time(name: str) -> None:
    space = conv_net()
    run(make_optimizer(name, space), space, 10, 1e-6)


@pytest.mark.parametrize("name", ["hybrid", "mivabo"])
def test_the_steps_of_a_proposal_share_its_seconds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a solver that takes one second per solve, every proposal is made within its seconds."""
    clock, space = FakeClock(), bound_numbers()
    for module in ("model_based", "in_time", "random"):
        monkeypatch.setattr(f"mipcash.optimizers.{module}.Deadline", clock.deadlines)
    slow = SlowBackend(clock, 1.0)
    optimizer = make_optimizer(name, space, slow)
    history, loss = list[Observation](), proxy(space, 0)
    for k in range(9):
        before = clock.now
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), {}, seconds=3.0))
        assert clock.now - before <= 3.0 * 1.2
        assert space.is_legal(proposal.config)
        history.append(Observation(proposal.config, DONE, loss(proposal.config)))


def test_without_a_legal_configuration_the_solver_gets_limited_extra_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, space = FakeClock(), conv_net()
    for module in ("model_based", "in_time"):
        monkeypatch.setattr(f"mipcash.optimizers.{module}.Deadline", clock.deadlines)
    found = Hybrid(Domain.of(space, SlowBackend(clock, 8.0))).ask(Request([], np.random.default_rng(0), seconds=1.0))
    assert space.is_legal(found.config)
    assert clock.now <= 100.0 + 1.0 + FIRST
    clock.now = 100.0
    with pytest.raises(
        SolverError, match=r"nothing legal and new .* 5 s of a proposal, nor in up to 20 s more, 0\.\d s in all"
    ):
        Hybrid(Domain.of(space, SlowBackend(clock, 1e3))).ask(Request([], np.random.default_rng(0), seconds=5.0))
    assert clock.now <= 100.0 + 5.0 + PATIENCE * 5.0 + 1.0


def test_a_step_cut_by_the_time_limit_is_in_the_trace_and_ample_time_changes_nothing() -> None:
    space = conv_net()
    free, ample = run(Hybrid(Domain.of(space)), space, 10, None), run(Hybrid(Domain.of(space)), space, 10, 1e6)
    assert [o.config for o in free] == [o.config for o in ample]
    request = Request(free, np.random.default_rng(0))
    assert CUT not in Hybrid(Domain.of(space)).ask(request).trace
    cut = Hybrid(Domain.of(space)).ask(Request(free, np.random.default_rng(0), seconds=1e-6)).trace[CUT]
    assert set(cut) <= {"surrogate", "search", "local search", "mip", "remaining configuration"}
    assert cut


def test_thompson_sampling_does_without_samples_in_very_little_time() -> None:
    space = conv_net()
    run(Hybrid(Domain.of(space), HybridSettings(acquisition="thompson")), space, 9, 1e-6)


def test_one_time_limit_of_the_settings_holds_for_every_mip() -> None:
    given = HybridSettings(solver=SolverSettings(time_limit=0.25))
    assert Hybrid(Domain.of(discrete()), given).alternation.settings.solver.time_limit == 0.25
    tighter = HybridSettings(alternation=AlternatingSettings(solver=SolverSettings(time_limit=0.125)))
    assert Hybrid(Domain.of(discrete()), tighter).alternation.settings.solver.time_limit == 0.125


def test_the_time_limit_holds_if_only_a_solver_decides_legality(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules on shapes are left to a solver with a fake clock. Without the limit, one ask took tens of seconds."""
    monkeypatch.setattr("mipcash.program.legality.make_elimination", lambda *_: None)
    clock, space = FakeClock(), shape_space(5)
    for module in ("model_based", "in_time"):
        monkeypatch.setattr(f"mipcash.optimizers.{module}.Deadline", clock.deadlines)
    history, loss = [Observation(c, DONE, proxy(space, 0)(c)) for c in space.sample(8, 0)], proxy(space, 0)
    for optimizer in (Hybrid, MiVaBO):
        before = clock.now
        slow = SlowBackend(clock, 0.25, make_backend("highs"))
        proposal = optimizer(Domain.of(space, slow)).ask(Request(history, np.random.default_rng(0), seconds=4.0))
        assert clock.now - before <= 4.0 * 1.2
        assert space.is_legal(proposal.config)
        assert math.isfinite(loss(proposal.config))


def test_a_fit_ends_with_its_deadline_at_the_best_it_has_seen() -> None:
    clock, seen = FakeClock(), []

    def objective(x):
        clock.now += 1.0
        seen.append((float(np.sum((x - 2.0) ** 2)), x.copy()))
        return seen[-1][0], 2.0 * (x - 2.0)

    prior = (np.zeros(3), np.ones(3))
    best, value = maximum(objective, prior, [np.zeros(3), np.ones(3)], 50, Deadline.after(2.0, clock))
    assert len(seen) == 2
    assert value == min(v for v, _ in seen)
    assert any(np.array_equal(best, x) for _, x in seen)
    clock.now, seen[:] = 1e6, []
    assert np.isfinite(maximum(objective, prior, [np.zeros(3)], 50, Deadline.after(0.0, clock))[1])
    assert len(seen) == 2  # one iteration in any case
