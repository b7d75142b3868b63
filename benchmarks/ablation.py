"""Ablation of the default optimizer: each part is switched off alone, on problems that were not used in its design.

Every seed draws a new problem of each family. All variants get the same problem and the same seed. The regret of a run
is its loss minus the least loss that any variant found on that problem. FLOOR times the spread of random losses is
added to it, so that negligible differences do not decide a ratio.

    choices       Two categories decide where the wells of four real parameters lie, and how deep they are.
    rules         Binaries, categories, integers and reals under three linear rules that leave about a third.
    constraints   The same without rules, under one outcome constraint that about a third of the space satisfies.
    pipelines     An algorithm with its own parameters, a scaler and a selection, cross-validated on a drawn data set.
    extremes      As ``rules`` without rules; the losses span 3 to 12 orders of magnitude, and in every second problem most of them
                  are cut off, as by a time limit.
    algorithms    One of six algorithms with one to four reals each, a preparation and a shared real. An algorithm that is good on
                  average need not be the best one.

Notation: r_a, r_0 regrets of a variant and of the default. The ratio of a part is the geometric mean of r_a / r_0 over
problems, with a bootstrapped 95 % interval. It is above 1 if the part helps.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, Results, benchmark, results_of
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.space.domain import Domain
from tests.proxies import proxy

FLOOR = 1e-3
WORKERS = 2
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"variants": ("default", "no warp"), "seeds": 1, "evaluations": 12, "workers": 0},
    "quick": {"seeds": 5, "evaluations": 40, "workers": WORKERS},
    "full": {"seeds": 20, "evaluations": 60, "workers": WORKERS},
}

# -- the variants ---------------------------------------------------------------------------------------------------------------


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "no warp": {"warp": False},
    "with minimisers": {"samples": 1},
    "no covering": {"cover": 0},
    "thompson": {"acquisition": "thompson"},
}
ONLY = {"no covering": ("pipelines", "algorithms")}
"""Families that a part can affect: those with modules of algorithms. On other families its runs equal the default's."""

# -- the families ---------------------------------------------------------------------------------------------------------------

Loss = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Drawn:
    """Problem drawn from a family.

    Attributes:
        limits: outcome constraints, by output.
        scale: transformation of the losses before their regrets are taken.
    """

    space: mc.Space
    loss: Loss
    limits: Mapping[str, float] | None = None
    scale: Callable[[float], float] = float


def choices(seed: int) -> Drawn:
    """Return a problem that depends on two categories. The scale of the losses is drawn too."""
    rng = np.random.default_rng([31, seed])
    first, second, reals = int(rng.integers(2, 6)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    space = mc.Space("choices")
    space.categorical("first", [f"a{k}" for k in range(first)])
    space.categorical("second", [f"b{k}" for k in range(second)])
    for d in range(reals):
        space.real(f"x{d}", 0, 1)
    centres, depths = rng.random((first, second, 2, reals)), rng.uniform(0.3, 1.0, (first, second, 2))
    widths, steep = rng.uniform(0.2, 0.6, (first, second, 2)), float(rng.choice([0.0, 0.0, 3.0, 6.0]))

    def loss(config: Mapping[str, Any]) -> float:
        a, b = int(config["first"][1:]), int(config["second"][1:])
        x = np.array([config[f"x{d}"] for d in range(reals)])
        square = ((x - centres[a, b]) ** 2).sum(axis=1) / widths[a, b] ** 2
        value = 1.0 - float(np.max(depths[a, b] * np.exp(-0.5 * square)))
        return math.exp(steep * value) if steep else value

    return Drawn(space, loss)


def _mixed(rng: np.random.Generator) -> mc.Space:
    space = mc.Space("mixed")
    for k in range(int(rng.integers(4, 9))):
        space.integer(f"b{k}", 0, 1)
    for k in range(int(rng.integers(1, 3))):
        space.categorical(f"c{k}", ["u", "v", "w", "x"])
    for k in range(int(rng.integers(1, 4))):
        space.integer(f"n{k}", 0, int(rng.integers(4, 20)))
    for k in range(int(rng.integers(1, 4))):
        space.real(f"x{k}", 0, 1)
    return space


def _weights(space: mc.Space, rng: np.random.Generator) -> dict[str, dict[Any, float] | float]:
    """Return a random linear function of a space: weights by level of a category, and of the unit value of a number."""
    return {
        n: {v: rng.normal() for v in p.domain.values} if p.domain.kind == "categorical" else rng.normal() / p.domain.high
        for n, p in space.parameters.items()
    }


def _linear(weights: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    return float(sum(w[config[n]] if isinstance(w, dict) else w * config[n] for n, w in weights.items()))


def ruled(seed: int) -> Drawn:
    """Return a random function under three linear rules, each satisfied by seven in ten of the configurations."""
    rng = np.random.default_rng([32, seed])
    space = _mixed(rng)
    found = space.sample(200, rng)
    for r in range(3):
        weights = _weights(space, rng)
        most = float(np.quantile([_linear(weights, c) for c in found], 0.7))
        terms = [
            sum(v * space[n].is_(level) for level, v in w.items()) if isinstance(w, dict) else w * space[n]
            for n, w in weights.items()
        ]
        space.rule(f"r{r}", sum(terms) <= most)
    return Drawn(space, proxy(space, seed))


def constrained(seed: int) -> Drawn:
    """Return a random function under an outcome constraint, which is another random function."""
    rng = np.random.default_rng([33, seed])
    space = _mixed(rng)
    loss, other = proxy(space, seed), proxy(space, 10_000 + seed)
    most = float(np.quantile([other(c) for c in space.sample(400, rng)], 0.35))
    return Drawn(space, lambda c: {"loss": loss(c), "cost": other(c)}, {"cost": most})


def pipelines(seed: int) -> Drawn:
    """Return a pipeline on drawn data with the log loss of three folds."""
    from sklearn.datasets import make_classification

    rng = np.random.default_rng([34, seed])
    informative = int(rng.integers(3, 8))
    x, y = make_classification(
        n_samples=150,
        n_features=informative + int(rng.integers(2, 12)),
        n_informative=informative,
        n_classes=int(rng.integers(2, 4)),
        flip_y=float(rng.uniform(0.0, 0.15)),
        class_sep=float(rng.uniform(0.6, 1.5)),
        random_state=seed,
    )
    space = mc.Space("pipelines")
    model = space.categorical("model", ["logistic", "svc", "knn", "tree", "bayes"])
    space.categorical("scaler", ["none", "standard", "quantile"])
    select = space.categorical("select", ["none", "best", "pca"])
    space.real("share", 0.2, 1.0, when=select.is_("best") | select.is_("pca"))
    space.real("C", 1e-3, 1e3, log=True, when=model.is_("logistic"))
    space.real("svc_C", 1e-2, 1e3, log=True, when=model.is_("svc"))
    space.real("gamma", 1e-4, 1e1, log=True, when=model.is_("svc"))
    space.integer("neighbours", 1, 40, when=model.is_("knn"))
    space.categorical("weights", ["uniform", "distance"], when=model.is_("knn"))
    space.integer("depth", 1, 12, when=model.is_("tree"))
    space.integer("leaf", 1, 30, when=model.is_("tree"))
    space.real("smoothing", 1e-10, 1.0, log=True, when=model.is_("bayes"))
    return Drawn(space, lambda c: _folds(c, x, y))


def _folds(c: Mapping[str, Any], x: Any, y: Any) -> float:
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    count = max(1, round(c.get("share", 1.0) * x.shape[1]))
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: LogisticRegression(C=c["C"], max_iter=200),
        "svc": lambda: SVC(C=c["svc_C"], gamma=c["gamma"], probability=True, random_state=0, max_iter=5000),
        "knn": lambda: KNeighborsClassifier(c["neighbours"], weights=c["weights"]),
        "tree": lambda: DecisionTreeClassifier(max_depth=c["depth"], min_samples_leaf=c["leaf"], random_state=0),
        "bayes": lambda: GaussianNB(var_smoothing=c["smoothing"]),
    }
    scaler = {"none": "passthrough", "standard": StandardScaler(), "quantile": QuantileTransformer(n_quantiles=50)}
    select = {"none": "passthrough", "best": SelectKBest(k=count), "pca": PCA(count)}
    pipeline = make_pipeline(scaler[c["scaler"]], select[c["select"]], made[c["model"]]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return -float(np.mean(cross_val_score(pipeline, x, y, cv=3, scoring="neg_log_loss")))


def extremes(seed: int) -> Drawn:
    """Return a random function whose exponential is the loss; with odd seeds, 85 % of the losses are one large value."""
    rng = np.random.default_rng([35, seed])
    space = _mixed(rng)
    plain = proxy(space, seed)
    found = [plain(c) for c in space.sample(200, rng)]
    unit, most = (max(found) - min(found)) / rng.uniform(3.0, 12.0), np.quantile(found, 0.15) if seed % 2 else math.inf
    return Drawn(space, lambda c: float(10.0 ** (min(plain(c), most) / unit)), scale=math.log10)


def algorithms(seed: int) -> Drawn:
    """Return a choice of six algorithms, each with a well in its own reals that may be narrow and deep."""
    rng = np.random.default_rng([36, seed])
    space = mc.Space("algorithms")
    chosen, preparations = space.categorical("algorithm", [f"a{k}" for k in range(6)]), ["none", "scale", "rotate"]
    space.categorical("preparation", preparations)
    space.real("shared", 0, 1)
    sizes = rng.integers(1, 5, size=6)
    for k, size in enumerate(sizes):
        for d in range(size):
            space.real(f"a{k}_x{d}", 0, 1, when=chosen[f"a{k}"])
    least, depth = rng.random(6), np.exp(rng.uniform(math.log(0.3), math.log(4.0), 6))
    centres, roots = [rng.uniform(0.1, 0.9, n) for n in sizes], [rng.normal(size=(n, n)) for n in sizes]
    common, own, place = rng.uniform(0.0, 0.3, 3), rng.uniform(0.0, 0.15, (6, 3)), rng.random(6)

    def loss(config: Mapping[str, Any]) -> float:
        k, p = int(config["algorithm"][1:]), preparations.index(config["preparation"])
        x = np.array([config[f"a{k}_x{d}"] for d in range(sizes[k])]) - centres[k]
        square = float(((roots[k].T @ x) ** 2).sum() / sizes[k] + 0.3 * (x**2).sum())
        beside = common[p] + own[k, p] + 0.3 * (config["shared"] - place[k]) ** 2
        return float(least[k] + depth[k] * square / (0.2 + square) + beside)

    return Drawn(space, loss)


FAMILIES = {
    **{"choices": choices, "rules": ruled, "constraints": constrained, "pipelines": pipelines, "extremes": extremes},
    **{"algorithms": algorithms},
}

# -- runs -----------------------------------------------------------------------------------------------------------------------


def cell(family: str, variant: str, seed: int, evaluations: int) -> dict[str, Any]:
    """Return the best feasible loss of a run, that after half the evaluations, and CPU seconds per proposal."""
    of = FAMILIES[family](seed)
    warnings.simplefilter("ignore")
    optimizer = Hybrid(Domain.of(of.space), HybridSettings(**VARIANTS[variant]))
    study = mc.Study(of.space, optimizer=mc.Method(optimizer), limits=of.limits, seed=seed)
    cpu, best = 0.0, list[float]()
    for _ in range(evaluations):
        began = time.process_time()
        trial = study.ask()
        cpu += time.process_time() - began
        outcome = of.loss(trial.config)
        study.tell(trial, outcome)
        loss = of.scale(outcome if of.limits is None else outcome["loss"])
        kept = of.limits is None or all(outcome[k] <= v for k, v in of.limits.items())
        best.append(min(best[-1] if best else math.inf, loss if kept else math.inf))
    return {
        **{"family": family, "variant": variant, "seed": seed, "best": best[-1], "half": best[evaluations // 2 - 1]},
        **{"first": best[5], "cpu": cpu / evaluations},
    }


@benchmark("ablation", "the parts of the default optimizer, each switched off alone")
def run(size: str, progress: Progress) -> Results:
    chosen, rows = SIZES[size], list[dict[str, Any]]()
    variants = chosen.get("variants", tuple(VARIANTS))
    tasks = [
        (family, variant, seed, chosen["evaluations"])
        for seed in range(chosen["seeds"])
        for family in FAMILIES
        for variant in variants
        if family in ONLY.get(variant, FAMILIES)
    ]

    for row in results_of(cell, tasks, chosen["workers"]):
        rows.append(row)
        progress(f"{len(rows)} of {len(tasks)}: {row['family']}, {row['variant']}, seed {row['seed']}: {row['best']:.4g}")
    return {"size": size, "evaluations": chosen["evaluations"], "seeds": chosen["seeds"], "runs": rows}


# -- the table ------------------------------------------------------------------------------------------------------------------


def ratios(rows: list[dict[str, Any]], variant: str, family: str | None, key: str = "best") -> np.ndarray:
    """Return log(r_a / r_0) of a variant for each problem on which both have a feasible trial."""
    found = []
    kept = [r for r in rows if family in (None, r["family"]) and math.isfinite(r[key])]
    for name, seed in sorted({(r["family"], r["seed"]) for r in kept}):
        own = {r["variant"]: r for r in kept if (r["family"], r["seed"]) == (name, seed)}
        if "default" not in own or variant not in own:
            continue
        least, most = (
            min(r["best"] for r in own.values()),
            max((r["first"] for r in own.values() if math.isfinite(r["first"])), default=0.0),
        )
        floor = FLOOR * max(most - least, 1e-12)
        a, b = (own[v][key] - least + floor for v in (variant, "default"))
        found.append(math.log(a / b))
    return np.array(found)


def markdown(results: Results) -> str:
    """Return the table of wins, losses and ratios with their intervals, for each family and in total."""
    rows, rng = results["runs"], np.random.default_rng(0)
    variants = [v for v in dict.fromkeys(r["variant"] for r in rows) if v != "default"]
    cpu = {v: np.mean([r["cpu"] for r in rows if r["variant"] == v]) for v in [*variants, "default"]}
    lines = [
        f"{results['evaluations']} evaluations, {results['seeds']} problems a family. Better / worse: the default's side. "
        f"CPU of an ask of the default: {cpu['default']:.3f} s.\n",
        "| switched off | " + " | ".join([*FAMILIES, "all", "CPU s an ask"]) + " |",
        "|---" * (len(FAMILIES) + 3) + "|",
    ]
    for variant in variants:
        cells = []
        for family in [*FAMILIES, None]:
            logs = ratios(rows, variant, family)
            if not len(logs):
                cells.append("")
                continue
            means = rng.choice(logs, (2000, len(logs))).mean(axis=1)
            low, high = np.exp(np.quantile(means, [0.025, 0.975]))
            cells.append(f"{(logs > 1e-9).sum()} / {(logs < -1e-9).sum()}, {np.exp(logs.mean()):.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {variant} | " + " | ".join(cells) + f" | {cpu[variant]:.3f} |")
    return "\n".join(lines)
