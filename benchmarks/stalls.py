"""Proposals of a search without improvement: copies of the incumbent's numbers with another category, and small steps about it.

A problem has categories that decide what its numbers mean. An evaluation counts as ``stalled`` if neither it nor any of the
PATIENCE before it was an improvement. Of these, compared with the incumbent at that time, are counted:

* visits: another plain category; idle where every number that both have is copied (within COPIED of its range) or at an end of
  its range;
* refinements: all categories the same, and no number (integers and ordinals count as such) further off than NEAR of its range.

Problems beside those of the peers: ``wells-k``, drawn: each category has two wells of its own in three to five numbers; ``func2c``
(Ru et al. 2020, CoCaBO): two categories choose the functions that are added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

import mipcash as mc
from benchmarks.admm.suite import SUITE as ARTIFICIAL
from benchmarks.admm.suite import _problem as artificial
from benchmarks.peers.catalogue import make_method
from benchmarks.peers.evaluation import Evaluation
from benchmarks.peers.loading import installed
from benchmarks.peers.problem import Problem, problems
from benchmarks.peers.shape import Shape
from benchmarks.registry import Progress, Results, benchmark

PATIENCE, NEAR, COPIED = 10, 0.05, 0.01
DESIGN = 10
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"problems": ("wells-1",), "methods": ("hybrid", "random"), "seeds": 1, "evaluations": 26},
    "quick": {
        "problems": ("branin-cat", "hartman6-cat", "func2c", "wells-0", "wells-1", "wells-2", "wells-3"),
        "methods": ("hybrid", "hybrid:refine=0,min_gain=0.0", "optuna-gp"),
        "seeds": 3,
        "evaluations": 60,
    },
    "full": {
        "problems": (
            *("branin-cat", "hartman6-cat", "hartman6-rules", "nvs09-cat", "xgboost-monks", "func2c"),
            *("wells-0", "wells-1", "wells-2", "wells-3"),
        ),
        "methods": ("hybrid", "hybrid:refine=0,min_gain=0.0", "optuna-gp", "random"),
        "seeds": 7,
        "evaluations": 80,
    },
}

# -- problems -------------------------------------------------------------------------------------------------------------------


class Wells:
    """Categories of two wells each, all drawn.

    Args:
        instance: from which the number of categories (4 to 7) and of numbers (3 to 5), and all wells follow.
    """

    def __init__(self, instance: int) -> None:
        rng = np.random.default_rng([19, instance])
        self.categories, self.numbers = int(rng.integers(4, 8)), int(rng.integers(3, 6))
        self.centres = rng.uniform(0.05, 0.95, (self.categories, 2, self.numbers))
        self.depths = rng.uniform(0.5, 1.0, (self.categories, 2))
        self.widths = rng.uniform(0.15, 0.35, (self.categories, 2))

    def space(self) -> mc.Space:
        s = mc.Space("wells")
        s.categorical("kind", [f"k{c}" for c in range(self.categories)])
        for j in range(self.numbers):
            s.real(f"x{j}", 0, 1)
        return s

    def value(self, c: int, x: np.ndarray) -> float:
        square = ((x - self.centres[c]) ** 2).sum(axis=1)
        return float(-(self.depths[c] * np.exp(-square / (2.0 * self.widths[c] ** 2 * self.numbers))).sum())

    def __call__(self, config: Mapping[str, Any]) -> float:
        return self.value(int(config["kind"][1:]), np.array([config[f"x{j}"] for j in range(self.numbers)]))

    def optimum(self) -> float:
        """By descents from all wells."""
        ends = [(0.0, 1.0)] * self.numbers
        starts = [(c, m) for c, pair in enumerate(self.centres) for m in (*pair, pair.mean(axis=0))]
        return min(float(minimize(partial(self.value, c), m, bounds=ends, tol=1e-12).fun) for c, m in starts)


def rosenbrock(x: float, y: float) -> float:
    return (100.0 * (y - x**2) ** 2 + (x - 1.0) ** 2) / 300.0


def camel(x: float, y: float) -> float:
    return ((4.0 - 2.1 * x**2 + x**4 / 3.0) * x**2 + x * y + (-4.0 + 4.0 * y**2) * y**2) / 10.0


def beale(x: float, y: float) -> float:
    return ((1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2) / 50.0


TERMS = {"rosenbrock": rosenbrock, "camel": camel, "beale": beale}


def func2c(config: Mapping[str, Any]) -> float:
    return sum(TERMS[config[name]](config["x"], config["y"]) for name in ("first", "second"))


def func2c_space() -> mc.Space:
    s = mc.Space("func2c")
    s.categorical("first", list(TERMS))
    s.categorical("second", list(TERMS))
    s.real("x", -2, 2)
    s.real("y", -2, 2)
    return s


def problem(name: str) -> Problem:
    """By name: of the peers, ``artificial-k``, ``wells-k`` or ``func2c``."""
    kind, _, number = name.rpartition("-")
    if kind == "wells":
        wells = Wells(int(number))
        return Problem(name, wells.space, wells, "free", wells.optimum(), "construction", "drawn")
    if name == "func2c":  # twice the least of the camel
        return Problem(name, func2c_space, func2c, "free", -0.2063256907, "construction", "Ru et al. 2020")
    return artificial(int(number)) if kind == ARTIFICIAL.name else problems()[name]


# -- runs -----------------------------------------------------------------------------------------------------------------------


def evaluations(name: str, of: Problem, seed: int, budget: int) -> Iterator[tuple[dict[str, Any], float, float]]:
    """Run a method and yield configuration, loss and CPU seconds of each evaluation; illegal configurations are repaired."""
    method, shape = make_method(name), Shape(of.space())
    method.design = DESIGN
    rng = np.random.default_rng([seed, 0])
    given = [] if method.own_design else shape.space.sample(DESIGN, rng)
    told = [of.evaluate(c) for c in given]
    yield from ((c, float(e.loss or 0.0), 0.0) for c, e in zip(given, told, strict=True))
    method.begin(of, shape, seed, list(zip(given, told, strict=True)), budget)
    for _ in range(budget - len(given)):
        began = time.process_time()
        config = method.suggest()
        if shape.violations(config):
            config = shape.space.nearest(config)
        cpu, found = time.process_time() - began, of.evaluate(config)
        began = time.process_time()
        method.learn(config, found if found.loss is not None else Evaluation(None), {})
        yield config, float(found.loss or 0.0), cpu + time.process_time() - began


def stalls(shape: Shape, configs: Sequence[Mapping[str, Any]], losses: Sequence[float]) -> dict[str, int]:
    """Return counts of evaluations after the initial design: ``stalled``, and among them ``visits``, ``idle``, ``refinements``."""
    found = dict.fromkeys(("stalled", "visits", "idle", "refinements"), 0)
    choices = [d for d in shape.dimensions if d.kind == "categorical"]
    numbers = [d for d in shape.dimensions if d.kind != "categorical"]
    best = 0
    for k, (config, loss) in enumerate(zip(configs, losses, strict=True)):
        if loss < losses[best]:
            best = k
        elif k >= DESIGN and k - best > PATIENCE:
            incumbent = configs[best]
            both = [d for d in numbers if d.name in config and d.name in incumbent]
            codes = np.array([[d.code(c[d.name]) for d in both] for c in (config, incumbent)]).reshape(2, len(both))
            off = np.abs(codes[0] - codes[1])
            same = all(config.get(d.name) == incumbent.get(d.name) for d in choices)
            copied = (off <= COPIED) | (codes[0] <= COPIED) | (codes[0] >= 1.0 - COPIED)
            found["stalled"] += 1
            found["visits"] += not same
            found["idle"] += not same and bool(copied.all())
            found["refinements"] += same and bool(off.max(initial=0.0) <= NEAR)
    return found


def cell(method: str, of: Problem, seed: int, budget: int) -> dict[str, Any]:
    """Return the result of a run."""
    rows = list(evaluations(method, of, seed, budget))
    configs, losses, cpu = (list(column) for column in zip(*rows, strict=True))
    regrets = np.minimum.accumulate(losses) - of.optimum
    return {
        **{"method": method, "problem": of.name, "seed": seed},
        **stalls(Shape(of.space()), configs, losses),
        **{"half": float(regrets[budget // 2 - 1]), "regret": float(regrets[-1]), "cpu": float(sum(cpu)) / budget},
    }


@benchmark("stalls", "what a search does while it stalls: copied numbers beside other categories, steps about the incumbent")
def run(size: str, progress: Progress) -> Results:
    chosen, rows = SIZES[size], list[dict[str, Any]]()
    for seed in range(chosen["seeds"]):
        for name in chosen["problems"]:
            for method in installed(chosen["methods"], make_method, progress):
                rows.append(cell(method, problem(name), seed, chosen["evaluations"]))
                progress(f"{method} on {name}, seed {seed}: regret {rows[-1]['regret']:.3g}")
    return {"size": size, "evaluations": chosen["evaluations"], "seeds": chosen["seeds"], "runs": rows}


def markdown(results: Results) -> str:
    """Return, by method, the shares of evaluations without improvement, and by problem the regrets."""
    rows = results["runs"]
    methods, names = (list(dict.fromkeys(r[key] for r in rows)) for key in ("method", "problem"))
    lines = [
        f"{results['evaluations']} evaluations, seeds: {results['seeds']}. Stalled: no better one in {PATIENCE} evaluations.\n",
        "| method | stalled | visits of other categories | of these idle | refinements | CPU s an ask |",
        "|---" * 6 + "|",
    ]
    for method in methods:
        own = [r for r in rows if r["method"] == method]
        stalled, visits, idle, refined = (sum(r[k] for r in own) for k in ("stalled", "visits", "idle", "refinements"))
        near = f"{refined} ({refined / max(1, stalled):.0%})"
        cpu = np.mean([r["cpu"] for r in own])
        lines.append(f"| {method} | {stalled} | {visits} | {idle} | {near} | {cpu:.3f} |")
    lines += ["", "Regret, medians over seeds.\n", "| problem | " + " | ".join(methods) + " |"]
    lines.append("|---" * (1 + len(methods)) + "|")
    for name in names:
        own = [[r["regret"] for r in rows if (r["method"], r["problem"]) == (m, name)] for m in methods]
        lines.append(f"| {name} | " + " | ".join(f"{np.median(v):.2g}" if v else "" for v in own) + " |")
    return "\n".join(lines)
