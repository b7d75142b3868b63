"""Failures of a run by kind, with the settings associated with each kind.

A setting is a value of a parameter, a bound of a numerical parameter, a module's position in an ordering, or being active.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Booleans
from mipcash.study.failures import kinds
from mipcash.study.trial import Trial

LEVEL = 0.05
"""Level of Fisher's exact test, with Bonferroni correction for the compared settings, up to which a setting is associated."""
SHOWN = 2
"""Largest number of settings of one kind, each of a different parameter."""
BORDERS = 9
"""Largest number of bounds of one numerical parameter that are compared, evenly spaced by rank."""
PARAMETER = "parameter "
"""Prefix of a parameter's entry in a listing; its name follows as Python writes it."""


@dataclass(frozen=True)
class Share:
    """Frequency of a kind of failure with and without a setting.

    Attributes:
        setting: in words.
        under, evaluations: number of failures of the kind with the setting, and of all evaluations with it.
        elsewhere, others: number of failures of the kind without the setting, and of all evaluations without it.
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
        name: see ``mipcash.study.failures.kind_of_failure``.
        trials: the failed trials, by number, each configuration once.
        settings: settings associated with the failures beyond chance, most significant first.
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
        has: True for configurations with the setting, shape (n,).
    """

    label: str
    text: str
    has: Booleans


def failing(listing: Mapping[str, str], trials: Sequence[Trial]) -> list[Kind]:
    """Return the failures by kind, the most frequent first. A configuration that succeeded at least once is no failure.

    Args:
        listing: of the space (``mipcash.study.records.fingerprint``).
        trials: by number.
    """
    first = {repr(t.config): t for t in reversed(trials) if t.failed}
    # a configuration whose loss failed counts as failed, even if its other outputs were evaluated
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
    """Return the settings associated with failures, most significant first.

    A setting is left out if an earlier setting is of the same parameter, or if one of the two implies the other.
    """
    from scipy.stats import hypergeom  # takes a second to import

    n, k = len(failed), int(failed.sum())
    judged = []
    for order, setting in enumerate(settings):
        under, size = int((failed & setting.has).sum()), int(setting.has.sum())
        # Bonferroni-corrected probability of at least this many failures under the setting by chance
        chance = len(settings) * float(hypergeom.sf(under - 1, n, k, size))
        if chance <= LEVEL:
            judged.append((chance, order, Share(setting.text, under, size, k - under, n - size)))
    chosen: list[tuple[Setting, Share]] = []
    for _, order, share in sorted(judged, key=lambda j: j[:2]):
        if not any(_nested(settings[order], other) for other, _ in chosen):
            chosen.append((settings[order], share))
    return [share for _, share in chosen[:SHOWN]]


def settings_of(listing: Mapping[str, str], configs: Sequence[Configuration]) -> list[Setting]:
    """Return the settings that some configurations have and others lack: values, then activity, then bounds.

    If several settings hold for the same configurations, only the first is kept.
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
    """Yield the settings above and below borders between occurring values."""
    at = np.array([c.get(label, math.nan) for c in configs], dtype=float)
    borders = list(pairwise(sorted({c[label] for c in configs if label in c})))
    if len(borders) > BORDERS:
        borders = [borders[k] for k in np.linspace(0, len(borders) - 1, BORDERS).astype(int)]
    for low, high in borders:
        yield Setting(label, f"{label} > {short_between(low, high) if real else low!r}", at > low)
        yield Setting(label, f"{label} < {short_between(high, low) if real else high!r}", at < high)


def short_between(edge: float, first: float) -> float:
    """Return a number with few digits between two numbers, nearer to the second."""
    near, middle, far = sorted((1.0 - part) * edge + part * first for part in (0.75, 0.86, 0.97))
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((number for number in rounded if near <= number <= far), middle)


def _nested(a: Setting, b: Setting) -> bool:
    """Return True if two settings are of one parameter, or one implies the other."""
    return a.label == b.label or not (a.has & ~b.has).any() or not (b.has & ~a.has).any()


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({count / total:.0%})" if total else "")
