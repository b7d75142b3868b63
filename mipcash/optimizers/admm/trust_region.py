"""theta-min by a derivative-free trust region: Py-BOBYQA (Cartis, Fiala, Marteau and Roberts 2019; liu2020, appendix 5).

A quadratic through 2 d + 1 points, minimised in a region whose radius follows its success. The first 2 d evaluations make the
model, so that it needs an I well above that. It starts from the best row, and ends the phase where its radius is small.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mipcash.optimizers.admm.optional import needed
from mipcash.optimizers.admm.replay import ASKED, replayed
from mipcash.optimizers.admm.theta_min import Candidates, ThetaProblem
from mipcash.program.forms import Vector

RADIUS, LEAST_RADIUS = 0.2, 1e-3
"""Of the trust region at the start, and where it ends."""
MOST = 10_000
START = "start"
"""In the memory: where the runs of a phase start."""


@dataclass(frozen=True)
class TrustRegion:
    """See the module's description.

    Raises:
        MipcashError: Py-BOBYQA is not installed.
    """

    def __post_init__(self) -> None:
        needed("pybobyqa", "theta_min='bobyqa'", "bobyqa")

    def __call__(self, problem: ThetaProblem) -> Candidates:
        start = problem.memory.get(START)
        if start is None:
            best = problem.x[int(np.argmin(problem.values))] if len(problem.f) else problem.start
            start = np.clip(best, 0.0, 1.0).tolist()
        solve = needed("pybobyqa", "theta_min='bobyqa'", "bobyqa").solve

        def run(f: Callable[[Vector], float]) -> None:
            drawn = np.random.get_state()  # noqa: NPY002 - the library draws from the global generator
            np.random.seed(0)  # noqa: NPY002
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    solve(
                        f,
                        np.array(start, dtype=float),
                        bounds=(np.zeros(problem.d), np.ones(problem.d)),
                        rhobeg=RADIUS,
                        rhoend=LEAST_RADIUS,
                        maxfun=MOST,
                        do_logging=False,
                        user_params={"init.random_initial_directions": False},
                    )
            finally:
                np.random.set_state(drawn)  # noqa: NPY002

        answer = replayed(problem, run)
        return Candidates(answer.x, {START: start, ASKED: answer.memory.get(ASKED, [])})
