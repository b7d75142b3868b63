"""Predictions at configurations and importances as numbers, against closed forms and the pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import ConfigurationError, MipcashError
from mipcash.report import importances, predict
from mipcash.report.data.effects import effects
from mipcash.report.data.run import Run


@pytest.fixture(scope="module")
def space() -> mc.Space:
    space = mc.Space("valley")
    a, b = space.real("a", 0.0, 1.0), space.real("b", 0.0, 1.0)
    space.categorical("kind", ["x", "y"])
    space.rule("together", a + b <= 1.5)
    return space


def loss(config: dict[str, object]) -> float:
    return 10.0 * (config["a"] - 0.3) ** 2 + 0.1 * config["b"] + (1.0 if config["kind"] == "y" else 0.0)  # type: ignore[operator]


@pytest.fixture(scope="module")
def result(space: mc.Space, tmp_path_factory: pytest.TempPathFactory) -> mc.Result:
    journal = tmp_path_factory.mktemp("run") / "run.db"
    return mc.minimize(loss, space, 40, optimizer="random", storage=journal, progress=False)


@pytest.mark.parametrize("maximized", [False, True])
def test_predictions_cover_what_was_not_evaluated(space: mc.Space, result: mc.Result, maximized: bool) -> None:
    run, sign = result, 1.0
    if maximized:
        known = [(t.config, -t.loss) for t in result.history if t.loss is not None]
        run = mc.minimize(
            lambda c: -loss(c), space, 1, direction="maximize", known=known, optimizer="random", progress=False
        )
        sign = -1.0
    configs = space.sample(50, seed=7)
    (mean, low, high), truth = predict(run, configs), np.array([sign * loss(c) for c in configs])
    assert np.all(low <= mean)
    assert np.all(mean <= high)
    assert np.corrcoef(mean, truth)[0, 1] > 0.99
    assert np.mean((low - 1e-3 <= truth) & (truth <= high + 1e-3)) >= 0.8


def test_importances_are_those_of_the_picture(result: mc.Result) -> None:
    shares = importances(result)
    assert list(shares)[-1] == "b"
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    found = effects(Run.of(result))
    assert found is not None
    assert shares == {p.label: p.whole.middle for p in found.parameters}


def test_a_model_needs_its_evaluations(space: mc.Space, result: mc.Result, tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    few = mc.minimize(loss, space, 3, optimizer="random", storage=journal, progress=False)
    for call in (importances, lambda *given, **more: predict(given[0], [], **more)):
        for source, given in ((few, None), (journal, None), (journal, space)):
            with pytest.raises(MipcashError, match="four evaluations with different losses"):
                call(source, space=given)
    with pytest.raises(ConfigurationError, match="together"):
        predict(result, [{"a": 1.0, "b": 1.0, "kind": "x"}])
