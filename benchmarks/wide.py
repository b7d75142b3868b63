"""Many binaries and categories: the default optimizer, a search without a model, and random search.

Every seed relabels the variables: their order and levels are permuted, so that no optimizer can prefer a corner of the space.
``tabu`` evaluates ten legal samples, then single changes of the incumbent in shuffled order, none twice.

    labs            50 bits: low-autocorrelation binary sequence; the loss is the negative merit factor.
    maxsat          60 bits, 600 weighted clauses of three literals; the weight of the clauses that are not satisfied.
    pest control    25 stages with five treatments each: Oh et al. 2019, Appendix (COMBO).
    contamination   25 bits: Baptista and Poloczek 2018, Section 4.3.
    ackley          50 bits and three reals.
    svm             50 features, in or out, and three reals of a support vector machine; error of three folds.
    under rules     maxsat with twenty exclusions of two bits; svm with at most 15 features.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, Results, benchmark, results_of

METHODS = ("hybrid", "tabu", "random")
MARKS = (100, 200, 500)
"""Evaluations after which the best loss is recorded."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"problems": ("labs", "svm under rules"), "seeds": 1, "evaluations": 12, "workers": 0},
    "quick": {"seeds": 4, "evaluations": 200, "workers": 2},
    "full": {"seeds": 10, "evaluations": 500, "workers": 2},
}
Loss = Callable[[Mapping[str, Any]], float]
Made = tuple[mc.Space, Loss]


class Relabelled:
    """Variables x0, x1, ... of a space, whose order and levels are permuted against those of the problem."""

    def __init__(self, title: str, n: int, levels: int, seed: int) -> None:
        rng = np.random.default_rng([41, seed])
        self.space, self.order = mc.Space(title), rng.permutation(n)
        self.maps = [rng.permutation(levels) for _ in range(n)]
        for i in range(n):
            if levels == 2:
                self.space.integer(f"x{i}", 0, 1)
            else:
                self.space.categorical(f"x{i}", [f"v{k}" for k in range(levels)])

    def read(self, config: Mapping[str, Any]) -> np.ndarray:
        """Return the levels of the problem's variables, shape (n,)."""
        given = [config[f"x{i}"] for i in self.order]
        return np.array([m[v if isinstance(v, int) else int(v[1:])] for m, v in zip(self.maps, given, strict=True)])

    def is_one(self, i: int) -> Any:
        """Return an expression that is 1 if the problem's bit i is 1."""
        x = self.space[f"x{self.order[i]}"]
        return x if self.maps[i][1] == 1 else 1 - x


def labs(seed: int) -> Made:
    made = Relabelled("labs", 50, 2, seed)

    def loss(config: Mapping[str, Any]) -> float:
        s = 2.0 * made.read(config) - 1.0
        side = np.correlate(s, s, mode="full")[len(s) :]
        return -(len(s) ** 2) / (2.0 * float(side @ side))

    return made.space, loss


def maxsat(seed: int, ruled: bool = False) -> Made:
    made, rng = Relabelled("maxsat", 60, 2, seed), np.random.default_rng([42, seed])
    literals = np.array([rng.choice(60, 3, replace=False) for _ in range(600)])
    wanted, weights = rng.integers(0, 2, (600, 3)), rng.exponential(4.0, 600)
    if ruled:  # twenty pairs of bits, of which at most one is 1
        for k, (i, j) in enumerate(rng.permutation(60)[:40].reshape(20, 2)):
            made.space.rule(f"exclusion {k}", made.is_one(int(i)) + made.is_one(int(j)) <= 1)

    def loss(config: Mapping[str, Any]) -> float:
        return float(weights @ (made.read(config)[literals] != wanted).all(axis=1))

    return made.space, loss


PRICE, DISCOUNT = (1.0, 0.8, 0.7, 0.5), (0.2, 0.3, 0.3, 0.0)
TOLERANCE, CONTROL = (1 / 7, 2.5 / 7, 2 / 7, 0.5 / 7), (2 / 7, 3 / 7, 3 / 7, 5 / 7)


def pest_control(seed: int) -> Made:
    made = Relabelled("pest control", 25, 5, seed)

    def loss(config: Mapping[str, Any]) -> float:
        x, rng, n = made.read(config), np.random.default_rng(0), 25
        pests, beta, total, paid = rng.beta(1.0, 30.0, 100), list(CONTROL), 0.0, 0.0
        for k in range(n):
            spread = rng.beta(1.0, 17.0 / 3.0, 100)
            t = int(x[k]) - 1
            if t >= 0:
                pests = (1.0 - rng.beta(1.0, beta[t], 100)) * pests
                beta[t] += TOLERANCE[t] / n
                paid += PRICE[t] * (1.0 - DISCOUNT[t] / n * float(np.sum(x == t + 1)))
            else:
                pests = spread * (1.0 - pests) + pests
            total += float(np.mean(pests > 0.1))
        return paid + total

    return made.space, loss


def contamination(seed: int) -> Made:
    from benchmarks.peers.problems.binary import contamination as original

    made = Relabelled("contamination", 25, 2, seed)
    return made.space, lambda config: original({f"x{i + 1}": v for i, v in enumerate(made.read(config))})


def ackley(seed: int) -> Made:
    made = Relabelled("ackley", 50, 2, seed)
    for k in range(3):
        made.space.real(f"r{k}", -1.0, 1.0)

    def loss(config: Mapping[str, Any]) -> float:
        x = np.concatenate([made.read(config), [config[f"r{k}"] for k in range(3)]])
        near, waves = -0.2 * math.sqrt(float(np.mean(x**2))), float(np.mean(np.cos(2.0 * math.pi * x)))
        return -20.0 * math.exp(near) - math.exp(waves) + 20.0 + math.e

    return made.space, loss


@cache
def features() -> tuple[np.ndarray, np.ndarray]:
    """Return a drawn data set of 50 features, of which 12 matter."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    x, y = make_classification(300, 50, n_informative=12, n_redundant=6, class_sep=0.8, flip_y=0.05, random_state=3)
    return StandardScaler().fit_transform(x), y


def svm(seed: int, ruled: bool = False) -> Made:
    made = Relabelled("svm", 50, 2, seed)
    made.space.real("C", 0.01, 100.0, log=True)
    made.space.real("gamma", 1e-4, 10.0, log=True)
    made.space.real("weight", 0.2, 5.0, log=True)
    if ruled:
        made.space.rule("at most 15 features", sum(made.is_one(i) for i in range(50)) <= 15)

    def loss(config: Mapping[str, Any]) -> float:
        from sklearn.model_selection import cross_val_score
        from sklearn.svm import SVC

        (x, y), chosen = features(), made.read(config) == 1
        if not chosen.any():
            return 0.5
        model = SVC(C=config["C"], gamma=config["gamma"], class_weight={1: config["weight"]})
        return 1.0 - float(np.mean(cross_val_score(model, x[:, chosen], y, cv=3)))

    return made.space, loss


PROBLEMS: dict[str, Callable[[int], Made]] = {
    **{"labs": labs, "maxsat": maxsat, "pest control": pest_control, "contamination": contamination, "ackley": ackley, "svm": svm},
    **{"maxsat under rules": lambda seed: maxsat(seed, ruled=True), "svm under rules": lambda seed: svm(seed, ruled=True)},
}

# -- runs -----------------------------------------------------------------------------------------------------------------------


def tabu(space: mc.Space, loss: Loss, evaluations: int, seed: int) -> list[float]:
    """Return the losses of ten legal samples and of single changes of the incumbent."""
    rng, losses, best = np.random.default_rng(seed), list[float](), dict[str, Any]()
    for config in space.sample(min(10, evaluations), rng):
        losses.append(loss(config))
        best = config if losses[-1] == min(losses) else best
    tried, names = {repr(best)}, list(space.parameters)
    while len(losses) < evaluations:
        for name in rng.permutation(names):
            domain: Any = space.parameters[name].domain
            levels = [v for v in getattr(domain, "values", ()) if v != best[name]]
            trial = {**best, name: levels[int(rng.integers(len(levels)))] if levels else domain.from_unit(float(rng.random()))}
            if repr(trial) not in tried and space.is_legal(trial):
                break
        else:  # every single change was tried: two at once
            other = space.sample(1, rng)[0]
            trial = space.nearest({**best, **{n: other[n] for n in rng.permutation(names)[:2]}})
        tried.add(repr(trial))
        losses.append(loss(trial))
        best = trial if losses[-1] == min(losses) else best
    return losses


def cell(problem: str, method: str, seed: int, evaluations: int) -> dict[str, Any]:
    """Return the best losses of a run at MARKS and at its end, and CPU seconds per proposal."""
    space, loss = PROBLEMS[problem](seed)
    warnings.simplefilter("ignore")
    losses, cpu = list[float](), 0.0
    if method == "tabu":
        losses = tabu(space, loss, evaluations, seed)
    else:
        study = mc.Study(space, optimizer=method, seed=seed)
        for _ in range(evaluations):
            began = time.process_time()
            trial = study.ask()
            cpu += time.process_time() - began
            losses.append(loss(trial.config))
            study.tell(trial, losses[-1])
    marks = [n for n in MARKS if n < evaluations] + [evaluations]
    best = {str(n): min(losses[:n]) for n in marks}
    return {"problem": problem, "method": method, "seed": seed, "best": best, "cpu": cpu / evaluations}


@benchmark("wide", "50 and more binaries and categories: ours, a search without a model, random search")
def run(size: str, progress: Progress) -> Results:
    chosen, rows = SIZES[size], list[dict[str, Any]]()
    problems, seeds = chosen.get("problems", tuple(PROBLEMS)), range(chosen["seeds"])
    tasks = [(p, m, seed, chosen["evaluations"]) for seed in seeds for p in problems for m in METHODS]

    for row in results_of(cell, tasks, chosen["workers"]):
        rows.append(row)
        progress(f"{len(rows)} of {len(tasks)}: {row['problem']}, {row['method']}, seed {row['seed']}: {row['best']}")
    return {"size": size, "evaluations": chosen["evaluations"], "seeds": chosen["seeds"], "runs": rows}


def markdown(results: Results) -> str:
    """Return mean best losses by problem and method, and how often the default is better or worse than each other method."""
    rows, end = results["runs"], str(results["evaluations"])
    marks = list(rows[0]["best"])
    found = {(r["problem"], r["method"], r["seed"]): r["best"] for r in rows}
    seeds = sorted({r["seed"] for r in rows})
    lines = [
        f"Mean best loss after {' / '.join(marks)} evaluations, {len(seeds)} seeds. Better / worse: `hybrid` against the "
        "method at the end. CPU: seconds of an ask of `hybrid`.\n",
        f"| problem | `{'` | `'.join(METHODS)}` | better / worse than {' | than '.join(METHODS[1:])} | CPU |",
        "|---" * (2 * len(METHODS) + 1) + "|",
    ]
    for p in dict.fromkeys(r["problem"] for r in rows):
        means = [[np.mean([found[p, m, s][n] for s in seeds]) for n in marks] for m in METHODS]
        signs = {m: [np.sign(found[p, m, s][end] - found[p, METHODS[0], s][end]) for s in seeds] for m in METHODS[1:]}
        cpu = np.mean([r["cpu"] for r in rows if (r["problem"], r["method"]) == (p, METHODS[0])])
        cells = [" / ".join(f"{v:.4g}" for v in of) for of in means]
        cells += [f"{v.count(1.0)} / {v.count(-1.0)}" for v in signs.values()]
        lines.append(f"| {p} | {' | '.join(cells)} | {cpu:.2f} |")
    return "\n".join(lines)
