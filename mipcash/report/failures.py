"""Report of where a space fails: failures by kind, and the settings that go with each.

A setting is a value of a parameter, a bound of a number, a module's place in an order, or being active.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import hypergeom

from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Booleans
from mipcash.study.failures import kinds
from mipcash.study.trial import Trial

LEVEL = 0.05
"""Of Fisher's exact test, times the settings that are compared, up to which a setting is said to go with a kind."""
SHOWN = 2
"""Settings of one kind, of different parameters."""
BORDERS = 9
"""Bounds of one number that are compared, at most, evenly by rank."""
PARAMETER = "parameter "
"""Prefix of a parameter's entry in a listing; its name follows as Python writes it."""


@dataclass(frozen=True)
class Share:
    """How often a kind of failure comes with a setting, and without.

    Attributes:
        setting: in words.
        under, evaluations: failures of the kind under it, of all evaluations under it.
        elsewhere, others: failures of the kind elsewhere, of all evaluations elsewhere.
    """

    setting: str
    under: int
    evaluations: int
    elsewhere: int
    others: int

    def __str__(self) -> str:
        return f"{self.setting}: {_of(self.under, self.evaluations)}, elsewhere {_of(self.elsewhere, self.others)}"


@dataclass(frozen=True)
class Kind:
    """Failures of one kind.

    Attributes:
        name: see :func:`mipcash.study.failures.kind_of_failure`.
        trials: they, by number, each configuration once.
        settings: what goes with them more than chance would have it, the clearest first.
    """

    name: str
    trials: tuple[Trial, ...]
    settings: tuple[Share, ...]


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        label: of the parameter.
        text: in words: ``kind = 'b'``, ``x > 0.6``, ``rate is active``.
        has: which configurations have it, shape (n,).
    """

    label: str
    text: str
    has: Booleans


def failing(listing: Mapping[str, str], trials: Sequence[Trial]) -> list[Kind]:
    """Failures by kind, the most frequent first; a configuration that ever worked is none.

    Args:
        listing: of the space (:mod:`mipcash.study.records.fingerprint`).
        trials: by number.
    """
    first = {repr(t.config): t for t in reversed(trials) if t.failed}
    # other outputs that were evaluated apart say nothing against a loss that failed
    works = {repr(t.config): t for t in trials if t.loss is not None or (t.done and repr(t.config) not in first)}
    failed = sorted((t for key, t in first.items() if key not in works and t.legal), key=lambda t: t.number)
    evaluated = [*failed, *works.values()]
    settings = settings_of(listing, [t.config for t in evaluated])
    found = []
    for name, of_kind in kinds(failed).items():
        numbers = {t.number for t in of_kind}
        has_failed = np.array([t.number in numbers for t in evaluated])
        found.append(Kind(name, tuple(of_kind), tuple(_shares(settings, has_failed))))
    return found


def _shares(settings: Sequence[Setting], failed: Booleans) -> list[Share]:
    """Settings that go with some failures, the clearest first; none that says the same as one before it, or a part of it."""
    n, k = len(failed), int(failed.sum())
    judged = []
    for order, setting in enumerate(settings):
        under, size = int((failed & setting.has).sum()), int(setting.has.sum())
        # at least this many of the failures under it, were they spread by chance
        chance = len(settings) * float(hypergeom.sf(under - 1, n, k, size))
        if chance <= LEVEL:
            judged.append((chance, order, Share(setting.text, under, size, k - under, n - size)))
    chosen: list[tuple[Setting, Share]] = []
    for _, order, share in sorted(judged, key=lambda j: j[:2]):
        if not any(_nested(settings[order], other) for other, _ in chosen):
            chosen.append((settings[order], share))
    return [share for _, share in chosen[:SHOWN]]


def settings_of(listing: Mapping[str, str], configs: Sequence[Configuration]) -> list[Setting]:
    """Settings that some configurations have and others lack: values, then activity, then bounds.

    Of those that the same configurations have, the first.
    """
    values: list[Setting] = []
    active: list[Setting] = []
    bounds: list[Setting] = []
    for entry, text in listing.items():
        if not entry.startswith(PARAMETER):
            continue
        label = ast.literal_eval(entry.removeprefix(PARAMETER))
        active.append(Setting(label, f"{label} is active", np.array([label in c for c in configs])))
        types = {type(c[label]) for c in configs if label in c}
        if text.startswith("Permutation(") and types <= {list, tuple}:
            values += _places(label, configs)
        elif text.startswith(("Real(", "Integer(", "ordinal ")) and types <= {int, float}:
            bounds += _bounds(label, configs, real=text.startswith("Real("))
        else:
            values += _values(label, configs)
    found: dict[bytes, Setting] = {}
    for setting in (*values, *active, *bounds):
        if setting.has.any() and not setting.has.all():
            found.setdefault(setting.has.tobytes(), setting)
    return list(found.values())


def _values(label: str, configs: Sequence[Configuration]) -> Iterator[Setting]:
    written = [repr(c[label]) if label in c else "" for c in configs]
    for value in dict.fromkeys(filter(None, written)):
        yield Setting(label, f"{label} = {value}", np.array([w == value for w in written]))


def _places(label: str, configs: Sequence[Configuration]) -> Iterator[Setting]:
    orders = [tuple(c.get(label, ())) for c in configs]
    modules = max(orders, key=len, default=())
    for module in modules:
        for place in range(len(modules)):
            has = np.array([order[place : place + 1] == (module,) for order in orders])
            yield Setting(label, f"{module} is number {place + 1} of {label}", has)


def _bounds(label: str, configs: Sequence[Configuration], real: bool) -> Iterator[Setting]:
    """Above and below borders between values that occur."""
    at = np.array([c.get(label, math.nan) for c in configs], dtype=float)
    borders = list(pairwise(sorted({c[label] for c in configs if label in c})))
    if len(borders) > BORDERS:
        borders = [borders[k] for k in np.linspace(0, len(borders) - 1, BORDERS).astype(int)]
    for low, high in borders:
        yield Setting(label, f"{label} > {short_between(low, high) if real else low!r}", at > low)
        yield Setting(label, f"{label} < {short_between(high, low) if real else high!r}", at < high)


def short_between(edge: float, first: float) -> float:
    """A number of few digits between two others, nearer to the second."""
    near, middle, far = sorted((1.0 - part) * edge + part * first for part in (0.75, 0.86, 0.97))
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((number for number in rounded if near <= number <= far), middle)


def _nested(a: Setting, b: Setting) -> bool:
    """Return whether two are about one parameter, or one holds wherever the other does."""
    return a.label == b.label or not (a.has & ~b.has).any() or not (b.has & ~a.has).any()


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({count / total:.0%})" if total else "")
