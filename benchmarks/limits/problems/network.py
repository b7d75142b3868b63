"""Network under constraints on its size: cross-entropy of handwritten digits, bounded parameters and multiply-adds.

scikit-learn's digits (8 x 8 grey values; 600 train, 600 are held out) and a network trained by NumPy in some hundredths
of a second, with reproducible results:

    pixels 8 x 8 - [convolution] - [hidden layer - [hidden layer]] - 10 classes

Known rules: windows of the convolution fit the image and leave no pixel out, and layers do not widen. The outcome
constraints are on ``parameters`` and on ``multiply_adds`` of one image. A convolution with long strides saves
parameters. One with short strides costs multiply-adds. The pixels alone have too many parameters.

Notation
    b, n            images of a batch, of all
    p, k, s, c      windows per side, kernel, stride, channels:  (p - 1) s + k = 8
    a, z            activations and sums of a layer, (b, features)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import mipcash as mc
from benchmarks.peers.problem import described

Vector = NDArray[np.float64]

SIDE, CLASSES = 8, 10
ROWS = 600
"""Number of training images, and of held-out images."""
EPOCHS, BATCH = 10, 50
CLIP = 5.0
"""Maximum norm of a gradient, so that no learning rate leads to nan."""
LIMITS: dict[str, float] = {"parameters": 600, "multiply_adds": 1000}
"""Upper bounds of the constrained outputs of an evaluation."""


def space() -> mc.Space:
    """Return the space of twelve parameters, five of them unconditional, under three rules."""
    s = mc.Space("network under a size limit")
    first = s.categorical("first", ["pixels", "convolution"])
    convolves = first["convolution"]
    kernel = s.integer("kernel", 2, 5, when=convolves)
    stride = s.integer("stride", 1, 4, when=convolves)
    s.integer("channels", 1, 12, when=convolves)
    layers = s.integer("layers", 0, 2)
    width_1 = s.integer("width_1", 4, 64, when=layers.is_(1, 2))
    width_2 = s.integer("width_2", 4, 64, when=layers.is_(2))
    s.categorical("activation", ["relu", "tanh", "leaky"])
    optimizer = s.categorical("optimizer", ["sgd", "adam"])
    s.real("rate", 1e-3, 0.5, log=True)
    s.real("momentum", 0.0, 0.95, when=optimizer["sgd"])
    s.real("decay", 1e-6, 1e-1, log=True)
    windows = s.auxiliary("windows", 1, SIDE - 1)
    s.rule("windows fit the image", (windows - 1) * stride == SIDE - kernel, when=convolves)
    s.rule("without a convolution there are none", windows == 1, when=first["pixels"])
    s.rule("no pixel is left out", stride <= kernel, when=convolves)
    s.rule("layers do not widen", width_2 <= width_1, when=layers.is_(2))
    return s


def objective(config: Mapping[str, Any]) -> dict[str, float]:
    """Train and test a configuration.

    Returns:
        ``loss``: mean cross-entropy of the held-out images, nats; ``error``: the share of misclassified images;
        ``parameters`` and ``multiply_adds`` of one image.
    """
    return {**tested(config), **cost(config)}


def cost(config: Mapping[str, Any]) -> dict[str, float]:
    """Return ``parameters`` and ``multiply_adds`` of one image."""
    features, parameters, products = SIDE**2, 0, 0
    if config["first"] == "convolution":
        places, inside = windows(config) ** 2, config["kernel"] ** 2
        parameters, products = (inside + 1) * config["channels"], places * inside * config["channels"]
        features = places * config["channels"]
    for width in widths(config):
        parameters, products, features = parameters + (features + 1) * width, products + features * width, width
    return {"parameters": float(parameters), "multiply_adds": float(products)}


def windows(config: Mapping[str, Any]) -> int:
    """Return p."""
    return int((SIDE - config["kernel"]) // config["stride"] + 1)


def widths(config: Mapping[str, Any]) -> list[int]:
    """Return the outputs of the dense layers, including the last layer."""
    return [config[f"width_{layer}"] for layer in range(1, config["layers"] + 1)] + [CLASSES]


@cache
def digits() -> tuple[Vector, NDArray[np.int64], Vector, NDArray[np.int64]]:
    """Return training images (n, 8, 8) in [0, 1] and their classes, then held-out images and classes."""
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(classes))
    train, held = order[:ROWS], order[ROWS : 2 * ROWS]
    images = pixels.reshape(-1, SIDE, SIDE) / 16.0
    return images[train], classes[train], images[held], classes[held]


def inputs(config: Mapping[str, Any], images: Vector) -> Vector:
    """Return the inputs of the first layer: (n, p^2, k^2) windows of a convolution, else pixels (n, 1, 64)."""
    if config["first"] == "pixels":
        return images.reshape(len(images), 1, -1)
    k, s = config["kernel"], config["stride"]
    seen = sliding_window_view(images, (k, k), axis=(1, 2))[:, ::s, ::s]
    return np.ascontiguousarray(seen.reshape(len(images), -1, k * k))


class Net:
    """Weights and biases of the layers, with their outputs and gradients."""

    def __init__(self, config: Mapping[str, Any], rng: np.random.Generator) -> None:
        self.activation = str(config["activation"])
        self.convolves = config["first"] == "convolution"
        shapes, features = list[tuple[int, int]](), SIDE**2
        if self.convolves:
            shapes.append((config["kernel"] ** 2, config["channels"]))
            features = windows(config) ** 2 * config["channels"]
        for width in widths(config):
            shapes.append((features, width))
            features = width
        self.weights = [rng.normal(size=shape) * np.sqrt(2.0 / shape[0]) for shape in shapes]
        self.weights += [np.zeros(shape[1]) for shape in shapes]
        self.depth = len(shapes)

    def forward(self, x: Vector) -> list[Vector]:
        """Return the input of each layer, and last the logits (b, 10), for inputs (b, p^2, k^2) or (b, 1, 64)."""
        entering = [x]
        for layer in range(self.depth):
            z = entering[-1] @ self.weights[layer] + self.weights[self.depth + layer]
            z = z.reshape(len(x), -1)  # concatenated windows
            entering.append(z if layer == self.depth - 1 else self._active(z))
        return entering

    def gradients(self, x: Vector, classes: NDArray[np.int64]) -> list[Vector]:
        """Return the gradients of a batch's mean cross-entropy by every array of weights."""
        entering = self.forward(x)
        back = np.exp(log_softmax(entering[-1]))
        back[np.arange(len(x)), classes] -= 1.0
        back /= len(x)
        by_weights, by_biases = list[Vector](), list[Vector]()
        for layer in reversed(range(self.depth)):
            weights = self.weights[layer]
            by_sum = back.reshape(-1, weights.shape[1])
            by_weights.append(entering[layer].reshape(-1, weights.shape[0]).T @ by_sum)
            by_biases.append(by_sum.sum(axis=0))
            if layer:
                back = (by_sum @ weights.T).reshape(len(x), -1) * self._slope(entering[layer])
        return by_weights[::-1] + by_biases[::-1]

    def _active(self, z: Vector) -> Vector:
        if self.activation == "tanh":
            return np.tanh(z)
        return np.maximum(z, 0.1 * z if self.activation == "leaky" else 0.0)

    def _slope(self, a: Vector) -> Vector:
        """Return the slope of the activation as a function of its value."""
        if self.activation == "tanh":
            return np.asarray(1.0 - a**2)
        return np.where(a > 0.0, 1.0, 0.1 if self.activation == "leaky" else 0.0)


def log_softmax(z: Vector) -> Vector:
    """Return log probabilities of the classes, (b, 10)."""
    shifted = z - z.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def tested(config: Mapping[str, Any]) -> dict[str, float]:
    """Return ``loss`` and ``error`` of the held-out images after training."""
    images, classes, held, truth = digits()
    rng = np.random.default_rng(0)
    net, x = Net(config, rng), inputs(config, images)
    first = [np.zeros_like(w) for w in net.weights]
    second = [np.zeros_like(w) for w in net.weights]
    step = 0
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
            step += 1
            gradients = net.gradients(x[rows], classes[rows])
            gradients = [g + config["decay"] * w for g, w in zip(gradients, net.weights, strict=True)]
            norm = np.sqrt(sum(float(np.sum(g**2)) for g in gradients))
            for w, g, m, v in zip(net.weights, gradients, first, second, strict=True):
                _move(config, w, g * min(1.0, CLIP / max(norm, CLIP)), m, v, step)
    z = net.forward(inputs(config, held))[-1]
    loss = -float(np.mean(log_softmax(z)[np.arange(len(z)), truth]))
    return {"loss": loss, "error": float(np.mean(z.argmax(axis=1) != truth))}


def _move(config: Mapping[str, Any], w: Vector, g: Vector, m: Vector, v: Vector, step: int) -> None:
    """Update an array of weights and its moments m and v in place: SGD with momentum, or Adam."""
    if config["optimizer"] == "sgd":
        m *= config["momentum"]
        m += g
        w -= config["rate"] * m
        return
    m += 0.1 * (g - m)
    v += 0.001 * (g**2 - v)
    w -= config["rate"] * (m / (1.0 - 0.9**step)) / (np.sqrt(v / (1.0 - 0.999**step)) + 1e-8)


_known: dict[str, dict[str, float]] = {}


def network(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the outputs of a configuration, computed once."""
    key = repr(sorted(config.items()))
    if key not in _known:
        _known[key] = objective(config)
    return _known[key]


PROBLEMS = (described("network", space, network, limits=LIMITS),)
