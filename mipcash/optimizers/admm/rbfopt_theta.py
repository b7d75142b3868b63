"""theta-min by RBFOpt (Costa and Nannicini 2018; liu2020, appendix 5): radial basis functions, its own choice of them.

RBFOpt solves its auxiliary problems with Bonmin and Ipopt, programs that no Python package brings: they must be on the path.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mipcash.errors import MipcashError
from mipcash.optimizers.admm.optional import needed
from mipcash.optimizers.admm.replay import replayed
from mipcash.optimizers.admm.theta_min import Candidates, ThetaProblem
from mipcash.program.forms import Vector

PROGRAMS = ("bonmin", "ipopt")
MOST = 10_000
NAME = "theta_min='rbfopt'"


@dataclass(frozen=True)
class RbfoptTheta:
    """See the module's description.

    Raises:
        MipcashError: RBFOpt, or a program that it needs, is not installed.
    """

    def __post_init__(self) -> None:
        needed("rbfopt", NAME, "rbfopt")
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise MipcashError(
                f"{NAME} needs the program {' and '.join(missing)}, which is not on the path; install it from "
                "https://www.coin-or.org, or take theta_min='bobyqa' or 'gp'"
            )

    def __call__(self, problem: ThetaProblem) -> Candidates:
        rbfopt = needed("rbfopt", NAME, "rbfopt")

        def run(f: Callable[[Vector], float]) -> None:
            d = problem.d
            box = rbfopt.RbfoptUserBlackBox(d, np.zeros(d), np.ones(d), np.array(["R"] * d), f)
            settings = rbfopt.RbfoptSettings(max_evaluations=MOST, max_iterations=MOST, rand_seed=0)
            algorithm = rbfopt.RbfoptAlgorithm(settings, box)
            with open("/dev/null", "w", encoding="utf-8") as nowhere:
                algorithm.set_output_stream(nowhere)
                algorithm.optimize()

        return replayed(problem, run)
