"""The loader: where data come from, and what is said when they do not."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from mipcash.errors import ModelError
from mipcash.models import _data, sklearn_pipeline

MIXED = "size,colour,ok,target\n1,red,True,b\n2,blue,False,a\n,red,True,b\n4,,False,a\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIPCASH_DATA", str(tmp_path))
    return tmp_path


def test_csv_by_name_and_by_path(folder: Path) -> None:
    (folder / "plain.csv").write_text(MIXED)
    with gzip.open(folder / "packed.csv.gz", "wt") as file:
        file.write(MIXED)
    expected = [[1, 1, 0, 1], [2, 0, 1, 0], [2, 1, 0, 1], [4, 0, 0, 0]]  # size, ok, colour_blue, colour_red
    for name in ("plain", "packed", str(folder / "plain.csv")):
        table = _data.table(name)
        assert table.x[:, [0, 1]].tolist() == [[row[0], row[3]] for row in expected]
        assert table.x[:, [3, 2]].tolist() == [row[1:3] for row in expected]
        assert table.y.tolist() == [1, 0, 1, 0]


def test_its_source_loads_the_same(folder: Path) -> None:
    pytest.importorskip("pandas")
    (folder / "plain.csv").write_text(MIXED.replace("1,red", "0.1234567890123456789,red"))
    table, names = _data.table("plain"), dict[str, np.ndarray]()
    exec(table.source, names)
    assert np.array_equal(names["X"], table.x)
    assert np.array_equal(names["y"], table.y)


def test_sklearn_data_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIPCASH_DATA", raising=False)
    table, names = _data.table("wine"), dict[str, np.ndarray]()
    exec(table.source, names)
    assert np.array_equal(names["X"], table.x)


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
def test_unfit_files(folder: Path, text: str, target: str, message: str) -> None:
    (folder / "unfit.csv").write_text(text)
    with pytest.raises(ModelError, match=message):
        _data.table("unfit", target)


def test_missing_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "here.csv").write_text(MIXED)
    with pytest.raises(ModelError, match=r"no file .*gone\.csv.*here\.csv"):
        _data.table(str(folder / "gone.csv"))
    import sklearn.datasets

    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(ModelError, match=r"no data set 'gone'.*here\.csv.*breast_cancer.*no network"):
        _data.table("gone")


def test_images(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="MIPCASH_DATA"):
        _data.images()
    np.savez(folder / "mnist_5k.npz", images=np.zeros((2, 28, 28), np.uint8), labels=np.zeros(2, np.uint8))
    assert _data.images()[0].shape == (2, 28, 28)
    monkeypatch.delenv("MIPCASH_DATA")
    with pytest.raises(ModelError, match="not set"):
        _data.images()


def test_the_loader_is_light() -> None:
    """Importing a model must not load a data set, nor a learning library."""
    import subprocess

    script = (
        "import sys, mipcash.models.sklearn_pipeline, mipcash.models.xgboost, mipcash.models.vae;"
        "print([m for m in ('sklearn', 'xgboost', 'torch', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_data_with_a_target_of_their_own_take_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIPCASH_DATA", raising=False)
    with pytest.raises(ModelError, match=r"'breast_cancer' has no column 'nope' to predict.*leave target= out"):
        sklearn_pipeline.build(data="breast_cancer", target="nope")
