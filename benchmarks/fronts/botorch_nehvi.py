"""BoTorch with several objectives: q-log noisy expected hypervolume improvement, by the mixed search of the peers.

* A Gaussian process per objective, in one batched SingleTaskGP.
* ``qLogNoisyExpectedHypervolumeImprovement``, the library's recommendation, with the benchmark's own reference point, 32
  quasi-random draws, and baseline points pruned.
* Half the restarts, raw samples and alternations of the peers' method, as for outcome constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.sampling import SobolQMCNormalSampler

from benchmarks.peers.methods.botorch_mixed import BotorchMethod, Limits

DRAWS = 32


class FrontBotorchMethod(BotorchMethod):
    """Method described in the module's docstring."""

    limits: ClassVar[Limits] = Limits(restarts=2, raw=128, alternations=8, relaxed=False)

    def aim(self, signs: np.ndarray, reference: np.ndarray, seed: int) -> None:
        """Set the objectives: values times signs are maximised beyond the reference point."""
        self.signs, self.reference, self.seed = signs, signs * reference, seed
        self.rows: list[np.ndarray] = []

    def learn(self, config: dict[str, Any], values: np.ndarray) -> None:
        self.x.append(self.shape.codes(config))
        self.rows.append(self.signs * values)
        self.known.append(config)

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:
        self.known.append(config)

    def _acquisition(self) -> Any:
        x, y = torch.tensor(np.array(self.x)), torch.tensor(np.array(self.rows))
        sampler = SobolQMCNormalSampler(torch.Size([DRAWS]), seed=self.seed + 1000 * len(x))
        model = self._fitted(x, y)
        reference = self.reference.tolist()
        return qLogNoisyExpectedHypervolumeImprovement(model, reference, x, sampler=sampler, prune_baseline=True)
