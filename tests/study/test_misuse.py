"""Values that users pass by mistake, or that are like those that are meant: they count as meant, or are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.report import write_page

LAYERS = [[64], [64, 32], [8]]


def listed() -> mc.Space:
    space = mc.Space("lists")
    space.categorical("layers", LAYERS)
    space.real("x", 0, 1)
    return space


def box(**options: Any) -> mc.Space:
    space = mc.Space("box", **options)
    space.integer("a", 0, 9)
    return space


def test_changes_of_a_configuration_change_neither_the_space_nor_the_history(tmp_path: Path) -> None:
    def objective(config: dict[str, Any]) -> float:
        config["layers"].append(10)
        return float(sum(config["layers"]))

    space, journal = listed(), tmp_path / "run.db"
    result = mc.minimize(objective, space, 8, optimizer="random", storage=journal, progress=False)
    space.sample(1, seed=0)[0]["layers"].append(9)
    assert [*space["layers"].domain.values] == LAYERS
    assert all(t.config["layers"] in LAYERS and t.loss == sum(t.config["layers"]) + 10 for t in result.history)
    assert len(mc.read_trials(journal, listed())) == 8


@pytest.mark.parametrize("values", [[("conv", [3, 3]), ("dense", [8])], [{"p": 1}, {"p": 2}], LAYERS])
def test_levels_that_cannot_be_hashed_are_searched_and_drawn(values: list[Any], tmp_path: Path) -> None:
    space = mc.Space("unhashable")
    space.categorical("w", values)
    space.real("x", 0, 1)
    result = mc.minimize(lambda c: c["x"] + values.index(c["w"]), space, 9, progress=False)
    assert result.config["w"] == values[0]
    assert "<html" in write_page(result, tmp_path / "page.html").read_text()


@pytest.mark.parametrize("worker", [3, np.int64(3), 1.5, ValueError("x"), "\ud800"])
def test_a_worker_of_any_type_is_a_text(worker: Any, tmp_path: Path) -> None:
    with mc.Study(box(), "random", storage=tmp_path / "run.db") as study:
        study.tell(study.ask(), 1.0, worker=worker)
    with mc.Study(box(), "random", storage=tmp_path / "run.db") as study:
        assert study.n_evaluated == 1


def test_equal_flags_and_numbers_make_equal_spaces(tmp_path: Path) -> None:
    for k, log in enumerate((True, np.True_, 1)):
        space = mc.Space("s", expand_limit=(20, np.int64(20), 20.0)[k])
        space.real("b", 0.1, 1, log=log)
        mc.minimize(lambda c: c["b"], space, 2, optimizer="random", storage=tmp_path / "run.db", progress=False)
    space, a = box(), mc.Space("t").integer("a", 0, 9)
    space.rule("half", mc.maximum(space["a"], Fraction(1, 2), np.array(1)) <= 5)
    assert space.count() == 6
    assert a is not None


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: mc.Real(0.1, 1, log="no"), "log must be True or False, got 'no'"),
        (lambda: mc.Real(0, np.complex128(1 + 2j)), "high must be a number"),
        (lambda: mc.Real(0, 10**400), "high must be finite"),
        (lambda: mc.Ordinal((1, 16), step=True), "must be a number, got the bool True"),
        (lambda: box(expand_limit="20"), "expand_limit must be a number"),
        (lambda: mc.settings.HybridSettings(solver="highs"), r"solver takes SolverSettings\(...\), got 'highs'"),
        (lambda: mc.settings.AlternatingSettings(solver="x"), "AlternatingSettings: solver takes SolverSettings"),
    ],
)
def test_what_is_not_meant_is_refused_by_name(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        act()


def test_complex_numbers_are_no_values() -> None:
    space = mc.Space("s")
    space.real("b", 0, 1)
    assert not space.is_legal({"b": np.complex128(0.5 + 3j)})


def test_numbers_of_trials_are_checked() -> None:
    study = mc.Study(box(), "random", limits={"ms": 1.0})
    for k in range(3):
        study.tell(study.ask(), {"loss": 1.0, "ms": float(k)})
    assert len(study.result.violations(np.int64(2))) == 1
    for wrong in (-1, 3, "2", 1.0):
        with pytest.raises(ValueError, match="trial"):
            study.result.violations(wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="trial"):
            study.result.probability(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count must be a whole number, at least 1"):
        study.finalists(-1)


@pytest.mark.parametrize(("n", "distance"), [(0, 1), (-1, 1), (2, -1), (1.5, 1), (2, 0.5)])
def test_a_batch_has_whole_numbers_of_trials_and_of_differences(n: Any, distance: Any) -> None:
    space = mc.Space("batch")
    space.integer("a", 0, 9)
    study = mc.Study(space, "random")
    with pytest.raises(ValueError, match="n >= 1 and distance >= 0"):
        study.ask(n, distance=distance)
    assert study.trials == ()
    assert [len(study.ask(k, distance=d)) for k, d in ((1, 1), (2, 0), (3, 1))] == [1, 2, 3]
