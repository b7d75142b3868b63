"""Images that tests train on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mipcash.models import _images


@contextmanager
def bars(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create mnist_5k.npz in a folder: 200 images of one to three bars, sorted by class like the real file."""
    rng = np.random.default_rng(0)
    images = np.zeros((200, 28, 28), np.uint8)
    for n, image in enumerate(images):
        for column in rng.choice(26, 1 + n // 70, replace=False):
            image[4:24, column : column + 3] = 230
    np.savez(folder / "mnist_5k.npz", images=images, labels=np.arange(200) // 70)
    monkeypatch.setenv("MIPCASH_DATA", str(folder))
    _images.split.cache_clear()
    yield folder
    _images.split.cache_clear()
