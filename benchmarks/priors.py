"""Gaussian, Laplace and horseshoe priors: predictive error, best loss, and seconds of the exact solve.

Problems
    ising           bits with a linear field and few couplings, f = h . s + sum_(g, h) J_gh s_g s_h, s = 2 b - 1: 40 % as many
                    couplings as bits, drawn afresh with each seed; the number of bits follows the name
    synthetic       the paper's A.1 with Gaussian weights;   synthetic sparse: with pruned Laplace weights

Predictive error: root mean squared error of the posterior mean at 300 fresh legal points over the standard deviation there,
after t random legal observations. Runs: best loss of 10 designed and 30 proposed evaluations, above the optimum where
enumeration finds it (ising). Solve: CPU seconds of the proof on one posterior sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, Results, benchmark
from mipcash.backends.task import SolverSettings
from mipcash.methods.mivabo.blocks import FeatureSizes
from mipcash.methods.mivabo.functions import WeightSample
from mipcash.methods.mivabo.mivabo import MiVaBO, MiVaBOSettings
from mipcash.methods.mivabo.sparse.mixture import SparseSettings
from mipcash.methods.mivabo.sparse.posterior import SparsePosterior, half_ranges, thinned
from mipcash.models import synthetic
from mipcash.optimizers.optimizer import Observation
from mipcash.optimizers.outcome import DONE
from mipcash.program.forms import Vector
from mipcash.space.domain import Domain

Objective = Callable[[Mapping[str, Any]], float]
PRIORS = {
    "gaussian": MiVaBOSettings(),
    "laplace": MiVaBOSettings(prior="laplace"),
    "laplace, variational": MiVaBOSettings(prior="laplace", sparse=SparseSettings("laplace", "variational")),
    "horseshoe": MiVaBOSettings(prior="horseshoe"),
}
RUN = ("gaussian", "laplace", "horseshoe")
ALL_PAIRS = FeatureSizes(product_columns=10**5)
TESTS = 300
TOLERANCE = 0.05
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "errors": {"ising 8": (12,)},
        "runs": {"ising 8": 12},
        "run seeds": 1,
        "solves": {"ising 8": 12},
    },
    "quick": {
        "seeds": 4,
        "errors": {"ising 20": (40, 60), "synthetic": (60,), "synthetic sparse": (60,)},
        "runs": {"ising 20": 40},
        "run seeds": 4,
        "solves": {"ising 20": 60, "ising 40": 100},
    },
    "full": {
        "seeds": 20,
        "errors": {"ising 20": (20, 40, 60, 100), "synthetic": (40, 60, 120), "synthetic sparse": (40, 60, 120)},
        "runs": {"ising 20": 40, "synthetic": 40, "synthetic sparse": 40},
        "run seeds": 10,
        "solves": {"ising 20": 60, "ising 30": 80, "ising 40": 100},
    },
}


def coefficients(bits: int, seed: int) -> tuple[Vector, Vector]:
    """h (n,) and J (n, n), upper triangle, of a sparse Ising model."""
    rng = np.random.default_rng([seed, bits])
    left, right = np.triu_indices(bits, k=1)
    chosen = rng.choice(len(left), size=round(0.4 * bits), replace=False)
    coupling = np.zeros((bits, bits))
    coupling[left[chosen], right[chosen]] = rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 2.0, len(chosen))
    return 0.3 * rng.normal(size=bits), coupling


def ising(bits: int, seed: int) -> tuple[mc.Space, Objective]:
    """A sparse Ising model."""
    space = mc.Space("ising")
    names = [f"b{i}" for i in range(bits)]
    for name in names:
        space.integer(name, 0, 1)
    linear, coupling = coefficients(bits, seed)

    def objective(config: Mapping[str, Any]) -> float:
        s = 2.0 * np.array([config[name] for name in names]) - 1.0
        return float(linear @ s + s @ coupling @ s)

    return space, objective


def optimum(bits: int, seed: int) -> float:
    """The least value of an Ising model by enumeration, the two halves of its bits on the two axes of a table."""
    linear, coupling = coefficients(bits, seed)
    half = bits // 2
    first, second = (2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0 for n in (half, bits - half))
    inner = [
        s @ linear[part] + np.einsum("ai,ij,aj->a", s, coupling[part, part], s)
        for s, part in ((first, slice(0, half)), (second, slice(half, bits)))
    ]
    return float(np.min(inner[0][:, None] + inner[1] + first @ coupling[:half, half:] @ second.T))


def problem(name: str, seed: int) -> tuple[mc.Space, Objective]:
    """A problem by name (see the module's description)."""
    kind, _, rest = name.partition(" ")
    if kind == "ising":
        return ising(int(rest), seed)
    return synthetic.build(seed=seed, weights="laplace" if rest else "gaussian")


def fitted(name: str, seed: int, t: int, settings: MiVaBOSettings) -> tuple[MiVaBO, Any, Objective, float]:
    """An optimizer's posterior after t random legal observations, and the CPU seconds it took."""
    space, objective = problem(name, seed)
    optimizer = MiVaBO(Domain.of(space, "auto solver=highs"), settings)
    history = [Observation(c, DONE, objective(c)) for c in space.sample(t, seed)]
    began = time.process_time()
    posterior, _ = optimizer._posterior(optimizer.data(history), np.random.default_rng(seed), {})
    return optimizer, posterior, objective, time.process_time() - began


def predictive_error(name: str, seed: int, t: int, prior: str) -> dict[str, Any]:
    """Error of the posterior mean at fresh points."""
    optimizer, posterior, objective, seconds = fitted(name, seed, t, PRIORS[prior])
    configs = optimizer.domain.sample(TESTS, np.random.default_rng(1000 + seed))
    points, truth = optimizer.domain.encode(configs), np.array([objective(c) for c in configs])
    z, u = points.one_hot(optimizer.program), points.units
    f: WeightSample = posterior.mean()
    values = sum(
        np.einsum("tp,pq,tq->t", b.left(z), w, b.right(u), optimize=True)
        for b, w in zip(f.blocks, f.weights, strict=True)
    )
    error = float(np.sqrt(np.mean((f.loss(values) - truth) ** 2)) / np.std(truth))
    return {"problem": name, "t": t, "prior": prior, "seed": seed, "error": error, "seconds": seconds}


def best_loss(name: str, seed: int, budget: int, prior: str) -> dict[str, Any]:
    """Best loss of a run of so many evaluations, and the CPU seconds per proposal."""
    space, objective = problem(name, seed)
    began = time.process_time()
    result = mc.minimize(
        objective, space, budget, optimizer=mc.Method("mivabo", settings=PRIORS[prior]), seed=seed, progress=False
    )
    seconds = (time.process_time() - began) / budget
    best = result.value - (optimum(int(name.split()[1]), seed) if name.startswith("ising") else 0.0)
    return {"problem": name, "budget": budget, "prior": prior, "seed": seed, "best": best, "seconds": seconds}


def solves(name: str, seed: int, t: int) -> list[dict[str, Any]]:
    """Seconds of the exact solve of one sample: Gaussian, horseshoe, and horseshoe without its smallest pairs."""
    rows = []
    for prior in ("gaussian", "horseshoe"):
        optimizer, posterior, _, _ = fitted(name, seed, t, replace(PRIORS[prior], sizes=ALL_PAIRS))
        f = posterior.sample(np.random.default_rng(seed))
        draws = {prior: (f, 0.0)}
        if isinstance(posterior, SparsePosterior):
            draws[f"{prior}, error <= {TOLERANCE}"] = thinned(f, TOLERANCE)
        for label, (each, error) in draws.items():
            u = np.full(len(optimizer.scale), 0.5)
            began = time.process_time()
            answer = optimizer.domain.minimise(
                each.form_at(u),
                SolverSettings(time_limit=10.0, gap=1e-4),
                units=u,
                starts=[optimizer.program.encode(optimizer.domain.sample(1, np.random.default_rng(seed))[0])],
                rng=np.random.default_rng(0),
            )
            seconds = time.process_time() - began
            rows.append(
                {
                    "problem": name,
                    "t": t,
                    "prior": label,
                    "seed": seed,
                    "pairs": sum(size > 0 for size in half_ranges(each).values()),
                    "left out": error,
                    "seconds": seconds,
                    "status": "none" if answer.columns is None else answer.status,
                }
            )
    return rows


@benchmark("priors", "Gaussian, Laplace and horseshoe priors: predictive error, best loss, seconds of the exact solve")
def run(size: str, progress: Progress) -> Results:
    plan = SIZES[size]
    found: Results = {"errors": [], "runs": [], "solves": []}
    for name, counts in plan["errors"].items():
        for t in counts:
            progress(f"error: {name}, {t} observations")
            for seed in range(plan["seeds"]):
                found["errors"] += [predictive_error(name, seed, t, prior) for prior in PRIORS]
    for name, t in plan["solves"].items():
        progress(f"solve: {name}, {t} observations")
        for seed in range(plan["seeds"]):
            found["solves"] += solves(name, seed, t)
    for name, budget in plan["runs"].items():
        for seed in range(plan["run seeds"]):
            progress(f"run: {name}, seed {seed}")
            found["runs"] += [best_loss(name, seed, budget, prior) for prior in RUN]
    return found


def markdown(results: Results) -> str:
    """The tables for the page of results."""
    return "\n\n".join(
        [
            _table(results["errors"], ("problem", "t"), "error", list(PRIORS)),
            _table(results["runs"], ("problem", "budget"), "best", RUN),
            _solves(results["solves"]),
        ]
    )


def _table(rows: list[dict[str, Any]], keys: tuple[str, str], value: str, priors: Sequence[str]) -> str:
    """Mean and standard error over the seeds, and median CPU seconds; one column per prior."""
    head = f"| {keys[0]} | {keys[1]} | seeds | " + " | ".join(priors) + " |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for key in dict.fromkeys((r[keys[0]], r[keys[1]]) for r in rows):
        cells, seeds = [], 0
        for prior in priors:
            mine = [r for r in rows if (r[keys[0]], r[keys[1]]) == key and r["prior"] == prior]
            values, seeds = np.array([r[value] for r in mine]), len(mine)
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            cells.append(f"{values.mean():.3f} ± {error:.3f} ({np.median([r['seconds'] for r in mine]):.2f} s)")
        lines.append(f"| {key[0]} | {key[1]} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _solves(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| problem | t | sample | pairs | left out | seconds | slowest | proven |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((r["problem"], r["t"], r["prior"]) for r in rows):
        mine = [r for r in rows if (r["problem"], r["t"], r["prior"]) == key]
        pairs, left, seconds = (np.median([r[name] for r in mine]) for name in ("pairs", "left out", "seconds"))
        proven, worst = sum(r["status"] == "optimal" for r in mine), max(r["seconds"] for r in mine)
        lines.append(
            f"| {key[0]} | {key[1]} | {key[2]} | {pairs:.0f} | {left:.3f} | {seconds:.3f} | {worst:.3f} "
            f"| {proven} of {len(mine)} |"
        )
    return "\n".join(lines)
