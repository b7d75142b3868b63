"""An optimizer of a restricted domain learns from the whole history and proposes inside."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.methods.admm.legal import Projection
from mipcash.methods.admm.variables import Variables
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.domain import Domain
from tests.named import OPTIMIZERS
from tests.spaces import ALL, loss


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_proposals_stay_inside(name: str) -> None:
    declared, fixed = ALL["bound_numbers"](), {"kind": "deep", "a": 0.25}
    whole = make_optimizer(name, declared)
    part = type(whole)(Domain.of(declared).restricted(fixed), whole.settings)  # type: ignore[call-arg, attr-defined]
    history = [Observation(c, "done", loss(c)) for c in declared.sample(12, 0)]
    state: dict[str, object] = {}
    for k in range(2):
        proposal = part.ask(Request(history, np.random.default_rng(k), state))
        state = dict(proposal.state)
        assert declared.is_legal(proposal.config)
        assert proposal.config.items() >= fixed.items()
        assert not part.domain.repeats(proposal.config, [o.config for o in history])
        history.append(Observation(proposal.config, "done", loss(proposal.config)))


def test_values_beside_a_held_number_become_it() -> None:
    part = Domain.of(ALL["conv_net"]()).restricted({"lr": 1e-3})
    (config,) = part.sample(1, np.random.default_rng(0))
    beside = config | {"lr": 0.0010000000000000002}
    assert part.nearest(beside)["lr"] == 1e-3
    variables = Variables.of(part)
    points = part.encode([beside])
    projected = Projection(part, variables)(variables.z(points)[0], variables.theta(points)[0])
    assert projected is not None
    assert projected["lr"] == 1e-3
