"""BoTorch with outcome constraints: constrained q-log expected improvement, maximised by the mixed search of the peers.

* Independent Gaussian processes of the loss and of each side of a constraint, bilog as in SCBO, in one batched SingleTaskGP, which
  is several times as fast as a list of models. If the problem may crash, a further one of +-1 models the crashes.
* ``qLogExpectedImprovement`` with ``constraints``, 32 quasi-random draws; while no observation is feasible,
  ``qLogProbabilityOfFeasibility``, the library's own first phase.
* Half the restarts, raw samples and alternations of the peers' method, and random starts.
  With the peers' numbers a run takes minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from benchmarks.peers.methods.botorch_mixed import BotorchMethod, Limits
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape

DRAWS = 32


class ConstrainedBotorchMethod(BotorchMethod):
    """Method described in the module's docstring."""

    takes_limits: ClassVar[bool] = True
    limits: ClassVar[Limits] = Limits(restarts=2, raw=128, alternations=8, relaxed=False)

    def begin(self, problem: Problem, shape: Shape, seed: int, initial: Evaluated, budget: int) -> None:
        self.start(problem, shape, seed, [], budget)
        self.sides, self.seed = Sides(problem), seed
        self.rows: list[list[float]] = []
        self.kept: list[bool] = []
        self.states: dict[tuple[int, ...], dict[str, torch.Tensor]] = {}
        for config, evaluation in initial:
            self.learn(config, evaluation, {})

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        told = [np.nan if v is None else bilog(v) for v in self.sides.row(evaluation)]
        self.x.append(self.shape.codes(config))
        self.known.append(config)
        self.rows.append([np.nan if evaluation.loss is None else -evaluation.loss, *told])
        self.kept.append(evaluation.kept)

    def _acquisition(self) -> Any:
        rows, kept = np.array(self.rows), np.array(self.kept)
        learned = [k for k in range(1, rows.shape[1]) if len(set(rows[~np.isnan(rows[:, k]), k])) > 1]
        last = rows.shape[1] - 1
        apart = [k for k in learned if self.sides.crashes and k == last]
        learned = [k for k in learned if k not in apart]
        sampler = SobolQMCNormalSampler(torch.Size([DRAWS]), seed=self.seed + 1000 * len(rows))
        if not kept.any():
            model = self._models(rows, learned, apart)
            return qLogProbabilityOfFeasibility(model, _broken(range(len(learned) + len(apart))), sampler, fat=True)
        model = self._models(rows, [0, *learned], apart)
        objective = GenericMCObjective(lambda samples, X=None: samples[..., 0])
        constraints = _broken(range(1, 1 + len(learned) + len(apart))) or None
        best = rows[kept, 0].max()
        return qLogExpectedImprovement(model, best, sampler, objective, constraints=constraints, fat=True)

    def _models(self, rows: np.ndarray, together: Sequence[int], apart: Sequence[int]) -> Any:
        """Return models of columns without rows that crashed, and of columns that describe crashes."""
        models = [self._of(rows, tuple(columns)) for columns in (together, apart) if columns]
        return models[0] if len(models) == 1 else ModelListGP(*models)

    def _of(self, rows: np.ndarray, columns: tuple[int, ...]) -> Any:
        """Return independent models of columns, fitted from the end of their last fit."""
        known = ~np.isnan(rows[:, columns]).any(axis=1)
        self.state = self.states.get(columns, {})
        model = self._fitted(torch.tensor(np.array(self.x)[known]), torch.tensor(rows[np.ix_(known, columns)]))
        self.states[columns] = self.state
        return model


def _broken(places: range) -> list[Any]:
    """Return functions of draws (.., outputs) that are positive if a side is violated."""
    return [lambda samples, k=k: samples[..., k] for k in places]
