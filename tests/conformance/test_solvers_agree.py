"""The same run under every installed solver: the same proposals up to ties, each with a proof."""

from __future__ import annotations

import math
import os

import pytest

import mipcash as mc
from mipcash.backends.registry import solvers, split_options
from mipcash.errors import SolverError
from tests.spaces import conv_net, loss

STEPS = 16
"""Enough for runs that part at a tie to find equally good points."""


def run(solver: str) -> tuple[list[float], list[mc.Trial]]:
    settings = mc.settings.HybridSettings(n_initial=4)
    study = mc.Study(conv_net(), seed=2, optimizer=mc.Method(settings=settings, solver=solver))
    for _ in range(STEPS):
        trial = study.ask()
        study.tell(trial, loss(trial.config))
    return [t.loss for t in study.trials if t.loss is not None], list(study.trials)


@pytest.mark.parametrize(
    "solver", [s.name for s in solvers() if s.installed and s.name not in ("highs", "enumeration")]
)
def test_a_run_agrees_with_highs(solver):
    reference, _ = run("highs")
    losses, trials = run(solver)
    assert min(losses) == pytest.approx(min(reference), abs=0.25)
    for trial in trials:
        assert trial.proof is not None
        # optimal where the proposal is also the best predicted one, feasible where the acquisition explores
        assert trial.proof.status in ("optimal", "feasible")
        assert -math.inf < trial.proof.bound <= trial.proof.value + 1e-6
    if "CI" in os.environ:
        assert {s.name for s in solvers() if s.installed} >= {"highs", "gurobi", "cplex", "scip", "toulbar2"}


def test_options_may_follow_the_name():
    assert split_options("gurobi MIPFocus=1 Cuts=2") == ("gurobi", {"MIPFocus": "1", "Cuts": "2"})
    assert split_options("my folder/solver.toml") == ("my folder/solver.toml", {})
    with pytest.raises(SolverError, match="not an option"):
        split_options("gurobi MIPFocus=1 fast")
    with pytest.raises(SolverError, match=r"names none; there are auto, .*highs"):
        split_options(" ")
    with pytest.raises(SolverError, match="nonsense"):
        conv_net().optimum(1, solver="highs nonsense=3")
