"""Training of the vae model and the likelihood of its test images.

Section 4 (b) and Appendix B of Daxberger et al., "Mixed-variable Bayesian optimization"; the bound is that of Kingma and Welling
(2013). The estimate of the likelihood is that of Rezende et al. (2014) and Burda et al. (2015).

Notation
    x           n binary images, (n, 1, 28, 28): each pixel drawn with its grey value as probability
    z           latent code, (d_z,); p(z) = N(0, I); q(z | x) = N(mu, diag sigma^2), mu and log sigma^2 by the encoder
    p(x | z)    independent pixels, by the decoder's logits l:  log p(x | z) = sum x l - log(1 + exp(l))
    ELBO(x)     E_q log p(x | z) - KL(q || p),  KL = 1/2 sum (mu^2 + sigma^2 - 1 - log sigma^2);  one z per image
    NLL(x)      - log 1/K sum_k p(x | z_k) p(z_k) / q(z_k | x),  z_k ~ q;  at least -log p(x) in expectation, and falling
                with K
All losses are in nats per image.

What the paper leaves open. Weight decay is Adam's L2 term, as in torch. The learning rate is multiplied by its decay
factor after each epoch. Weights start as torch's do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.models import _images
from mipcash.models._packages import needed
from mipcash.models._torch import generator, initialise, threads
from mipcash.models._vae_network import network

DECODED = 1024
"""Latent codes decoded at a time on a CPU: at most 160 MB, and layers stay in its cache."""
DECODED_CUDA = 32_768


@dataclass(frozen=True)
class Training:
    """Settings of the training and testing of a configuration.

    Attributes:
        data: name of the images, see ``_images.split``.
        train_size, test_size: images, the first ones of each part of the split.
        epochs, batch: passes over the training images, images per step.
        seconds: of training, after which it stops; the test of what there is then comes on top. None: no limit.
        samples: importance samples K per test image.
        seed: of initial weights, batches, noise and the binary test images.
        device: ``auto`` (CUDA where there is one), ``cpu``, ``cuda`` or ``cuda:N``.
        threads: of torch; None leaves torch as it is. Sums depend on it in their last digits.
    """

    data: str = "mnist_5k"
    train_size: int = 4000
    test_size: int = 1000
    epochs: int = 4
    batch: int = 128
    seconds: float | None = None
    samples: int = 32
    seed: int = 0
    device: str = "auto"
    threads: int | None = None


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Attributes:
        encoder, decoder: as of ``network``.
        epochs: that were trained; a fraction where the time limit cut one short.
        stopped: whether the time limit ended training.
        seconds: of training.
        losses: minus the ELBO, mean over the images of each (started) epoch, nats.
    """

    encoder: Any
    decoder: Any
    epochs: float
    stopped: bool
    seconds: float
    losses: tuple[float, ...]


@dataclass(frozen=True)
class HeldOut:
    """The images of a test: grey (n, 28, 28) in [0, 1]; binary, a tensor (n, 1, 28, 28) of 0 and 1."""

    grey: NDArray[np.float32]
    binary: Any


def import_torch() -> Any:
    """torch; :func:`needed` says what is raised."""
    return needed("torch", "the vae model", "torch")


def device_of(name: str) -> Any:
    """The ``torch.device`` of a name; ``auto`` is CUDA where there is one.

    Raises:
        ModelError: there is no such device.
    """
    torch = import_torch()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ModelError(f"option device={name!r} is not known; choose auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f"option device={name}: torch sees {torch.cuda.device_count()} CUDA devices; choose auto or cpu"
        )
    return device


WEIGHTS, BATCHES, TEST, SAMPLES = range(4)


def held_out(settings: Training) -> HeldOut:
    """The test images, binarised by the seed alone: the same for every configuration, device and number of threads."""
    torch = import_torch()
    grey = _images.first(_images.split(settings.data).test, "test_size", settings.test_size, settings.data)
    pixels = torch.from_numpy(grey)[:, None]
    binary = torch.bernoulli(pixels, generator=generator("cpu", settings.seed, TEST))
    return HeldOut(grey, binary.to(device_of(settings.device)))


def train(config: Mapping[str, Any], settings: Training) -> Trained:
    """Maximise the ELBO with Adam, on images that are binarised anew each time.

    Raises:
        ModelError: no torch, no images, no such device.
        FloatingPointError: the loss is not finite any more.
    """
    torch = import_torch()
    device = device_of(settings.device)
    pixels = _images.first(_images.split(settings.data).train, "train_size", settings.train_size, settings.data)
    grey = torch.from_numpy(pixels)[:, None].to(device)
    start = monotonic()  # after the images, which may have to be fetched
    with _quiet(settings, device):
        encoder, decoder = _networks(config, settings.seed, device)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        adam = torch.optim.Adam(parameters, lr=config["learning_rate"], weight_decay=config["weight_decay"], fused=True)
        decay = torch.optim.lr_scheduler.ExponentialLR(adam, config["learning_rate_decay"])
        noise = generator(device, settings.seed, BATCHES)
        losses, seen = list[float](), 0
        for _ in range(settings.epochs):
            total, count, stopped = _epoch(encoder, decoder, adam, grey, settings, noise, start)
            losses.append(total / count)
            seen += count
            if stopped:
                break
            decay.step()
    done = seen / len(grey)
    return Trained(encoder.eval(), decoder.eval(), done, done < settings.epochs, monotonic() - start, tuple(losses))


def _networks(config: Mapping[str, Any], seed: int, device: Any) -> tuple[Any, Any]:
    """Encoder and decoder with fresh weights on a device."""
    torch = import_torch()
    with torch.device("meta"):  # no weights drawn from torch's global generator
        halves = network(config)
    weights = generator(device, seed, WEIGHTS)
    for half in halves:
        half.to_empty(device=device).to(memory_format=torch.channels_last)  # a third faster on a CPU
        initialise(half, weights)
    return halves


def _epoch(
    encoder: Any, decoder: Any, adam: Any, grey: Any, settings: Training, noise: Any, start: float
) -> tuple[float, int, bool]:
    """One pass over the images: sum of minus the ELBO, images seen, whether the time is up."""
    torch = import_torch()
    order = torch.randperm(len(grey), generator=noise, device=grey.device)
    total, seen = torch.zeros((), device=grey.device, dtype=torch.float64), 0
    for rows in order.split(settings.batch):
        images = torch.bernoulli(grey[rows], generator=noise)
        loss = negative_elbo(encoder, decoder, images, noise)
        adam.zero_grad()
        loss.mean().backward()
        adam.step()
        total += loss.detach().sum()
        seen += len(rows)
        if _is_up(settings, start):
            break
    summed = float(total)
    if not math.isfinite(summed):
        raise FloatingPointError(
            f"training diverged: the loss is {summed}; a smaller learning_rate or fewer layers keep it finite"
        )
    return summed, seen, _is_up(settings, start)


def _is_up(settings: Training, start: float) -> bool:
    return settings.seconds is not None and monotonic() - start >= settings.seconds


def negative_elbo(encoder: Any, decoder: Any, images: Any, noise: Any) -> Any:
    """Minus the ELBO of each image with one latent code each, shape (n,)."""
    mean, log_variance = encoder(images).chunk(2, dim=1)
    draw = import_torch().empty_like(mean).normal_(generator=noise)
    z = mean + draw * (0.5 * log_variance).exp()
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
    return divergence - log_pixels(decoder(z), images)


def log_pixels(logits: Any, images: Any) -> Any:
    """log p(x | z), shape (..., n), of logits (..., n, 1, 28, 28) and binary images (n, 1, 28, 28)."""
    softplus = import_torch().nn.functional.softplus(logits)
    return (images * logits - softplus).sum((-3, -2, -1))


def negative_log_likelihood(
    encoder: Any, decoder: Any, images: Any, samples: int, noise: Any, seconds: float = math.inf
) -> Any:
    """Importance-sampled NLL of each image, a tensor of shape (n,); shorter where the time was up, and never empty.

    Args:
        encoder, decoder: functions as of ``network``.
        images: binary, (n, 1, 28, 28).
        samples: K, drawn in chunks: memory does not grow with it.
        noise: a ``torch.Generator`` on the device of ``images``.
        seconds: after which no further images are looked at.
    """
    torch = import_torch()
    most, start = DECODED_CUDA if images.is_cuda else DECODED, monotonic()
    found: list[Any] = []
    with torch.inference_mode():
        for part in images.split(most // 8):
            if found and monotonic() - start >= seconds:
                break
            found.append(_nll(encoder, decoder, part, samples, most, noise))
        return torch.cat(found)


def _nll(encoder: Any, decoder: Any, images: Any, samples: int, most: int, noise: Any) -> Any:
    torch = import_torch()
    mean, log_variance = encoder(images).double().chunk(2, dim=1)
    deviation = (0.5 * log_variance).exp()
    total = torch.full((len(images),), -math.inf, dtype=torch.float64, device=images.device)
    left = samples
    while left:
        k = min(left, max(1, most // len(images)))
        draw = torch.empty((k, *mean.shape), dtype=mean.dtype, device=mean.device).normal_(generator=noise)
        z = mean + deviation * draw
        logits = decoder(z.flatten(0, 1).to(images.dtype)).unflatten(0, (k, len(images)))
        # log p(z) - log q(z | x); the constants 1/2 log(2 pi) of the two cancel
        prior = 0.5 * (draw**2 + log_variance - z**2).sum(2)
        total = torch.logaddexp(total, (log_pixels(logits, images).double() + prior).logsumexp(0))
        left -= k
    return math.log(samples) - total


def nll(
    trained: Trained, test: HeldOut, settings: Training, samples: int | None = None, seconds: float = math.inf
) -> float:
    """Mean NLL of the test images, nats.

    Args:
        samples: K; by default that of the settings. The paper's final figures have 5,000.
        seconds: after which it is the mean of the images that were looked at until then.

    Raises:
        ModelError: fewer than one sample.
        FloatingPointError: it is not finite.
    """
    samples = settings.samples if samples is None else samples
    if samples < 1:
        raise ModelError(f"samples must be at least 1, got {samples}")
    noise = generator(test.binary.device, settings.seed, SAMPLES)
    with _quiet(settings, test.binary.device):
        each = negative_log_likelihood(trained.encoder, trained.decoder, test.binary, samples, noise, seconds)
        loss = float(each.mean())
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"the test likelihood is not finite ({loss}) though training ended; a smaller learning_rate may help"
        )
    return loss


@contextmanager
def _quiet(settings: Training, device: Any) -> Iterator[None]:
    """Threads as set, and on CUDA only algorithms that give the same result each time; both as before at the end."""
    torch = import_torch()
    with threads(settings.threads):
        if device.type == "cuda":
            with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
                yield
        else:
            yield
