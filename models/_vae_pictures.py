"""Reconstructions of test images by the vae model, as arrays and as a picture (Figs. 3 and 6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.models._packages import needed
from mipcash.models._vae_training import HeldOut, Trained, import_torch

Pixels = NDArray[np.float32]


def reconstructions(trained: Trained, test: HeldOut, count: int = 8, seed: int = 0) -> tuple[Pixels, Pixels]:
    """Random test images and what is left of them after encoding and decoding.

    Args:
        count: images; all of the test set where it has fewer.
        seed: of their choice: the same images for every network.

    Returns:
        Grey originals, and the probabilities p(x = 1 | z) at the mean z of q(z | x) of the binary image; both
        (count, 28, 28) in [0, 1].
    """
    torch = import_torch()
    n = len(test.grey)
    rows = np.random.default_rng(seed).choice(n, min(count, n), replace=False)
    with torch.inference_mode():
        means, _ = trained.encoder(test.binary[torch.from_numpy(rows).to(test.binary.device)]).chunk(2, dim=1)
        pixels = trained.decoder(means).sigmoid()[:, 0].cpu().numpy()
    return test.grey[rows], pixels


def picture(path: str | os.PathLike[str], originals: Pixels, reconstructed: Mapping[str, Pixels]) -> Path:
    """Write a picture: the originals, and below them one row per network (needs the extra ``plots``).

    Args:
        path: PNG, or another format that matplotlib knows by its suffix.
        originals: (n, 28, 28) in [0, 1].
        reconstructed: label -> (n, 28, 28) in [0, 1], in the order of the rows.

    Returns:
        The file that was written.

    Raises:
        ModelError: no matplotlib; rows of different shapes.
    """
    figures = needed("matplotlib.figure", "a picture", "plots")
    rows = {"test images": originals, **reconstructed}
    shapes = {label: np.shape(images) for label, images in rows.items()}
    if len(set(shapes.values())) > 1 or len(np.shape(originals)) != 3:
        raise ModelError(f"the rows of a picture must be of one shape (n, height, width), got {shapes}")
    n = len(originals)
    figure = figures.Figure(figsize=(0.6 * n + 1.6, 0.62 * len(rows)), dpi=150)
    axes = figure.subplots(len(rows), n, squeeze=False, gridspec_kw={"wspace": 0.06, "hspace": 0.06})
    for line, (label, images) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, images, strict=True):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    target = Path(path)
    figure.savefig(target, bbox_inches="tight")
    return target
