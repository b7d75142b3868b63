"""Model ``network``: shapes as in torch, costs of the layers, learning, and measured latency."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli import modelfile
from mipcash.cli.main import app
from mipcash.errors import ModelError
from mipcash.models import _images, network

torch = pytest.importorskip("torch")

from mipcash.models import _network_training as training  # noqa: E402

CONFIG: dict[str, Any] = {
    **{"conv_layers": 2, "c1_channels": 4, "c1_kernel": 5, "c1_stride": 3},
    **{"c2_channels": 6, "c2_kernel": 3, "c2_stride": 2, "dense_layers": 1, "f1_units": 16, "activation": "relu"},
    **{"optimizer": "adam", "optimizer.adam.learning_rate": 0.01, "weight_decay": 1e-6},
}
SETTINGS = network.settings(data="digits", train_size=400, test_size=100, epochs=4, repeats=5)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIPCASH_DATA", raising=False)
    _images.labelled.cache_clear()


def test_shapes_and_costs_of_samples_are_those_of_torch() -> None:
    for config in [CONFIG, *network.space.sample(15, seed=1)]:
        x, found, parameters = torch.zeros(2, 1, 28, 28), [(1, 28, 28)], 0
        for layer in training.network(config):
            x = layer(x)
            parameters += sum(p.numel() for p in layer.parameters())
            if hasattr(layer, "weight"):
                found.append(tuple(x.shape[1:]))
        assert found == [shape for _, shape in network.shapes(config)]
        assert network.cost(config)["parameters"] == parameters
    # widths are 28, 8 and 3 pixels
    products = 8**2 * 4 * 25 + 3**2 * 6 * 4 * 9 + 54 * 16 + 160
    assert network.cost(CONFIG) == {"parameters": 104 + 222 + 55 * 16 + 170, "multiply_adds": products}


def test_the_rules_against_their_definition() -> None:
    """Compare the rules with torch's formula for widths, on uniformly drawn configurations that may be illegal."""
    rng, verdicts = np.random.default_rng(0), list[bool]()
    for _ in range(150):
        k1, k2, s1 = rng.choice([3, 5, 7]), rng.choice([3, 5]), rng.integers(1, 4)
        c1, c2 = rng.integers(2, 17), rng.integers(2, 33)
        f1, f2 = 8 * rng.integers(1, 33, size=2)
        config = CONFIG | {"c1_kernel": int(k1), "c2_kernel": int(k2), "c1_stride": int(s1), "dense_layers": 2}
        config |= {"c1_channels": int(c1), "c2_channels": int(c2), "f1_units": int(f1), "f2_units": int(f2)}
        legal = bool((28 - k1) // s1 + 1 >= k2 and k2 <= k1 and c1 <= c2 and f2 <= f1)
        assert network.space.is_legal(config) == legal, config
        verdicts.append(legal)
    assert 0.1 < np.mean(verdicts) < 0.9


def test_it_learns() -> None:
    values, again = network.evaluate(CONFIG, SETTINGS), network.evaluate(CONFIG, SETTINGS)
    assert values["loss"] < 0.5
    assert values["cross_entropy"] < 1.5
    assert values["parameters"] == network.cost(CONFIG)["parameters"]
    assert (again["loss"], again["cross_entropy"]) == (values["loss"], values["cross_entropy"])
    wild = CONFIG | {"optimizer": "sgd", "optimizer.sgd.learning_rate": 1e6, "optimizer.sgd.momentum": 0.9}
    with pytest.raises(FloatingPointError, match="diverged"):
        network.evaluate(wild, SETTINGS)


def test_latency_is_the_median_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # warm-up predictions take a second each; the measured ones take 3, 1, 9, 2 and 4 ms
    durations = [1.0] * training.WARM_UP + [3e-3, 1e-3, 9e-3, 2e-3, 4e-3]
    ticks = iter(np.cumsum([step for d in durations for step in (1.0, d)]))
    seen: list[tuple[int, int]] = []
    monkeypatch.setitem(training.CLOCKS, "wall", lambda: next(ticks))
    threads = torch.get_num_threads()
    found = network.latency(
        lambda x: seen.append((len(x), torch.get_num_threads())), network.settings(repeats=5, predict=7)
    )
    assert (found["latency_ms"], found["latency_least_ms"]) == (pytest.approx(3.0), pytest.approx(1.0))
    assert set(seen) == {(7, 1)}
    assert torch.get_num_threads() == threads


def test_a_run_under_a_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound the exact number of parameters instead of the latency, which varies."""
    given = {"data": "digits", "train_size": 50, "test_size": 50, "epochs": 1, "repeats": 1}
    settings, space, limits = network.settings(**given), network.build()[0], {"parameters": 20_000}
    result = mc.minimize(lambda c: network.evaluate(c, settings), space, 8, seed=0, limits=limits, progress=False)
    assert all(space.is_legal(t.config) for t in result.history)
    assert result.config is not None
    assert network.cost(result.config)["parameters"] <= 20_000
    report = network.report(result, data="digits")
    assert "settings = network.settings(data='digits')" in report
    assert "classes 10" in report
    monkeypatch.chdir(tmp_path)
    options = [word for name, value in given.items() for word in ("--option", f"{name}={value}")]
    said = CliRunner().invoke(app, ["run", "network", *options, "--limit", "parameters=20000", "--budget", "3"])
    assert said.exit_code == 0, said.output
    assert "parameters <= 20000" in said.output


def test_images_and_their_classes_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="data=digits"):
        _images.labelled()
    digits = _images.labelled("digits")
    assert (digits.train.shape, digits.test.shape) == ((1438, 28, 28), (359, 28, 28))
    labels = np.arange(50) % 10
    images = np.broadcast_to(labels.astype(np.uint8)[:, None, None], (50, 28, 28))
    np.savez(tmp_path / "mnist_5k.npz", images=images, labels=labels)
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    _images.labelled.cache_clear()
    found = _images.labelled()
    assert np.array_equal(found.train[:, 0, 0], found.train_labels)
    assert np.array_equal(found.test[:, 5, 5], found.test_labels)
    assert sorted([*found.train_labels, *found.test_labels]) == sorted(labels)


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"data": "digits", "epochs": "2", "clock": "cpu"}
    assert modelfile.load("network", given).options == given
    assert network.settings(epochs="2", clock="cpu").epochs == 2
    for bad, what in (
        ({"epochs": "0"}, "epochs=0"),
        ({"clock": "sun"}, "wall, cpu"),
        ({"layers": 3}, "no option layers"),
    ):
        with pytest.raises(ModelError, match=what):
            network.settings(**bad)
    with pytest.raises(ModelError, match="has 1438 such images"):
        network.evaluate(CONFIG, network.settings(data="digits", train_size=2000))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"the network model needs the package torch; pip install 'mipcash\[torch\]'"):
        network.evaluate(CONFIG, SETTINGS)
