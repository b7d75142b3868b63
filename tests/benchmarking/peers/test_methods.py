"""Every method: the protocol, the same proposals for the same seed, and suggestions that the space can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.catalogue import PEERS, SLOWER, make_method
from benchmarks.peers.convention import PATIENCE
from benchmarks.peers.method import INITIAL, MissingPackageError
from benchmarks.peers.methods.ours import changed
from benchmarks.peers.problem import problems
from benchmarks.peers.runner import Task, run_one
from benchmarks.peers.shape import Shape
from mipcash.methods.mivabo.mivabo import MiVaBOSettings

BUDGET = 12
METHODS = [*PEERS, *SLOWER, "hybrid", "mivabo:starts=2", "joint-gp:illegal=send"]


def available(name: str) -> None:
    try:
        make_method(name)
    except MissingPackageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("problem", ["branin-cat", "vae-proxy"])
def test_conformance(name: str, problem: str, tmp_path: Path) -> None:
    available(name)
    one = make_method(name).legal or problems()[problem].group == "free"
    for convention in [""] if one else ["penalty", "repair"]:
        task = Task(name, problem, 0, convention)
        found = run_one(task, BUDGET, tmp_path)
        assert len(found.losses) == len(found.legal) == len(found.cpu) == BUDGET
        if convention == "penalty":
            assert [v is not None for v in found.losses] == list(found.legal)
        else:
            assert None not in found.losses
        if make_method(name).legal:
            assert all(found.legal)
        assert min(v for v in found.losses if v is not None) >= problems()[problem].optimum - 1e-4
        assert found.stamp["revision"] >= 1
        if problem == "branin-cat" and not name.startswith("smac"):
            assert run_one(task, BUDGET, tmp_path).losses == found.losses


@pytest.mark.parametrize("name", ["joint-gp:illegal=send", "optuna-tpe", "hyperopt", "smac"])
@pytest.mark.parametrize("convention", ["penalty-50", "ignore"])
def test_the_conventions_of_the_paper(name: str, convention: str, tmp_path: Path) -> None:
    """Illegal suggestions cost no evaluation; a run has its legal evaluations, or ends where there is no hope for them."""
    available(name)
    found = run_one(Task(name, "a2-cardinality-0", 0, convention, "paper-synthetic"), BUDGET, tmp_path)
    assert [v is not None for v in found.losses] == list(found.legal)
    assert found.legal[:INITIAL] == (True,) * INITIAL
    assert len(found.solutions()) == BUDGET or len(found.losses) == PATIENCE * BUDGET
    assert found.losses[-1] is not None or len(found.losses) == PATIENCE * BUDGET


@pytest.mark.parametrize(("name", "size"), [("hybrid", 4), ("hybrid:n_initial=3", 3), ("mivabo", 4)])
def test_our_designs_are_as_large_as_those_of_the_others_unless_told(name: str, size: int) -> None:
    problem, method = problems()["branin-cat"], make_method(name)
    method.design = 4
    method.start(problem, Shape(problem.space()), 0, [], BUDGET)
    assert method.study.optimizer.settings.n_initial == size  # type: ignore[attr-defined]


def test_unknown_methods_and_settings() -> None:
    with pytest.raises(ValueError, match="there is no method 'nothing'"):
        make_method("nothing")
    with pytest.raises(ValueError, match="has no '='"):
        make_method("mivabo:starts")
    settings = changed(MiVaBOSettings(), ["starts"], 7)
    assert settings.starts == 7
    with pytest.raises(ValueError, match="has no setting 'nothing'"):
        changed(MiVaBOSettings(), ["nothing"], 1)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "absent", ("benchmarks.peers.methods.absent", "Absent"))
    with pytest.raises(MissingPackageError, match=r"mipcash\[peers\]"):
        make_method("absent")
