"""Searches of a space of pipelines: the optimizers of the peers benchmark, and ours as a user calls it.

Every evaluation is five fits. Peers start from ten legal samples, the same for all; an illegal suggestion is replaced by the
nearest legal configuration; a pipeline that fails is told as a loss of 1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.automl.data import Split, loss
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.spaces import FOLDS, SPACES, objective_of
from benchmarks.peers.catalogue import PEERS, make_method
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import INITIAL
from benchmarks.peers.methods.ours import OurMethod, changed, commit
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.integrations.sklearn.cross_validated import CrossValidated
from mipcash.integrations.sklearn.ensemble import selected
from mipcash.optimizers.registry import make_optimizer

FAILED = 1.0
"""The loss that peers are told of a pipeline that fails."""
REPEATS = (1, 2)
"""Fresh folds of the rows that were searched on: ten fits."""
ENSEMBLE = 32
"""Steps of the selection of an ensemble."""


@dataclass
class Searched:
    """What a search did.

    Attributes:
        study: with all of the configurations, whatever proposed them.
        known: configurations with their losses, in order; None: it failed.
        clock: CPU seconds when each was done.
        asking: CPU seconds of proposals, of them.
        illegal: suggestions that were replaced.
        recommends: whether the answer of the study is the method's own.
    """

    study: mc.Study
    known: list[tuple[dict[str, Any], float | None]] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)
    asking: float = 0.0
    illegal: int = 0
    recommends: bool = False


def run_search(method: str, split: Split, evaluations: int, space: str) -> Run:
    """One run of an optimizer on a space of pipelines."""
    objective = objective_of(split, space)
    make = _peer if method in PEERS else _ours
    found = make(method, split, evaluations, space, objective)
    answers = answers_of(found, split, objective)
    losses = tuple(value for _, value in found.known)
    return Run(
        method,
        split.name,
        split.seed,
        space,
        answers,
        losses,
        len(losses),
        FOLDS * sum(v is not None for v in losses),
        {"search": found.clock[-1], "asks": found.asking},
        tuple(found.clock),
        found.illegal,
        str(found.study.result.config)[:500],
        {"evaluations": evaluations, **commit()},
    )


def evaluated(objective: CrossValidated, config: dict[str, Any]) -> float | None:
    """The cross-validated loss; None where a pipeline fails."""
    try:
        return float(objective.evaluate(config)["loss"])
    except Exception:  # of any pipeline, for any reason
        return None


def _peer(method: str, split: Split, evaluations: int, space: str, objective: CrossValidated) -> Searched:
    declared = SPACES[space].declare(split)
    shape, peer = Shape(declared), make_method(method)
    found = Searched(mc.Study(declared, "random", seed=split.seed))
    name = f"{space} {split.name}"
    problem = Problem(name, lambda: declared, lambda config: 0.0, "rules", 0.0, "lower bound", "")
    clock = _Clock()

    def evaluate(config: dict[str, Any]) -> float:
        with clock("evaluating"):
            value = evaluated(objective, config)
        found.known.append((config, value))
        found.clock.append(clock.all)
        return FAILED if value is None else value

    drawn = declared.sample(min(INITIAL, evaluations), np.random.default_rng(np.random.SeedSequence([split.seed, 0])))
    first = [(config, Evaluation(evaluate(config))) for config in drawn]
    with clock("asking"):
        peer.begin(problem, shape, split.seed, first, evaluations)
    while len(found.known) < evaluations:
        with clock("asking"):
            config = peer.suggest()
        violations = shape.violations(config)
        if violations:
            found.illegal += 1
            config = declared.nearest(config)
        value = evaluate(config)
        with clock("asking"):
            peer.learn(config, Evaluation(value), {})
    for config, told in found.known:
        if told is not None:
            found.study.add(config, told)
    found.asking = clock.spent["asking"]
    return found


def _ours(method: str, split: Split, evaluations: int, space: str, objective: CrossValidated) -> Searched:
    declared = SPACES[space].declare(split)
    optimizer, settings = _settings(method, declared)
    found = Searched(mc.Study(declared, optimizer, seed=split.seed, settings=settings), recommends=True)
    clock = _Clock()
    while len(found.known) < evaluations:
        with clock("asking"):
            trial = found.study.ask()
        with clock("evaluating"):
            value = evaluated(objective, dict(trial.config))
        with clock("asking"):
            found.study.tell(trial, mc.Failed("the pipeline failed") if value is None else value)
        found.known.append((dict(trial.config), value))
        found.clock.append(clock.all)
    found.asking = clock.spent["asking"]
    return found


def _settings(method: str, declared: mc.Space) -> tuple[str, Any]:
    """The optimizer of ``name:key=value``, and its settings; None: its defaults."""
    named = OurMethod(method)
    if not named.changes:
        return named.optimizer, None
    settings = make_optimizer(named.optimizer, declared).settings  # type: ignore[attr-defined]
    for path, value in named.changes:
        settings = changed(settings, path, value)
    return named.optimizer, settings


def answers_of(found: Searched, split: Split, objective: CrossValidated) -> dict[str, Answer]:
    """What could be handed over after a search; its fits are no part of the search's."""
    done = [(value, k) for k, (_, value) in enumerate(found.known) if value is not None]
    if not done:
        return {"best": Answer(FAILED, FAILED, FAILED)}
    value, k = min(done)
    best = found.known[k][0]
    answers = {"best": _single(best, value, split, objective)}
    recommended = found.study.result.best
    if found.recommends and recommended is not None and recommended.loss is not None:
        same, config = recommended.config == best, dict(recommended.config)
        answers["recommended"] = answers["best"] if same else _single(config, recommended.loss, split, objective)
    chosen = selected(found.study.result, objective, size=ENSEMBLE)
    return answers | {"ensemble": Answer(chosen.loss(), fresh_loss(chosen.fit(), split))}


def _single(config: dict[str, Any], value: float, split: Split, objective: CrossValidated) -> Answer:
    folds = [objective.evaluate(config, repeat)["loss"] for repeat in REPEATS]
    return Answer(value, fresh_loss(objective.fit(config), split), float(np.mean(folds)))


def fresh_loss(fitted: Any, split: Split) -> float:
    """On the rows that no search sees."""
    if split.task == "regression":
        return loss(split.task, split.y_fresh, fitted.predict(split.x_fresh))
    told = fitted.predict_proba(split.x_fresh)
    return loss(split.task, split.y_fresh, told[:, 1] if split.task == "binary" else told)


class _Clock:
    """CPU seconds by what they were spent on."""

    def __init__(self) -> None:
        self.spent = {"asking": 0.0, "evaluating": 0.0}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.spent[what] += time.process_time() - began

    @property
    def all(self) -> float:
        """Of everything so far."""
        return sum(self.spent.values())
