"""Proposed rules, from the trials of a study or of a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.modelling.domains import Configuration
from mipcash.space.cuts.proposed import Evidence, ProposedRule
from mipcash.study.cuts.columns import Column
from mipcash.study.cuts.search import LEVEL, MOST, Search
from mipcash.study.failures import RULED_OUT, kind_of_failure
from mipcash.study.trial import Trial


@dataclass(frozen=True)
class Evaluated:
    """What is known of configurations, each once.

    Attributes:
        works: the first trial of each configuration that works.
        failed: of each that failed, and that no rule forbids.
    """

    works: tuple[Trial, ...]
    failed: tuple[Trial, ...]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Evaluated:
        """Of trials. A configuration that ever had a loss works; what rules forbid, and failed, is explained by them."""
        works = {repr(t.config): t for t in reversed(trials) if t.loss is not None}
        failed = {repr(t.config): t for t in reversed(trials) if t.failed and kind_of_failure(t.message) != RULED_OUT}
        # other outputs that were evaluated apart say nothing against a loss that failed
        works = {repr(t.config): t for t in reversed(trials) if t.done and repr(t.config) not in failed} | works
        unexplained = (t for key, t in failed.items() if key not in works and t.legal)
        return cls(_by_number(works.values()), _by_number(unexplained))

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (*self.failed, *self.works)


def proposed(
    columns: Sequence[Column], trials: Sequence[Trial], most: int = MOST, level: float = LEVEL
) -> list[ProposedRule]:
    """Rules against settings that failed together (:mod:`mipcash.study.cuts.search`).

    Args:
        most: settings of a rule, at most.
        level: bound on the probability that chance alone gives a rule.
    """
    known = Evaluated.of(trials)
    configs: list[Configuration] = [t.config for t in known.trials]
    failed = np.arange(len(configs)) < len(known.failed)
    works = tuple((t.number, dict(t.config)) for t in known.works)
    found = []
    for cut in Search(columns, configs, failed).cuts(most, level):
        under = [known.trials[int(r)] for r in cut.rows]
        kinds = Counter(kind_of_failure(t.message) for t in under)
        evidence = Evidence(
            failed=tuple(t.number for t in under),
            kinds=dict(kinds.most_common()),
            worked=(),
            failures=cut.failures,
            evaluations=cut.evaluations,
            expected=len(under) * cut.failures / cut.evaluations,
            chance=cut.chance,
            looks=cut.looks,
        )
        found.append(ProposedRule(cut.settings, evidence, works))
    return found


def _by_number(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda t: t.number))
