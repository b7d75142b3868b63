"""Analytic stand-in for training the VAE of Daxberger et al., on the bundled ``vae`` space with all its rules.

It keeps the difficulties of the real problem. The structure of the network matters most. Good decoders (two transposed
convolutions that double the width) are rare among legal ones. Effects multiply rather than add. In nats,

    loss = 80 + 120 exp(-E - D) + latent + rate + decay

    E        information from the encoder: channels, filters and strides of its convolutions. A narrow f1, or one that
             does not fit the flattened convolutions, loses some of it.
    D        capacity of the decoder: smooth upsampling (stride 2, larger filter) times its channels, and f4.
    latent   The best d_z grows with the number of convolutions on both sides.
    rate     The best learning rate falls with depth, and a high rate needs decay.
    decay    The best weight decay falls with the number of fully connected layers.
"""

from __future__ import annotations

import math

import mipcash as mc
from benchmarks.peers.problem import Config, described
from mipcash.models.vae import IMAGE, build, shapes

PENALTY = 500.0
"""Loss that the paper reports to the other methods for an illegal network, in nats."""


def objective(config: Config) -> float:
    made = shapes(config)
    structure = (config["conv_layers"], config["deconv_layers"], config["encoder_fc_layers"], config["decoder_fc_layers"])
    score = encoder(config, dict(made["encoder"])) + decoder(config)
    return 80.0 + 120.0 * math.exp(-score) + numbers(config, structure)


def encoder(config: Config, widths: Config) -> float:
    """Return E, between 0.1 and about 1.2."""
    n, quality, flat = config["conv_layers"], 0.15, float(IMAGE**2)
    for layer, most in (("c1", 24), ("c2", 48))[:n]:
        channels, width, _ = widths[layer]
        flat = float(channels * width**2)
        sharp = 1.0 if (config[f"{layer}_filter"] == 5) == (config[f"{layer}_stride"] == 2) else 0.7
        quality += 0.45 * sharp * math.sqrt(channels / most)
    if n == 2 and config["c2_channels"] < config["c1_channels"]:
        quality *= 0.75  # a bottleneck in the middle
    if config["encoder_fc_layers"] == 2:
        units = config["f1_units"]
        fits = math.exp(-((math.log(units / 512.0) - 0.25 * math.log(flat / 2000.0)) ** 2))
        quality *= 0.85 + 0.35 * fits
    return quality


def decoder(config: Config) -> float:
    """Return D, between 0.05 and about 1.9."""
    n, smooth = config["deconv_layers"], 1.0
    for layer in ("d1", "d2")[:n]:
        stride, size = config[f"{layer}_stride"], config[f"{layer}_filter"]
        smooth *= (0.45, 0.6, 0.8, 1.0)[2 * (stride == 2) + (size == 5)]
    channels = math.sqrt(config["d1_channels"] / 48.0)
    if n == 2:
        channels *= math.sqrt(0.4 + 0.6 * config["d2_channels"] / 24.0)
    quality = 0.1 + (0.0, 0.7, 1.6)[n] * smooth * channels
    if config["decoder_fc_layers"] == 2:
        units = config["f4_units"]
        quality *= 0.8 + 0.4 * units / (units + 128.0) * (1.0 if n else 0.5)
    return quality


def numbers(config: Config, structure: tuple[int, int, int, int]) -> float:
    """Return the losses of the latent size and the three reals, at least 0 for every structure."""
    conv, deconv, f_in, f_out = structure
    latent = math.log2(config["d_z"] / best_latent(structure))
    rate = math.log10(config["learning_rate"])
    depth = conv + deconv + f_in + f_out
    wish = -2.5 - 0.12 * depth - 0.8 * (config["learning_rate_decay"] - 0.85)
    decay = math.log10(config["weight_decay"]) + 3.0 + 0.5 * (f_in + f_out)
    return 6.0 * latent**2 + 14.0 * math.tanh((rate - wish) ** 2) + 5.0 * math.tanh(0.5 * decay**2)


def best_latent(structure: tuple[int, int, int, int]) -> int:
    return 18 + 6 * (structure[0] + structure[1])


def space() -> mc.Space:
    return build()[0]


PROBLEMS = (described("vae-proxy", space, objective, penalty=PENALTY),)
