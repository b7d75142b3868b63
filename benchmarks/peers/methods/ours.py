"""Our own optimizers by their registered names, with settings: ``hybrid``, ``hybrid:samples=4,kappa=3.0``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar

import mipcash as mc
from benchmarks.peers.method import Initial, Method
from benchmarks.peers.problem import Problem
from benchmarks.peers.shape import Shape
from mipcash.optimizers.registry import make_optimizer, optimizer_names


class OurMethod(Method):
    """A study with one of our optimizers; its initial design is as large as that of the others unless ``n_initial`` says so."""

    legal: ClassVar[bool] = True
    own_design: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.optimizer, _, text = name.partition(":")
        if self.optimizer not in optimizer_names():
            from benchmarks.peers.method import PEERS

            raise ValueError(
                f"there is no method {self.optimizer!r}; there are {', '.join(PEERS)}, "
                f"and of our own {', '.join(optimizer_names())}"
            )
        self.changes = [_change(part) for part in text.split(",") if part]

    def start(self, problem: Problem, shape: Shape, seed: int, initial: Initial, budget: int) -> None:
        settings = make_optimizer(self.optimizer, shape.space).settings  # type: ignore[attr-defined]
        if hasattr(settings, "n_initial"):
            settings = replace(settings, n_initial=self.design)
        for path, value in self.changes:
            settings = changed(settings, path, value)
        self.study = mc.Study(shape.space, self.optimizer, "highs", seed=seed, settings=settings)

    def suggest(self) -> dict[str, Any]:
        self.trial = self.study.ask()
        return dict(self.trial.config)

    def observe(self, config: dict[str, Any], loss: float, violations: Mapping[str, float]) -> None:
        self.study.tell(self.trial, loss)


def _change(text: str) -> tuple[list[str], Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"settings of a method are written name:key=value,key=value; {text!r} has no '='")
    try:
        return key.split("."), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key.split("."), value  # a plain word


def changed(settings: Any, path: list[str], value: Any) -> Any:
    """A copy of frozen settings with one entry changed; ``path`` leads through nested settings.

    Raises:
        ValueError: there is no such entry.
    """
    known = [f.name for f in fields(settings)] if is_dataclass(settings) else []
    if path[0] not in known:
        raise ValueError(f"{type(settings).__name__} has no setting {path[0]!r}; it has {', '.join(known)}")
    inner = value if len(path) == 1 else changed(getattr(settings, path[0]), path[1:], value)
    return replace(settings, **{path[0]: inner})  # type: ignore[type-var]
