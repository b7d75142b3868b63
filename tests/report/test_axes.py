"""The pictures as functions: they draw on axes and return them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tinyrun
from reported import RUNS

import mipcash.report as pictures
from mipcash.errors import MipcashError
from mipcash.report.data.effects import effects
from mipcash.report.data.run import Run
from mipcash.report.drawing import drawable

pytestmark = pytest.mark.skipif(not drawable(), reason="pictures need the extra plots")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No window, and no figure is left."""
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_every_picture_draws_and_returns_axes() -> None:
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    run = Run.of(RUNS["maximised"]())
    drawn = [
        pictures.plot_convergence(run, by="seconds"),
        pictures.plot_parallel_coordinates(run),
        pictures.plot_importance(run),
        pictures.plot_interactions(run),
        pictures.plot_slice(run),
        pictures.plot_times(run),
        pictures.plot_limits(run),
    ]
    for axes in drawn:
        assert isinstance(axes, Axes)
        axes.figure.canvas.draw()
    pyplot.close("all")
    front = pictures.plot_front(RUNS["several"]())
    assert "more is better" in front.get_ylabel()
    run = Run.of(RUNS["conditional"]())
    own = Figure().subplots()
    assert pictures.plot_slice(run, "order", ax=own) is own


def test_page_and_axes_show_the_same_numbers() -> None:
    run = Run.of(RUNS["some"]())
    axes, found = pictures.plot_importance(run), effects(run)
    assert found is not None
    bars = [bar.get_width() for bar in axes.containers[0]]
    assert bars == pytest.approx([100 * p.whole.middle for p in found.parameters])
    assert [t.get_text() for t in axes.get_yticklabels()] == found.labels


def test_what_cannot_be_drawn_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tinyrun.begun(tmp_path / "run.db", 6)
    few, some = RUNS["two"](), RUNS["some"]()
    for call, message in (
        (lambda: pictures.plot_importance(tmp_path / "run.db"), "needs the space of the run; give space="),
        (lambda: pictures.plot_gaps(tmp_path / "run.db"), "read without its space="),
        (lambda: pictures.plot_importance(few), "takes four evaluations with different losses"),
        (lambda: pictures.plot_slice(some, "nothing"), "no slice along str 'nothing'.*there are .*rate"),
        (lambda: pictures.plot_limits(some, "ms"), "no output str 'ms'; there are none"),
        (lambda: pictures.plot_residuals(some), "tells no residuals"),
        (lambda: pictures.plot_front(some), "there is no front: the run has one objective"),
        (lambda: pictures.plot_convergence(some, by="hours"), "'evaluations' or 'seconds'; got str 'hours'"),
        (lambda: pictures.plot_parallel_coordinates(RUNS["one"]()), "need two trials with a loss"),
    ):
        with pytest.raises(MipcashError, match=message):
            call()
    monkeypatch.setattr("mipcash.report.drawing.find_spec", lambda name: None)
    with pytest.raises(MipcashError, match=r"pip install 'mipcash\[plots\]'"):
        pictures.plot_convergence(some)
