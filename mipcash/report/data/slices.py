"""Slices through the incumbent: the predicted loss along one parameter at fixed other parameters, and the forbidden values.

If a value activates another parameter, that parameter takes the middle of its range. The band contains the noise-free loss: it is
two standard deviations on the scale of the surrogate, transformed to the loss.

If linear equations tie a real to other reals, as in a mixture, the other reals move with it, each in proportion to its distance
from its lower bound: Cox's direction (Cox 1971). With the equations E x = e, a shift s of the parameters that vary, and W the
diagonal of these distances, 0 for the parameters that vary, the shift of all reals is

    s - W E' (E W E')^+ E s
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.errors import SolverError
from mipcash.modelling.domains import Configuration, Integer, Real, Value, same_value
from mipcash.program.forms import Booleans, Vector
from mipcash.program.points import Point, Points
from mipcash.report.data.box import effective
from mipcash.report.data.run import Place, Run
from mipcash.report.data.settings import Variable, setting_text
from mipcash.space.domain import Domain
from mipcash.study.trial import Trial

NUMBERS, LEVELS = 61, 24
SHOWN = 12
"""Largest number of slices in a report."""
EXACT = 1e-9
"""Largest residual of an equation after a shift, relative to its coefficients."""
SECONDS = 3.0
"""Total time limit for the legality checks."""


@dataclass(frozen=True)
class Slice:
    """Slice along one parameter.

    Attributes:
        label: its name.
        number, log: True if it is numerical, and if its scale is logarithmic.
        values: of k settings.
        texts: the same in words.
        mean, low, high: of the loss, shape (k,).
        legal: shape (k,); settings not checked in time count as legal.
        here: the incumbent's value, in words.
        at: index of that setting.
        incumbent: its loss as observed.
        word: name of the loss.
        evaluated: of m other trials, shape (m, 2): the value of a numerical parameter, else the index of the setting; and the loss.
    """

    label: str
    number: bool
    log: bool
    values: tuple[Value, ...]
    texts: tuple[str, ...]
    mean: Vector
    low: Vector
    high: Vector
    legal: Booleans
    here: str
    at: int
    incumbent: float
    word: str = "loss"
    evaluated: Vector = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def forbidden(self) -> list[tuple[int, int]]:
        """Ranges of forbidden settings: first and last index of each."""
        found: list[tuple[int, int]] = []
        for k in np.flatnonzero(~self.legal).tolist():
            if found and found[-1][1] == k - 1:
                found[-1] = (found[-1][0], k)
            else:
                found.append((k, k))
        return found


def incumbent(run: Run) -> Trial | None:
    """Return the trial that slices go through: the best, or the one with the least violation. None if there is none with a loss."""
    if run.result.best is not None:
        return run.result.best
    nearest = run.result.nearest
    return None if nearest is None or nearest.trial.loss is None else nearest.trial


def variable_of(place: Place, config: Configuration, label: str, numbers: int = NUMBERS) -> Variable | None:
    """Return a parameter with its settings in a configuration; None if it is inactive there or has fewer than two settings.

    Args:
        numbers: number of settings of a numerical parameter.
    """
    if label not in config or label not in place.extents:
        return None
    count = numbers if isinstance(place.space.parameters[label].domain, (Real, Integer)) else LEVELS
    rng = np.random.default_rng(0)
    variable = Variable.of(place.domain, label, count, place.extents[label], rng, whole=True, also=config[label])
    return None if variable is None or len(variable.settings) < 2 else variable


def slices(run: Run, labels: Sequence[str] | None = None) -> list[Slice]:
    """Return slices through the incumbent; empty without a model or an incumbent.

    Args:
        labels: parameters, the most important first; inactive ones are skipped. None: all active ones.
    """
    best, model, place = incumbent(run), run.model, run.place
    if best is None or model is None or place is None:
        return []
    domain, config = place.domain, best.config
    began, found, here = time.perf_counter(), list[Slice](), domain.encode([config])
    point = latent(domain, here)
    for label in config if labels is None else labels:
        variable = None if len(found) == SHOWN else variable_of(place, config, label)
        if variable is None:
            continue
        at = next(k for k, s in enumerate(variable.settings) if same_value(s.value, config[label]))
        moved = effective(domain, Points.joined(*(s.at(point) for s in variable.settings)))
        moved = along_equations(domain, [label], here[0], moved)
        legal = legal_points(domain, moved, began + SECONDS)
        values = tuple(s.value for s in variable.settings)
        middle, low, high = model.band(moved, run.result.objectives.sign)
        loss = float("nan") if best.loss is None else best.loss
        kind, texts = (variable.number, variable.log), tuple(variable.texts)
        found.append(
            Slice(
                label,
                *kind,
                values,
                texts,
                middle,
                low,
                high,
                legal,
                setting_text(config[label]),
                at,
                loss,
                run.result.objectives.word,
                _evaluated(run, best, label, None if variable.number else values),
            )
        )
    return found


def slice_bounds(found: Sequence[Slice], log: bool) -> tuple[float, float, bool]:
    """Return the limits of the shared loss axis, and True if it is logarithmic.

    They cover the legal predictions, without extremes, and the incumbent's loss.

    Args:
        log: True if the axis of the observed losses is logarithmic.
    """
    lows = [float(np.min(s.low[s.legal], initial=math.inf)) for s in found]
    highs = [float(np.max(s.high[s.legal], initial=-math.inf)) for s in found]
    own = [s.incumbent for s in found if math.isfinite(s.incumbent)]
    low, high = min([*lows, *own]), max([*highs, *own])
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0, False
    middle = [float(v) for s in found for v in s.mean[s.legal]]
    if log and own and (least := min(own)) > 0.0:
        most = min(high, 10.0 * max([*middle, *own]))
        return max(low, 0.3 * least), max(most, 1.01 * least), True
    most, least = max([*middle, *own]), min([*middle, *own])
    high = min(high, most + (1.5 * (most - least) or high - most))
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin, False


def _evaluated(run: Run, best: Trial, label: str, values: Sequence[Value] | None) -> Vector:
    """Return ``Slice.evaluated``; ``values`` are the settings of a list, None for a numerical parameter."""
    found, places = list[tuple[float, float]](), dict[str, list[int]]()
    for trial in run.evaluated:
        if trial.number == best.number or trial.loss is None or not trial.complete or label not in trial.config:
            continue
        value = trial.config[label]
        if values is None:
            found.append((float(value), trial.loss))
            continue
        if (text := repr(value)) not in places:
            places[text] = [k for k, v in enumerate(values) if same_value(v, value)]
        found += [(place, trial.loss) for place in places[text]]
    return np.array(found, dtype=float).reshape(-1, 2)


def along_equations(domain: Domain, labels: Sequence[str], start: Point, moved: Points) -> Points:
    """Return points in which the reals that are tied to some parameters move with them (see the module's description).

    Args:
        labels: names of the parameters that differ from the start.
        start: the incumbent.
        moved: shape (B,), with its other parameters. They are returned unchanged if no equation ties the parameters.
    """
    rules = domain.legal_numbers(start.levels, domain.columns(start))
    chosen = [] if rules is None else [k for k, label in enumerate(rules.labels) if label in labels]
    if rules is None or not chosen:
        return moved
    natural = domain.in_rules(start.units)
    x = np.array([natural[label] for label in rules.labels])
    part = rules.part_at(x)
    if part is None or not (equations := part.linear[part.equal & ~part.curved])[:, chosen].any():
        return moved
    places = [domain.scale.place[label] for label in rules.labels]
    domains = [domain.scale.domains[place] for place in places]
    shift = np.zeros((len(moved), len(x)))
    for k in chosen:
        shift[:, k] = [domains[k].from_unit(u) - x[k] for u in moved.units[:, places[k]]]
    weight = np.where(part.integer, 0.0, np.maximum(x - part.low, 0.0))
    weight[chosen] = 0.0
    shift -= shift @ equations.T @ np.linalg.pinv(equations * weight @ equations.T) @ (equations * weight)
    units = moved.units.copy()
    for row in np.flatnonzero(np.abs(shift @ equations.T).max(axis=1) <= EXACT * np.abs(equations).max()):
        units[row, places] = [d.to_unit(v) for d, v in zip(domains, (x + shift[row]).tolist(), strict=True)]
    return Points(moved.levels, units)


def latent(domain: Domain, points: Points) -> Points:
    """Replace the level of every inactive group by its middle level."""
    sizes = np.array([group.n_levels for group in domain.program.groups], dtype=np.int64)
    return Points(np.where(points.levels < sizes, points.levels, (sizes - 1) // 2), points.units)


def legal_points(domain: Domain, moved: Points, until: float) -> Booleans:
    """Return True for legal points. Points that are not checked in time count as legal if their levels are."""
    legal = domain.free_legality.check(moved.levels)
    if domain.free_legality.complete or not domain.program.has_base_rows:
        return np.asarray(legal, dtype=bool)
    for k in np.flatnonzero(legal):
        if time.perf_counter() > until:
            break
        try:
            legal[k] = domain.space.is_legal(domain.raw(moved[int(k)]))
        except SolverError:
            continue
    return np.asarray(legal, dtype=bool)
