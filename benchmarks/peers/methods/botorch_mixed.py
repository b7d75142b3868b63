"""BoTorch: a Gaussian process for mixed inputs, log expected improvement, and its mixed optimizers.

* SingleTaskGP on the unit scale, categories one-hot inside the model (``NumericToCategoricalEncoding``; MixedSingleTaskGP
  takes three times as long); an inactive parameter is set to the middle of its range.
* Up to ten combinations of discrete values and no linear rule: ``optimize_acqf_mixed`` over all of them; a discrete space
  of up to 10,000: ``optimize_acqf_discrete``; otherwise ``optimize_acqf_mixed_alternating`` (the library's thresholds).
* Linear, unconditional rules are passed as inequality constraints; other rules cannot be passed.
* A suggestion that was evaluated before is replaced by its best unevaluated neighbour, since repeating an evaluation
  of an exact objective is useless.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.exceptions.errors import BotorchError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import NumericToCategoricalEncoding
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed
from botorch.optim.optimize_mixed import ALTERNATING_OPTIMIZER_THRESHOLD, MAX_CHOICES_ENUMERATE, optimize_acqf_mixed_alternating
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.settings import lazily_evaluate_kernels
from torch.nn.functional import one_hot

from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape

FIT_ITERATIONS = 50
"""L-BFGS-B iterations on the hyperparameters, started from the previous fit. They converge long before."""
POOL = 64
FAILURES = (BotorchError, RuntimeError, ValueError)
"""Exceptions of the optimizers if they find no feasible start."""

torch.set_default_dtype(torch.float64)


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of a suggestion; the library's own limits take several times as long.

    Attributes:
        restarts, raw: of the acquisition's maximiser, and random samples from which the restarts are chosen.
        alternations: discrete and continuous steps in turn (of up to 4 and 8 iterations).
        relaxed: they start from a continuous relaxation, the library's default, if there are no linear rules.
    """

    restarts: int = 4
    raw: int = 256
    alternations: int = 16
    relaxed: bool = True


class BotorchMethod(Method):
    """Method described in the module's docstring."""

    packages: ClassVar[tuple[str, ...]] = ("botorch", "gpytorch", "torch")
    limits: ClassVar[Limits] = Limits()

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        warnings.filterwarnings("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.shape, self.rng = shape, np.random.default_rng(np.random.SeedSequence([seed, 4]))
        self.categories = [k for k, d in enumerate(shape.dimensions) if d.kind == "categorical"]
        self.lists = {k: d.codes.tolist() for k, d in enumerate(shape.dimensions) if d.kind != "real"}
        high = [float(len(d.values) - 1) if d.kind == "categorical" else 1.0 for d in shape.dimensions]
        self.bounds = torch.tensor([[0.0] * len(high), high])
        self.constraints = constraints(shape)
        self.x = [shape.codes(c) for c, _ in initial]
        self.y = [-y for _, y in initial]
        self.known = [c for c, _ in initial]
        self.state: dict[str, torch.Tensor] = {}

    def suggest(self) -> dict[str, Any]:
        with lazily_evaluate_kernels(False):  # lazy evaluation costs more than it saves on matrices of sixty rows
            return self._suggest()

    def _suggest(self) -> dict[str, Any]:
        self.improvement = self._acquisition()
        try:
            codes = self._maximum()
        except FAILURES:
            codes = self._best(self._pool())
        config = self.shape.decode(codes)
        if config in self.known:
            config = self._neighbour(codes)
        return config

    def _acquisition(self) -> Any:
        x, y = torch.tensor(np.array(self.x)), torch.tensor(self.y)[:, None]
        return LogExpectedImprovement(self._fitted(x, y), best_f=y.max())

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.x.append(self.shape.codes(config))
        self.y.append(-loss)
        self.known.append(config)

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:
        self.known.append(config)  # the model is unchanged and would suggest its maximum again

    def _fitted(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        model = SingleTaskGP(x, y, input_transform=self._one_hot())
        if self.state:
            own = dict(model.state_dict())  # keep the new outcome transform and restore the earlier fit
            model.load_state_dict({k: own[k] if k.startswith("outcome") else v for k, v in self.state.items()})
        try:
            options = {"options": {"maxiter": FIT_ITERATIONS}}
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
        except BotorchError:
            model.eval()  # keep the earlier hyperparameters if the fit fails
        self.state = {k: v.clone() for k, v in model.state_dict().items()}
        return model

    def _one_hot(self) -> NumericToCategoricalEncoding | None:
        if not self.categories:
            return None
        sizes = {k: len(self.shape.dimensions[k].values) for k in self.categories}
        encoders = {k: partial(one_hot, num_classes=n) for k, n in sizes.items()}
        return NumericToCategoricalEncoding(len(self.shape.dimensions), sizes, encoders)

    # -- the acquisition step -----------------------------------------------------------------------------------

    def _maximum(self) -> np.ndarray:
        combinations = math.prod(map(len, self.lists.values()))
        given, rules = self.limits, self.constraints or None
        if not self.lists:
            found, _ = optimize_acqf(self.improvement, self.bounds, 1, given.restarts, given.raw, inequality_constraints=rules)
        elif len(self.lists) == len(self.shape.dimensions) and combinations <= MAX_CHOICES_ENUMERATE:
            choices = torch.tensor(list(product(*self.lists.values())))
            found, _ = optimize_acqf_discrete(self.improvement, 1, self._feasible(choices))
        elif combinations <= ALTERNATING_OPTIMIZER_THRESHOLD and not rules:
            fixed = [dict(zip(self.lists, values, strict=True)) for values in product(*self.lists.values())]
            found, _ = optimize_acqf_mixed(self.improvement, self.bounds, 1, given.restarts, fixed, given.raw)
        else:
            found, _ = optimize_acqf_mixed_alternating(
                self.improvement,
                self.bounds,
                discrete_dims={k: v for k, v in self.lists.items() if k not in self.categories},
                cat_dims={k: v for k, v in self.lists.items() if k in self.categories},
                # with linear rules the default start, a continuous relaxation, first walks 10,000 steps
                options={"maxiter_alternating": given.alternations}
                | ({"initialization_strategy": "random"} if rules or not given.relaxed else {}),
                raw_samples=given.raw,
                num_restarts=given.restarts,
                inequality_constraints=rules,
            )
        return found[0].detach().numpy()

    def _feasible(self, points: torch.Tensor) -> torch.Tensor:
        good = torch.ones(len(points), dtype=torch.bool)
        for indices, coefficients, bound in self.constraints:
            good &= points[:, indices] @ coefficients >= bound - 1e-9
        return points[good]

    def _pool(self) -> np.ndarray:
        """Return legal samples, used if the library finds no start that satisfies the linear rules."""
        return np.array([self.shape.codes(c) for c in self.shape.space.sample(POOL, self.rng)])

    def _best(self, points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            values = self.improvement(torch.tensor(points)[:, None])
        return points[int(values.argmax())]

    def _neighbour(self, codes: np.ndarray) -> dict[str, Any]:
        """Return the best unevaluated point that differs in one parameter, or a legal sample."""
        around = []
        for k in range(len(codes)):
            others = self.lists[k] if k in self.lists else self.rng.uniform(size=8).tolist()
            for code in others:
                moved = codes.copy()
                moved[k] = code
                around.append(moved)
        kept = self._feasible(torch.tensor(np.array(around))).numpy()
        with torch.no_grad():
            order = torch.argsort(-self.improvement(torch.tensor(kept)[:, None])).tolist()
        for k in order:
            config = self.shape.decode(kept[k])
            if config not in self.known:
                return config
        return self.shape.space.sample(1, self.rng)[0]


def constraints(shape: Shape) -> list[tuple[torch.Tensor, torch.Tensor, float]]:
    """Return linear unconditional rules as ``sum_i coefficient_i x[index_i] >= bound`` on the codes."""
    places = {d.name: k for k, d in enumerate(shape.dimensions)}
    found = []
    for rule in shape.linear_rules():
        indices = torch.tensor([places[n] for n in rule.slopes])
        slopes = torch.tensor(list(rule.slopes.values()))
        if math.isfinite(rule.lower):
            found.append((indices, slopes, rule.lower - rule.constant))
        if math.isfinite(rule.upper):
            found.append((indices, -slopes, rule.constant - rule.upper))
    return found
