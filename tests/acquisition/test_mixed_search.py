"""Tests of the mixed search's moves and of alternation; test_contract.py tests legality and optima of small spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.alternating import AlternatingSettings, Alternation, Minimum
from mipcash.acquisition.analytic import AnalyticAcquisition, ClosedForm
from mipcash.acquisition.catalogue import AcquisitionInputs, Limited, Screened, rough
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch, Pool
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.acquisition.wide_search import WideSearch
from mipcash.backends.task import SolverSettings
from mipcash.deadline import Clock
from mipcash.program.forms import Vector
from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from tests.spaces import ALL
from tests.surrogates.test_surrogates import posterior


class ConfidenceBound:
    """Lower confidence bound ``mu - kappa sd``: an acquisition with a closed form that this package does not have."""

    def __init__(self, kappa: float) -> None:
        self.kappa = kappa

    def __call__(self, mu: Vector, sd: Vector) -> Vector:
        return np.asarray(mu - self.kappa * sd)

    def slope(self, mu: float, sd: float) -> tuple[float, float, float]:
        return mu - self.kappa * sd, 1.0, -self.kappa


class Setting:
    """A space with a posterior and everything that the search needs."""

    def __init__(self, space: mc.Space, seed: int, form: ClosedForm, excluded: Sequence[Exclusion] = ()) -> None:
        rng = np.random.default_rng(seed)
        self.domain = Domain.of(space)
        self.program = self.domain.program
        self.structure = Structure(self.program, self.domain.scale)
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


def test_a_large_batch_is_screened_and_a_small_one_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.acquisition.catalogue.KEPT", 8)
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.NEAR", 8)
    setting = Setting(ALL["conv_net"](), 1, ConfidenceBound(1.0))
    exact, loss = setting.acquisition, setting.acquisition.posterior
    assert isinstance(loss, StructuredPosterior)
    less = rough(AcquisitionInputs(loss, 0.0, {"latency": Limited(loss, -1.0, 1.0)}))
    assert less is not None
    assert less.loss is less.limited["latency"].posterior is loss.near_part
    screened = Screened(exact, AnalyticAcquisition(loss.near_part, ConfidenceBound(1.0)))
    points = setting.domain.encode(setting.domain.sample(30, np.random.default_rng(0)))
    values, kept = screened.values(points), np.argsort(screened.rough.values(points))[:8]
    np.testing.assert_allclose(values[kept], exact.values(points)[kept])
    assert np.isinf(np.delete(values, kept)).all()
    np.testing.assert_array_equal(screened.values(points[:8]), exact.values(points[:8]))
    assert setting.search().minimise(screened, setting.points, np.random.default_rng(0)) is not None
    assert rough(AcquisitionInputs(loss.given(points[:1], np.zeros(1)), 0.0)) is None  # given points are always near


ALONE = {"walks": 0, "survivors": 1, "moved": 1, "finalists": 1}
"""Settings of a search that improves one start by local moves, without random walks."""


def legal_levels(setting: Setting) -> np.ndarray:
    """Every legal level vector of a discrete space."""
    every = map(np.array, product(*(range(int(s)) for s in setting.program.sizes)))
    return np.array([levels for levels in every if _consistent(setting, levels)])


def values_of(setting: Setting, levels: np.ndarray) -> np.ndarray:
    return setting.acquisition.values(Points(levels, np.zeros((len(levels), 0))))


class Slope:
    """0.1 x + 0.05 g over one real x and the level g of one integer."""

    def values(self, points: Points) -> np.ndarray:
        return 0.1 * points.units[:, 0] + 0.05 * points.levels[:, 0]

    def section(self, z: np.ndarray) -> object:
        return lambda u: (0.1 * float(u[0]) + 0.05 * float(np.argmax(z)), np.array([0.1]))


@pytest.mark.parametrize(("seed", "paired"), [(1, False), (4, False), (5, True), (10, True)])
def test_levels_move_until_no_single_change_is_better(seed: int, paired: bool) -> None:
    """Start at the worst configuration, without walks. Pair moves find a lower value for some seeds."""
    setting = Setting(ALL["discrete"](), seed, ConfidenceBound(1.0))
    every = legal_levels(setting)
    values = values_of(setting, every)
    start = every[[int(np.argmax(values))]]
    found, further = (
        setting.search(**ALONE, pairs=pairs).minimise(
            setting.acquisition, Points(start, np.zeros((1, 0))), np.random.default_rng(0)
        )
        for pairs in (0, 10_000)
    )
    assert found is not None
    assert further is not None
    value = setting.value(found)
    assert value < values.max() - 1e-6
    # a group that another group activates takes its level from the memory
    off = setting.program.off_levels
    beside = [
        _changed_choices(setting, found.levels, other) == 1 and np.array_equal(other == off, found.levels == off)
        for other in every
    ]
    assert sum(beside) >= 2
    assert values[beside].min() >= value - 1e-9
    assert (setting.value(further) < value - 1e-6) == paired
    assert setting.value(further) <= value + 1e-9


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers"])
def test_numbers_move_downhill(name: str) -> None:
    """Values fall from a start whose levels are fixed, to a gradient of zero if no rule binds the numbers."""
    setting = Setting(ALL[name](), 0, ConfidenceBound(2.0))
    search = setting.search(**ALONE, pairs=0, sweeps=0)
    fell = 0
    for k, start in enumerate(setting.points[:4]):
        found = search.minimise(setting.acquisition, setting.points[[k]], np.random.default_rng(0))
        assert found is not None
        assert np.array_equal(found.levels, start.levels)
        assert setting.domain.is_legal(found)
        assert setting.value(found) <= setting.value(start) + 1e-9
        fell += setting.value(found) < setting.value(start) - 1e-3
        if name == "conv_net":
            _, gradient = setting.acquisition.section(start.one_hot(setting.program))(found.units)
            inside = (found.units > 1e-6) & (found.units < 1 - 1e-6)
            assert np.abs(gradient[inside]).max(initial=0.0) < 5e-2
    assert fell >= 2


@pytest.mark.parametrize(("x", "exchanges", "value"), [(0.3, 0, 0.13), (0.3, 2, 0.05), (0.9, 0, 0.05)])
def test_exchanges_move_a_level_together_with_the_number_in_its_rule(x: float, exchanges: int, value: float) -> None:
    """At the rule a lower level needs a larger x, so no single move is legal, but from x = 0.9. Level 0 with x = 0.5 is optimal."""
    space = mc.Space("tied")
    grade = space.integer("grade", 0, 3)
    space.rule("room", space.real("x", 0.0, 1.0) >= 0.5 - 0.1 * grade)
    domain = Domain.of(space)
    start = domain.encode([{"grade": 2, "x": x}])
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


def _consistent(setting: Setting, levels: np.ndarray) -> bool:
    """Return True if levels are legal: groups are off exactly where their conditions fail, and all rules hold."""
    legality = setting.near.legality_at(np.zeros(0))
    assert legality is not None
    return bool((legality.effective(levels[None]) == levels).all() and legality.check(levels[None])[0])


def _changed_choices(setting: Setting, levels: np.ndarray, other: np.ndarray) -> int:
    """Count groups whose level differs, except groups that another group activates or deactivates."""
    off = np.array([g.size - 1 if g.conditional else -1 for g in setting.program.groups])
    return int(np.sum((levels != other) & (levels != off) & (other != off)))


def tied() -> mc.Space:
    """A space whose legality only a solver decides: a number is tied to an auxiliary variable, and that to levels."""
    space = mc.Space("tied")
    x, h = space.integer("x", 0, 600), space.auxiliary("h", 0, 6)
    n, kind = space.integer("n", 0, 3), space.categorical("kind", ["p", "q", "r"])
    space.rule("hundreds", x == 100 * h)
    space.rule("few", h + n <= 5 - kind["q"])
    space.rule("more", mc.implies(kind["p"], h >= 2))
    return space


@pytest.mark.parametrize("made", [MixedSearch, WideSearch])
@pytest.mark.parametrize("declare", [ALL["discrete"], tied])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_end_where_no_legal_and_new_change_of_one_level_is_better(
    made: type[MixedSearch], declare: Callable[[], mc.Space], seed: int
) -> None:
    """From each of several points, also if the best end is excluded."""
    excluded = list[Exclusion]()
    for _ in range(2):
        setting = Setting(declare(), seed, ConfidenceBound(1.0), excluded)
        domain, near = setting.domain, setting.near
        search = made(setting.step, near, LocalSearchSettings(**ALONE, pairs=0))
        starts = setting.points[:5]
        pool = search._sweep(setting.acquisition, Pool(starts, setting.acquisition.values(starts)))
        for start, point, value in zip(starts, pool.points, pool.values.tolist(), strict=True):
            assert np.array_equal(point.units, start.units)
            assert value == pytest.approx(setting.value(point))
            assert domain.is_legal(point)
            assert value <= setting.value(start)
            for g, level in ((g, level) for g, n in enumerate(setting.program.n_levels) for level in range(n)):
                latent = near.latent(point.levels)
                latent[g] = level
                other = Point(domain.free_legality.effective(latent[None])[0], point.units)
                if not np.array_equal(other.levels, point.levels) and near.admitted(other.levels[None])[0]:
                    assert setting.value(other) >= value - 1e-6 or not domain.is_legal(other)
        best = int(np.argmin(pool.values))
        assert (
            not excluded
            or not np.array_equal(pool.points[best].levels, excluded[0].levels)
            or best_stays(starts, excluded)
        )
        excluded = [Exclusion(pool.points[best].levels)]


def best_stays(starts: Points, excluded: Sequence[Exclusion]) -> bool:
    """Return True if an excluded point is itself a start, which a sweep only leaves for a better one."""
    return any(np.array_equal(levels, excluded[0].levels) for levels in starts.levels)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 12])
def test_moves_of_different_groups_are_combined_by_twos_fours_eights_and_all(count: int) -> None:
    """Moves of a group that has moved already are left out; a swap moves two groups."""
    rng, start = np.random.default_rng(count), np.arange(20) % 3
    moves, taken, kept = list[list[int]](), set[int](), list[list[int]]()
    while len(kept) < count:
        groups = rng.choice(20, size=1 + int(rng.random() < 0.2), replace=False).tolist()
        moves.append(groups)
        if not taken & set(groups):
            kept.append(groups)
            taken |= set(groups)
    latent = np.repeat(start[None], len(moves), axis=0)
    for row, groups in zip(latent, moves, strict=True):
        row[groups] = 5 + rng.integers(3, size=len(groups))
    first = [moves.index(groups) for groups in kept]
    wanted = []
    for most in sorted({*(2**k for k in range(1, 5) if 2**k <= count), count} - {1}):
        together = start.copy()
        for row, groups in zip(first[:most], kept[:most], strict=True):
            together[groups] = latent[row, groups]
        wanted.append(together.tolist())
    assert WideSearch._together(start, latent).tolist() == wanted


@pytest.mark.parametrize("name", list(ALL))
def test_alternation_returns_legal_points_with_proven_optimal_levels(name: str) -> None:
    """No start is better than the result, and another solve at the same numbers agrees."""
    space = ALL[name]()
    f, domain = posterior(space, "evidence")[0].sample(np.random.default_rng(0)), Domain.of(space)
    starts = domain.encode(space.sample(4, 0))
    alternation = Alternation(domain, AlternatingSettings())
    found = alternation.minimise(f, starts, [], np.random.default_rng(0), Clock())
    assert found is not None
    assert space.validate(domain.decode(found.point)) == []
    assert found.answer.status == "optimal"
    assert found.answer.bound <= found.value + 1e-6
    end, *others = (f.value(p.one_hot(domain.program), p.units) for p in (found.point, *starts))
    assert end == pytest.approx(found.value, abs=1e-6)
    assert found.value <= min(others) + 1e-6
    again = domain.minimise(f.form_at(found.point.units), SolverSettings(), units=found.point.units)
    assert again.value == pytest.approx(found.value, rel=1e-3, abs=1e-3)


def test_a_minimum_without_a_solver_has_no_bound() -> None:
    setting = Setting(ALL["discrete"](), 0, ConfidenceBound(1.0))
    found = Minimum.unproven(setting.domain, setting.points[0], 1.5)
    assert (found.value, found.answer.value, found.answer.bound, found.answer.status) == (1.5, 1.5, -np.inf, "feasible")
    assert np.array_equal(setting.program.levels_of(found.answer.columns), setting.points[0].levels)
