"""Common parts of models that train with torch: streams of random numbers, initial weights, the number of threads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def generator(device: Any, seed: int, purpose: int) -> Any:
    """A ``torch.Generator``; each purpose has its own stream, so that none shifts with the length of another."""
    import torch

    state = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    return torch.Generator(device=device).manual_seed(int(state))


def initialise(module: Any, generator: Any) -> None:
    """Fill weights and biases from U(-b, b), b = 1 / sqrt(fan in): torch's own default, but from a generator.

    Args:
        module: a ``torch.nn.Module`` of linear layers, convolutions and deconvolutions.
        generator: a ``torch.Generator`` on the module's device. torch's global one is not touched, so that evaluations
            in threads do not disturb each other.
    """
    import torch

    with torch.no_grad():
        for layer in module.modules():
            if hasattr(layer, "weight"):
                bound = 1 / math.sqrt(layer.weight[0].numel())  # what torch calls fan in, for deconvolutions too
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """So many threads of torch, and as many as before at the end; None leaves torch as it is."""
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count is not None:
            torch.set_num_threads(before)
