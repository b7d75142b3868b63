"""Section 4 (a): ten hyperparameters of Table 5, with errors looked up in a table."""

from __future__ import annotations

from functools import cache, partial

from benchmarks.paper import table
from benchmarks.peers.problem import LOWER_BOUND, Config, Objective, Problem
from mipcash.models.xgboost import build


def looked_up(name: str, config: Config) -> float:
    """Return the error of the nearest setting in a table of the repository."""
    return table.kept(name)(config)


def _problem(name: str, objective: Objective, source: str) -> Problem:
    return Problem(
        name=name,
        space=lambda: build()[0],
        objective=objective,
        group="free",
        optimum=0.0,
        certificate=LOWER_BOUND,
        source=f"Daxberger et al., Section 4 (a) and Table 5; {source}",
        tolerance=0.0,
    )


@cache
def problems() -> dict[str, Problem]:
    """Return ``monks-table`` and ``phoneme-table``."""
    made = (_problem(f"{n}-table", partial(looked_up, n), f"nearest of real trainings on {d}") for n, d in table.DATA.items())
    return {p.name: p for p in made}
