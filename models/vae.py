"""A convolutional variational autoencoder whose layer shapes must fit: 25 discrete and 3 real parameters under rules.

Table 2 and Appendix B of Daxberger et al., "Mixed-variable Bayesian optimization" (MiVaBO). With all layers,

    image 28 x 28 - C1 - C2 - F1 - F2 - z - F3 - F4 - D1 - D2 - image 28 x 28

How the table is read. Encoder sizes are outputs, decoder sizes are inputs, so that each half mirrors the other:

    C1, C2  convolutions; "channels" are output channels          D1, D2  deconvolutions; "channels" are input channels
    F1      hidden layer of f1_units (with two fc. layers)        F4      from f4_units (with two fc. layers)
    F2      ends in 2 d_z: mean and log variance of z             F3      starts from the d_z numbers of z

The last fc. layer of the decoder ends in d1_channels x 7 x 7 (Appendix B.2: W_in = 7 is fixed). A layer's parameters
exist only where the layer does.

Notation
    S, F, P, O      stride, filter, padding and output padding of a layer; P is the total of both sides in the encoder
                    (asymmetric where odd) and the padding of each side in the decoder (PyTorch's convention)
    w1, w2          width after C1 and after C2 (28 where there is no such layer)
    v1              width after D1 (7 where there is none)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.models._options import flag

IMAGE = 28
"""Width of the images that go in and come out."""
SEED_WIDTH = 7
"""W_in^d: width of what the decoder's last fc. layer is reshaped to."""

Objective = Callable[[Mapping[str, Any]], float]
Shape = tuple[int, ...]


def build(*, pytorch: bool | str = True) -> tuple[mc.Space, Objective]:
    """The space of Table 2 under Eqs. (3) to (8).

    Args:
        pytorch: also demand that output padding is smaller than the stride, as ``torch.nn.ConvTranspose2d`` does.
            Without it the space is the paper's, and four fifths of its two-layer decoders cannot be built.
    """
    space = mc.Space("variational autoencoder")

    conv = space.integer("conv_layers", 0, 2)
    strides, filters, paddings = {}, {}, {}
    for layer, channels, exists in (("c1", [4, 8, 16, 24], conv.is_(1, 2)), ("c2", [8, 16, 32, 48], conv.is_(2))):
        space.ordinal(f"{layer}_channels", channels, when=exists)
        strides[layer] = space.ordinal(f"{layer}_stride", [1, 2], when=exists)
        filters[layer] = space.ordinal(f"{layer}_filter", [3, 5], when=exists)
        paddings[layer] = space.integer(f"{layer}_padding", 0, 3, when=exists)
    encoder_fc = space.integer("encoder_fc_layers", 0, 2)
    f1_units = space.integer("f1_units", 0, 960, step=64, when=encoder_fc.is_(2))

    space.integer("d_z", 16, 64)

    decoder_fc = space.integer("decoder_fc_layers", 0, 2)
    f4_units = space.integer("f4_units", 0, 960, step=64, when=decoder_fc.is_(2))
    deconv = space.integer("deconv_layers", 0, 2)
    # The channels of D1 are asked for without D1 too: they set the size of the last fc. layer (Appendix B.2).
    d1_channels = space.ordinal("d1_channels", [8, 16, 32, 48])
    space.ordinal("d2_channels", [4, 8, 16, 24], when=deconv.is_(2))
    extra = {}
    for layer, exists in (("d1", deconv.is_(1, 2)), ("d2", deconv.is_(2))):
        strides[layer] = space.ordinal(f"{layer}_stride", [1, 2], when=exists)
        filters[layer] = space.ordinal(f"{layer}_filter", [3, 5], when=exists)
        paddings[layer] = space.integer(f"{layer}_padding", 0, 3, when=exists)
        extra[layer] = space.integer(f"{layer}_output_padding", 0, 3, when=exists)
        if flag("pytorch", pytorch):
            rule = f"{layer}: output padding is smaller than the stride"
            space.rule(rule, extra[layer] <= strides[layer] - 1, when=exists)

    space.real("learning_rate", 1e-4, 1e-2, log=True)
    space.real("learning_rate_decay", 0.5, 1.0)
    space.real("weight_decay", 1e-6, 1e-2, log=True)

    # Encoder: W_out = (W_in - F + P) / S + 1 is whole because an auxiliary integer is W_out.
    S, F, P, O = strides, filters, paddings, extra
    w1, w2 = space.auxiliary("w1", 1, 29), space.auxiliary("w2", 1, 30)
    space.rule("Eq. 4: width after c1", IMAGE - F["c1"] + P["c1"] == S["c1"] * (w1 - 1), when=conv.is_(1, 2))
    space.rule("Eq. 5: width after c2", w1 - F["c2"] + P["c2"] == S["c2"] * (w2 - 1), when=conv.is_(2))
    space.rule("without c1 the width stays", w1 == IMAGE, when=conv.is_(0))
    space.rule("without c2 the width stays", w2 == w1, when=conv.is_(0, 1))

    # Decoder: W_out = (W_in - 1) S + F - 2 P + O, from 7 to 28.
    v1 = space.auxiliary("v1", 1, IMAGE)
    out_1 = (SEED_WIDTH - 1) * S["d1"] + F["d1"] - 2 * P["d1"] + O["d1"]
    out_2 = (v1 - 1) * S["d2"] + F["d2"] - 2 * P["d2"] + O["d2"]
    space.rule("Eq. 7: width after d1", v1 == out_1, when=deconv.is_(1, 2))
    space.rule("Eq. 8: width after d2 is the image's", out_2 == IMAGE, when=deconv.is_(2))
    space.rule("one deconv. layer ends in the image", v1 == IMAGE, when=deconv.is_(1))
    space.rule("without d1 the width stays", v1 == SEED_WIDTH, when=deconv.is_(0))
    pixels = d1_channels * SEED_WIDTH**2
    space.rule("without deconv. layers the last fc. layer is the image", pixels == IMAGE**2, when=deconv.is_(0))

    # No flattened convolution has 2 d_z <= 128 numbers (the smallest has 8 x 5 x 5), and no z has d1_channels x 7 x 7.
    space.rule("the encoder ends in a fc. layer of 2 d_z units", encoder_fc >= 1)
    space.rule("the decoder starts with a fc. layer from d_z units", decoder_fc >= 1)
    # The table's 0 units would be a network with a hole.
    space.rule("f1 has units", f1_units >= 64, when=encoder_fc.is_(2))
    space.rule("f4 has units", f4_units >= 64, when=decoder_fc.is_(2))
    return space, objective


def objective(config: Mapping[str, Any]) -> float:
    """Not there yet.

    Raises:
        ModelError: always.
    """
    raise ModelError(
        "the training objective of the vae space is not part of this release; use the space with your own objective, "
        "for example on the modules that mipcash.models.vae.network(config) returns"
    )


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


space, _ = build()
