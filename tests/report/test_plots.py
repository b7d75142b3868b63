"""Plots of a run and the picture of its convergence."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tinyrun
from reported import RUNS, told

import mipcash as mc
import mipcash.report as pictures
from mipcash.errors import MipcashError
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import Outcome, Output
from mipcash.program.points import Points
from mipcash.report import convergence as plots
from mipcash.report.axes import rows
from mipcash.report.comparison import distribution, ranks
from mipcash.report.contour import predicted
from mipcash.report.data.convergence import curve
from mipcash.report.data.coordinates import coordinates
from mipcash.report.data.effects import effects
from mipcash.report.data.limits import limits
from mipcash.report.data.run import Run
from mipcash.report.data.settings import Variable
from mipcash.report.data.slices import along_equations, slices
from mipcash.report.drawing import drawable
from mipcash.report.page.document import page
from mipcash.report.residuals import Residuals
from mipcash.study.result import Result
from mipcash.study.trial import Trial

pytestmark = pytest.mark.skipif(not drawable(), reason="pictures need the extra plots")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Use no windows, and assert that no figure stays open."""
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def result(*losses: float | None) -> Result:
    """Return a history with the given losses; None is a failed trial, nan a pending one."""
    trials = []
    for k, loss in enumerate(losses):
        status = "failed" if loss is None else "pending" if math.isnan(loss) else "done"
        trials.append(Trial(k, {"k": k}, status, Outcome.of(loss) if status == "done" else Outcome()))
    return Result(tuple(trials), "bowl & <co>")


OUTLIER = result(1.0, 2.0, 1.5, 1.2, 1.1, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9, 1e9)


def test_every_history_can_be_drawn(tmp_path: Path) -> None:
    for case in (
        result(3.0, None, 2.0, 2.5, math.nan),
        result(),
        result(None, None),
        result(0.0, 0.0),
        result(math.nan),
        OUTLIER,
        result(-1e300, 1e300),
    ):
        root = ElementTree.parse(plots.save_convergence(case, tmp_path / "picture.svg")).getroot()
        assert root.tag == f"{SVG}svg"
    assert plots.save_convergence(case, str(tmp_path / "picture.PNG")).read_bytes().startswith(b"\x89PNG")


def traced(*residuals: dict[str, object]) -> Result:
    return Result(
        tuple(Trial(k, {}, "done", Outcome.of(1.0 / (k + 1)), trace=trace) for k, trace in enumerate(residuals)),
        "split",
    )


def test_residuals_are_read_from_the_optimizers_trace() -> None:
    told = traced(
        {}, {"primal": 0.5, "dual": 0.0}, {"primal": 0.1, "dual": 0.3, "rho": 1.0}, {"primal": "odd", "dual": None}
    )
    kept = Residuals.of(told)
    assert kept is not None
    assert list(kept.values) == ["primal", "dual"]
    assert kept.values["primal"][1:3].tolist() == [0.5, 0.1]
    assert Residuals.of(traced({}, {"primal": 0.0})) is None


def test_other_suffixes_and_folders_are_refused(tmp_path: Path) -> None:
    for name, message in (
        ("picture.jpg", ".png or .svg"),
        ("picture", ".png or .svg"),
        ("no/folder.svg", "cannot be written: .*No such file or directory"),
        ("taken.svg", r"taken\.svg cannot be written: .*directory"),
        ("file.svg/picture.svg", "cannot be written: .*Not a directory"),
        ("nul\0.svg", r"nul\\x00.svg cannot be written: .*null (byte|character)"),
        ("x" * 300 + ".svg", "cannot be written: .*too long"),
    ):
        (tmp_path / "taken.svg").mkdir(exist_ok=True)
        (tmp_path / "file.svg").touch()
        with pytest.raises(MipcashError, match=message):
            plots.save_convergence(OUTLIER, tmp_path / name)


def test_an_outlier_does_not_flatten_the_rest() -> None:
    drawn = curve(OUTLIER)
    assert 2.0 < drawn.high < 3.0
    assert drawn.low < 1.0
    assert curve(result(1.0, 5.0, 9.0)).high > 9.0


def limited(*outcomes: tuple[float, float] | None) -> Result:
    """Return a history of losses and heats under heat <= 0.5; None is a failed trial."""
    told = [
        Outcome.failure("melted") if o is None else Outcome({"loss": Output.of(o[0]), "heat": Output.of(o[1])})
        for o in outcomes
    ]
    trials = (Trial(k, {"x": k}, o.status(), o) for k, o in enumerate(told))
    return Result(tuple(trials), "limited", under=(Limit("heat", high=0.5),))


def test_infeasible_trials_are_drawn_separately(tmp_path: Path) -> None:
    case = limited((3.0, 0.6), (2.0, 0.4), None, (1.0, 0.9), (2.5, 0.1), (0.5, math.nan))
    drawn = curve(case)
    assert drawn.x.tolist() == [1, 2, 4, 5, 6]
    assert drawn.infeasible.tolist() == [True, False, True, False, True]
    assert drawn.failed.tolist() == [3]
    assert drawn.step_x.tolist() == [2, 3, 4, 5, 6, 6]
    assert set(drawn.step_y.tolist()) == {2.0}
    text = plots.save_convergence(case, tmp_path / "picture.svg").read_text()
    for label in ("violates a constraint", "failed", "best so far"):
        assert f"<!-- {label} -->" in text
    none = limited((3.0, 0.6), (2.0, 0.9))
    assert not curve(none).step_x[:-1].size
    plots.save_convergence(none, tmp_path / "none.svg")


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
        pictures.plot_contour(run),
        pictures.plot_timeline(run),
        pictures.plot_times(run),
        pictures.plot_limits(run),
    ]
    for axes in drawn:
        assert isinstance(axes, Axes)
        axes.figure.canvas.draw()
    pyplot.close("all")
    several = RUNS["several"]()
    front = pictures.plot_front(several)
    assert "more is better" in front.get_ylabel()
    first, second = several.objectives.names
    assert "more is better" in pictures.plot_front(several, objectives=(second, first)).get_xlabel()
    with pytest.raises(MipcashError, match=r"objectives= names two of .*, got \('b', 'c'\)"):
        pictures.plot_front(several, objectives=("b", "c"))
    run = Run.of(RUNS["conditional"]())
    own = Figure().subplots()
    assert pictures.plot_slice(run, "order", ax=own) is own


def test_long_names_of_categories_stay_different() -> None:
    space = mc.Space("tools")
    space.categorical("tool", [f"category number {k} of twelve" for k in range(12)])
    space.real("x", 0.0, 1.0)
    run = mc.minimize(lambda c: c["x"], space, 12, optimizer="random", progress=False)
    written = [text.get_text() for text in pictures.plot_parallel_coordinates(run).texts]
    of_tools = [text for text in written if text.startswith("…")]
    assert len(set(of_tools)) == len(of_tools) > 5
    assert "…7…" in of_tools


def test_page_and_axes_show_the_same_numbers() -> None:
    run = Run.of(RUNS["some"]())
    axes, found = pictures.plot_importance(run), effects(run)
    assert found is not None
    bars = [bar.get_width() for bar in axes.containers[0]]
    assert bars == pytest.approx([100 * p.whole.middle for p in found.parameters])
    assert [t.get_text() for t in axes.get_yticklabels()] == found.labels


def test_plots_that_cannot_be_drawn_raise_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tinyrun.started(tmp_path / "run.db", 6)
    few, some = RUNS["two"](), RUNS["some"]()
    for call, message in (
        (
            lambda: pictures.plot_importance(replace(some, declared=None)),
            "needs the space of the run, which its journal",
        ),
        (lambda: pictures.plot_gaps(tmp_path / "run.db"), "read without its space="),
        (lambda: pictures.plot_importance(few), "takes four evaluations with different losses"),
        (lambda: pictures.plot_slice(some, "nothing"), "no slice along str 'nothing'.*there are .*rate"),
        (lambda: pictures.plot_contour(some, "x", "no"), r"no contour over str 'x' and str 'no'.*there are .*rate"),
        (lambda: pictures.plot_contour(some, "x", "x"), "needs two different parameters"),
        (lambda: pictures.plot_timeline(result(1.0, 2.0)), "no evaluation of this run has started"),
        (lambda: pictures.plot_limits(some, "ms"), "no output str 'ms'; no evaluation returned one"),
        (lambda: pictures.plot_residuals(some), "reports no residuals"),
        (lambda: pictures.plot_front(some), "there is no front: the run has one objective"),
        (lambda: pictures.plot_convergence(some, by="hours"), "'evaluations' or 'seconds'; got str 'hours'"),
        (lambda: pictures.plot_parallel_coordinates(RUNS["one"]()), "need two trials with a loss"),
    ):
        with pytest.raises(MipcashError, match=message):
            call()
    monkeypatch.setattr("mipcash.report.drawing.find_spec", lambda name: None)
    for call in (pictures.plot_convergence, lambda run: plots.save_convergence(run, tmp_path / "picture.png")):
        with pytest.raises(MipcashError, match=r"matplotlib; pip install 'mipcash\[plots\]'"):
            call(some)


def test_several_runs_are_compared_on_the_same_axes() -> None:
    from matplotlib import pyplot as plt

    _, axes = plt.subplots()
    space = mc.Space("box")
    space.integer("a", 0, 9)
    runs = [mc.minimize(lambda c: float(c["a"]), space, 5, optimizer="random", seed=s, progress=False) for s in (1, 2)]
    for k, run in enumerate(runs):
        pictures.plot_convergence(run, ax=axes, label=f"seed {k}")
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == ["seed 0", "seed 1"]
    assert lines[0].get_color() != lines[1].get_color()
    assert [float(line.get_ydata()[-1]) for line in lines] == [run.value for run in runs]
    assert axes.get_legend() is not None
    plt.close("all")


def test_ranks_and_distributions_of_several_runs() -> None:
    from matplotlib import pyplot as plt

    runs = {"a": result(4.0, 2.0, 2.0), "b": result(3.0, None), "c": result(None, 2.0, 1.0, 5.0)}
    curves = [curve(run) for run in runs.values()]
    # best values so far: 4 2 2 2; 3 3 3 3; none 2 1 1
    assert ranks(curves).tolist() == [[2, 1.5, 2, 2], [1, 3, 3, 3], [3, 1.5, 1, 1]]
    value, share = distribution(curves[2])
    assert (value.tolist(), share.tolist()) == ([1.0, 2.0, 5.0], [0.25, 0.5, 0.75])  # one of four failed
    for kind in ("convergence", "rank", "distribution"):
        axes = pictures.compare_runs(runs, kind)
        assert [line.get_label() for line in axes.get_lines()] == list(runs)
    for wrong, message in (
        (lambda: pictures.compare_runs(runs, "edf"), "'rank', 'distribution'; got str 'edf'"),
        (lambda: pictures.compare_runs(runs["a"]), "needs runs by name"),
        (lambda: pictures.compare_runs({"a": runs["a"], "front": RUNS["several"]()}), "the same single objective"),
    ):
        with pytest.raises(MipcashError, match=message):
            wrong()
    plt.close("all")


def test_a_result_draws_its_pictures_by_name() -> None:
    run = RUNS["some"]()
    assert run.plot().get_xlabel() == "evaluation"
    assert run.plot("slice", "rate").get_xlabel() == "rate"
    assert run.plot("contour", "x", second="rate").get_ylabel() == "rate"
    with pytest.raises(ValueError, match="no picture str 'history'; there are contour, convergence, front,"):
        run.plot("history")


def test_a_contour_shows_the_forbidden_region() -> None:
    run = Run.of(RUNS["some"]())
    best, place = run.result.best, run.place
    assert best is not None
    assert place is not None
    x, n = (variable(run, name) for name in ("x", "n"))
    value = predicted(run, x, n)
    assert value.shape == (len(n.settings), len(x.settings))
    for i, k in np.ndindex(value.shape):
        config = {**best.config, "x": x.settings[k].value, "n": n.settings[i].value}
        assert np.isfinite(value[i, k]) == place.space.is_legal(config)
    here = slices(run, ["x"])[0]
    row = value[[s.value for s in n.settings].index(best.config["n"])]
    shared = {v: m for v, m, l in zip(here.values, here.mean, here.legal, strict=True) if l}
    same = [(m, shared[s.value]) for m, s in zip(row, x.settings, strict=True) if s.value in shared]
    assert len(same) > 5
    assert all(a == pytest.approx(b) for a, b in same)


def variable(run: Run, label: str) -> Variable:
    assert run.place is not None
    assert run.result.best is not None
    rng = np.random.default_rng(0)
    found = Variable.of(
        run.place.domain, label, 21, run.place.extents[label], rng, whole=True, also=run.result.best.config[label]
    )
    assert found is not None
    return found


def test_in_a_mixture_the_other_shares_move_in_proportion() -> None:
    space = mc.Space("mixture")
    a, b, c, d = (space.real(name, 0.0, 1.0) for name in "abcd")
    grade = space.categorical("grade", ["fine", "coarse"])
    space.rule("shares", a + b + c + d == 1)
    space.rule("coarse needs a", a >= 0.1, when=grade["coarse"])
    run = Run.of(told(space, [lambda config: config["a"] + config["b"] ** 2] * 12))
    best, place = run.result.best, run.place
    assert best is not None
    assert place is not None
    start = place.domain.encode([best.config])
    setting = replace_unit(start, place.domain.scale.place["a"], 0.5 * (best.config["a"] + 1.0))
    (moved,) = (place.domain.raw(p) for p in along_equations(place.domain, ["a"], start[0], setting))
    assert moved["a"] == pytest.approx(0.5 * (best.config["a"] + 1.0))
    assert place.space.is_legal(moved)
    factor = (1.0 - moved["a"]) / (1.0 - best.config["a"])
    assert [moved[n] for n in "bcd"] == pytest.approx([factor * best.config[n] for n in "bcd"])
    (found,) = slices(run, ["a"])
    legal = [found.values[k] for k in np.flatnonzero(found.legal)]
    assert len(legal) > 50
    assert max(legal) == 1.0
    (other,) = slices(run, ["grade"])
    assert other.legal.tolist() == [space.is_legal({**best.config, "grade": g}) for g in other.values]


def replace_unit(points: Points, place: int, unit: float) -> Points:
    units = points.units.copy()
    units[:, place] = unit
    return Points(points.levels, units)


def test_slices_have_the_other_evaluations() -> None:
    run = Run.of(RUNS["some"]())
    for s in slices(run, ["x", "kind"]):
        trials = [t for t in run.result.history if t.done and t is not run.result.best]
        expected = [(t.config[s.label] if s.number else s.values.index(t.config[s.label]), t.loss) for t in trials]
        assert s.evaluated.tolist() == [list(map(float, pair)) for pair in expected]
        pictures.plot_slice(run, s.label)
    assert "other evaluations" in page(run)


def test_rows_of_a_timeline_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        begin = rng.integers(0, 30, size=12) / 4
        spans = [(float(b), float(b + w)) for b, w in zip(begin, rng.integers(1, 12, size=12) / 4, strict=True)]
        at = rows(spans)
        for row in set(at):
            own = sorted(span for span, r in zip(spans, at, strict=True) if r == row)
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(own))
        together = max(sum(b <= t < e for b, e in spans) for t, _ in spans)
        assert max(at) + 1 == together


def test_pictures_write_dollars_as_text_and_compare_a_run_without_a_result(tmp_path: Path) -> None:
    space = mc.Space("box")
    space.integer("a", 0, 9)
    good = told(space, [1.0, 0.5])
    nothing = told(space, [{"loss": 1.0, "$x^{$": 9.0}], (Limit("$x^{$", high=5.0),))
    for kind in ("rank", "distribution", "convergence"):
        pictures.compare_runs({"$x^{$ a": good, "none": nothing}, kind).figure.savefig(tmp_path / "compared.svg")
    plots.save_convergence(nothing, tmp_path / "convergence.svg")
    axes = pictures.plot_convergence(good, by="seconds", label="one")
    assert axes.get_xlabel() == "time at work (s)"


def test_unknown_parameters_of_parallel_coordinates_are_refused() -> None:
    with pytest.raises(MipcashError, match="no evaluation has a parameter str 'typo'; there are "):
        pictures.plot_parallel_coordinates(told(box(), [1.0, 2.0]), parameters=["typo"])


def box() -> mc.Space:
    space = mc.Space("box")
    space.integer("a", 0, 9)
    space.categorical("k", [1, "1", None, "None"])
    return space


def test_levels_with_one_text_have_places_of_their_own() -> None:
    run = Run.of(told(box(), [float(k) for k in range(8)]))
    (axis,) = coordinates(run, ["k"], all_given=True).axes
    assert [text for _, text in axis.ticks] == ["1", "'1'", "None", "'None'"]
    assert len({place for place, _ in axis.ticks}) == 4


def test_illegal_trials_and_repeats_are_in_no_picture() -> None:
    space = box()
    space.rule("small", space["a"] <= 5)
    study = mc.Study(space, "random", seed=0, limits={"ms": 5.0})
    for k in range(3):
        study.tell(study.ask(), {"loss": float(k), "ms": 1.0})
    study.add({"a": 9, "k": 1}, {"loss": -100.0, "ms": 1.0}, illegal="learn")
    (scatter,) = limits(Run.of(study.result))
    assert scatter.trial == (0, 1, 2)
    assert scatter.constrained


def test_an_objective_is_not_drawn_against_itself() -> None:
    run = mc.minimize(
        lambda c: {"u": c["a"], "v": -c["a"]}, box(), 4, direction=["u", "v"], optimizer="random", progress=False
    )
    assert [one.output for one in limits(Run.of(run))] == ["v"]
