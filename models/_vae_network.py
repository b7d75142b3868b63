"""Layers of the vae model: their shapes in plain Python, and the two networks in torch.

Notation
    image - C1 - C2 - F1 - F2 - z       the encoder; F2 gives 2 d_z numbers, means and then log variances of q(z | x)
    z - F3 - F4 - D1 - D2 - image       the decoder; its end gives logits l, and p(x = 1 | z) = 1 / (1 + exp(-l))
A layer is there or not as the configuration says; mipcash.models.vae has the rules under which they fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mipcash.errors import ModelError

IMAGE = 28
"""Width of the images that go in and come out."""
SEED_WIDTH = 7
"""W_in^d: width of what the decoder's last fc. layer is reshaped to."""

Shape = tuple[int, ...]


def shapes(config: Mapping[str, Any]) -> dict[str, list[tuple[str, Shape]]]:
    """Output shape (without the batch) of every layer, in plain Python and without a look at the rules.

    Returns:
        ``encoder``: from ``("image", (1, 28, 28))`` to ``("f2", (2 d_z,))``; ``decoder``: from ``("z", (d_z,))`` to
        a layer of shape (1, 28, 28).

    Raises:
        ModelError: the layers do not fit together.
    """
    if not config["encoder_fc_layers"] or not config["decoder_fc_layers"]:
        raise ModelError(
            "no fc. layer leads to z or away from it; set encoder_fc_layers and decoder_fc_layers to 1 or 2"
        )
    latent, width = config["d_z"], IMAGE
    encoder: list[tuple[str, Shape]] = [("image", (1, width, width))]
    for layer in ("c1", "c2")[: config["conv_layers"]]:
        stride, size, padding = (config[f"{layer}_{part}"] for part in ("stride", "filter", "padding"))
        steps, rest = divmod(width - size + padding, stride)
        width = steps + 1
        if rest:
            raise ModelError(f"{layer}: its width is not whole (Eq. 3); change its stride or padding")
        encoder.append((layer, (config[f"{layer}_channels"], width, width)))
    if config["encoder_fc_layers"] == 2:
        encoder.append(("f1", (config["f1_units"],)))
    encoder.append(("f2", (2 * latent,)))

    decoder: list[tuple[str, Shape]] = [("z", (latent,))]
    if config["decoder_fc_layers"] == 2:
        decoder.append(("f3", (config["f4_units"],)))
    layers = ("d1", "d2")[: config["deconv_layers"]]
    channels, width = config["d1_channels"], SEED_WIDTH
    if not layers and channels * width**2 == IMAGE**2:
        channels, width = 1, IMAGE
    decoder.append((f"f{2 + config['decoder_fc_layers']}", (channels, width, width)))
    for layer in layers:
        stride, size, padding, extra = (
            config[f"{layer}_{p}"] for p in ("stride", "filter", "padding", "output_padding")
        )
        width = (width - 1) * stride + size - 2 * padding + extra
        decoder.append((layer, (1 if layer == layers[-1] else config["d2_channels"], width, width)))

    for layer, shape in encoder + decoder:
        if min(shape) < 1:
            raise ModelError(f"{layer} has shape {shape}: nothing is left; give it units or less padding")
    if decoder[-1][1] != (1, IMAGE, IMAGE):
        raise ModelError(f"the decoder ends in {decoder[-1][1]} and not in (1, {IMAGE}, {IMAGE}); change its layers")
    return {"encoder": encoder, "decoder": decoder}


def network(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Encoder and decoder as ``torch.nn.Sequential`` (needs the ``torch`` extra).

    Returns:
        ``encoder``: (n, 1, 28, 28) -> (n, 2 d_z), means and then log variances; ``decoder``: (n, d_z) ->
        (n, 1, 28, 28), logits of the pixels.
    """
    from torch import nn

    def layers(name: str, before: Shape, after: Shape) -> list[Any]:
        if name.startswith("f"):
            linear = [nn.Flatten(), nn.Linear(math.prod(before), math.prod(after))]
            return linear if len(after) == 1 else [*linear, nn.Unflatten(1, after)]
        stride, size, padding = (config[f"{name}_{part}"] for part in ("stride", "filter", "padding"))
        if name.startswith("c"):
            sides = (padding // 2, padding - padding // 2)
            return [nn.ZeroPad2d(sides * 2), nn.Conv2d(before[0], after[0], size, stride)]
        extra = config[f"{name}_output_padding"]
        return [nn.ConvTranspose2d(before[0], after[0], size, stride, padding, extra)]

    halves = []
    for half in shapes(config).values():
        modules: list[Any] = []
        for (_, before), (name, after) in pairwise(half):
            modules += [*layers(name, before, after), nn.ReLU()]
        halves.append(nn.Sequential(*modules[:-1]))  # means, log variances and logits have any sign: no ReLU at the end
    return halves[0], halves[1]
