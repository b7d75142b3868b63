"""The problem of Perrone et al. (2019), Section 4.1, as a picture: what is proposed, and the surface that it was chosen by.

Three valleys in [-1, 1]^2; the smallest has the least value, and what lies above 1.2 is infeasible, which cuts them apart. An
evaluation says whether it is feasible, and the value only where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.constrained import LogFeasibility
from mipcash.acquisition.ingredients import Ingredients
from mipcash.methods.cmes.cmes import Cmes, CmesSettings
from mipcash.optimizers.hybrid import Hybrid, HybridSettings, Target
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import DONE, FAILED, Outcome
from mipcash.space.domain import Domain

Array = NDArray[np.float64]
VALLEYS = ((-0.7, 0.5, 0.02, 0.3), (0.5, 0.3, 0.2, 0.6), (-0.3, -0.3, 0.6, 0.9))
"""Centre, width and depth of each."""
BOUND = 1.2
START, GRID = 5, 70


def surface(x: Array, y: Array) -> Array:
    """The function, elementwise."""
    return np.min([((a - x) ** 2 + (b - y) ** 2) / width + depth for a, b, width, depth in VALLEYS], axis=0)


def plane() -> mc.Space:
    space = mc.Space("plane")
    space.real("x", -1.0, 1.0)
    space.real("y", -1.0, 1.0)
    return space


@dataclass
class Seen:
    """What the latest proposal was chosen by."""

    fitted: Ingredients | None = None
    acquisition: Acquisition | None = None


class _WatchedHybrid(Hybrid):
    seen: Seen

    def _target(self, fitted: Ingredients, *rest: Any) -> Target | None:
        found = super()._target(fitted, *rest)
        self.seen.fitted, self.seen.acquisition = fitted, found and found.acquisition
        return found


class _WatchedCmes(Cmes):
    seen: Seen

    def _target(self, fitted: Ingredients, *rest: Any) -> Target | None:
        found = super()._target(fitted, *rest)
        self.seen.fitted, self.seen.acquisition = fitted, found and found.acquisition
        return found


@dataclass
class Track:
    """One run.

    Attributes:
        name: of the method.
        at: points in their order, shape (n, 2).
        values: of the function there, (n,); whether or not they were told.
        kept, chosen: probability that the limit is kept, and the acquisition, over the grid, higher is better: (GRID, GRID).
    """

    name: str
    at: Array
    values: Array
    kept: Array = field(default_factory=lambda: np.zeros(0))
    chosen: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def best(self) -> float:
        """The least feasible value."""
        return float(np.min(self.values[self.values < BOUND], initial=np.inf))


def track(name: str, budget: int, seed: int) -> Track:
    """A run of ``cEI`` or ``cMES`` from START random points; the surfaces are those of its last proposal."""
    domain, seen = Domain.of(plane()), Seen()
    optimizer: Any = (
        _WatchedCmes(domain, CmesSettings(n_initial=START))
        if name == "cMES"
        else _WatchedHybrid(domain, HybridSettings(n_initial=START))
    )
    optimizer.seen = seen
    start, limit = plane().sample(START, seed), Limit("broken", high=0.5)
    history: list[Observation] = []
    state: dict[str, Any] = {}
    for k in range(budget):
        config = start[k] if k < START else None
        if config is None:
            proposal = optimizer.ask(Request(history, np.random.default_rng([seed, k]), state, limits=(limit,)))
            config, state = proposal.config, dict(proposal.state)
        value = float(surface(np.array(config["x"]), np.array(config["y"])))
        broken = {"broken": float(value >= BOUND)}
        outcome = Outcome.failure("infeasible", broken) if value >= BOUND else Outcome.of(value, broken)
        status = FAILED if value >= BOUND else DONE
        history.append(Observation(config, status, outcome.loss, outcome.values, outcome))
    at = np.array([[o.config["x"], o.config["y"]] for o in history])
    found = Track(name, at, surface(at[:, 0], at[:, 1]))
    if seen.fitted is not None and seen.acquisition is not None:
        axis = np.linspace(-1.0, 1.0, GRID).tolist()
        points = domain.encode([{"x": a, "y": b} for b in axis for a in axis])
        feasibility = LogFeasibility.of(list(seen.fitted.limited.values()))
        found.kept = np.exp(-feasibility.values(points)).reshape(GRID, GRID)
        found.chosen = -seen.acquisition.values(points).reshape(GRID, GRID)
    return found


def draw(tracks: list[Track], out: Path) -> None:
    """A row for each run: the function with the evaluations, the probability of the limit, the acquisition (by the logarithm)."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    axis = np.linspace(-1.0, 1.0, GRID)
    x, y = np.meshgrid(axis, axis)
    figure = Figure(figsize=(9.0, 3.0 * len(tracks)), layout="constrained")
    grid = figure.subplots(len(tracks), 3, squeeze=False)
    for row, each in zip(grid, tracks, strict=True):
        low = float(np.quantile(each.chosen, 0.3))
        shown = (
            (np.minimum(surface(x, y), 2.0), f"{each.name}: function, best {each.best:.3f}"),
            (each.kept, "probability that the limit holds"),
            (np.maximum(each.chosen, low), "log acquisition of the last proposal"),
        )
        for axes, (values, title) in zip(row, shown, strict=True):
            axes.contourf(x, y, values, 24, cmap=colormaps["cividis"])
            axes.contour(x, y, surface(x, y), [BOUND], colors="white", linewidths=1.0)
            axes.set_title(title, fontsize=9)
            axes.set_xticks([-1, 0, 1])
            axes.set_yticks([-1, 0, 1])
        kept = each.values < BOUND
        row[0].plot(*each.at[kept].T, "o", color="white", markersize=4, markeredgecolor="black")
        row[0].plot(*each.at[~kept].T, "x", color="#c0392b", markersize=5)
        row[0].plot(*each.at[:START].T, "s", color="none", markeredgecolor="black", markersize=8)
        row[2].plot(*each.at[-1], "*", color="#c0392b", markersize=10)
    figure.savefig(out, dpi=70)
