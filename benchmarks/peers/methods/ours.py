"""Our own optimizers by registered name and settings: ``hybrid``, ``hybrid:samples=4,kappa=3.0``."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import mipcash as mc
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import DONE, PENDING
from mipcash.optimizers.registry import make_optimizer


class OurMethod(Method):
    """Study with one of our optimizers. Its initial design has the peers' size unless ``n_initial`` changes it."""

    legal: ClassVar[bool] = True
    own_design: ClassVar[bool] = True
    takes_limits: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.optimizer, _, text = name.partition(":")
        self.changes = [_change(part) for part in text.split(",") if part]

    def settings(self, shape: Shape) -> Any:
        """Return the optimizer's settings with the changes of the name."""
        settings = make_optimizer(self.optimizer, shape.space).settings  # type: ignore[attr-defined]
        if hasattr(settings, "n_initial"):
            settings = replace(settings, n_initial=self.design)
        for path, value in self.changes:
            settings = changed(settings, path, value)
        return settings

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        method = mc.Method(self.optimizer, self.settings(shape), "auto solver=highs")
        self.study = mc.Study(shape.space, method, seed=seed, limits=problem.limits or None)

    def suggest(self) -> dict[str, Any]:
        self.trial = self.study.ask()
        return dict(self.trial.config)

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.study.tell(self.trial, loss)

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        if evaluation.values or evaluation.loss is None:
            self.study.tell(self.trial, evaluation.outputs or mc.Failed("it crashed"))
        else:
            self.observe(config, evaluation.loss, violations)

    def stamp(self) -> dict[str, Any]:
        return super().stamp() | commit()


class SentMethod(OurMethod):
    """Optimizer that suggests illegal points unchanged, ``joint-gp:illegal=send``: GPyOpt's relax-and-round.

    It runs without a study, which would refuse such points, and starts from the legal samples of the peers.
    """

    legal: ClassVar[bool] = False
    own_design: ClassVar[bool] = False
    takes_limits: ClassVar[bool] = False

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        settings = replace(self.settings(shape), n_initial=max(1, len(initial)))
        self.asked = make_optimizer(self.optimizer, shape.space, settings=settings)
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, 5]))
        self.history = [Observation(c, DONE, y) for c, y in initial]
        self.state: dict[str, Any] = {}

    def suggest(self) -> dict[str, Any]:
        proposal = self.asked.ask(Request(self.history, self.rng, self.state))
        self.state = dict(proposal.state)
        return dict(proposal.config)

    def learn(self, config: dict[str, Any], evaluation: Evaluation, violations: Mapping[str, float]) -> None:
        self.observe(config, evaluation.loss, violations)  # type: ignore[arg-type]

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.history.append(Observation(config, DONE, loss))

    def skip(self, config: dict[str, Any], violations: Mapping[str, float]) -> None:
        self.history.append(Observation(config, PENDING))  # pending, so it is not repeated and has no loss


def our_method(name: str) -> OurMethod:
    """Return the adapter of one of our optimizers, by registered name and settings."""
    made = OurMethod(name)
    return SentMethod(name) if (["illegal"], "send") in made.changes else made


@cache
def commit() -> dict[str, str]:
    """Return the commit of the runs, with a plus if the code was modified; empty outside a repository."""
    root = Path(mc.__file__).resolve().parents[1]
    said = [
        subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=False)
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "mipcash", "models"])
    ]
    if any(s.returncode for s in said):
        return {}
    return {"commit": said[0].stdout.strip() + ("+" if said[1].stdout.strip() else "")}


def _change(text: str) -> tuple[list[str], Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"settings of a method are written name:key=value,key=value; {text!r} has no '='")
    try:
        return key.split("."), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key.split("."), value  # a plain word


def changed(settings: Any, path: list[str], value: Any) -> Any:
    """Return a copy of frozen settings with one entry changed. ``path`` leads through nested settings.

    Raises:
        ValueError: there is no such entry.
    """
    known = [f.name for f in fields(settings)] if is_dataclass(settings) else []
    if path[0] not in known:
        raise ValueError(f"{type(settings).__name__} has no setting {path[0]!r}; it has {', '.join(known)}")
    inner = value if len(path) == 1 else changed(getattr(settings, path[0]), path[1:], value)
    return replace(settings, **{path[0]: inner})  # type: ignore[type-var]
