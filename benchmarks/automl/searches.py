"""Searches of a space of pipelines: the optimizers of the peers benchmark, and ours as in user code.

Every evaluation is five fits. All peers start from the same ten legal samples. An illegal suggestion is replaced by the
nearest legal configuration. A pipeline that fails is reported as the worst loss so far, and as at least 1
(:func:`told`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.automl.data import Split, loss
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.spaces import SPACES, objective_of
from benchmarks.peers.catalogue import PEERS, make_method
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import INITIAL
from benchmarks.peers.methods.ours import OurMethod, changed, commit
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.integrations.sklearn.cross_validated import CrossValidated, Fold
from mipcash.integrations.sklearn.ensemble import selected
from mipcash.optimizers.registry import make_optimizer

FAILED = 1.0
"""Least loss reported for a failure: the worst possible loss for AUC, the loss of predicting the mean for R2."""
REPEATS = (1, 2)
"""Repeats on fresh folds of the searched rows: ten fits."""
ENSEMBLE = 32
"""Selection steps of an ensemble."""


@dataclass
class Searched:
    """Record of a search.

    Attributes:
        result: result with all configurations of the search.
        losses: in the order of the evaluations; None for a failure.
        clock: CPU seconds of the search when each evaluation was done.
        asking: CPU seconds of proposals, included in the clock.
        illegal: suggestions that were replaced.
        recommends: True if the result has a recommendation of the method itself.
    """

    result: mc.Result
    losses: list[float | None]
    clock: list[float]
    asking: float
    illegal: int = 0
    recommends: bool = False


class Clocked(CrossValidated):
    """Cross-validated loss that counts its fits and their CPU seconds."""

    spent: float = 0.0
    fits: int = 0

    def _fold(self, *given: Any) -> Fold:
        began = time.process_time()
        self.fits += 1
        try:
            return super()._fold(*given)
        finally:
            self.spent += time.process_time() - began


def run_search(method: str, split: Split, evaluations: int, space: str) -> Run:
    """Run an optimizer once on a space of pipelines."""
    objective = objective_of(split, space, Clocked)
    make = _peer if method in PEERS else _ours
    found = make(method, split, evaluations, space, objective)
    fits = objective.fits  # fits of the search only; other objectives measure the answers
    return Run(
        method,
        split.name,
        split.seed,
        space,
        answers_of(found, split, objective),
        tuple(found.losses),
        len(found.losses),
        fits,
        {"search": found.clock[-1], "asks": found.asking},
        tuple(found.clock),
        found.illegal,
        str(found.result.config)[:500],
        {"evaluations": evaluations, **commit()},
    )


def evaluated(objective: CrossValidated, config: dict[str, Any]) -> float | None:
    """Return the cross-validated loss, or None if the pipeline fails."""
    try:
        return float(objective.evaluate(config)["loss"])
    except Exception:  # a pipeline may fail for any reason
        return None


def told(value: float | None, known: Sequence[float | None]) -> float:
    """Return the loss reported to a peer; for a failure, the worst loss so far, since 1 - R2 may be far above FAILED.

    Args:
        value: the loss; None for a failure.
        known: the earlier losses.
    """
    return max([FAILED, *(v for v in known if v is not None)]) if value is None else value


def _peer(method: str, split: Split, evaluations: int, space: str, objective: Clocked) -> Searched:
    declared = SPACES[space].declare(split)
    shape, peer = Shape(declared), make_method(method)
    problem = Problem(f"{space} {split.name}", lambda: declared, lambda config: 0.0, "rules", 0.0, "lower bound", "")
    known: list[tuple[dict[str, Any], float | None]] = []
    clock: list[float] = []
    illegal, began = 0, time.process_time()

    def evaluate(config: dict[str, Any]) -> Evaluation:
        value = evaluated(objective, config)
        shown = told(value, [v for _, v in known])
        known.append((config, value))
        clock.append(time.process_time() - began)
        return Evaluation(shown)

    drawn = declared.sample(min(INITIAL, evaluations), np.random.default_rng(np.random.SeedSequence([split.seed, 0])))
    peer.begin(problem, shape, split.seed, [(config, evaluate(config)) for config in drawn], evaluations)
    while len(known) < evaluations:
        config = peer.suggest()
        if shape.violations(config):
            illegal += 1
            config = declared.nearest(config)
        peer.learn(config, evaluate(config), {})
    asking = time.process_time() - began - objective.spent
    study = mc.Study(declared, "random", seed=split.seed)
    for config, value in known:
        if value is not None:
            study.add(config, value)
    return Searched(study.result, [value for _, value in known], clock, asking, illegal)


def _ours(method: str, split: Split, evaluations: int, space: str, objective: Clocked) -> Searched:
    """Run our optimizer as in user code, except for the time limit of a proposal, so that load does not matter."""
    declared = SPACES[space].declare(split)
    optimizer, settings = _settings(method, declared)
    clock: list[float] = []
    began = time.process_time()
    result = mc.minimize(
        objective,
        declared,
        evaluations,
        optimizer=mc.Method(optimizer, settings=settings, seconds_per_proposal=None),
        seed=split.seed,
        progress=False,
        callbacks=lambda study, trial: clock.append(time.process_time() - began),
    )
    asking = time.process_time() - began - objective.spent
    losses = [t.loss if t.done else None for t in result.history if not t.repeat]
    return Searched(result, losses, clock, asking, recommends=True)


def _settings(method: str, declared: mc.Space) -> tuple[str, Any]:
    """Return the optimizer of ``name:key=value`` and its settings, or None for its defaults."""
    named = OurMethod(method)
    if not named.changes:
        return named.optimizer, None
    settings = make_optimizer(named.optimizer, declared).settings  # type: ignore[attr-defined]
    for path, value in named.changes:
        settings = changed(settings, path, value)
    return named.optimizer, settings


def answers_of(found: Searched, split: Split, objective: CrossValidated) -> dict[str, Answer]:
    """Return the results of a search for use, by name. Their fits do not count as evaluations of the search."""
    done = [(t.loss, t.number) for t in found.result.history if t.done and t.loss is not None and not t.repeat]
    if not done:
        return {"best": Answer(FAILED, FAILED, FAILED)}
    value, number = min(done)
    best = dict(found.result.history[number].config)
    answers = {"best": _single(best, value, split, objective)}
    recommended = found.result.best
    if found.recommends and recommended is not None and recommended.loss is not None:
        same, config = recommended.config == best, dict(recommended.config)
        answers["recommended"] = answers["best"] if same else _single(config, recommended.loss, split, objective)
    chosen = selected(found.result, objective, size=ENSEMBLE)
    return answers | {"ensemble": Answer(chosen.loss(), fresh_loss(chosen.fit(), split))}


def _single(config: dict[str, Any], value: float, split: Split, objective: CrossValidated) -> Answer:
    folds = [objective.evaluate(config, repeat)["loss"] for repeat in REPEATS]
    return Answer(value, fresh_loss(objective.fit(config), split), float(np.mean(folds)))


def fresh_loss(fitted: Any, split: Split) -> float:
    """Return the loss on the rows that no search sees."""
    if split.task == "regression":
        return loss(split.task, split.y_fresh, fitted.predict(split.x_fresh))
    told = fitted.predict_proba(split.x_fresh)
    return loss(split.task, split.y_fresh, told[:, 1] if split.task == "binary" else told)
