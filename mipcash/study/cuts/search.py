"""Settings that fail together: a decision list of conjunctions under which everything failed, by enumeration.

Notation
    n evaluations, K of them failed, p = K / n;   X (L, n) literals: which evaluations have a setting, by rows that differ
    f(c) evaluations under a conjunction c that failed;   c is pure where none under it worked
    M_k(s) conjunctions of k literals that s evaluations or more have

Literals are the values of a categorical, being active, a module's place in an order, and of numbers and ordered values "above" and
"below" at most CUTS + 1 borders between values that occur, evenly by rank, wherever failures lie.

Were failures chance, each with probability p, the first s evaluations under a given conjunction all failed with probability p^s,
however they were chosen by what failed before. p^f is never below Fisher's exact test, C(K, f) / C(n, f), which takes them to have
been chosen beforehand. With Bonferroni's correction over all conjunctions that are looked at,

    chance(c) = k_max M_k(s_k) p^f(c),      s_k the least s with k_max M_k(s) p^s <= the level (tarone1990: fewer could never pass)

is at most the probability that any of k settings looks as pure as c does. A pure conjunction passes at chance <= the level. The
bounds of one are moved out to where the first evaluation works; its f counts up to the last border inside them alone.

The list: of those that pass, the one of the least chance; then again, without the failures that it explains, until none passes.
Shorter ones win ties, then values over numbers, then the order of declaration. No part of one is pure: a part that is has at least
its failures, and less to choose from.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mipcash.modelling.domains import Configuration, same_value
from mipcash.program.forms import Booleans, Vector
from mipcash.space.cuts.setting import ABOVE, ACTIVE, AT, BELOW, IS, Setting
from mipcash.study.cuts.columns import ORDER, VALUES, Column

CUTS = 8
"""Borders of a number that literals have, less one."""
LEVEL = 0.05
MOST = 3
"""Settings of a conjunction, at most."""
PAIRS = 20_000
"""Pairs of literals beyond which no third setting is looked for."""
TRIES = 64
"""Conjunctions that are looked at closely for one place in the list."""
CHUNK = 2048


@dataclass(frozen=True)
class Literal:
    """A setting, and which evaluations have it.

    Attributes:
        column: which column it is about.
        border: of a number or an ordered value, the position between two values; nan: it is about something else.
    """

    column: int
    sign: str
    has: Booleans
    setting: Setting | None = None
    border: float = math.nan

    @property
    def bounded(self) -> bool:
        return self.setting is None


@dataclass(frozen=True)
class Cut:
    """Settings under which everything failed.

    Attributes:
        settings: shown in the order of declaration.
        rows: evaluations under it, all failed, shape (f,).
        failures, evaluations: K and n when it was found: what cuts before it explain is left out.
        chance: see the module's description.
        looks: conjunctions that were compared.
    """

    settings: tuple[Setting, ...]
    rows: NDArray[np.int64]
    failures: int
    evaluations: int
    chance: float
    looks: int


class Search:
    """The evaluations of one search.

    Args:
        columns: parameters.
        configs: n of them.
        failed: shape (n,).
    """

    def __init__(self, columns: Sequence[Column], configs: Sequence[Configuration], failed: Booleans) -> None:
        self.columns, self.configs, self.failed = columns, configs, failed
        self.positions = [c.positions(configs) if c.ordered else np.empty(0) for c in columns]

    def cuts(self, most: int = MOST, level: float = LEVEL) -> list[Cut]:
        """The decision list."""
        found: list[Cut] = []
        left = np.ones(len(self.failed), dtype=bool)
        with threadpool_limits(1):  # small matrices gain nothing from more
            while (cut := Round(self, left, most, level).cut()) is not None:
                found.append(cut)
                left[cut.rows] = False
        return found

    def literals(self, rows: Booleans) -> list[Literal]:
        """X, of those evaluations: by preference, each with other evaluations than those before it, and never all or none."""
        found: dict[bytes, Literal] = {}
        for literal in sorted(self._literals(rows), key=lambda l: (l.bounded, l.sign == ACTIVE)):
            here = literal.has[rows]
            if here.any() and not here.all():
                found.setdefault(np.packbits(here).tobytes(), literal)
        return list(found.values())

    def words(self, literal: Literal) -> str:
        """A literal as people read it."""
        if literal.setting is not None:
            return str(literal.setting)
        positions, sign = self.positions[literal.column], literal.sign
        inside, outside = positions[literal.has], positions[~literal.has & ~np.isnan(positions)]
        edge, first = (outside.max(), inside.min()) if sign == ABOVE else (outside.min(), inside.max())
        return str(self.columns[literal.column].beyond(sign, float(edge), float(first)))

    def _literals(self, rows: Booleans) -> Iterator[Literal]:
        for k, column in enumerate(self.columns):
            for setting in self._unbounded(column):
                yield Literal(k, setting.sign, np.array([setting.holds(c) for c in self.configs]), setting)
            if column.ordered:
                at = self.positions[k]
                values = np.unique(at[rows & ~np.isnan(at)])
                middles = 0.5 * (values[1:] + values[:-1])
                for border in middles[
                    np.unique(np.linspace(0, max(0, len(middles) - 1), CUTS + 1).astype(int))[: len(middles)]
                ]:
                    yield Literal(k, ABOVE, at > border, border=float(border))
                    yield Literal(k, BELOW, at < border, border=float(border))

    def _unbounded(self, column: Column) -> Iterator[Setting]:
        if column.kind == VALUES:
            seen: list[object] = []
            for config in self.configs:
                if column.label in config and not any(same_value(config[column.label], v) for v in seen):
                    seen.append(config[column.label])
            yield from (Setting(column.label, IS, (v,), column.conditional) for v in seen)
        if column.kind == ORDER:
            places = range(1, len(column.levels) + 1)
            yield from (Setting(column.label, AT, (m, t)) for m in column.levels for t in places)
        if column.conditional:
            yield Setting(column.label, ACTIVE, None, True)


@dataclass(frozen=True)
class Candidate:
    """A pure conjunction: literals, and perhaps a bound on a further column that ends where the first evaluation works."""

    score: float
    size: int
    literals: tuple[int, ...]
    column: int = -1
    sign: str = ""

    @property
    def order(self) -> tuple[float, int, bool, tuple[int, ...], int, str]:
        return round(self.score, 9), self.size, self.column >= 0, self.literals, self.column, self.sign


class Round:
    """The search for one cut among the evaluations that no cut before it explains."""

    def __init__(self, search: Search, left: Booleans, most: int, level: float) -> None:
        self.search, self.left, self.most, self.level = search, left, most, level
        self.failed, self.works = left & search.failed, left & ~search.failed
        self.failures, self.evaluations = int(self.failed.sum()), int(left.sum())
        self.log_p = math.log(self.failures / self.evaluations) if 0 < self.failures < self.evaluations else 0.0
        self.literals: list[Literal] = search.literals(left) if self.log_p else []
        self.x = np.array([l.has for l in self.literals], dtype=np.float32).reshape(len(self.literals), len(left))
        self.least, self.looks = [0] * (most + 1), [0.0] * (most + 1)

    def cut(self) -> Cut | None:
        """The best that passes; None: none does."""
        if not self.literals:
            return None
        self._count()
        candidates = sorted(self._candidates(), key=lambda c: c.order)
        for candidate in candidates[:TRIES]:
            found = self._finished(candidate)
            if found is not None and found.chance <= self.level:
                return found
        return None

    def _count(self) -> None:
        """M_k(s_k) and s_k for every size."""
        together = self.x[:, self.left] @ self.x[:, self.left].T
        self.apart = self._may_join()
        for size in range(1, self.most + 1):
            allowed = math.log(self.level / self.most)

            def passes(least: int, size: int = size, allowed: float = allowed) -> bool:
                count = self._looked_at(together, size, least)
                return not count or math.log(count) + least * self.log_p <= allowed

            tried = range(max(1, math.ceil(allowed / self.log_p)), self.evaluations + 1)
            least = tried.start + bisect_left(tried, True, key=passes)
            self.least[size], self.looks[size] = least, max(1.0, self._looked_at(together, size, least))
        self.together = together

    def _looked_at(self, together: NDArray[np.float32], size: int, least: int) -> float:
        """M_size(least); of three literals an upper bound: those of which every two have that many."""
        if size == 1:
            return float((np.diag(together) >= least).sum())
        pairs = np.triu(together >= least, 1) & self.apart
        if size == 2:
            return float(pairs.sum())
        joined = (pairs | pairs.T).astype(np.float32)
        return float(((joined @ joined) * joined).sum(dtype=float) / 6.0)

    def _may_join(self) -> Booleans:
        """Which literals may stand beside one another: not two of one column, unless they bound it from both sides."""
        column = np.array([l.column for l in self.literals])
        bounded = np.array([l.bounded for l in self.literals])
        above = np.array([l.sign == ABOVE for l in self.literals])
        both = bounded[:, None] & bounded[None] & (above[:, None] != above[None])
        return np.asarray((column[:, None] != column[None]) | both)

    # -- candidates ---------------------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Candidate]:
        """Pure conjunctions of at least s_k failures, those that a shorter one does as well left out."""
        none = np.ones((1, len(self.left)), dtype=bool)
        yield from self._extended(none, [()])
        impure = []
        for i, literal in enumerate(self.literals):
            if literal.has[self.works].any():
                impure.append(i)
        if self.most >= 2 and impure:
            yield from self._extended(self.x[impure] > 0, [(i,) for i in impure])
        if self.most >= 3 and impure:
            yield from self._triples(impure)

    def _triples(self, impure: Sequence[int]) -> Iterator[Candidate]:
        at = np.array(impure)
        here = self.x[np.ix_(at, np.flatnonzero(self.failed))]
        enough = np.triu(here @ here.T >= self.least[3], 1) & self.apart[np.ix_(at, at)]
        first, second = np.nonzero(enough)
        if len(first) > PAIRS:
            return
        for start in range(0, len(first), CHUNK):
            i, j = at[first[start : start + CHUNK]], at[second[start : start + CHUNK]]
            both = (self.x[i] * self.x[j]) > 0
            mixed = both[:, self.works].any(axis=1)
            if mixed.any():
                pairs: list[tuple[int, ...]] = [(int(a), int(b)) for a, b, m in zip(i, j, mixed, strict=True) if m]
                yield from self._extended(both[mixed], pairs)

    def _extended(self, bases: Booleans, names: Sequence[tuple[int, ...]]) -> Iterator[Candidate]:
        """Each base with one further setting that makes it pure.

        Args:
            bases: which evaluations have them, shape (R, n).
            names: their literals.
        """
        size = len(names[0]) + 1
        unbounded = [l for l, literal in enumerate(self.literals) if not literal.bounded]
        held = bases.astype(np.float32)
        if unbounded:
            x = self.x[unbounded]
            works = held[:, self.works] @ x[:, self.works].T
            counts = held[:, self.failed] @ x[:, self.failed].T
            for r, l in np.argwhere((works == 0) & (counts >= self.least[size])).tolist():
                added = unbounded[l]
                if all(self.apart[added, i] for i in names[r]) and (not names[r] or added not in names[r]):
                    yield self._candidate(float(counts[r, l]), size, tuple(sorted((*names[r], added))))
        for column, positions in enumerate(self.search.positions):
            if not len(positions):
                continue
            for sign in (ABOVE, BELOW):
                count = self._covered(bases, positions, sign).sum(axis=1)
                for r in np.flatnonzero(count >= self.least[size]).tolist():
                    if self._may_bound(names[r], column, sign):
                        yield self._candidate(float(count[r]), size, names[r], column, sign)

    def _may_bound(self, literals: Sequence[int], column: int, sign: str) -> bool:
        mine = [self.literals[l] for l in literals if self.literals[l].column == column]
        return all(l.bounded and l.sign != sign for l in mine)

    def _covered(self, bases: Booleans, positions: Vector, sign: str) -> Booleans:
        """Failures of each base beyond all that works in it, (R, n); none where nothing in it works at any position."""
        turned = positions if sign == ABOVE else -positions
        working = np.where(bases & self.works & ~np.isnan(turned), turned, -np.inf)
        edge = working.max(axis=1, initial=-np.inf)
        beyond = bases & self.failed & (turned > edge[:, None])
        return np.asarray(beyond & np.isfinite(edge)[:, None])

    def _candidate(self, f: float, size: int, literals: tuple[int, ...], column: int = -1, sign: str = "") -> Candidate:
        score = math.log(self.looks[size]) + f * self.log_p
        return Candidate(score, size, literals, column, sign)

    # -- a cut --------------------------------------------------------------------------------------------------

    def _finished(self, candidate: Candidate) -> Cut | None:
        """The settings of a candidate, their bounds moved out to what works; None where they are not pure after all."""
        parts = [self.literals[l] for l in candidate.literals]
        if candidate.column >= 0:
            parts.append(Literal(candidate.column, candidate.sign, np.ones_like(self.left)))
        for k in [k for k in reversed(range(len(parts))) if parts[k].bounded] * 2:
            moved = self._moved(parts, k)
            if moved is None:
                return None
            parts[k] = moved
        settings = tuple(
            self._setting(parts, k)
            for k in sorted(range(len(parts)), key=lambda k: (parts[k].column, parts[k].sign != ABOVE))
        )
        has = np.array([all(s.holds(c) for s in settings) for c in self.search.configs])
        if (has & ~self.search.failed).any() or not (has & self.failed).any():
            return None
        counted = self._joined([self._coarse(p) for p in parts]) & self.failed
        chance = self.most * self.looks[candidate.size] * math.exp(int(counted.sum()) * self.log_p)
        rows = np.flatnonzero(has & self.failed)
        return Cut(
            settings, rows, self.failures, self.evaluations, min(1.0, chance), round(sum(self.looks[1 : self.most + 1]))
        )

    def _joined(self, parts: Sequence[Literal]) -> Booleans:
        has = self.left.copy()
        for part in parts:
            has &= part.has
        return has

    def _moved(self, parts: Sequence[Literal], k: int) -> Literal | None:
        """A bound moved to the first failure beyond all that works under the other parts; None: nothing works there."""
        others = self._joined([p for i, p in enumerate(parts) if i != k])
        positions = self.search.positions[parts[k].column]
        covered = self._covered(others[None], positions, parts[k].sign)[0]
        if not covered.any():
            return None
        turned = positions if parts[k].sign == ABOVE else -positions
        first = float(turned[covered].min())
        return replace(parts[k], has=turned >= first, border=first if parts[k].sign == ABOVE else -first)

    def _coarse(self, part: Literal) -> Literal:
        """The next literal that is no wider: what chance is reckoned for."""
        if not part.bounded:
            return part
        inside = [
            l.has
            for l in self.literals
            if l.column == part.column and l.sign == part.sign and not (l.has & ~part.has & self.left).any()
        ]
        widest = max(inside, key=lambda has: int((has & self.left).sum()), default=np.zeros_like(self.left))
        return replace(part, has=widest)

    def _setting(self, parts: Sequence[Literal], k: int) -> Setting:
        part = parts[k]
        if part.setting is not None:
            return part.setting
        positions, sign = self.search.positions[part.column], part.sign
        others = self._joined([p for i, p in enumerate(parts) if i != k])
        working = positions[others & self.works & ~np.isnan(positions)]
        edge = float(working.max() if sign == ABOVE else working.min())
        return self.search.columns[part.column].beyond(sign, edge, part.border)
