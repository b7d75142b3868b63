"""Problem of the peers benchmark: a space, a loss, and an optimum that is certified or best known.

A problem may have outcome constraints (:mod:`benchmarks.limits`). Its optimum is then the feasible one.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import mipcash as mc
from benchmarks.peers.evaluation import Evaluation, Objective, evaluate
from mipcash.optimizers.optimizer import Limit
from mipcash.study.records.limits import limits_of

Config = Mapping[str, Any]

FACTS = Path(__file__).resolve().parents[1] / "results" / "problems.json"
GROUPS = ("rules", "free")
LOWER_BOUND = "lower bound"
CERTIFICATES = ("enumeration", "construction", "branch and bound", "best known", LOWER_BOUND)
"""Kinds of certificates.

* enumeration: the discrete part is enumerated, and the numbers are solved in closed form.
* construction: the function is built around its optimum, or reaches its lower bound.
* branch and bound: the discrete part is enumerated, and a bound over the numbers leaves no more than the tolerance.
* best known: enumeration with a multistart over the numbers, or a long search.
* lower bound: no loss can be lower (an error rate of 0), whether the bound is attained or not.
"""


@dataclass(frozen=True)
class Problem:
    """Black box to be minimised.

    Attributes:
        name: unique; names the lines of the results.
        space: makes the space (a new one for every run, since spaces carry solvers).
        objective: the loss, finite at every legal configuration, reproducible; with limits a dict, see
            :mod:`benchmarks.peers.evaluation`.
        group: ``rules`` or ``free``.
        optimum: the least loss.
        certificate: how the optimum is known, one of :data:`CERTIFICATES`.
        source: where the problem comes from.
        held_out: True if the problem is not used to tune an optimizer.
        tolerance: how far below ``optimum`` a loss may lie by rounding or by local search over the numbers.
        stamp: settings of the losses, stored in histories.
        penalty: loss reported for an illegal suggestion in the penalty convention; None for the worst legal loss so far.
        limits: as in :func:`mipcash.minimize`; empty if the objective returns a number.
        crashes: True if an evaluation may crash.
        reference: with outcome constraints, the loss with a regret of one: the result of random search.
    """

    name: str
    space: Callable[[], mc.Space]
    objective: Objective
    group: str
    optimum: float
    certificate: str
    source: str
    held_out: bool = False
    tolerance: float = 1e-6
    penalty: float | None = None
    stamp: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    crashes: bool = False
    reference: float | None = None

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise ValueError(f"problem {self.name!r} is in group {self.group!r}; choose one of {', '.join(GROUPS)}")
        if self.certificate not in CERTIFICATES:
            raise ValueError(f"problem {self.name!r} has certificate {self.certificate!r}; choose one of {', '.join(CERTIFICATES)}")

    @cached_property
    def kept(self) -> tuple[Limit, ...]:
        """Return the limits, each with both of its bounds."""
        return limits_of(self.limits)

    def evaluate(self, config: Config) -> Evaluation:
        """Return the result of an evaluation."""
        return evaluate(self.objective, self.kept, config)


@cache
def problems() -> dict[str, Problem]:
    """Return the problems by name in a fixed order, from ``PROBLEMS`` in the modules of ``benchmarks.peers.problems``."""
    package = import_module("benchmarks.peers.problems")
    found: dict[str, Problem] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")):
        for problem in import_module(f"{package.__name__}.{module}").PROBLEMS:
            if problem.name in found:
                raise ValueError(f"two problems are named {problem.name!r}; rename one of them")
            found[problem.name] = problem
    return found


@cache
def facts() -> dict[str, dict[str, Any]]:
    """Return by problem its optimum, certificate and source, and ``best``, an optimal configuration if known.

    Commit 5db2cfa has the code that computed them.
    """
    found: dict[str, dict[str, Any]] = json.loads(FACTS.read_text(encoding="utf-8"))
    return found


def described(name: str, space: Callable[[], mc.Space], objective: Objective, **more: Any) -> Problem:
    """Return a problem with its facts."""
    return Problem(name, space, objective, **{k: v for k, v in facts()[name].items() if k != "best"}, **more)


def optima() -> dict[str, Config]:
    """Return a configuration that attains the optimum, by problem."""
    told = {name: fact["best"] for name, fact in facts().items() if "best" in fact}
    return {name: {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()} for name, config in told.items()}
