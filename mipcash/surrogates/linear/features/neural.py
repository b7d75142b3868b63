"""Features learned from data by a neural network (Snoek et al. 2015, deep networks for global optimization).

Notation
    h_0 = u[dims] - 1/2 (B, D'),   h_k = tanh(h_{k-1} W_k + b_k),   phi(u) = s h_K (B, q)
    C (t, p)    context of the observations: a constant and the discrete features without products

The network is trained to predict  y_t ~ sum_ij C_ti V_ij h_K(u_t)_j + C_t . v  by full-batch Adam on the mean squared error
plus a ridge on the output weights V: the structure in which the Bayesian linear model then uses its features, so that a
number may matter for some levels only. The output layer is thrown away; s makes the mean of |phi|^2 one. Training takes torch
(the extra ``torch``); a trained map is plain arrays. Everything follows from one seed drawn from the generator.
"""

from __future__ import annotations

import importlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipcash.errors import MipcashError, SpaceError, at_least
from mipcash.program.forms import Indices, Vector


@dataclass(frozen=True)
class NeuralSettings:
    """The network and its training.

    Attributes:
        hidden: widths of the hidden layers before the last; the last has as many units as features are asked for.
        steps: of Adam.
        rate: step size.
        ridge: weight of the squared output weights in the objective.
    """

    hidden: tuple[int, ...] = (32,)
    steps: int = 200
    rate: float = 0.01
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        at_least(self, steps=0, rate=0, ridge=0)
        if min(self.hidden, default=1) < 1:
            raise SpaceError(f"NeuralSettings: a hidden layer must have at least one unit, got {self.hidden}")


@dataclass(frozen=True)
class NeuralFeatures:
    """A trained network's last hidden layer.

    Attributes:
        dims: the numbers it sees, shape (D',).
        weights, biases: of each layer, shapes (n_{k-1}, n_k) and (n_k,).
        factor: s.
    """

    dims: Indices
    weights: tuple[Vector, ...]
    biases: tuple[Vector, ...]
    factor: float

    @classmethod
    def learned(
        cls,
        dims: Indices,
        u: Vector,
        context: Vector,
        y: Vector,
        n_features: int,
        rng: np.random.Generator,
        settings: NeuralSettings | None = None,
    ) -> NeuralFeatures:
        """Train on standardised losses y (t,) at u (t, D) in context C (t, p).

        Raises:
            MipcashError: torch is not installed.
        """
        settings = settings or NeuralSettings()
        dims = np.asarray(dims, dtype=np.int64)
        widths = [len(dims), *settings.hidden, n_features]
        weights, biases = _trained(widths, u[:, dims] - 0.5, context, y, int(rng.integers(2**31)), settings)
        made = cls(dims, weights, biases, 1.0)
        length = float(np.mean(np.sum(made(u) ** 2, axis=1)))
        return cls(dims, weights, biases, 1.0 / np.sqrt(length) if length > 1e-12 else 1.0)

    @property
    def size(self) -> int:
        return len(self.biases[-1])

    @property
    def ceiling(self) -> Vector:
        """Bounds of the absolute values of the features, shape (q,): |tanh| < 1."""
        return np.full(self.size, self.factor)

    def __call__(self, u: Vector) -> Vector:
        """Features: (B, D) -> (B, q)."""
        h = u[:, self.dims] - 0.5
        for w, b in zip(self.weights, self.biases, strict=True):
            h = np.tanh(h @ w + b)
        values: Vector = self.factor * h
        return values

    def gradient(self, u: Vector) -> Vector:
        """Derivatives at one point: (D,) -> (q, D)."""
        h = u[self.dims] - 0.5
        slope = np.eye(len(self.dims))
        for w, b in zip(self.weights, self.biases, strict=True):
            h = np.tanh(h @ w + b)
            slope = (slope @ w) * (1.0 - h**2)
        whole = np.zeros((self.size, len(u)))
        whole[:, self.dims] = self.factor * slope.T
        return whole


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as missing:
        raise MipcashError(
            "neural features need PyTorch, which is not installed; install it with pip install 'mipcash[torch]', or take"
            " features='fourier'"
        ) from missing


def _trained(
    widths: list[int], x: Vector, context: Vector, y: Vector, seed: int, settings: NeuralSettings
) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    """Weights and biases of the hidden layers."""
    torch = _torch()
    threads = torch.get_num_threads()
    # so small a network only loses by threads, and one gives the same sums everywhere
    torch.set_num_threads(1)
    try:
        weights, biases = _descend(torch, widths, x, context, y, seed, settings)
    finally:
        torch.set_num_threads(threads)
    return tuple(w.detach().numpy() for w in weights), tuple(b.detach().numpy() for b in biases)


def _descend(
    torch: Any, widths: list[int], x: Vector, context: Vector, y: Vector, seed: int, settings: NeuralSettings
) -> tuple[list[Any], list[Any]]:
    # a generator of its own: torch's global state is the user's
    draw = torch.Generator().manual_seed(seed)

    def tensor(*shape: int, scale: float) -> Any:
        made = scale * torch.randn(*shape, generator=draw, dtype=torch.float64)
        return made.requires_grad_()

    shapes = list(itertools.pairwise(widths))
    # inputs lie in [-1/2, 1/2]: three times wider weights spread the first layer's units over the box
    weights = [tensor(a, b, scale=(3.0 if k == 0 else 1.0) / np.sqrt(a)) for k, (a, b) in enumerate(shapes)]
    biases = [tensor(b, scale=0.5) for _, b in shapes]
    p = context.shape[1]
    output, offset = tensor(p, widths[-1], scale=0.1 / np.sqrt(p * widths[-1])), tensor(p, scale=0.0)
    inputs, around, target = (torch.tensor(a, dtype=torch.float64) for a in (x, context, y))
    optimizer = torch.optim.Adam([*weights, *biases, output, offset], lr=settings.rate)
    for _ in range(settings.steps):
        optimizer.zero_grad()
        h = inputs
        for w, b in zip(weights, biases, strict=True):
            h = torch.tanh(h @ w + b)
        error = ((around @ output) * h).sum(dim=1) + around @ offset - target
        loss = (error**2).mean() + settings.ridge * ((output**2).sum() + (offset**2).sum())
        loss.backward()
        optimizer.step()
    return weights, biases
