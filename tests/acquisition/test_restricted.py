"""Searches of a sub-space under functions that were fitted on the whole: what is held stays, as a step of splitting needs."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.clock import Clock
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.mixed_search import LocalSearchSettings, MixedSearch
from mipcash.acquisition.neighbourhood import Neighbourhood
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL


@pytest.mark.parametrize("name", list(ALL))
def test_what_is_held_stays(name: str) -> None:
    setting, rng = Setting(ALL[name](), 1, LogEI(-0.5)), np.random.default_rng(0)
    config = setting.domain.decode(setting.points[3])
    for label, value in list(config.items())[::2]:
        inside = setting.domain.restricted({label: value})
        starts = inside.encode(inside.sample(3, rng))
        near = Neighbourhood(inside, [], np.zeros(len(inside.program.groups), dtype=np.int64))
        search = MixedSearch(ContinuousStep(inside, 1, 1e-6), near, LocalSearchSettings(walks=40))
        moved = search.minimise(setting.acquisition, starts, rng)
        mean = setting.acquisition.posterior.mean()
        alternated = Alternation(inside, AlternatingSettings(rounds=2)).minimise(mean, starts, [], rng, Clock())
        assert moved is not None
        assert alternated is not None
        for point in (moved, alternated.point):
            found = inside.decode(point)[label]
            assert found == (pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value)
            assert setting.domain.is_legal(point)
