"""Outputs that are evaluated apart: costs, what an optimizer may ask for, and the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import tiny

import mipcash as mc
from mipcash.optimizers.base import Proposal, Request

COSTS = {"loss": 60, "ms": 1}


class Apart(tiny.Sampler):
    """Asks for the latency of a configuration, then for the loss of the same one."""

    takes_limits = True

    def propose(self, request: Request) -> Proposal:
        self.requests = [*getattr(self, "requests", []), request]
        if len(request.history) % 2:
            return Proposal(request.history[-1].config, outputs=("loss",))
        return replace(super().propose(request), outputs=("ms",))


def test_an_optimizer_is_told_the_costs_and_may_propose_a_configuration_for_the_rest(space: mc.Space) -> None:
    optimizer = Apart(space)
    study = mc.Study(space, optimizer, limits={"ms": 5.0}, costs=COSTS)
    first = study.tell(study.ask(), {"ms": 3.0})
    assert (first.evaluate, first.status, first.loss) == (("ms",), "done", None)
    assert optimizer.requests[0].costs == {"loss": 60.0, "ms": 1.0}
    assert study.result.best is None  # its loss is not known
    second = study.tell(study.ask(), 0.5)
    assert (second.number, second.config, second.loss) == (1, first.config, 0.5)
    for ms, loss in ((9.0, 0.1), (4.0, 0.4)):
        study.tell(study.ask(), {"ms": ms})
        study.tell(study.ask(), {"loss": loss})
    result = study.result
    assert (result.best and result.best.number, result.value, result.values) == (5, 0.4, {"ms": 4.0})
    assert "[ms] 4" in str(result)


def test_what_is_asked_for_is_an_output_that_there_is(space: mc.Space) -> None:
    class Careless(Apart):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs=("latency",))

    with pytest.raises(TypeError, match=r"wants the outputs \['latency'\] evaluated, and there are \['loss', 'ms'\]"):
        mc.Study(space, Careless(space), costs=COSTS).ask()


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (5, "costs are given by the name of their output"),
        ({"loss": 0, "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"loss": math.inf, "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"loss": "much", "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"ms": 1}, r"none of 'loss' is given, only those of \['ms'\]"),
        ({"loss": 1}, r"none of 'ms' is given, only those of \['loss'\]"),
    ],
)
def test_costs_are_checked(space: mc.Space, costs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mc.Study(space, limits={"ms": 5.0}, costs=costs)
