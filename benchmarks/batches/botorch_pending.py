"""BoTorch in batches: q-log expected improvement beside the pending points, maximised greedily, by the optimizers of ``botorch``.

The first point of a batch has no pending ones: there q-log expected improvement is log expected improvement, in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler

from benchmarks.batches.methods import Told
from benchmarks.peers.method import Initial
from benchmarks.peers.methods.botorch_mixed import FAILURES, BotorchMethod
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape

SAMPLES = 128
"""Of the Monte Carlo estimate of q-log expected improvement."""


class BotorchBatches(BotorchMethod):
    """One fit a batch; each suggestion conditions on those before it."""

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        super().start(problem, shape, seed, initial, budget)
        self.seed, self.expected, self.model = seed, list[np.ndarray](), None

    def _suggest(self) -> dict[str, Any]:
        y = torch.tensor(self.y)[:, None]
        if self.model is None:
            self.model = self._fitted(torch.tensor(np.array(self.x)), y)
        if self.expected:
            pending, sampler = (
                torch.tensor(np.array(self.expected)),
                SobolQMCNormalSampler(torch.Size([SAMPLES]), self.seed),
            )
            self.improvement = qLogExpectedImprovement(self.model, y.max(), sampler, X_pending=pending)
        else:
            self.improvement = LogExpectedImprovement(self.model, best_f=y.max())
        try:
            codes = self._maximum()
        except FAILURES:
            codes = self._best(self._pool())
        config = self.shape.decode(codes)
        return self._neighbour(codes) if config in self.known else config

    def expect(self, config: dict[str, Any]) -> None:
        self.expected.append(self.shape.codes(config))
        self.known.append(config)

    def tell(self, results: Told) -> None:
        for config, loss in results:
            self.x.append(self.shape.codes(config))
            self.y.append(-loss)
        self.expected, self.model = [], None
