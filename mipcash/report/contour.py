"""Contours: the predicted loss over two parameters, the others fixed at the incumbent, with the region that rules forbid."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from mipcash.errors import MipcashError
from mipcash.modelling.domains import same_value
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.report.data.box import effective
from mipcash.report.data.effects import effects
from mipcash.report.data.run import Run, Source
from mipcash.report.data.settings import Variable
from mipcash.report.data.slices import along_equations, incumbent, latent, legal_points, variable_of
from mipcash.report.drawing import DOT, RING, add_legend, dress, new_axes, plain
from mipcash.space.space import Space
from mipcash.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = 41
FORBIDDEN = "#d7dbe0"
"""Colour of the region that rules forbid."""
SECONDS = 5.0
"""Time limit for the legality checks."""


def plot_contour(
    source: Source,
    first: str | None = None,
    second: str | None = None,
    *,
    ax: Axes | None = None,
    space: Space | None = None,
) -> Axes:
    """Plot the predicted loss over two parameters, the others fixed at the incumbent; the forbidden region is grey.

    Args:
        source: a result, a study, or the path of a journal.
        first: parameter on the horizontal axis, active in the incumbent; None: the most important one.
        second: parameter on the vertical axis; None: the most important of the remaining ones.
        ax: axes to draw on; None: new axes.
        space: space of a journal; a result or a study has its own.

    Returns:
        The axes.

    Raises:
        MipcashError: there is no model of the loss, no such pair of parameters in the incumbent, matplotlib is missing, or the
            source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import plot_contour
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] * (c["b"] + 0.1), space, 6, optimizer="random", progress=False)
        >>> plot_contour(run, "a", "b").get_ylabel()
        'b'
    """
    axes, run = new_axes(ax, (7.0, 5.0)), Run.of(source, space)
    x, y = _pair(run, first, second)
    across, up = _places(x), _places(y)
    axes.set_facecolor(FORBIDDEN)  # seen where nothing is legal
    value = predicted(run, x, y)
    drawn = axes.pcolormesh(across, up, value, shading="nearest", cmap="Blues_r", zorder=1)
    if np.isnan(value).any():
        axes.fill_between([], [], color=FORBIDDEN, label="forbidden by rules")
    bar = axes.figure.colorbar(drawn, ax=axes, label=f"predicted {plain(run.result.objectives.word, 40)}")
    bar.ax.yaxis.label.set_parse_math(False)
    best, trials = incumbent(run), [t for t in run.evaluated if {x.label, y.label} <= t.config.keys()]
    at = [(_place(x, t.config[x.label]), _place(y, t.config[y.label])) for t in trials]
    own = [best is not None and t.number == best.number for t in trials]
    for chosen, size, color, label in (
        ([a for a, mine in zip(at, own, strict=True) if not mine], 14, DOT, "evaluations"),
        ([a for a, mine in zip(at, own, strict=True) if mine], 70, RING, "incumbent"),
    ):
        axes.scatter(
            [a for a, _ in chosen], [b for _, b in chosen], s=size, color=color, edgecolors="white", label=label
        )
    for name, variable in (("x", x), ("y", y)):
        _set_scale(axes, name, variable)
    dress(axes, plain(x.label, 60), plain(y.label, 60))
    axes.grid(visible=False)
    add_legend(axes, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return axes


def predicted(run: Run, x: Variable, y: Variable) -> Vector:
    """Return the predicted loss of each pair of settings, nan if it is illegal: shape (settings of y, settings of x)."""
    best, place, model = incumbent(run), run.place, run.model
    assert best is not None and place is not None and model is not None  # noqa: PT018  # _pair has checked them
    domain, here = place.domain, place.domain.encode([best.config])
    start = latent(domain, here)
    moved = effective(domain, Points.joined(*(t.at(s.at(start)) for t in y.settings for s in x.settings)))
    moved = along_equations(domain, [x.label, y.label], here[0], moved)
    loss = run.result.objectives.sign * model.losses(model.predict(moved)[0])
    legal = legal_points(domain, moved, time.perf_counter() + SECONDS)
    return np.where(legal, loss, np.nan).reshape(len(y.settings), len(x.settings))


def _pair(run: Run, *given: str | None) -> tuple[Variable, Variable]:
    """Return the settings of two parameters by name, or, for None, of the most important of the other parameters.

    Raises:
        MipcashError: there is no model, or no such pair in the incumbent.
    """
    best, found, place = incumbent(run), effects(run), run.place
    if best is None or found is None or place is None:
        raise MipcashError("a contour needs the space and a model of the loss, which takes at least four evaluations")
    variables = {label: variable_of(place, best.config, label, NUMBERS) for label in found.labels}
    there = {label: variable for label, variable in variables.items() if variable is not None}
    others = iter([label for label in there if label not in given])
    names = [next(others, None) if name is None else name for name in given]
    if len({*names} & there.keys()) < 2:
        wanted = " and ".join(shown(name) for name in names if name is not None)
        raise MipcashError(
            f"there is no contour over {wanted or 'two parameters'}: it needs two different parameters that are active in the "
            f"best configuration and have two values; there are {', '.join(there) or 'none'}"
        )
    return there[str(names[0])], there[str(names[1])]


def _places(variable: Variable) -> Vector:
    """Return the coordinates of the settings on an axis: values of a number, else their indices."""
    values = [s.value for s in variable.settings]
    return np.array(values if variable.number else range(len(values)), dtype=float)


def _place(variable: Variable, value: Any) -> float:
    """Return the coordinate of a value on an axis; nan if it is not among the settings of a list."""
    if variable.number:
        return float(value)
    return next((float(k) for k, s in enumerate(variable.settings) if same_value(s.value, value)), float("nan"))


def _set_scale(axes: Axes, name: str, variable: Variable) -> None:
    """Set the scale of the axis ``x`` or ``y``, or the ticks of a list."""
    if variable.number:
        getattr(axes, f"set_{name}scale")("log" if variable.log else "linear")
        return
    texts = [plain(t, 18) for t in variable.texts]
    turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if name == "x" else {}
    getattr(axes, f"set_{name}ticks")(range(len(texts)), texts, parse_math=False, **turned)
