"""Data of models: sources of tables and images, and error messages for missing ones."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import _data, _images, sklearn_pipeline

MIXED = "size,colour,ok,target\n1,red,True,b\n2,blue,False,a\n,red,True,b\n4,,False,a\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    monkeypatch.setattr(_images, "DEBIAN", {"fashion_mnist": tmp_path / "debian"})
    _images.split.cache_clear()
    yield tmp_path
    _images.split.cache_clear()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    def fetch(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)


# -- tables -----------------------------------------------------------------------------------------------------------


def test_csv_by_name_and_by_path(folder: Path) -> None:
    (folder / "plain.csv").write_text(MIXED)
    with gzip.open(folder / "packed.csv.gz", "wt") as file:
        file.write(MIXED)
    for name in ("plain", "packed", str(folder / "plain.csv")):
        table = _data.table(name)  # size, ok, colour_blue, colour_red
        assert table.x.tolist() == [[1, 1, 0, 1], [2, 0, 1, 0], [2, 1, 0, 1], [4, 0, 0, 0]]
        assert table.y.tolist() == [1, 0, 1, 0]


def test_the_printed_source_loads_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    (folder / "plain.csv").write_text(MIXED.replace("1,red", "0.1234567890123456789,red"))
    for name in ("plain", "wine"):
        table, names = _data.table(name), dict[str, np.ndarray]()
        exec(table.source, names)
        assert np.array_equal(names["X"], table.x)
        assert np.array_equal(names["y"], table.y)
        monkeypatch.delenv("MIPCASH_DATA", raising=False)  # data sets of scikit-learn need no folder


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (MIXED, "class", r"no column 'class'.*target=.*size, colour"),
        ("a,target\n", "target", "no rows"),
        ("a,target\n1,x\n2\n", "target", "row 3.*mend"),
        ("a,target\n1,x\n2,\n", "target", "missing classes"),
        ("a,target\n1,x\n2,x\n", "target", "one class"),
        ("a,target\n1,x\n2,x\n3,y\n", "target", "occurs once"),
        ("target\nx\ny\n", "target", "no column beside"),
        ("a,target\n,x\n,x\n,y\n,y\n", "target", "'a' has no values"),
        ("a,target\n" + "".join(f"{i},{i / 7}\n" for i in range(30)), "target", "regress"),
    ],
)
def test_unusable_files_are_refused(folder: Path, text: str, target: str, message: str) -> None:
    (folder / "unfit.csv").write_text(text)
    with pytest.raises(ModelError, match=message):
        _data.table("unfit", target)


def test_missing_data(folder: Path, monkeypatch: pytest.MonkeyPatch, offline: None) -> None:
    (folder / "here.csv").write_text(MIXED)
    with pytest.raises(ModelError, match=r"no file .*gone\.csv.*here\.csv"):
        _data.table(str(folder / "gone.csv"))
    with pytest.raises(ModelError, match=r"no data set 'gone'.*here\.csv.*breast_cancer.*no network"):
        _data.table("gone")
    with pytest.raises(ModelError, match=r"'breast_cancer' has no column 'nope' to predict.*leave target= out"):
        sklearn_pipeline.build(data="breast_cancer", target="nope")
    with pytest.raises(ModelError, match=r"no network.*dataset-fashion-mnist.*mnist_5k"):
        _images.split("fashion_mnist")
    with pytest.raises(ModelError, match=r"mnist_5k\.npz.*mnist or fashion_mnist"):
        _images.split()
    with pytest.raises(ModelError, match="MIPCASH_DATA"):
        _data.images()
    monkeypatch.delenv("MIPCASH_DATA")
    with pytest.raises(ModelError, match="not set"):
        _data.images()


def test_importing_models_loads_no_learning_library() -> None:
    """Assert that importing a model loads neither a data set nor a learning library."""
    script = (
        "import sys, mipcash.models.sklearn_pipeline, mipcash.models.xgboost, mipcash.models.vae;"
        "print([m for m in ('sklearn', 'xgboost', 'torch', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# -- images -----------------------------------------------------------------------------------------------------------


def numbered(n: int) -> np.ndarray:
    return np.broadcast_to((np.arange(n) % 251).astype(np.uint8)[:, None, None], (n, 28, 28)).copy()


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + array.tobytes(), 1))


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
    short = folder / "short.gz"
    write_idx(short, numbered(2))
    for content, message in ((gzip.decompress(short.read_bytes())[:-1], "fetch it again"), (b"text", "not an idx")):
        short.write_bytes(gzip.compress(content))
        with pytest.raises(ModelError, match=message):
            _images.read_idx(short)


def test_openml_keeps_the_standard_split(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    images = numbered(60_003).reshape(60_003, 784)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: (images, name))
    split = _images.split("mnist")
    assert (split.train.shape, split.test.shape) == ((60_000, 28, 28), (3, 28, 28))
    assert split.test[:, 0, 0].tolist() == [60_000 % 251, 60_001 % 251, 60_002 % 251]
