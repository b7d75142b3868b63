"""Where a space fails: failures by kind, and the settings that go with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom

from mipcash.program.forms import Booleans
from mipcash.study.cuts.columns import Column
from mipcash.study.cuts.proposing import Evaluated
from mipcash.study.cuts.search import Literal, Search
from mipcash.study.failures import kind_of_failure
from mipcash.study.trial import Trial

LEVEL = 0.05
"""Of Fisher's exact test, times the settings that are compared, up to which a setting is said to go with a kind."""
SHOWN = 2
"""Settings of one kind, of different parameters."""


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


def failing(columns: Sequence[Column], trials: Sequence[Trial]) -> list[Kind]:
    """Failures by kind, the most frequent first."""
    known = Evaluated.of(trials)
    configs = [t.config for t in known.trials]
    search = Search(columns, configs, np.arange(len(configs)) < len(known.failed))
    literals = search.literals(np.ones(len(configs), dtype=bool))
    names = [kind_of_failure(t.message) if t.failed else "" for t in known.trials]
    found = []
    for name in dict.fromkeys(filter(None, names)):
        failed = np.array([n == name for n in names])
        of_kind = tuple(t for t, f in zip(known.trials, failed, strict=True) if f)
        found.append(Kind(name, of_kind, tuple(_shares(search, literals, failed))))
    return sorted(found, key=lambda kind: -len(kind.trials))


def _shares(search: Search, literals: Sequence[Literal], failed: Booleans) -> list[Share]:
    """Settings that go with some failures, the clearest first; none that says the same as one before it, or a part of it."""
    n, k = len(failed), int(failed.sum())
    judged = []
    for order, literal in enumerate(literals):
        under, size = int((failed & literal.has).sum()), int(literal.has.sum())
        # at least this many of the failures under it, were they spread by chance
        chance = len(literals) * float(hypergeom.sf(under - 1, n, k, size))
        if chance <= LEVEL:
            judged.append((chance, order, Share(search.words(literal), under, size, k - under, n - size)))
    chosen: list[tuple[Literal, Share]] = []
    for _, order, share in sorted(judged, key=lambda j: j[:2]):
        if not any(_nested(literals[order], other) for other, _ in chosen):
            chosen.append((literals[order], share))
    return [share for _, share in chosen[:SHOWN]]


def _nested(a: Literal, b: Literal) -> bool:
    """Whether two are about one parameter, or one holds wherever the other does."""
    return a.column == b.column or not (a.has & ~b.has).any() or not (b.has & ~a.has).any()


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({count / total:.0%})" if total else "")
