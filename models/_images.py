"""Images for models: arrays in ``MIPCASH_DATA``, MNIST's own file format, then OpenML."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import ModelError
from mipcash.models import _data

Images = NDArray[np.uint8]

DEBIAN = {"fashion_mnist": Path("/usr/share/datasets/fashion-mnist")}
"""Folder of the files of Debian's package ``dataset-fashion-mnist``."""
OPENML = {"mnist": "mnist_784", "fashion_mnist": "Fashion-MNIST"}
DIGITS = "digits"
PARTS = ("train", "t10k")
TRAIN_SHARE = 0.8
"""Share of the images that train where a file has no split of its own."""
STANDARD = 60_000
"""Images of MNIST and Fashion-MNIST that train; they come first on OpenML, the 10,000 of the test set follow."""


@dataclass(frozen=True)
class Split:
    """Images, each (n, height, width) with values 0 to 255, and where they are from."""

    train: Images
    test: Images
    source: str


@dataclass(frozen=True)
class Labelled(Split):
    """The same with their classes, each (n,)."""

    train_labels: NDArray[np.integer[Any]]
    test_labels: NDArray[np.integer[Any]]


@lru_cache(maxsize=2)
def split(name: str = "mnist_5k") -> Split:
    """Images by name: ``NAME.npz`` of ``MIPCASH_DATA``, files of Debian, OpenML; the first that is there.

    Args:
        name: ``mnist`` and ``fashion_mnist`` have a standard split; that of any other name is drawn once for all.

    Raises:
        ModelError: there are no such images.
    """
    try:
        return _from_arrays(name)
    except ModelError as missing:
        if name not in OPENML:
            raise ModelError(f"{missing}; or take {' or '.join(OPENML)}") from None
    folder = DEBIAN.get(name)
    if folder is not None and (folder / f"{PARTS[0]}-images-idx3-ubyte.gz").is_file():
        train, test = (read_idx(folder / f"{part}-images-idx3-ubyte.gz") for part in PARTS)
        return Split(train, test, str(folder))
    return _from_openml(name)


def _from_arrays(name: str) -> Split:
    images, _ = _data.images(name)
    train, test = _parted(name, len(images))
    return Split(images[train], images[test], f"{name}.npz")


def _parted(name: str, n: int) -> tuple[Any, Any]:
    """Return the indices of the training images and of the test images among n images."""
    if name in OPENML:
        return slice(STANDARD), slice(STANDARD, None)
    order = np.random.default_rng(0).permutation(n)  # rows may be sorted by class
    size = round(TRAIN_SHARE * n)
    return order[:size], order[size:]


@lru_cache(maxsize=2)
def labelled(name: str = "mnist_5k") -> Labelled:
    """Images with their classes by name: ``NAME.npz`` of ``MIPCASH_DATA``, else ``digits`` of scikit-learn.

    Raises:
        ModelError: there are no such images.
    """
    try:
        images, labels = _data.images(name)
        source = f"{name}.npz"
    except ModelError as missing:
        if name != DIGITS:
            raise ModelError(f"{missing}; or take data={DIGITS}, scikit-learn's own") from None
        images, labels = _digits()
        source = "scikit-learn's digits"
    train, test = _parted(name, len(images))
    return Labelled(images[train], images[test], source, labels[train], labels[test])


def _digits() -> tuple[Images, NDArray[np.int64]]:
    """scikit-learn's 1,797 digits of 8 x 8 pixels, each pixel three wide, inside a border of two: (n, 28, 28), (n,)."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    grey = np.round(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    return np.pad(np.kron(grey, np.ones((1, 3, 3), np.uint8)), ((0, 0), (2, 2), (2, 2))), labels


def first(images: Images, option: str, size: int, name: str) -> NDArray[np.float32]:
    """The first images as grey values in [0, 1], shape (size, 28, 28).

    Args:
        option: that asks for so many, for messages; ``name``: of the images.

    Raises:
        ModelError: there are fewer, or they have another shape.
    """
    if size > len(images):
        raise ModelError(f"option {option}={size}: {name} has {len(images)} such images; ask for at most as many")
    if images.shape[1:] != (28, 28):
        raise ModelError(f"images {name} are {images.shape[1:]} and not (28, 28), which this model is made for")
    return images[:size].astype(np.float32) / np.float32(255)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An array of bytes in MNIST's idx format: 0, 0, type 8, dimensions, their sizes (4 bytes, big end first), data.

    Raises:
        ModelError: the file is something else or cut short.
    """
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        raw = file.read()
    if raw[:3] != b"\0\0\x08":
        raise ModelError(f"{path} is not an idx file of bytes; take the original files of MNIST or Fashion-MNIST")
    start = 4 + 4 * raw[3]
    shape = np.frombuffer(raw[4:start], ">u4").astype(int)
    if len(raw) - start != shape.prod():
        raise ModelError(f"{path} holds {len(raw) - start} bytes where its header says {shape.prod()}; fetch it again")
    return np.frombuffer(raw[start:], np.uint8).reshape(shape)


def _from_openml(name: str) -> Split:
    from sklearn.datasets import fetch_openml

    try:
        pixels, _ = fetch_openml(OPENML[name], version=1, return_X_y=True, as_frame=False, parser="liac-arff")
    except Exception as error:
        package = " Debian's package dataset-fashion-mnist has them too." if name in DEBIAN else ""
        raise ModelError(
            f"there are no images {name!r}: no {name}.npz in {_data.FOLDER}, and OpenML did not give them "
            f"({type(error).__name__}: {error}).{package} The option data=mnist_5k needs only mnist_5k.npz"
        ) from error
    images = np.asarray(pixels, np.uint8).reshape(-1, 28, 28)
    return Split(images[:STANDARD], images[STANDARD:], f"OpenML's {OPENML[name]}")
