"""vae: its rules allow exactly the networks that can be built."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mipcash.errors import ModelError
from mipcash.models import vae

STRIDES, FILTERS, PADDINGS = [1, 2], [3, 5], range(4)
PLAIN = {
    "conv_layers": 0,
    "encoder_fc_layers": 1,
    "d_z": 16,
    "decoder_fc_layers": 1,
    "deconv_layers": 0,
    "d1_channels": 16,
    "learning_rate": 1e-3,
    "learning_rate_decay": 0.9,
    "weight_decay": 1e-4,
}


def encoder_layers(setting: tuple[int, ...]) -> dict[str, Any]:
    """A configuration with convolutions of the given (stride, filter, padding) each."""
    config: dict[str, Any] = dict(PLAIN, conv_layers=len(setting) // 3)
    for n in range(len(setting) // 3):
        names = (f"c{n + 1}_{part}" for part in ("stride", "filter", "padding"))
        config |= {f"c{n + 1}_channels": 8, **dict(zip(names, setting[3 * n : 3 * n + 3], strict=True))}
    return config


def decoder_layers(setting: tuple[int, ...]) -> dict[str, Any]:
    """A configuration with deconvolutions of the given (stride, filter, padding, output padding) each."""
    layers = len(setting) // 4
    config: dict[str, Any] = dict(PLAIN, deconv_layers=layers)
    if layers == 2:
        config["d2_channels"] = 8
    for n in range(layers):
        names = (f"d{n + 1}_{part}" for part in ("stride", "filter", "padding", "output_padding"))
        config |= dict(zip(names, setting[4 * n : 4 * n + 4], strict=True))
    return config


def decoder_width(setting: tuple[int, ...]) -> int | None:
    """Eqs. (7) and (8) from width 7; None where an image has no pixels left."""
    width = 7
    for n in range(0, len(setting), 4):
        stride, size, padding, extra = setting[n : n + 4]
        width = (width - 1) * stride + size - 2 * padding + extra
        if width < 1:
            return None
    return width


ONE_LAYER = list(product(STRIDES, FILTERS, PADDINGS, PADDINGS))
TWO_LAYERS = [first + second for first, second in product(ONE_LAYER, ONE_LAYER)]
ENDS_IN_28 = [s for s in TWO_LAYERS if decoder_width(s) == 28]
BUILDS_IN_PYTORCH = [s for s in ENDS_IN_28 if s[3] < s[0] and s[7] < s[4]]


def test_counts_of_the_decoder() -> None:
    assert len(TWO_LAYERS) == 4096
    assert not [s for s in ONE_LAYER if decoder_width(s) == 28]
    assert len(ENDS_IN_28) == 80
    assert len(BUILDS_IN_PYTORCH) == 16


def test_settings_of_the_decoder() -> None:
    """All that are legal, and every fifth of the others."""
    space, _ = vae.build(pytorch=False)
    looked_at = [s for k, s in enumerate(TWO_LAYERS) if k % 5 == 0 or s in ENDS_IN_28]
    assert [s for s in looked_at if space.is_legal(decoder_layers(s))] == ENDS_IN_28
    assert not any(space.is_legal(decoder_layers(s)) for s in ONE_LAYER)


def test_what_pytorch_can_build() -> None:
    """Its space is the paper's with two rules more, so that only what is legal there can be."""
    assert set(vae.build(pytorch=False)[0].rules) < set(vae.space.rules)
    assert [s for s in ENDS_IN_28 if vae.space.is_legal(decoder_layers(s))] == BUILDS_IN_PYTORCH
    assert not any(
        vae.space.is_legal(decoder_layers(s)) for s in [*ONE_LAYER, *TWO_LAYERS[::16]] if s not in ENDS_IN_28
    )


def test_every_setting_of_the_encoder() -> None:
    layer = list(product(STRIDES, FILTERS, PADDINGS))
    for setting in [*layer, *(a + b for a, b in product(layer, layer))]:
        width, whole = 28, True
        for n in range(0, len(setting), 3):
            stride, size, padding = setting[n : n + 3]
            whole = whole and (width - size + padding) % stride == 0
            width = (width - size + padding) // stride + 1
        assert vae.space.is_legal(encoder_layers(setting)) == whole, setting
        if whole:
            assert vae.shapes(encoder_layers(setting))["encoder"][-2][1] == (8, width, width)


def test_no_flattened_image_is_z() -> None:
    """Why zero fc. layers are ruled out: the table has no convolutions that end in 2 d_z numbers."""
    layer = list(product(STRIDES, FILTERS, PADDINGS))
    settings = [
        s for s in (*layer, *(a + b for a, b in product(layer, layer))) if vae.space.is_legal(encoder_layers(s))
    ]
    widths = {vae.shapes(encoder_layers(s))["encoder"][-2][1][1] for s in settings}
    assert 4 * min(widths) ** 2 > 2 * 64 or 8 * min(widths) ** 2 > 2 * 64
    assert min(widths) == 5
    assert not vae.space.is_legal(dict(PLAIN, encoder_fc_layers=0))
    assert not vae.space.is_legal(dict(PLAIN, decoder_fc_layers=0))


def test_a_decoder_without_deconvolutions_is_the_image() -> None:
    """Appendix B.2: deactivate all deconvolutions and choose 16 channels, since 16 x 7 x 7 = 28 x 28."""
    assert [c for c in (8, 16, 32, 48) if vae.space.is_legal(dict(PLAIN, d1_channels=c))] == [16]
    assert vae.shapes(PLAIN)["decoder"] == [("z", (16,)), ("f3", (1, 28, 28))]


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


def test_shapes_refuse_what_does_not_fit() -> None:
    with pytest.raises(ModelError, match="not whole"):
        vae.shapes(encoder_layers((2, 3, 0)))
    with pytest.raises(ModelError, match="decoder ends in"):
        vae.shapes(decoder_layers((1, 3, 0, 0)))
    with pytest.raises(ModelError, match="no fc"):
        vae.shapes(dict(PLAIN, encoder_fc_layers=0))
    with pytest.raises(ModelError, match="nothing is left"):
        vae.shapes(dict(PLAIN, encoder_fc_layers=2, f1_units=0))


def test_samples_have_fitting_shapes() -> None:
    for config in vae.space.sample(200, seed=1):
        sizes = vae.shapes(config)
        assert sizes["decoder"][-1][1] == (1, 28, 28)
        assert sizes["encoder"][-1][1] == (2 * config["d_z"],)


def test_sampled_networks_run() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    configs = [*vae.space.sample(20, seed=2), PLAIN, *map(decoder_layers, BUILDS_IN_PYTORCH)]
    for config in configs:
        with torch.device("meta"):  # shapes without the arithmetic
            encoder, decoder = vae.network(config)
            assert encoder(torch.zeros(2, 1, 28, 28)).shape == (2, 2 * config["d_z"])
            assert decoder(torch.zeros(2, config["d_z"])).shape == (2, 1, 28, 28)
    small = dict(
        decoder_layers(BUILDS_IN_PYTORCH[0]),
        **{k: v for k, v in encoder_layers((2, 3, 1, 1, 5, 3)).items() if k[0] == "c"},
    )
    encoder, decoder = vae.network(small)
    code = encoder(torch.rand(3, 1, 28, 28))
    image = decoder(code[:, : small["d_z"]])
    assert image.shape == (3, 1, 28, 28)
    assert torch.isfinite(image).all()
    built = [tuple(m.weight.shape) for m in [*encoder, *decoder] if hasattr(m, "weight")]
    assert built[0] == (8, 1, 3, 3)


def test_options() -> None:
    assert len(vae.build(pytorch="false")[0].rules) == len(vae.space.rules) - 2
    with pytest.raises(ModelError, match="pytorch"):
        vae.build(pytorch="maybe")
