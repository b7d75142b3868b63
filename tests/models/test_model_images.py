"""Images for models: where they come from, and what is said when they do not."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import _images


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    monkeypatch.setattr(_images, "DEBIAN", {"fashion_mnist": tmp_path / "debian"})
    _images.split.cache_clear()
    yield tmp_path
    _images.split.cache_clear()


def numbered(n: int) -> np.ndarray:
    return np.broadcast_to((np.arange(n) % 251).astype(np.uint8)[:, None, None], (n, 28, 28)).copy()


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    with gzip.open(path, "wb") as file:
        file.write(header + array.tobytes())


def test_arrays_are_split_once_for_all(folder: Path) -> None:
    np.savez(folder / "mnist_5k.npz", images=numbered(100), labels=np.zeros(100, np.uint8))
    split = _images.split()
    assert (split.train.shape, split.test.shape) == ((80, 28, 28), (20, 28, 28))
    values = [part[:, 0, 0].tolist() for part in (split.train, split.test)]
    assert sorted(values[0] + values[1]) == list(range(100))
    assert values[0] != sorted(values[0])


def test_files_of_debian(folder: Path) -> None:
    (folder / "debian").mkdir()
    for part, n in (("train", 7), ("t10k", 3)):
        write_idx(folder / "debian" / f"{part}-images-idx3-ubyte.gz", numbered(n))
    split = _images.split("fashion_mnist")
    assert np.array_equal(split.train, numbered(7))
    assert np.array_equal(split.test, numbered(3))


def test_openml_keeps_the_standard_split(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    asked = []

    def fetch(name: str, **_: object) -> tuple[np.ndarray, None]:
        asked.append(name)
        return numbered(60_003).reshape(60_003, 784).astype(np.int64), None

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    split = _images.split("mnist")
    assert asked == ["mnist_784"]
    assert (split.train.shape, split.test.shape) == ((60_000, 28, 28), (3, 28, 28))
    assert split.test[:, 0, 0].tolist() == [60_000 % 251, 60_001 % 251, 60_002 % 251]


def test_what_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(ModelError, match=r"no network.*dataset-fashion-mnist.*mnist_5k"):
        _images.split("fashion_mnist")
    with pytest.raises(ModelError, match=r"mnist_5k\.npz.*mnist or fashion_mnist"):
        _images.split()
    short = folder / "short.gz"
    write_idx(short, numbered(2))
    whole = gzip.decompress(short.read_bytes())
    short.write_bytes(gzip.compress(whole[:-1]))
    with pytest.raises(ModelError, match="fetch it again"):
        _images.read_idx(short)
    short.write_bytes(gzip.compress(b"text"))
    with pytest.raises(ModelError, match="not an idx file"):
        _images.read_idx(short)
