"""One surrogate per output: an acquisition that takes limits is a file, and its entry in the catalogue."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.catalogue import ACQUISITIONS, Entry
from mipcash.acquisition.inputs import AcquisitionInputs
from mipcash.errors import MipcashError
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.space.domain import Domain
from tests.acquisition.test_contract import ConstrainedEI


def constrained(given: AcquisitionInputs) -> Acquisition:
    if "g" not in given.limited:
        return AnalyticAcquisition(given.loss, LogEI(float(given.loss.fitted.min())))
    limit = given.limited["g"]
    return ConstrainedEI(given.loss, limit.posterior, given.best, limit.high)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACQUISITIONS, "constrained", Entry(constrained, takes_limits=True))  # type: ignore[arg-type]


def space_with_a_wall() -> mc.Space:
    """Losses fall towards x = 1; the output g = x + (kind is b) / 4 must not exceed 0.5."""
    space = mc.Space("wall")
    space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    return space


def evaluated(config: dict[str, Any], known: bool = True) -> Observation:
    loss = (config["y"] - 0.3) ** 2 - config["x"] + 0.1 * (config["kind"] == "c")
    g = config["x"] + 0.25 * (config["kind"] == "b")
    return Observation(config, "done", loss, {"g": g} if known else {})


def run(acquisition: str, asks: int, limits: tuple[Limit, ...]) -> tuple[list[Observation], dict[str, Any]]:
    """Proposals after ten observations, two of them without the output; the state goes through JSON."""
    space = space_with_a_wall()
    optimizer = Hybrid(Domain.of(space), HybridSettings(acquisition=acquisition))
    history = [evaluated(c, k not in (3, 7)) for k, c in enumerate(space.sample(10, 1))]
    state: dict[str, Any] = {}
    for k in range(asks):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, limits=limits))
        assert space.is_legal(proposal.config)
        assert not optimizer.domain.repeats(proposal.config, [o.config for o in history])
        state = json.loads(json.dumps(dict(proposal.state)))
        history.append(evaluated(proposal.config))
    return history[10:], state


def test_limits_are_learned_and_kept() -> None:
    limit = Limit("g", high=0.5)
    made, state = run("constrained", 8, (limit,))
    alone, _ = run("log-ei", 8, ())
    violated, ignored = (sum(limit.violation(o.values["g"]) > 0.0 for o in each) for each in (made, alone))
    assert violated < ignored
    assert min(o.loss for o in made if not limit.violation(o.values["g"]) and o.loss is not None) < -0.4
    assert state["outputs"]["g"]["fits"] == state["fits"] == 8
    assert state["outputs"]["g"]["theta"] != state["theta"]


def test_without_limits_there_is_one_surrogate_and_its_state() -> None:
    _, state = run("log-ei", 2, ())
    assert set(state) == {"theta", "strength", "fits"}


def test_ends_of_a_limit_are_on_the_scale_of_its_posterior() -> None:
    space = space_with_a_wall()
    optimizer = Hybrid(Domain.of(space))
    history = [evaluated(c, k != 2) for k, c in enumerate(space.sample(12, 3))]
    data = optimizer.data(history, (Limit("g", 0.2, 0.6),))
    rows, values = data.values("g")
    assert rows.tolist() == [k for k in range(12) if k != 2]
    limit = optimizer._fitted(data, {}, np.random.default_rng(0))[0].limited["g"]
    mean, _ = limit.posterior.predict(data.points[rows])
    assert len(mean) == len(values)
    # the posterior nearly interpolates: what keeps the limit is between the ends
    clear = (np.abs(values - 0.2) > 0.05) & (np.abs(values - 0.6) > 0.05)
    inside = (values >= 0.2) & (values <= 0.6)
    assert np.array_equal(((mean >= limit.low) & (mean <= limit.high))[clear], inside[clear])
    alone = optimizer.data(history, (Limit("g", high=0.6),))
    one_sided = optimizer._fitted(alone, {}, np.random.default_rng(0))[0].limited["g"]
    assert one_sided.low == -np.inf
    assert np.isfinite(one_sided.high)


def test_an_acquisition_refuses_limits_that_it_would_ignore() -> None:
    space = space_with_a_wall()
    history = [evaluated(c) for c in space.sample(8, 0)]
    with pytest.raises(MipcashError, match="does not learn from limits"):
        Hybrid(Domain.of(space), HybridSettings(acquisition="mes")).ask(
            Request(history, np.random.default_rng(0), limits=(Limit("g", high=0.5),))
        )


def test_an_output_that_nothing_tells_is_left_out_until_one_does() -> None:
    space = space_with_a_wall()
    history = [evaluated(c, known=False) for c in space.sample(8, 0)]
    request = Request(history, np.random.default_rng(0), limits=(Limit("g", high=0.5),))
    for acquisition in ("constrained", "log-ei", "thompson"):
        proposal = Hybrid(Domain.of(space), HybridSettings(acquisition=acquisition)).ask(request)
        assert space.is_legal(proposal.config)
        assert proposal.origin == acquisition
        assert "outputs" not in proposal.state


def test_a_subclass_gives_an_output_a_surrogate_of_its_own() -> None:
    asked = []

    class Asking(Hybrid):
        def surrogate_for(self, output: str) -> Any:
            asked.append(output)
            return super().surrogate_for(output)

    domain = Domain.of(space_with_a_wall())
    configs = domain.sample(8, np.random.default_rng(0))
    history = [Observation(c, "done", float(k), {"g": float(k % 3)}) for k, c in enumerate(configs)]
    hybrid = Asking(domain, HybridSettings(acquisition="constrained", n_initial=4))
    hybrid.ask(Request(history, np.random.default_rng(1), limits=(Limit("g", high=0.5),)))
    assert asked == ["loss", "g"]
