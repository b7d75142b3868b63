"""The network model: its layers, training, and the time of a prediction.

Notation
    x       images, (n, 1, 28, 28) in [0, 1];   z   logits of the classes, (n, 10);   y   classes, (n,)
    loss    share of the validation images whose largest logit is not that of their class
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from mipcash.errors import ModelError
from mipcash.models import _images
from mipcash.models._packages import needed
from mipcash.models._torch import generator, initialise, threads

IMAGE, CLASSES = 28, 10
WARM_UP = 5
"""Predictions before those that are timed."""
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}
ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "gelu": "GELU", "silu": "SiLU"}

WEIGHTS, ORDER = range(2)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Training:
    """Settings of the training and timing of a configuration, made by :func:`mipcash.models.network.settings`.

    Attributes:
        data: name of the images, see ``_images.labelled``.
        train_size, test_size: images, the first ones of each part of the split.
        epochs, batch: passes over the training images, images per step.
        predict, repeats: images of a timed prediction, and how often it is timed.
        clock: of :data:`CLOCKS`.
        seed: of initial weights and of the order of the images.
    """

    data: str = "mnist_5k"
    train_size: int = 2000
    test_size: int = 1000
    epochs: int = 3
    batch: int = 32
    predict: int = 64
    repeats: int = 25
    clock: str = "wall"
    seed: int = 0


def shapes(config: Mapping[str, Any]) -> list[tuple[str, Shape]]:
    """Output shape (without the batch) of every layer, from ``("image", (1, 28, 28))`` to ``("classes", (10,))``.

    Raises:
        ModelError: a convolution is larger than what enters it.
    """
    found: list[tuple[str, Shape]] = [("image", (1, IMAGE, IMAGE))]
    width = IMAGE
    for layer in ("c1", "c2")[: config["conv_layers"]]:
        if config[f"{layer}_kernel"] > width:
            raise ModelError(f"the kernel of {layer} is wider than the {width} pixels that enter; take a smaller one")
        width = (width - config[f"{layer}_kernel"]) // config[f"{layer}_stride"] + 1
        found.append((layer, (config[f"{layer}_channels"], width, width)))
    found += [(layer, (config[f"{layer}_units"],)) for layer in ("f1", "f2")[: config["dense_layers"]]]
    return [*found, ("classes", (CLASSES,))]


def cost(config: Mapping[str, Any]) -> dict[str, int]:
    """``parameters`` of the network, and ``multiply_adds`` of a prediction of one image, from the shapes alone."""
    parameters = products = 0
    for (_, before), (name, after) in pairwise(shapes(config)):
        inside = before[0] * config[f"{name}_kernel"] ** 2 if len(after) == 3 else math.prod(before)
        parameters += (inside + 1) * after[0]
        products += inside * math.prod(after)
    return {"parameters": parameters, "multiply_adds": products}


def network(config: Mapping[str, Any]) -> Any:
    """The layers as ``torch.nn.Sequential``: x (n, 1, 28, 28) -> z (n, 10)."""
    from torch import nn

    modules: list[Any] = []
    for (_, before), (name, after) in pairwise(shapes(config)):
        if len(after) == 3:
            modules.append(nn.Conv2d(before[0], after[0], config[f"{name}_kernel"], config[f"{name}_stride"]))
        else:
            modules += [nn.Flatten()] * (len(before) == 3) + [nn.Linear(math.prod(before), after[0])]
        modules.append(getattr(nn, ACTIVATIONS[config["activation"]])())
    return nn.Sequential(*modules[:-1])


def evaluate(config: Mapping[str, Any], settings: Training) -> dict[str, float]:
    """Train a configuration, test it and time it, all on one thread.

    Returns:
        ``loss``: validation error; ``cross_entropy`` of the same images, nats; ``latency_ms``: median milliseconds of a
        prediction of ``predict`` images; ``latency_least_ms``: the least; ``parameters``: weights and biases.

    Raises:
        ModelError: no torch, no images, layers that do not fit.
        FloatingPointError: training diverged.
    """
    torch = _import_torch()
    with threads(1):
        net = train(config, settings)
        x, y = _images_of(settings, "test")
        with torch.inference_mode():
            z = torch.cat([net(part) for part in x.split(250)])
            entropy = float(torch.nn.functional.cross_entropy(z, y))
        if not math.isfinite(entropy):
            raise FloatingPointError("training diverged; a smaller learning_rate keeps it finite")
        found = {"loss": float((z.argmax(1) != y).double().mean()), "cross_entropy": entropy}
        return found | latency(net, settings) | {"parameters": float(cost(config)["parameters"])}


def train(config: Mapping[str, Any], settings: Training) -> Any:
    """The network after training for its cross-entropy, ready for predictions.

    Raises:
        ModelError: no torch, no images.
    """
    torch = _import_torch()
    x, y = _images_of(settings, "train")
    with torch.device("meta"):  # no weights drawn from torch's global generator
        net = network(config)
    net.to_empty(device="cpu")
    initialise(net, generator("cpu", settings.seed, WEIGHTS))
    optimizer = _optimizer(config, net.parameters())
    order = generator("cpu", settings.seed, ORDER)
    for _ in range(settings.epochs):
        for rows in torch.randperm(len(x), generator=order).split(settings.batch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
    return net.eval()


def _optimizer(config: Mapping[str, Any], parameters: Any) -> Any:
    torch, name = _import_torch(), config["optimizer"]
    rate, decay = config[f"optimizer.{name}.learning_rate"], config["weight_decay"]
    if name == "adam":
        return torch.optim.Adam(parameters, lr=rate, weight_decay=decay)
    return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, momentum=config["optimizer.sgd.momentum"])


def latency(net: Any, settings: Training) -> dict[str, float]:
    """Milliseconds of a prediction of ``predict`` images on one thread: ``latency_ms``, the median; ``latency_least_ms``."""
    torch = _import_torch()
    clock, seconds = CLOCKS[settings.clock], list[float]()
    x = torch.zeros(settings.predict, 1, IMAGE, IMAGE)
    with threads(1), torch.inference_mode():
        for _ in range(WARM_UP + settings.repeats):
            began = clock()
            net(x)
            seconds.append(clock() - began)
    timed = seconds[WARM_UP:]
    return {"latency_ms": 1e3 * median(timed), "latency_least_ms": 1e3 * min(timed)}


def _images_of(settings: Training, part: str) -> tuple[Any, Any]:
    """x and y of the training images (``train``) or of the validation images (``test``)."""
    torch, images = _import_torch(), _images.labelled(settings.data)
    grey, labels = (images.train, images.train_labels) if part == "train" else (images.test, images.test_labels)
    x = _images.first(grey, f"{part}_size", getattr(settings, f"{part}_size"), settings.data)
    return torch.from_numpy(x)[:, None], torch.from_numpy(labels[: len(x)].astype(np.int64))


def _import_torch() -> Any:
    return needed("torch", "the network model", "torch")
