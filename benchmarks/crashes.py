"""A space that fails in half: branches that crash, with and without accepting the rules that failures teach.

    minimise    0.3 (s = direct) + 0.1 (s = multigrid) + (log10 step + 2.5)^2 / 4 + (n - 9)^2 / 100 + (omega - 1)^2 [s = iterative]
                + 0.05 (p = double)
    known       n <= 12 where s = direct
    fails       s = iterative and omega > 1.1 (diverges),   p = half and step < 0.01 (nan),   s = multigrid and levels > 3 (memory)

The best lies beside the border of the first region, at omega = 1, n = 9, step = 10^-2.5 and single precision; the loss is 0 there.
``accepted``: after every fifth evaluation each proposed rule is accepted, at the default's level or at a looser one. ``known``: the
regions are rules from the start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.registry import Progress, Results, benchmark

ACCEPTED = {"accepted": 0.05, "accepted at 0.5": 0.5}
"""Ways of accepting, and the level at which rules are proposed."""
WAYS = ("learned", *ACCEPTED, "known")
EVERY = 5
SIZES: dict[str, tuple[int, int]] = {"smoke": (1, 14), "quick": (5, 60), "full": (20, 60)}
"""Seeds and evaluations."""


def space(known: bool = False) -> mc.Space:
    """The space, with the regions that fail as rules or without."""
    made = mc.Space("crashes")
    solver = made.module(
        "solver", {"direct": {}, "iterative": {"omega": mc.Real(0.2, 2.0)}, "multigrid": {"levels": mc.Integer(1, 6)}}
    )
    precision = made.categorical("precision", ["half", "single", "double"])
    step = made.real("step", 1e-4, 1.0, log=True)
    n = made.integer("n", 2, 20)
    made.rule("direct is small", n <= 20 - 8 * solver["direct"])
    if known:
        made.rule("diverges", solver["iterative"]["omega"] <= 1.1)
        made.rule("nan", mc.any_of(~precision["half"], step >= 0.01))
        made.rule("memory", solver["multigrid"]["levels"] <= 3)
    return made


def objective(config: Mapping[str, Any]) -> float:
    """See the module's description."""
    solver, half, step = config["solver"], config["precision"] == "half", config["step"]
    if solver == "iterative" and config["solver.iterative.omega"] > 1.1:
        raise mc.Failed("the iteration diverges")
    if half and step < 0.01:
        return math.nan
    if solver == "multigrid" and config["solver.multigrid.levels"] > 3:
        raise MemoryError("no room for the grids")
    loss = {"direct": 0.3, "iterative": 0.0, "multigrid": 0.1}[solver] + 0.05 * (config["precision"] == "double")
    loss += (config["solver.iterative.omega"] - 1.0) ** 2 if solver == "iterative" else 0.0
    return float(loss + (math.log10(step) + 2.5) ** 2 / 4.0 + (config["n"] - 9) ** 2 / 100.0)


def accepting(level: float) -> Callable[[mc.Study, mc.Trial], None]:
    """A callback: accept what is proposed, as a user would who believes all of it."""

    def accept(study: mc.Study, trial: mc.Trial) -> None:
        if (trial.number + 1) % EVERY == 0:
            for rule in study.proposed_rules(level=level):
                study.space.accept(rule)

    return accept


def one(way: str, seed: int, budget: int) -> dict[str, Any]:
    """One run."""
    made, began = space(known=way == "known"), time.process_time()
    result = mc.minimize(
        objective,
        made,
        budget,
        seed=seed,
        callbacks=accepting(ACCEPTED[way]) if way in ACCEPTED else (),
        seconds_per_proposal=None,
        progress=False,
    )
    return {
        "way": way,
        "seed": seed,
        "budget": budget,
        "failures": result.n_failed,
        "late": sum(t.failed for t in result.history[budget // 2 :]),
        "best": result.value,
        "rules": [name for name in made.rules if name.endswith(" fails")],
        "seconds": time.process_time() - began,
    }


@benchmark("crashes", "a space that fails in half: failures and best loss with and without accepting learned rules")
def run(size: str, progress: Progress) -> Results:
    seeds, budget = SIZES[size]
    share = float(np.mean([_fails(c) for c in space().sample(400, 0)]))
    runs = []
    for way in WAYS:
        for seed in range(seeds):
            progress(f"{way}, seed {seed}")
            runs.append(one(way, seed, budget))
    return {"share that fails": share, "runs": runs}


def _fails(config: Mapping[str, Any]) -> bool:
    try:
        return not math.isfinite(objective(config))
    except (mc.Failed, MemoryError):
        return True


def markdown(results: Results) -> str:
    """The table for the page of results."""
    lines = [
        f"{results['share that fails']:.0%} of the space fails. Medians over the seeds (least to most).",
        "",
        "| rules | seeds | evaluations | failures | of them in the second half | best loss | rules accepted | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for way in WAYS:
        mine = [r for r in results["runs"] if r["way"] == way]
        cells = [_spread([r[name] for r in mine]) for name in ("failures", "late", "best")]
        rules = _spread([len(r["rules"]) for r in mine])
        seconds = float(np.median([r["seconds"] for r in mine]))
        lines.append(f"| {way} | {len(mine)} | {mine[0]['budget']} | {' | '.join(cells)} | {rules} | {seconds:.1f} |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"
