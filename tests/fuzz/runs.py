"""Runs until a space is exhausted: every legal configuration occurs once, and the stop reason is right."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable

import numpy as np

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError
from mipcash.study.policies.policy import BEST_OF_ALL
from tests.fuzz.clean import check_numbers
from tests.fuzz.described import Choice, Term, Value
from tests.fuzz.questions import Interview
from tests.fuzz.table import HOLDS_UP_TO, Config
from tests.named import OPTIMIZERS

Loss = Callable[[Config], float]

EXHAUSTIBLE = 60
"""Largest number of legal configurations of a discrete space that random search exhausts."""
FEW_CONFIGS = 12
"""Largest number of legal configurations of a discrete space that any optimizer exhausts."""
MIXED_BUDGET = 8
MOVES = 1e-3
"""Share of its range that a real must be able to move for a space to count as inexhaustible."""
SHARES = {"empty": 0.2, "discrete": 0.5, "any": 0.7, "mixed": 0.4}
"""Shares of spaces that are run; ``any``: share of small discrete spaces that are run by any optimizer."""


def check_run(asked: Interview) -> None:
    """Run an optimizer on a share of the spaces."""
    draw = asked.rng.random()
    if asked.truth.empty:
        if draw < SHARES["empty"]:
            asked.ask("run", "default", _run, asked.space, 3, "random", scattered, [], raises=InfeasibleSpaceError)
    elif asked.case.gridded:
        if draw < SHARES["mixed"]:
            _keep_going(asked)
    elif not asked.drawn.reals:
        left = int(asked.truth.legal_configs.sum())
        if left <= EXHAUSTIBLE and draw < SHARES["discrete"]:
            names = [*OPTIMIZERS, "hybrid", "hybrid"]
            few = left <= FEW_CONFIGS and asked.rng.random() < SHARES["any"]
            loss = list(LOSSES)[int(asked.rng.integers(len(LOSSES)))]
            _exhaust(asked, left, names[int(asked.rng.integers(len(names)))] if few else "random", loss)
    elif draw < SHARES["mixed"] and _moves(asked):
        _keep_going(asked)


def scattered(config: Config) -> float:
    """Return a loss without a pattern."""
    return zlib.crc32(repr(sorted(config.items(), key=str)).encode()) / 2**32


def sloped(config: Config) -> float:
    """Return a loss whose minimum has every number at its lower end."""
    return float(sum(v for v in config.values() if type(v) in (int, float)))


def noisy() -> Loss:
    """Return a loss function with noise."""
    rng = np.random.default_rng(0)
    return lambda config: scattered(config) + float(rng.normal())


LOSSES: dict[str, Callable[[], Loss]] = {
    "scattered": lambda: scattered,
    "constant": lambda: lambda config: 0.0,
    "noisy": noisy,
}


def _run(space: mc.Space, budget: int, optimizer: str, loss: Loss, seen: list[Config]) -> str:
    def noted(config: Config) -> float:
        seen.append(dict(config))
        return loss(config)

    settings = {"n_initial": 4} if optimizer != "random" else None
    return str(
        mc.minimize(noted, space, budget, optimizer=mc.Method(optimizer, settings=settings), progress=False).stopped
    )


def _exhaust(asked: Interview, left: int, optimizer: str, loss: str = "scattered") -> None:
    """Check that a run evaluates every configuration once, and claims no proof for a noisy objective."""
    seen: list[Config] = []
    question = f"run {optimizer}"
    asked.record.features += (question, f"{loss} objective")
    stopped = asked.ask(question, "default", _run, asked.space, left + 5, optimizer, LOSSES[loss](), seen)
    if stopped is None:
        return
    if loss == "noisy" and "proven" in stopped:
        asked.record.wrong("proof under noise", "default", "no proof of an optimum that noise hides", stopped)
    legal = {str(asked.truth.table.config(int(c))) for c in np.flatnonzero(asked.truth.legal_configs)}
    met = Counter(_in_order(asked, config) for config in seen)
    again = [c for c, times in met.items() if times > 1]
    problems = [
        f"{stopped!r}" if stopped not in ("space exhausted", BEST_OF_ALL) else "",
        f"{len(legal - set(met))} legal never met, e.g. {min(legal - set(met))}" if legal - set(met) else "",
        f"illegal: {min(set(met) - legal)}" if set(met) - legal else "",
        f"met again: {again[0]}" if again else "",
    ]
    said = "; ".join(p for p in problems if p)
    if said:
        asked.record.wrong(question, "default", f"each of {left} configurations once, then exhausted", said)


def _in_order(asked: Interview, config: Config) -> str:
    return str({p.name: config[p.name] for p in asked.drawn.parameters if p.name in config})


def _moves(asked: Interview) -> bool:
    """Return True if some legal configuration leaves a real room to move."""
    for row in np.flatnonzero(asked.truth.legal).tolist():
        for p in asked.drawn.reals:
            if asked.truth.table.on[p.name][row]:
                term = (Term(1.0, (Value(p.name),)),)
                (low, high), half = asked.truth.ends(term, row), asked.truth.ends(term, row, HOLDS_UP_TO / 2)
                # the range that remains without any tolerance: as it is, or extrapolated if the rules do not hold exactly
                if float(min(high - low, 2 * (half[1] - half[0]) - (high - low))) > MOVES * (p.high - p.low):
                    return True
    return False


def _keep_going(asked: Interview) -> None:
    """Check that a run with a real that can move uses its budget; a grid does not show whether a real can move."""
    seen: list[Config] = []
    optimizer = "hybrid" if asked.rng.random() < 0.5 else "random"
    loss = sloped if asked.rng.random() < 0.6 else scattered
    stopped = asked.ask("run mixed", "default", _run, asked.space, MIXED_BUDGET, optimizer, loss, seen)
    if stopped is None:
        return
    # a disjunction may leave a real only two isolated points
    pinned = any(isinstance(p, Choice) for p in asked.drawn.parts) and stopped in ("space exhausted", BEST_OF_ALL)
    if not (asked.case.gridded or pinned) and (stopped != "budget" or len(seen) != MIXED_BUDGET):
        asked.record.wrong("run mixed", "default", f"{MIXED_BUDGET} evaluations", f"{stopped} after {len(seen)}")
    if len(set(map(str, seen))) < len(seen):
        asked.record.wrong("run mixed", "default", "different configurations", seen)
    for config in seen:
        if reason := asked.illegal(config):
            asked.record.wrong("run mixed", "default", "legal configurations", reason)
        elif not asked.case.gridded:
            check_numbers(asked.truth, asked.record, "run mixed", config)
