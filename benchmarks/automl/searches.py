"""Searches of a space of pipelines: the optimizers of the peers benchmark, and ours as in user code.

Every evaluation is five fits. All peers start from the same ten legal samples. An illegal suggestion is replaced by the
nearest legal configuration. A pipeline that fails is reported as the worst loss so far, and as at least 1
(:func:`told`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipcash as mc
from benchmarks.automl.data import BINARY, Split, loss
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.spaces import SPACES, objective_of
from benchmarks.peers.catalogue import PEERS, make_method
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import INITIAL
from benchmarks.peers.methods.ours import OurMethod, changed, commit
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.integrations.sklearn.cross_validated import CrossValidated, Fold, predict
from mipcash.integrations.sklearn.ensemble import Selected, selected
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.minimize import run

FAILED = 1.0
"""Least loss reported for a failure: the worst possible loss for AUC, the loss of predicting the mean for R2."""
REPEATS = (1, 2)
"""Repeats on fresh folds of the searched rows: ten fits."""
FINALISTS = 5
"""Best configurations of ours that are measured on fresh folds."""
STEPS = (10, 20, 40)
"""Evaluations after which the results are compared."""


def steps_until(evaluations: int) -> list[int]:
    """Return the steps of a run of so many evaluations."""
    return sorted({min(n, evaluations) for n in STEPS})


ENSEMBLE = 32
"""Selection steps of an ensemble."""


@dataclass
class Searched:
    """Record of a search.

    Attributes:
        result: result with all configurations of the search.
        configs: in the order of the evaluations.
        losses: in the order of the evaluations; None for a failure.
        clock: CPU seconds of the search when each evaluation was done.
        asking: CPU seconds of proposals, included in the clock.
        illegal: suggestions that were replaced.
        recommends: True if the result has a recommendation of the method itself.
        starts: number of configurations that were evaluated first, before the method proposed any.
    """

    result: mc.Result
    configs: list[dict[str, Any]]
    losses: list[float | None]
    clock: list[float]
    asking: float
    illegal: int = 0
    recommends: bool = False
    starts: int = 0


class Clocked(CrossValidated):
    """Cross-validated loss that counts its fits and their CPU seconds, and keeps the losses of the folds by configuration."""

    spent: float = 0.0
    fits: int = 0

    def _fold(self, config: Mapping[str, Any], *given: Any) -> Fold:
        began = time.process_time()
        self.fits += 1
        try:
            fold = super()._fold(config, *given)
        finally:
            self.spent += time.process_time() - began
        losses: list[float] = self.__dict__.setdefault("by_fold", {}).setdefault(key_of(config), [])
        if len(losses) < self.folds:  # later ones are those of fresh folds
            losses.append(fold.loss)
        return fold


def key_of(config: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal configurations."""
    return repr(sorted(config.items()))


def run_search(method: str, split: Split, evaluations: int, space: str) -> Run:
    """Run an optimizer once on a space of pipelines."""
    objective = objective_of(split, space, Clocked)
    make = _peer if method in PEERS else _ours
    found = make(method, split, evaluations, space, objective)
    fits = objective.fits  # fits of the search only
    fresh = FreshRows(split, objective)
    by_fold: dict[str, list[float]] = objective.__dict__.get("by_fold", {})
    done = [c if v is not None else None for c, v in zip(found.configs, found.losses, strict=True)]
    finalists = sorted((v, k) for k, v in enumerate(found.losses) if v is not None)[: FINALISTS if found.recommends else 0]
    return Run(
        method,
        split.name,
        split.seed,
        space,
        answers_of(found, split, objective, fresh),
        tuple(found.losses),
        len(found.losses),
        fits,
        {"search": found.clock[-1], "asks": found.asking},
        tuple(found.clock),
        tuple(() if c is None else tuple(by_fold[key_of(c)]) for c in done),
        tuple(None if c is None else fresh.loss(c) for c in done),
        {str(k): fresh.on_folds(found.configs[k]) for _, k in finalists},
        found.illegal,
        str(found.result.config)[:500],
        {"evaluations": evaluations, "starts": found.starts, **commit()},
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
    configs, losses = [config for config, _ in known], [value for _, value in known]
    return Searched(_result(declared, configs, losses), configs, losses, clock, asking, illegal)


def _result(declared: mc.Space, configs: Sequence[dict[str, Any]], losses: Sequence[float | None]) -> mc.Result:
    study = mc.Study(declared, "random")
    for config, value in zip(configs, losses, strict=True):
        if value is not None:
            study.add(config, value)
    return study.result


def _ours(method: str, split: Split, evaluations: int, space: str, objective: Clocked) -> Searched:
    """Run our optimizer as ``PipelineSearchCV`` does, except for the time limit of a proposal, so that load does not matter."""
    declared = SPACES[space].declare(split)
    optimizer, settings = _settings(method, declared)
    clock: list[float] = []
    began = time.process_time()
    with mc.Study(declared, mc.Method(optimizer, settings=settings, seconds_per_proposal=None), seed=split.seed) as study:
        starts = SPACES[space].starts(split, declared)[:evaluations]
        for config in starts:
            study.enqueue(config)
        result = run(
            study, objective, evaluations, progress=False, callbacks=lambda study, trial: clock.append(time.process_time() - began)
        )
    asking = time.process_time() - began - objective.spent
    trials = [t for t in result.history if not t.repeat]
    losses = [t.loss if t.done else None for t in trials]
    return Searched(result, [dict(t.config) for t in trials], losses, clock, asking, recommends=True, starts=len(starts))


def _settings(method: str, declared: mc.Space) -> tuple[str, Any]:
    """Return the optimizer of ``name:key=value`` and its settings, or None for its defaults."""
    named = OurMethod(method)
    if not named.changes:
        return named.optimizer, None
    settings = make_optimizer(named.optimizer, declared).settings  # type: ignore[attr-defined]
    for path, value in named.changes:
        settings = changed(settings, path, value)
    return named.optimizer, settings


class FreshRows:
    """Losses on rows that no search sees, of pipelines fitted to all rows of the search, and on fresh folds of the latter."""

    def __init__(self, split: Split, objective: CrossValidated) -> None:
        self.split, self.objective = split, objective
        self.known: dict[str, NDArray[np.float64] | None] = {}
        self.folds: dict[str, tuple[float, ...]] = {}

    def on_folds(self, config: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the losses on REPEATS of fresh folds of the searched rows."""
        key = key_of(config)
        if key not in self.folds:
            self.folds[key] = tuple(self.objective.evaluate(config, repeat)["loss"] for repeat in REPEATS)
        return self.folds[key]

    def predictions(self, config: Mapping[str, Any]) -> NDArray[np.float64] | None:
        """Return probabilities (rows, classes), or values (rows,); None if the pipeline fails on all rows."""
        key = key_of(config)
        if key not in self.known:
            try:
                self.known[key] = predict(self.objective.fit(config), self.split.x_fresh, self.objective.classes)
            except Exception:  # as in `evaluated`
                self.known[key] = None
        return self.known[key]

    def loss(self, config: Mapping[str, Any]) -> float | None:
        """Return the loss of a configuration; None if the pipeline fails on all rows."""
        made = self.predictions(config)
        return None if made is None else self.loss_of(made)

    def loss_of(self, predicted: NDArray[np.float64]) -> float:
        """Return the loss of predictions."""
        of = self.split.task
        return loss(of, self.split.y_fresh, predicted[:, 1] if of == BINARY else predicted)

    def of_ensemble(self, chosen: Selected) -> float:
        """Return the loss of an ensemble, which averages the predictions of its members."""
        made = [(m.weight, self.predictions(m.trial.config)) for m in chosen.members]
        return self.loss_of(np.sum([w * p for w, p in made if p is not None], axis=0))


def answers_of(found: Searched, split: Split, objective: CrossValidated, fresh: FreshRows) -> dict[str, Answer]:
    """Return the results of a search for use, by name. Their fits do not count as evaluations of the search."""
    done = [(v, k) for k, v in enumerate(found.losses) if v is not None]
    if not done:
        return {"best": Answer(FAILED, FAILED, FAILED)}
    value, number = min(done)
    best = found.configs[number]
    answers = {"best": _single(best, value, fresh)}
    recommended = found.result.best
    if found.recommends and recommended is not None and recommended.loss is not None:
        same, config = recommended.config == best, dict(recommended.config)
        answers["recommended"] = answers["best"] if same else _single(config, recommended.loss, fresh)
    declared = found.result.declared
    assert declared is not None
    for after in steps_until(len(found.losses)):
        if any(v is not None for v in found.losses[:after]):
            chosen = selected(_result(declared, found.configs[:after], found.losses[:after]), objective, size=ENSEMBLE)
            answers[f"ensemble {after}"] = Answer(chosen.loss(), fresh.of_ensemble(chosen))
    return answers


def _single(config: dict[str, Any], value: float, fresh: FreshRows) -> Answer:
    measured = fresh.loss(config)
    return Answer(value, FAILED if measured is None else measured, float(np.mean(fresh.on_folds(config))))
