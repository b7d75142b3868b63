"""The picture of a run."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mipcash.errors import MipcashError
from mipcash.optimizers.outcome import Outcome
from mipcash.report import convergence as plots
from mipcash.study.result import Result
from mipcash.study.trial import Trial

pytestmark = pytest.mark.skipif(not plots.drawable(), reason="pictures need the extra plots")
SVG = "{http://www.w3.org/2000/svg}"


def result(*losses: float | None) -> Result:
    """A history by its losses; None: failed, nan: still pending."""
    return Result(
        tuple(
            Trial(
                k,
                {},
                "failed" if loss is None else "pending" if math.isnan(loss) else "done",
                Outcome() if loss is None or math.isnan(loss) else Outcome.of(loss),
            )
            for k, loss in enumerate(losses)
        ),
        "bowl & <co>",
    )


CASES = [
    result(3.0, None, 2.0, 2.5, math.nan),
    result(),
    result(None, None),
    result(1.0),
    result(0.0, 0.0),
    result(math.nan),
    result(1.0, 2.0, 1.5, 1.2, 1.1, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9, 1e9),
    result(-1e300, 1e300),
    result(*[1e-12 * k for k in range(30)]),
]


@pytest.mark.parametrize("case", CASES)
def test_every_history_can_be_drawn(case: Result, tmp_path: Path) -> None:
    drawn = plots.plot_convergence(case, tmp_path / "picture.svg")
    root = ElementTree.parse(drawn).getroot()
    assert root.tag == f"{SVG}svg"


def test_without_matplotlib_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    assert not plots.drawable()
    with pytest.raises(MipcashError, match=r"matplotlib; pip install 'mipcash\[plots\]'"):
        plots.plot_convergence(CASES[0], tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def test_a_png_is_a_png(tmp_path: Path) -> None:
    drawn = plots.plot_convergence(CASES[0], str(tmp_path / "picture.PNG"))
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_other_suffixes_and_folders_are_refused(tmp_path: Path) -> None:
    for name, message in (
        ("picture.jpg", ".png or .svg"),
        ("picture", ".png or .svg"),
        ("no/folder.svg", r"cannot be written: .*/no is no folder; create it \(mkdir -p .*/no\)"),
        ("taken.svg", r"taken\.svg cannot be written: it is a folder; give a file such as"),
        ("file.svg/picture.svg", "is no folder; give another file"),
        ("nul\0.svg", r"nul\\x00.svg cannot be written: .*null byte"),
        ("x" * 300 + ".svg", "cannot be written: .*too long"),
    ):
        (tmp_path / "taken.svg").mkdir(exist_ok=True)
        (tmp_path / "file.svg").touch()
        with pytest.raises(MipcashError, match=message):
            plots.plot_convergence(CASES[0], tmp_path / name)
    with pytest.raises(MipcashError, match="None is no path of a picture"):
        plots.plot_convergence(CASES[0], None)  # type: ignore[arg-type]


def test_an_outlier_does_not_flatten_the_rest() -> None:
    curve = plots._curve(CASES[6])
    assert 2.0 < curve.high < 3.0
    assert curve.low < 1.0
    assert plots._curve(result(1.0, 5.0, 9.0)).high > 9.0
