"""Checks of the proposals of any optimizer, before they are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import IllegalProposalError
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import Optimizer, Proposal, Request
from mipcash.space.domain import Domain
from mipcash.study.progress import Progress


class Scripted(Optimizer):
    """Proposes what a function of the number of observations gives."""

    name = "scripted"
    takes_limits = True

    def __init__(self, propose: Callable[[int], Proposal]) -> None:
        self._propose = propose

    def propose(self, request: Request) -> Proposal:
        return self._propose(len(request.history))

    def restricted(self, fixed: Any) -> Optimizer:
        return self


def box() -> mc.Space:
    space = mc.Space("box")
    space.integer("a", 0, 9)
    space.categorical("c", ["x", "y"])
    return space


def listed(configs: Sequence[dict[str, Any]]) -> Scripted:
    return Scripted(lambda k: Proposal(configs[k % len(configs)]))


def test_parameters_come_in_the_order_of_declaration() -> None:
    """Measurements of one configuration are found by it, also if a proposal gives its parameters in another order."""
    turns = [{"a": 1, "c": "x"}, {"c": "x", "a": 1}, {"a": 2, "c": "x"}]
    losses = iter([0.0, 10.0, 3.0])
    result = mc.minimize(lambda c: next(losses), box(), 3, optimizer=listed(turns), progress=False)
    assert [list(t.config) for t in result.history] == [["a", "c"]] * 3
    assert result.config == {"a": 2, "c": "x"}  # the mean of the others is 5


def test_a_batch_is_distinct_and_keeps_its_distance() -> None:
    same = listed([{"a": 1, "c": "x"}])
    with pytest.raises(IllegalProposalError, match=r"'scripted'.*its batch has this configuration already"):
        mc.Study(box(), same).ask(2)
    near = listed([{"a": 1, "c": "x"}, {"a": 2, "c": "x"}])
    assert len(mc.Study(box(), near).ask(2, distance=1)) == 2
    study = mc.Study(box(), near)
    with pytest.raises(
        IllegalProposalError, match="differs from another proposal of its batch in fewer than 2 discrete"
    ):
        study.ask(2, distance=2)
    assert [t.config["a"] for t in study.trials] == [1]


def test_fixed_values_are_kept() -> None:
    study = mc.Study(box(), listed([{"a": 1, "c": "x"}]))
    with pytest.raises(IllegalProposalError, match="'a' is 1, and 7 is fixed"):
        study.ask(fixed={"a": 7})
    assert study.ask(fixed={"a": 1}).config == {"a": 1, "c": "x"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"seconds": {"mip": "x"}}, r"seconds=.*a dict of numbers"),
        ({"seconds": None}, r"seconds=None.*a dict of numbers"),
        ({"solution": "yes"}, r"solution=str 'yes'.*a mipcash Solution"),
        ({"stop": True}, r"stop=bool True.*a text"),
        ({"outputs": None}, r"wants the outputs None"),
    ],
)
def test_data_of_a_proposal_are_checked(data: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=f"optimizer 'scripted' .*{said}"):
        mc.Study(box(), Scripted(lambda k: Proposal({"a": k, "c": "x"}, **data))).ask()


def test_no_reason_to_stop_is_no_stop() -> None:
    falsy: list[Any] = ["", None, False]
    optimizer = Scripted(lambda k: Proposal({"a": k, "c": "x"}, stop=falsy[k % 3]))
    assert mc.minimize(lambda c: c["a"], box(), 4, optimizer=optimizer, progress=False).stopped == "budget"


def test_an_optimizer_object_chooses_fidelities_as_a_named_one_does() -> None:
    space = mc.Space("fidelity")
    space.integer("a", 0, 9)
    space.fidelity("epochs", 1, 9)
    runs = [
        mc.minimize(lambda c: c["a"] / c["epochs"], space, 5, optimizer=o, seed=3, progress=False)
        for o in ("hybrid", Hybrid(Domain.of(space)))
    ]
    assert [t.config for t in runs[0].history] == [t.config for t in runs[1].history]
    assert len({t.config["epochs"] for t in runs[0].history}) > 1


def test_a_setting_that_is_nan_belongs_to_its_study(tmp_path: Path) -> None:
    for _ in range(2):
        optimizer = listed([{"a": 1, "c": "x"}, {"a": 2, "c": "x"}])
        optimizer.settings = {"w": float("nan")}  # type: ignore[attr-defined]
        with mc.Study(box(), optimizer, storage=tmp_path / "run.db") as study:
            study.tell(study.ask(), 1.0)
    assert study.n_evaluated == 2


def test_the_progress_is_a_display() -> None:
    for given in (print, "bar", Progress):
        with pytest.raises(TypeError, match="progress must be True, False, None, or an object of a class derived"):
            mc.minimize(lambda c: 1.0, box(), 1, progress=given)  # type: ignore[arg-type]


def test_a_storage_has_all_methods() -> None:
    class Half:
        def open(self, record: Any) -> None: ...

        def news(self) -> list[Any]:
            return []

    with pytest.raises(TypeError, match=r"lacks \[.*'rows'.*'write'.*\] of mipcash.study.storage.protocol.Storage"):
        mc.Study(box(), storage=Half())  # type: ignore[arg-type]
