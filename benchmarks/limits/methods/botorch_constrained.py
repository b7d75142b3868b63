"""BoTorch with outcome constraints: q-log expected improvement of what keeps the limits, by the mixed search of the peers.

* A SingleTaskGP of the loss and one of each side of a limit, bilog as in SCBO; where the problem may crash one of +-1 besides,
  and a crash is a row of that one alone.
* ``qLogExpectedImprovement`` with ``constraints``, 64 quasi-random draws; while nothing keeps the limits
  ``qLogProbabilityOfFeasibility``, the library's own first phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogProbabilityOfFeasibility
from botorch.acquisition.objective import GenericMCObjective
from botorch.models import ModelListGP
from botorch.sampling import SobolQMCNormalSampler

from benchmarks.limits.sides import Sides, bilog
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import Evaluated
from benchmarks.peers.methods.botorch_mixed import BotorchMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape

DRAWS = 64


class ConstrainedBotorchMethod(BotorchMethod):
    """See the module's description."""

    takes_limits: ClassVar[bool] = True

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        self.start(problem, shape, seed, [], budget)
        self.sides, self.seed = Sides(problem), seed
        self.rows: list[list[float | None]] = []
        self.kept: list[bool] = []
        self.states: dict[int, dict[str, torch.Tensor]] = {}
        for config, evaluation in initial:
            self.learn(config, evaluation, {})

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        loss = None if evaluation.loss is None else -evaluation.loss
        self.x.append(self.shape.codes(config))
        self.known.append(config)
        self.rows.append([loss, *(None if v is None else bilog(v) for v in self.sides.row(evaluation))])
        self.kept.append(evaluation.kept)

    def _acquisition(self) -> Any:
        columns = list(zip(*self.rows, strict=True))
        sides = [k for k in range(1, len(columns)) if _varies(columns[k])]
        sampler = SobolQMCNormalSampler(torch.Size([DRAWS]), seed=self.seed + 1000 * len(self.rows))
        if not any(self.kept):
            model = ModelListGP(*(self._of(k, columns[k]) for k in sides))
            return qLogProbabilityOfFeasibility(model, _broken(range(len(sides))), sampler)
        best = max(v for v, kept in zip(columns[0], self.kept, strict=True) if kept)
        model = ModelListGP(*(self._of(k, columns[k]) for k in (0, *sides)))
        objective = GenericMCObjective(lambda samples, X=None: samples[..., 0])
        constraints = _broken(range(1, len(sides) + 1)) or None
        return qLogExpectedImprovement(model, best, sampler, objective, constraints=constraints)

    def _of(self, k: int, column: tuple[float | None, ...]) -> Any:
        """The model of a column, from where its last fit ended."""
        rows = [i for i, v in enumerate(column) if v is not None]
        self.state = self.states.get(k, {})
        x = torch.tensor(np.array(self.x)[rows])
        model = self._fitted(x, torch.tensor([column[i] for i in rows])[:, None])
        self.states[k] = self.state
        return model


def _varies(column: tuple[float | None, ...]) -> bool:
    """Whether there is something to learn: a side that was never broken nor kept otherwise is constant."""
    known = {v for v in column if v is not None}
    return len(known) > 1


def _broken(places: range) -> list[Any]:
    """Above 0 where a side is broken, from draws (.., outputs)."""
    return [lambda samples, k=k: samples[..., k] for k in places]
