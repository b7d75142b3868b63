"""Parallel coordinates: one axis per parameter over its range, with the legal part of the range.

Notation
    place in [0, 1] on an axis, in its own scale: logarithmic if declared so, levels evenly spaced; nan if the parameter is inactive
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mipcash.errors import MipcashError
from mipcash.modelling.domains import Integer, Ordinal, Permutation, Real, same_value
from mipcash.program.forms import Vector
from mipcash.report.data.run import Run
from mipcash.report.data.settings import setting_text
from mipcash.space.bounds import Extent
from mipcash.study.trial import Trial
from mipcash.text import shown

AXES = 9
"""Largest number of parameters shown."""
OFTEN, FEW = 0.3, 4
"""If at least FEW parameters are active in at least this share of the trials, only those are shown; others would leave gaps."""
LINES = 300
"""Largest number of trials shown: the best ones for half of it, and an even sample of the rest."""


@dataclass(frozen=True)
class Axis:
    """Axis of one parameter.

    Attributes:
        label: its name.
        ticks: places and texts.
        legal: parts of [0, 1] that are legal; None: unknown.
        places: of each trial, (n,).
        texts: values of each trial in words; empty if the parameter is absent.
    """

    label: str
    ticks: tuple[tuple[float, str], ...]
    legal: tuple[tuple[float, float], ...] | None
    places: Vector
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Coordinates:
    """Data of the picture.

    Attributes:
        axes: parameters in their order.
        trials: numbers, the best last, so that it is drawn on top.
        loss: (n,).
        rank: (n,) 0 the best, 1 the worst.
        best: row of the incumbent; None: none.
        left_out: how many parameters, and how many trials, are not shown.
        word: name of the loss.
    """

    axes: tuple[Axis, ...]
    trials: tuple[int, ...]
    loss: Vector
    rank: Vector
    best: int | None
    left_out: tuple[int, int]
    word: str = "loss"


def coordinates(run: Run, labels: Sequence[str] | None = None, all_given: bool = False) -> Coordinates:
    """Return the parallel coordinates of the trials that have a loss.

    Args:
        labels: parameters, the most important first; None: as they were declared.
        all_given: True to show exactly these parameters, in their order.

    Raises:
        MipcashError: ``all_given``, and no evaluation has one of them.
    """
    reported = sorted(run.evaluated, key=lambda t: -(t.minimised or 0.0))
    drawn = reported if len(reported) <= LINES else _chosen(reported)
    names = list(dict.fromkeys(name for t in reported for name in t.config))
    declared = [n for n in (run.place.space.parameters if run.place else names) if n in names]
    wanted = [n for n in (labels or declared) if n in names]
    wanted += [n for n in declared if n not in wanted]
    varied = [n for n in wanted if len({repr(t.config[n]) for t in reported if n in t.config}) > 1]
    often = [n for n in varied if sum(n in t.config for t in reported) >= OFTEN * len(reported)]
    kept = (often if len(often) >= FEW else varied or wanted)[:AXES]
    unknown = [n for n in labels or () if n not in names]
    if all_given and unknown:
        raise MipcashError(f"no evaluation has a parameter {shown(unknown[0])}; there are {', '.join(names) or 'none'}")
    kept = list(labels or ()) if all_given else [n for n in declared if n in kept]
    loss = np.array([t.loss for t in drawn], dtype=float)
    rank = (rankdata(run.result.objectives.sign * loss) - 1.0) / max(1, len(loss) - 1)
    best = run.result.best
    at = next((k for k, t in enumerate(drawn) if best is not None and t.number == best.number), None)
    axes = tuple(_axis(run, name, drawn) for name in kept)
    left = (len(declared) - len(kept), len(reported) - len(drawn))
    return Coordinates(axes, tuple(t.number for t in drawn), loss, rank, at, left, run.result.objectives.word)


def _chosen(reported: Sequence[Trial]) -> list[Trial]:
    half = LINES // 2
    spread = np.linspace(0, len(reported) - half - 1, LINES - half).astype(int)
    return [*(reported[int(k)] for k in spread), *reported[-half:]]


def _axis(run: Run, name: str, trials: Sequence[Trial]) -> Axis:
    values = [t.config.get(name) for t in trials]
    active = [name in t.config for t in trials]
    seen: list[Any] = [v for v, on in zip(values, active, strict=True) if on]
    domain = run.place.space.parameters[name].domain if run.place else None
    text = _text_of(() if isinstance(domain, (Real, Integer)) else getattr(domain, "values", None) or seen)
    texts = tuple(text(v) if on else "" for v, on in zip(values, active, strict=True))
    extent = run.place.extents.get(name) if run.place else None
    if isinstance(domain, (Real, Integer)):
        places = [domain.to_unit(t.config[name]) if name in t.config else math.nan for t in trials]
        legal = (
            None if extent is None else tuple((domain.to_unit(a), domain.to_unit(b)) for a, b in _parts(domain, extent))
        )
        round_ = nice(float(domain.low), float(domain.high), domain.log, 4)
        kept = [v for v in round_ if (float(v).is_integer() if isinstance(domain, Integer) else not domain.problem(v))]
        ticks = tuple((domain.to_unit(v), f"{v:.6g}") for v in kept)
        return Axis(name, ticks, legal, np.array(places, dtype=float), texts)
    if domain is None and seen and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in seen):
        low, high = float(min(seen)), float(max(seen))
        width = (high - low) or 1.0
        places = [(float(t.config[name]) - low) / width if name in t.config else math.nan for t in trials]
        ticks = tuple(((v - low) / width, f"{v:.6g}") for v in nice(low, high, False, 4))
        return Axis(name, ticks, None, np.array(places, dtype=float), texts)
    return _listed(name, domain, extent, seen, active, texts, text)


def _parts(domain: Real | Integer, extent: Extent) -> list[tuple[float, float]]:
    """Return the intervals of a number that the rules leave: runs of whole numbers if they are listed, else the hull."""
    low: Any = extent.low
    high: Any = extent.high
    values: list[Any] = list(extent.values or ()) if isinstance(domain, Integer) else []
    gaps = [(a, b) for a, b in itertools.pairwise(sorted(values)) if b > a + (domain.step or 1)]
    return list(zip([low, *(b for _, b in gaps)], [*(a for a, _ in gaps), high], strict=True))


def _text_of(values: Sequence[Any]) -> Callable[[Any], str]:
    """Return the function that writes a value: as pictures do, or as Python does if several values would have one text."""
    written = Counter(setting_text(v) for v in {repr(v): v for v in values}.values())
    return lambda v: setting_text(v) if written[setting_text(v)] < 2 else repr(v)


def _listed(
    name: str,
    domain: Any,
    extent: Extent | None,
    seen: Sequence[Any],
    active: Sequence[bool],
    texts: tuple[str, ...],
    text: Callable[[Any], str],
) -> Axis:
    """Return an axis of levels: all levels of the domain, or the observed values if it is an ordering or unknown."""
    if domain is None or isinstance(domain, Permutation):
        levels = sorted({text(v): v for v in seen}.items())
    else:
        levels = [(text(v), v) for v in domain.values]
    names, count = [text for text, _ in levels], len(levels)
    step = 1.0 / max(1, count - 1)
    at = {text: (k * step if count > 1 else 0.5) for k, text in enumerate(names)}
    places = [at[text] if on else math.nan for text, on in zip(texts, active, strict=True)]
    legal = None
    if extent is not None and extent.values is not None and not isinstance(domain, Permutation):
        left = [any(same_value(v, w) for w in extent.values) for _, v in levels]
        half = 0.5 * step if count > 1 else 0.5
        legal = tuple(
            (max(0.0, at[t] - half), min(1.0, at[t] + half)) for t, keep in zip(names, left, strict=True) if keep
        )
    thin = max(1, math.ceil(count / 8)) if isinstance(domain, Ordinal) or count > 16 else 1
    ticks = tuple((at[t], t) for k, t in enumerate(names) if k % thin == 0)
    return Axis(name, ticks, legal, np.array(places, dtype=float), texts)


def nice(low: float, high: float, log: bool, count: int) -> list[float]:
    """Return about ``count`` round numbers between two ends; the ends themselves if a logarithmic scale has fewer than two.

    Args:
        log: True for powers of ten; on at most two decades 1 and 3, or 1, 2 and 5, times these.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        return [low] if math.isfinite(low) else []
    if log and low > 0.0:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        sparse = max(1, math.ceil((last - first) / max(1, count)))
        for every, parts in ((sparse, (1.0,)), (1, (1.0,)), (1, (1.0, 3.0)), (1, (1.0, 2.0, 5.0))):
            found = [p * 10.0**e for e in range(first, last + 1, every) for p in parts]
            found = [v for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
            if len(found) >= 2 and (last - first > 2 or len(parts) > 1):
                return found
        return found if len(found) >= 2 else [low, high]
    raw = (high - low) / max(1, count)
    scale = 10.0 ** math.floor(math.log10(raw)) if raw > 0.0 else 1.0
    step = next((m * scale for m in (1, 2, 2.5, 5) if m * scale >= raw * (1 - 1e-9)), 10 * scale)
    if not step or not math.isfinite(step):
        return [low, high]
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)] if last - first < 1000 else [low, high]
