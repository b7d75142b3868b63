"""The mixed search: legal all the way, never worse than its pool, and the exact best of small spaces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, ClosedForm, ConfidenceBound, LogEI
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from tests.spaces import ALL


class Setting:
    """A space with a posterior and everything that the search needs."""

    def __init__(self, space: mc.Space, seed: int, form: ClosedForm, excluded: Sequence[Exclusion] = ()) -> None:
        rng = np.random.default_rng(seed)
        self.domain = Domain.of(space)
        self.program = self.domain.program
        self.structure = Structure.of(self.program, self.domain.scale)
        self.points = self.domain.encode(self.domain.sample(12, rng))
        kernel = Kernel(self.structure, self.structure.prior[0])
        posterior = StructuredPosterior.fit(kernel, Encoded.of(self.structure, self.points), rng.normal(size=12))
        self.acquisition = AnalyticAcquisition(posterior, form)
        self.step = ContinuousStep(self.domain, starts=2, tolerance=1e-6)
        memory = np.zeros(len(self.program.groups), dtype=np.int64)
        self.near = Neighbourhood(self.domain, excluded, memory)

    def search(self, **settings: int) -> MixedSearch:
        return MixedSearch(self.step, self.near, LocalSearchSettings(**settings))

    def value(self, point: Point) -> float:
        return value_of(self.acquisition, point)


def value_of(acquisition: Acquisition, point: Point) -> float:
    """The acquisition at one point."""
    return float(acquisition.values(Points(point.levels[None], point.units[None]))[0])


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("form", [LogEI(-0.5), ConfidenceBound(2.0)])
def test_the_end_is_legal_and_no_worse_than_the_pool(name: str, form: ClosedForm) -> None:
    setting = Setting(ALL[name](), 1, form)
    found = setting.search().minimise(setting.acquisition, setting.points, np.random.default_rng(0))
    assert found is not None
    assert setting.domain.is_legal(found)
    assert setting.value(found) <= setting.acquisition.values(setting.points).min() + 1e-9


def test_on_a_small_discrete_space_it_finds_the_best_of_all() -> None:
    """Eighty-odd configurations, eight posteriors: the end is the enumerated optimum."""
    hits = 0
    for seed in range(8):
        setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
        legal = [
            levels
            for levels in map(np.array, product(*(range(int(s)) for s in setting.program.sizes)))
            if _consistent(setting, levels)
        ]
        every = np.array(legal)
        values = setting.acquisition.values(Points(every, np.zeros((len(every), 0))))
        found = setting.search().minimise(setting.acquisition, setting.points, np.random.default_rng(seed))
        assert found is not None
        value = setting.value(found)
        assert value >= values.min() - 1e-9
        hits += value <= values.min() + 1e-9
    assert hits == 8


def test_excluded_levels_are_never_returned() -> None:
    free = Setting(ALL["discrete"](), 3, LogEI(-0.5))
    excluded: list[Exclusion] = []
    seen = set()
    for k in range(6):
        setting = Setting(ALL["discrete"](), 3, LogEI(-0.5), excluded)
        found = setting.search().minimise(setting.acquisition, free.points, np.random.default_rng(k))
        assert found is not None
        assert found.levels.tobytes() not in seen
        seen.add(found.levels.tobytes())
        excluded.append(Exclusion(found.levels))


def test_single_moves_are_all_legal_single_changes() -> None:
    setting = Setting(ALL["discrete"](), 0, LogEI(0.0))
    levels = setting.points.levels[0]
    _, latent = setting.near.singles(levels[None])
    moved, legal = setting.near.legal(latent, np.zeros(0), np.arange(len(latent)))
    expected = {
        other.tobytes()
        for other in map(np.array, product(*(range(int(s)) for s in setting.program.sizes)))
        if _consistent(setting, other) and _changed_choices(setting, levels, other) == 1
    }
    # a choice that switches another on takes that one's remembered level: such neighbours are represented once
    assert {m.tobytes() for m in moved[legal]} <= expected
    off = setting.program.off_levels
    plain = {s for s in expected if np.array_equal(np.frombuffer(s, dtype=np.int64) == off, levels == off)}
    assert len(plain) >= 2
    assert plain <= {m.tobytes() for m in moved[legal]}
    assert len({m.tobytes() for m in moved[legal]}) == len(moved[legal])


ALONE = {"walks": 0, "survivors": 1, "moved": 1, "finalists": 1}
"""Limits under which a search has its start and its own moves, and nothing else."""


def legal_levels(setting: Setting) -> np.ndarray:
    """Every legal level vector of a discrete space."""
    every = map(np.array, product(*(range(int(s)) for s in setting.program.sizes)))
    return np.array([levels for levels in every if _consistent(setting, levels)])


def alone(levels: np.ndarray) -> Points:
    """One point of a space without numbers."""
    return Points(levels[None], np.zeros((1, 0)))


def values_of(setting: Setting, levels: np.ndarray) -> np.ndarray:
    return setting.acquisition.values(Points(levels, np.zeros((len(levels), 0))))


@pytest.mark.parametrize("seed", range(6))
def test_levels_move_until_no_single_change_is_better(seed: int) -> None:
    """From the worst configuration of all, without walks: what is found is due to the moves."""
    setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
    every = legal_levels(setting)
    values = values_of(setting, every)
    start = every[int(np.argmax(values))]
    search = setting.search(**ALONE, pairs=0)
    found = search.minimise(setting.acquisition, alone(start), np.random.default_rng(0))
    assert found is not None
    value = setting.value(found)
    assert value < values.max() - 1e-6
    _, latent = setting.near.singles(found.levels[None])
    moved, legal = setting.near.legal(latent, np.zeros(0), np.arange(len(latent)))
    assert values_of(setting, moved[legal]).min() >= value - 1e-9


def test_pairs_of_changes_leave_where_single_ones_end() -> None:
    better = 0
    for seed in range(12):
        setting = Setting(ALL["discrete"](), seed, ConfidenceBound(1.0))
        every = legal_levels(setting)
        start = every[int(np.argmax(values_of(setting, every)))]
        ends = []
        for pairs in (0, 10_000):
            search = setting.search(**ALONE, pairs=pairs)
            found = search.minimise(setting.acquisition, alone(start), np.random.default_rng(0))
            assert found is not None
            ends.append(setting.value(found))
        assert ends[1] <= ends[0] + 1e-9
        better += ends[1] < ends[0] - 1e-6
    assert better > 0


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_numbers_move_downhill(name: str) -> None:
    """From each start alone, its levels held by having no moves: numbers fall, to where the gradient does where none is bound."""
    fell = 0
    for seed in range(3):
        setting = Setting(ALL[name](), seed, ConfidenceBound(2.0))
        search = setting.search(**ALONE, pairs=0, sweeps=0)
        for k, start in enumerate(setting.points[:4]):
            found = search.minimise(setting.acquisition, setting.points[[k]], np.random.default_rng(0))
            assert found is not None
            assert np.array_equal(found.levels, start.levels)
            assert setting.value(found) <= setting.value(start) + 1e-9
            fell += setting.value(found) < setting.value(start) - 1e-3
            if name == "conv_net":  # no rule binds its number
                _, gradient = setting.acquisition.section(start.one_hot(setting.program))(found.units)
                inside = (found.units > 1e-6) & (found.units < 1 - 1e-6)
                assert np.abs(gradient[inside]).max(initial=0.0) < 5e-2
    assert fell >= 6


class Slope:
    """0.1 x + 0.05 g over one real x and the level g of one integer."""

    def values(self, points: Points) -> np.ndarray:
        return 0.1 * points.units[:, 0] + 0.05 * points.levels[:, 0]

    def section(self, z: np.ndarray) -> object:
        return lambda u: (0.1 * float(u[0]) + 0.05 * float(np.argmax(z)), np.array([0.1]))


@pytest.mark.parametrize(("exchanges", "value"), [(0, 0.13), (2, 0.05)])
def test_levels_leave_a_rule_together_with_the_numbers_that_it_ties_to_them(exchanges: int, value: float) -> None:
    """At the rule every level below needs a larger number: no single move is legal, and with x = 0.5 level 0 is best."""
    space = mc.Space("tied")
    grade = space.integer("grade", 0, 3)
    space.rule("room", space.real("x", 0.0, 1.0) >= 0.5 - 0.1 * grade)
    domain = Domain.of(space)
    start = domain.encode([{"grade": 2, "x": 0.3}])
    near = Neighbourhood(domain, [], np.zeros(1, dtype=np.int64))
    search = MixedSearch(
        ContinuousStep(domain, starts=2, tolerance=1e-6),
        near,
        LocalSearchSettings(**ALONE, exchanges=exchanges),  # type: ignore[arg-type]
    )
    found = search.minimise(Slope(), start, np.random.default_rng(0))  # type: ignore[arg-type]
    assert found is not None
    assert domain.is_legal(found)
    assert value_of(Slope(), found) == pytest.approx(value, abs=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_exchanges_end_legally_and_no_worse(name: str) -> None:
    for seed in range(3):
        setting = Setting(ALL[name](), seed, ConfidenceBound(2.0))
        ends = []
        for exchanges in (0, 5):
            search = setting.search(**ALONE, pairs=0, exchanges=exchanges)
            found = search.minimise(setting.acquisition, setting.points[[0]], np.random.default_rng(0))
            assert found is not None
            assert setting.domain.is_legal(found)
            ends.append(setting.value(found))
        assert ends[1] <= ends[0] + 1e-6


def _consistent(setting: Setting, levels: np.ndarray) -> bool:
    """Whether levels are legal: every group off exactly where its conditions fail, and the rules kept."""
    legality = setting.near.legality_at(np.zeros(0))
    assert legality is not None
    return bool((legality.effective(levels[None]) == levels).all() and legality.check(levels[None])[0])


def _changed_choices(setting: Setting, levels: np.ndarray, other: np.ndarray) -> int:
    """Groups whose level differs, groups that are switched on or off by another not counted."""
    off = np.array([g.size - 1 if g.conditional else -1 for g in setting.program.groups])
    return int(np.sum((levels != other) & (levels != off) & (other != off)))
