"""A convolutional variational autoencoder whose layer shapes must fit: 25 discrete and 3 real parameters under rules.

Table 2 and Appendix B of Daxberger et al., "Mixed-variable Bayesian optimization" (MiVaBO). With all layers,

    image 28 x 28 - C1 - C2 - F1 - F2 - z - F3 - F4 - D1 - D2 - image 28 x 28

How the table is read. Encoder sizes are outputs and decoder sizes are inputs, so each half mirrors the other:

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

The objective trains the network (extra ``torch``) and returns the negative log-likelihood of test images in nats: how is
in mipcash.models._vae_training. Presets:

    laptop  MNIST, 1,200 of the 5,000 images of mnist_5k.npz for 5 epochs in batches of 16, 300 test images; at most 14
            seconds of training, which stops the largest networks early, and 5.6 of testing
    paper   Fashion-MNIST (``data=mnist`` for MNIST), all 60,000 images, 32 epochs, batches of 128, 10,000 test images
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.models._options import choice, flag, whole
from mipcash.models._vae_network import IMAGE, SEED_WIDTH, network, shapes
from mipcash.models._vae_pictures import picture, reconstructions
from mipcash.models._vae_training import Trained, Training, held_out, nll, train

__all__ = [
    "IMAGE",
    "PRESETS",
    "SEED_WIDTH",
    "Trained",
    "Training",
    "build",
    "evaluate",
    "held_out",
    "network",
    "nll",
    "objective",
    "picture",
    "reconstructions",
    "report",
    "settings",
    "shapes",
    "space",
    "train",
]

PRESETS = {
    "laptop": Training(train_size=1200, test_size=300, epochs=5, batch=16, seconds=14.0),
    "paper": Training(data="fashion_mnist", train_size=60_000, test_size=10_000, epochs=32, batch=128),
}

TESTING = 0.4
"""Seconds of testing for each second that training may take."""

Objective = Callable[[Mapping[str, Any]], dict[str, float]]


def build(
    *,
    pytorch: bool | str = True,
    preset: str = "laptop",
    data: str | None = None,
    train_size: int | str | None = None,
    test_size: int | str | None = None,
    epochs: int | str | None = None,
    batch: int | str | None = None,
    seconds: float | str | None = None,
    samples: int | str | None = None,
    seed: int | str = 0,
    device: str = "auto",
    threads: int | str | None = None,
) -> tuple[mc.Space, Objective]:
    """The space of Table 2 under Eqs. (3) to (8), and the training.

    Args:
        pytorch: also demand that output padding is smaller than the stride, as ``torch.nn.ConvTranspose2d`` does.
            Without it the space is the paper's, and four fifths of its two-layer decoders cannot be built.
        preset, ...: the others are those of :func:`settings`.

    Raises:
        ModelError: an option that makes no sense.
    """
    given = {name: value for name, value in locals().items() if name != "pytorch"}
    return _space(flag("pytorch", pytorch)), partial(evaluate, settings=settings(**given))


def settings(preset: str = "laptop", **changes: Any) -> Training:
    """A preset with changes; what is None stays as the preset has it.

    Args:
        preset: ``laptop`` or ``paper``.
        changes: fields of :class:`Training` by name, as they are or as text. ``data`` is ``mnist_5k``, ``fashion_mnist``,
            ``mnist``, or NAME for a file NAME.npz in ``MIPCASH_DATA``; ``seconds`` limits training, and testing to two
            fifths of it: ``none`` (or infinity) for no limit.

    Raises:
        ModelError: an option that makes no sense.
    """
    base = PRESETS[choice("preset", preset, PRESETS)]
    given: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in Training.__dataclass_fields__:
            raise ModelError(f"there is no option {name}; there are {', '.join(Training.__dataclass_fields__)}")
        if name == "seconds" and value is not None:
            given[name] = _limit(value)
        elif value is not None and str(value).lower() != "none":
            given[name] = value if name in ("data", "device") else whole(name, value, low=int(name != "seed"))
    return replace(base, **given)


def _limit(seconds: float | str) -> float | None:
    try:
        number = math.inf if str(seconds).lower() == "none" else float(seconds)
    except ValueError:
        number = math.nan
    if not number > 0:
        raise ModelError(f"option seconds={seconds!r} is no time; write for example seconds=20, or seconds=none")
    return number if number < math.inf else None


def evaluate(config: Mapping[str, Any], settings: Training) -> dict[str, float]:
    """Train a configuration and test it.

    Returns:
        ``loss``: negative test log-likelihood by importance sampling, nats. ``elbo``: minus the last epoch's ELBO on training
        images. ``epochs``: number of epochs (a fraction if the time limit cut one short). ``stopped``: 1 if the time limit
        stopped the training, so that the loss is that of the network at that time, else 0. If testing takes too long, the loss
        is over the images tested until then.

    Raises:
        ModelError: no torch, no images, layers that do not fit.
        FloatingPointError: training diverged.
    """
    trained = train(config, settings)
    limit = math.inf if settings.seconds is None else TESTING * settings.seconds
    loss = nll(trained, held_out(settings), settings, seconds=limit)
    return {"loss": loss, "elbo": trained.losses[-1], "epochs": trained.epochs, "stopped": float(trained.stopped)}


def report(result: Any, **options: Any) -> str:
    """The best network layer by layer, and how to look at it."""
    options.pop("pytorch", None)
    chain = [" - ".join(f"{n} {'x'.join(map(str, s))}" for n, s in half) for half in shapes(result.config).values()]
    lines = [
        f"encoder: {chain[0]} (means and log variances of z)",
        f"decoder: {chain[1]} (logits)",
        "",
        "To train it again, with 5,000 importance samples (minutes on a CPU) and a picture of reconstructions:",
        "",
        "from mipcash.models import vae",
        "",
        f"config = {result.config!r}",
        f"settings = vae.settings({', '.join(f'{k}={v!r}' for k, v in options.items())})",
        "trained, test = vae.train(config, settings), vae.held_out(settings)",
        "print(vae.nll(trained, test, settings, samples=5000))",
        "originals, reconstructed = vae.reconstructions(trained, test, count=8, seed=0)",
        'vae.picture("reconstructions.png", originals, {"best": reconstructed})',
    ]
    if result.values.get("stopped"):
        lines.insert(2, f"The time limit stopped its training after {result.values['epochs']:.2f} epochs.")
    return "\n".join(lines)


def _space(pytorch: bool) -> mc.Space:
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
        if pytorch:
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
    return space


space, objective = build()
