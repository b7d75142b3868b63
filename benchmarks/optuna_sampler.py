"""A study of Optuna on a space with rules: proposals of mipcash beside those of TPE.

TPE is told the rules as constraints, by the amounts that break them. What is illegal is not evaluated, as it could not be in
earnest, and told as the worst legal value so far.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.peers.problem import problems
from benchmarks.peers.shape import Shape
from benchmarks.registry import Progress, benchmark

PROBLEMS = ("spring", "gear-rules")
TRIALS = {"smoke": 8, "quick": 50, "full": 50}
SEEDS = {"smoke": 1, "quick": 5, "full": 20}


def suggested(trial: Any, domains: dict[str, Any]) -> dict[str, Any]:
    """A configuration of a space without conditions, as an objective of Optuna asks for it."""
    found: dict[str, Any] = {}
    for name, d in domains.items():
        if d.kind == "real":
            found[name] = trial.suggest_float(name, d.low, d.high, log=d.log)
        elif d.kind == "integer":
            found[name] = trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
        else:
            found[name] = trial.suggest_categorical(name, list(d.values))
    return found


def study_of(problem: Any, make: Callable[[Any], Any], trials: int) -> list[tuple[bool, float]]:
    """Of each trial, whether it was legal, and its value."""
    import optuna

    space = problem.space()
    domains, shape = {name: p.domain for name, p in space.parameters.items()}, Shape(space)
    told: list[tuple[bool, float]] = []

    def objective(trial: Any) -> float:
        config = suggested(trial, domains)
        broken = shape.violations(config)
        trial.set_constraint("rules", sum(broken.values()) if broken else 0.0)
        legal = [value for kept, value in told if kept]
        value = max(legal, default=0.0) if broken else float(problem.objective(config))
        told.append((not broken, value))
        return value

    study = optuna.create_study(sampler=make(space))
    study.optimize(objective, n_trials=trials)
    return told


@benchmark("optuna-sampler", "studies of Optuna on spaces with rules: mipcash's sampler beside TPE")
def run(size: str, progress: Progress) -> dict[str, Any]:
    import optuna

    from mipcash.integrations.optuna import MipcashSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for name in PROBLEMS[: 1 if size == "smoke" else None]:
        problem = problems()[name]
        for sampler in ("MipcashSampler", "TPESampler"):
            shares, bests = [], []
            for seed in range(SEEDS[size]):
                progress(f"{sampler} on {name}, seed {seed}")

                def make(space: Any, sampler: str = sampler, seed: int = seed) -> Any:
                    if sampler == "MipcashSampler":
                        return MipcashSampler(space, seed=seed)
                    return optuna.samplers.TPESampler(multivariate=True, seed=seed)

                told = study_of(problem, make, TRIALS[size])
                shares.append(sum(kept for kept, _ in told) / len(told))
                bests.append(min((value for kept, value in told if kept), default=None))
            found = [b for b in bests if b is not None]
            rows.append(
                {
                    "problem": name,
                    "optimum": problem.optimum,
                    "sampler": sampler,
                    "legal": statistics.mean(shares),
                    "none": len(bests) - len(found),
                    "median": statistics.median(found) if found else None,
                    "worst": max(found, default=None),
                }
            )
    return {"trials": TRIALS[size], "seeds": SEEDS[size], "rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    lines = [
        f"{results['trials']} trials, {results['seeds']} seeds; values of the best legal trial.",
        "",
        "| problem | sampler | legal trials | median best | worst best | no legal trial | optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results["rows"]:
        best = ("-", "-") if r["median"] is None else (f"{r['median']:.4g}", f"{r['worst']:.4g}")
        lines.append(
            f"| {r['problem']} | `{r['sampler']}` | {r['legal']:.0%} | {best[0]} | {best[1]} | {r['none']} | {r['optimum']:.4g} |"
        )
    return "\n".join(lines)
