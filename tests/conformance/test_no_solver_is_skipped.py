"""In continuous integration every solver of the conformance suite is installed: none is skipped in silence."""

from __future__ import annotations

import os

import pytest

from mipcash.backends.registry import solvers

EXPECTED = {"highs", "gurobi", "cplex", "scip", "toulbar2", "auto", "enumeration"}


@pytest.mark.skipif(not os.environ.get("CI"), reason="only continuous integration promises all solvers")
def test_every_solver_is_here() -> None:
    installed = {s.name for s in solvers() if s.installed and s.usable}
    missing = EXPECTED - installed
    assert not missing, f"install {', '.join(sorted(missing))}: the conformance suite would skip them"
