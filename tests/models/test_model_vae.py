"""Model ``vae``: the rules allow exactly the networks that can be built."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mipcash.errors import ModelError
from mipcash.models import vae

PLAIN = {
    **{"conv_layers": 0, "encoder_fc_layers": 1, "d_z": 16, "decoder_fc_layers": 1, "deconv_layers": 0},
    **{"d1_channels": 16, "learning_rate": 1e-3, "learning_rate_decay": 0.9, "weight_decay": 1e-4},
}


def encoder_layers(setting: tuple[int, ...]) -> dict[str, Any]:
    """Return a configuration whose convolutions have the given (stride, filter, padding)."""
    config: dict[str, Any] = dict(PLAIN, conv_layers=len(setting) // 3)
    for n in range(len(setting) // 3):
        names = (f"c{n + 1}_{part}" for part in ("stride", "filter", "padding"))
        config |= {f"c{n + 1}_channels": 8, **dict(zip(names, setting[3 * n : 3 * n + 3], strict=True))}
    return config


def decoder_layers(setting: tuple[int, ...]) -> dict[str, Any]:
    """Return a configuration whose deconvolutions have the given (stride, filter, padding, output padding)."""
    layers = len(setting) // 4
    config: dict[str, Any] = dict(PLAIN, deconv_layers=layers) | ({"d2_channels": 8} if layers == 2 else {})
    for n in range(layers):
        names = (f"d{n + 1}_{part}" for part in ("stride", "filter", "padding", "output_padding"))
        config |= dict(zip(names, setting[4 * n : 4 * n + 4], strict=True))
    return config


def decoder_width(setting: tuple[int, ...]) -> int | None:
    """Compute the width by Eqs. (7) and (8) from width 7, or None if no pixels are left."""
    width = 7
    for n in range(0, len(setting), 4):
        stride, size, padding, extra = setting[n : n + 4]
        width = (width - 1) * stride + size - 2 * padding + extra
        if width < 1:
            return None
    return width


LAYER = list(product((1, 2), (3, 5), range(4)))
ONE_LAYER = [(*layer, extra) for layer, extra in product(LAYER, range(4))]
TWO_LAYERS = [first + second for first, second in product(ONE_LAYER, ONE_LAYER)]
ENDS_IN_28 = [s for s in TWO_LAYERS if decoder_width(s) == 28]
BUILDS_IN_PYTORCH = [s for s in ENDS_IN_28 if s[3] < s[0] and s[7] < s[4]]


def test_settings_of_the_decoder() -> None:
    """Check all legal settings and every 20th illegal one. PyTorch's space is the paper's with two more rules."""
    assert not [s for s in ONE_LAYER if decoder_width(s) == 28]
    assert (len(TWO_LAYERS), len(ENDS_IN_28), len(BUILDS_IN_PYTORCH)) == (4096, 80, 16)
    space, _ = vae.build(pytorch="false")
    assert len(space.rules) == len(vae.space.rules) - 2
    assert set(space.rules) < set(vae.space.rules)
    looked_at = [s for k, s in enumerate(TWO_LAYERS) if k % 20 == 0 or s in ENDS_IN_28] + ONE_LAYER[::8]
    assert [s for s in looked_at if space.is_legal(decoder_layers(s))] == ENDS_IN_28
    assert [s for s in ENDS_IN_28 if vae.space.is_legal(decoder_layers(s))] == BUILDS_IN_PYTORCH
    # Appendix B.2: without deconvolutions 16 channels are needed, since 16 x 7 x 7 = 28 x 28
    assert [c for c in (8, 16, 32, 48) if vae.space.is_legal(dict(PLAIN, d1_channels=c))] == [16]
    assert vae.shapes(PLAIN)["decoder"] == [("z", (16,)), ("f3", (1, 28, 28))]


def test_every_setting_of_the_encoder() -> None:
    widths = set()
    for setting in [*LAYER, *(a + b for a, b in product(LAYER, LAYER))]:
        width, whole = 28, True
        for n in range(0, len(setting), 3):
            stride, size, padding = setting[n : n + 3]
            whole = whole and (width - size + padding) % stride == 0
            width = (width - size + padding) // stride + 1
        assert vae.space.is_legal(encoder_layers(setting)) == whole, setting
        if whole:
            assert vae.shapes(encoder_layers(setting))["encoder"][-2][1] == (8, width, width)
            widths.add(width)
    # zero fc. layers are forbidden, because no convolutions end in 2 d_z numbers, at most 128
    assert 8 * min(widths) ** 2 > 2 * 64
    assert not vae.space.is_legal(dict(PLAIN, encoder_fc_layers=0))
    assert not vae.space.is_legal(dict(PLAIN, decoder_fc_layers=0))


def test_fc_layers() -> None:
    hidden = dict(PLAIN, encoder_fc_layers=2, f1_units=64, decoder_fc_layers=2, f4_units=960)
    assert vae.space.is_legal(hidden)
    assert vae.shapes(hidden) == {
        "encoder": [("image", (1, 28, 28)), ("f1", (64,)), ("f2", (32,))],
        "decoder": [("z", (16,)), ("f3", (960,)), ("f4", (1, 28, 28))],
    }
    assert not vae.space.is_legal(dict(hidden, f1_units=0))
    assert not vae.space.is_legal(dict(hidden, f4_units=0))
    assert not vae.space.is_legal(dict(PLAIN, f1_units=64)), "f1 does not exist with one fc. layer"


def test_shapes_refuse_configurations_that_do_not_fit() -> None:
    for config, message in (
        (encoder_layers((2, 3, 0)), "not whole"),
        (decoder_layers((1, 3, 0, 0)), "decoder ends in"),
        (dict(PLAIN, encoder_fc_layers=0), "no fc"),
        (dict(PLAIN, encoder_fc_layers=2, f1_units=0), "nothing is left"),
    ):
        with pytest.raises(ModelError, match=message):
            vae.shapes(config)
    with pytest.raises(ModelError, match="pytorch"):
        vae.build(pytorch="maybe")


def test_sampled_networks_have_fitting_shapes_and_run() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    for config in [*vae.space.sample(20, seed=2), PLAIN, *map(decoder_layers, BUILDS_IN_PYTORCH)]:
        sizes = vae.shapes(config)
        assert (sizes["encoder"][-1][1], sizes["decoder"][-1][1]) == ((2 * config["d_z"],), (1, 28, 28))
        with torch.device("meta"):  # compute shapes only
            encoder, decoder = vae.network(config)
            assert encoder(torch.zeros(2, 1, 28, 28)).shape == (2, 2 * config["d_z"])
            assert decoder(torch.zeros(2, config["d_z"])).shape == (2, 1, 28, 28)
