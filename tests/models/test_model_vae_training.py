"""Model ``vae``: training and test likelihood, compared with closed forms and quadrature."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mipcash.cli.main import app
from mipcash.errors import ModelError
from mipcash.models import vae
from tests.images import bars

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from mipcash.models import _vae_training as training  # noqa: E402

SMALL = {
    **{"conv_layers": 0, "encoder_fc_layers": 1, "d_z": 16, "decoder_fc_layers": 1, "deconv_layers": 0},
    **{"d1_channels": 16, "learning_rate": 3e-3, "learning_rate_decay": 0.9, "weight_decay": 1e-6},
}
SETTINGS = vae.settings(train_size=160, test_size=40, epochs=2, batch=16, seconds="none", device="cpu", threads=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with bars(tmp_path, monkeypatch):
        yield tmp_path


def seeded(seed: int) -> Any:
    return torch.Generator().manual_seed(seed)


class Toy:
    """Decoder from one latent variable to 2 x 4 pixels, and an encoder that approximates its posterior roughly."""

    def __init__(self) -> None:
        self.slope = torch.randn(1, 2, 4, generator=seeded(3))

    def decoder(self, z: Any) -> Any:
        return 0.3 + z.reshape(-1, 1, 1, 1) * self.slope

    def encoder(self, images: Any) -> Any:
        return torch.stack([(images * self.slope).sum((1, 2, 3)) * 0.3, torch.full((len(images),), -0.5)], 1)

    def nll(self, images: Any, samples: int, noise: Any) -> Any:
        return training.negative_log_likelihood(self.encoder, self.decoder, images, samples, noise)

    def images(self, n: int) -> Any:
        z = torch.randn(n, 1, generator=seeded(4))
        return torch.bernoulli(self.decoder(z).sigmoid(), generator=seeded(5))

    def exact(self, images: Any) -> Any:
        """Return -log of the integral of p(x | z) p(z) by the trapezoidal rule."""
        z = torch.linspace(-9, 9, 1801, dtype=torch.float64)
        joint = torch.stack([training.log_pixels(self.decoder(v), images) for v in z])
        return -(joint - 0.5 * (z**2 + math.log(2 * math.pi))[:, None]).logsumexp(0) - math.log(18 / 1800)


def test_likelihood_against_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy()
    images = toy.images(12)
    exact = toy.exact(images)
    estimate = toy.nll(images, 20_000, seeded(1))
    assert estimate.shape == (12,)
    assert torch.allclose(estimate, exact, atol=0.03)
    monkeypatch.setattr(training, "DECODED", 240)  # small chunks of images and samples cause no bias
    assert torch.allclose(toy.nll(images[:5], 4000, seeded(2)), exact[:5], atol=0.06)


def test_more_samples_tighten_the_bound() -> None:
    """Assert that E[NLL] falls with K (Burda et al., Theorem 1), from minus the ELBO at K = 1 towards -log p(x)."""
    toy, noise = Toy(), seeded(2)
    images = toy.images(60)
    bound = {
        k: float(torch.stack([toy.nll(images, k, noise) for _ in range(n)]).mean())
        for k, n in {1: 120, 4: 60, 32: 20}.items()
    }
    elbo = torch.stack([training.negative_elbo(toy.encoder, toy.decoder, images, noise) for _ in range(120)]).mean()
    assert bound[1] == pytest.approx(float(elbo), abs=0.05)
    assert bound[1] > bound[4] > bound[32] > float(toy.exact(images).mean()) - 0.01


def test_the_divergence_is_that_of_gaussian_distributions() -> None:
    """Compare KL(N(m, s^2) || N(0, 1)) with torch.distributions."""
    m, v = torch.tensor([[0.3, -1.2]]), torch.tensor([[0.4, -0.9]])
    loss = training.negative_elbo(
        lambda x: torch.cat([m, v], 1),
        lambda z: torch.full((1, 1, 28, 28), -40.0),
        torch.zeros(1, 1, 28, 28),
        seeded(0),
    )
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(m, (0.5 * v).exp()), normal(0.0, 1.0)).sum()
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


def test_training_lowers_the_loss_and_is_equal_in_another_process() -> None:
    state = torch.get_rng_state()
    here = vae.evaluate(SMALL, SETTINGS)
    assert here["loss"] < 450, "nats; 543 before training"
    assert (here["epochs"], here["stopped"]) == (2.0, 0.0)
    assert torch.equal(state, torch.get_rng_state()), "torch's global generator is left alone"
    script = (
        "import torch; torch.manual_seed(7); torch.rand(3)\n"
        "from mipcash.models import vae\n"
        "s = vae.settings(train_size=160, test_size=40, epochs=2, batch=16, seconds='none', device='cpu', threads=1)\n"
        f"print(repr(vae.evaluate({SMALL!r}, s)['loss']))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(out.stdout) == here["loss"]


def test_every_training_hyperparameter_has_an_effect() -> None:
    """Assert that the rate, its decay (after the first epoch), the weight decay and the seed change the result."""
    settings = replace(SETTINGS, train_size=64)
    first, second = vae.train(SMALL, settings).losses
    decayed = vae.train(dict(SMALL, learning_rate_decay=0.5), settings).losses
    assert second < first == decayed[0]
    assert decayed[1] > second
    for change in ({"learning_rate": 1e-3}, {"weight_decay": 1e-2}):
        assert vae.train({**SMALL, **change}, settings).losses[0] != first
    assert vae.train(SMALL, replace(settings, seed=1)).losses[0] != first
    with pytest.raises(FloatingPointError, match=r"diverged.*learning_rate"):
        vae.evaluate(dict(SMALL, learning_rate=1e6), SETTINGS)


def test_samples_train() -> None:
    settings = replace(SETTINGS, train_size=16, test_size=4, epochs=1, samples=2)
    for config in vae.space.sample(4, seed=5):
        result = vae.evaluate(config, settings)
        assert math.isfinite(result["loss"])
        assert result["epochs"] == 1


def test_the_time_limit_stops_training_and_testing(monkeypatch: pytest.MonkeyPatch) -> None:
    result = vae.evaluate(SMALL, replace(SETTINGS, seconds=1e-6))
    assert (result["epochs"], result["stopped"]) == (pytest.approx(0.1), 1.0)
    settings = replace(SETTINGS, train_size=16, test_size=16, epochs=1)
    last = vae.train(SMALL, replace(settings, seconds=1e-6))
    assert (last.epochs, last.stopped) == (1.0, False), "a limit that comes with the end cuts nothing"
    # Images are tested in parts. A started part is finished, and only images of finished parts count.
    monkeypatch.setattr(training, "DECODED", 32)
    test, seen = vae.held_out(settings), []
    for seconds in (math.inf, 0.0):
        noise = training.generator("cpu", 0, training.SAMPLES)
        seen.append(training.negative_log_likelihood(last.encoder, last.decoder, test.binary, 2, noise, seconds))
    whole, cut = seen
    assert (len(whole), len(cut)) == (16, 4)
    assert cut.tolist() == whole[:4].tolist()
    with pytest.raises(ModelError, match="samples must be at least 1"):
        vae.nll(last, test, settings, samples=0)


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    _, objective = vae.build(preset="paper", data="mnist", epochs="3", seconds="20", samples="5", seed="4", threads="2")
    chosen = objective.keywords["settings"]
    expected = replace(vae.PRESETS["paper"], data="mnist", epochs=3, seconds=20.0, samples=5, seed=4, threads=2)
    assert chosen == expected
    assert (chosen.train_size, chosen.test_size, chosen.batch) == (60_000, 10_000, 128)
    assert vae.settings(seconds="none").seconds is None
    assert vae.settings("paper", epochs="none").epochs == 32
    for options, message in (
        ({"preset": "desktop"}, "laptop, paper"),
        ({"epochs": "0"}, "below 1"),
        ({"seconds": "soon"}, "seconds=none"),
        ({"seconds": 0}, "no time"),
    ):
        with pytest.raises(ModelError, match=message):
            vae.build(**options)
    for changes, message in (
        ({"train_size": 161}, "train_size=161.*160"),
        ({"data": "gone"}, r"gone\.npz.*fashion_mnist"),
        ({"device": "tpu9"}, "auto, cpu"),
        ({"device": "cuda:99"}, "choose auto or cpu"),
    ):
        with pytest.raises(ModelError, match=message):
            vae.evaluate(SMALL, replace(SETTINGS, **changes))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"mipcash\[torch\]"):
        vae.objective(SMALL)


def test_the_command_line_and_its_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"train_size": 16, "test_size": 4, "epochs": 1, "samples": 2, "threads": 1}
    given = [part for name, value in options.items() for part in ("--option", f"{name}={value}")]
    line = ["run", "vae", "--budget", "2", "--optimizer", "random", "--storage", str(folder / "run.db"), "-q", *given]
    run = CliRunner().invoke(app, line)
    assert run.exit_code == 0, run.output
    assert "encoder: image 1x28x28 - " in run.output
    assert "vae.settings(" in run.output
    pytest.importorskip("matplotlib")

    class Result:
        config, values = SMALL, {"stopped": 1.0, "epochs": 1.5}

    text = vae.report(Result, pytorch="true", train_size=16, test_size=4, epochs=1, batch=16)
    assert "after 1.50 epochs" in text
    monkeypatch.chdir(folder)
    exec(text[text.index("from mipcash") :].replace("samples=5000", "samples=2"), {})
    assert (folder / "reconstructions.png").read_bytes().startswith(b"\x89PNG")


def test_test_images_and_reconstructions_are_one_draw(folder: Path) -> None:
    test = vae.held_out(SETTINGS)
    assert torch.equal(test.binary, vae.held_out(replace(SETTINGS, train_size=10)).binary)
    assert set(test.binary.unique().tolist()) == {0.0, 1.0}
    assert not torch.equal(test.binary, vae.held_out(replace(SETTINGS, seed=1)).binary)
    trained = vae.train(SMALL, replace(SETTINGS, train_size=16, epochs=1))
    originals, found = vae.reconstructions(trained, test, count=5, seed=1)
    assert originals.shape == found.shape == (5, 28, 28)
    assert originals.max() == pytest.approx(230 / 255)
    assert 0 <= found.min() < found.max() <= 1
    assert np.array_equal(originals, vae.reconstructions(trained, test, count=5, seed=1)[0])
    assert len(vae.reconstructions(trained, test, count=100)[0]) == 40
    with pytest.raises(ModelError, match="one shape"):
        vae.picture(folder / "rows.png", originals, {"this": found[:2]})
