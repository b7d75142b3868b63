"""Section 4 (a): the ten hyperparameters of Table 5, errors looked up in a table, and trained for."""

from __future__ import annotations

from functools import partial

from benchmarks.paper import table
from benchmarks.peers.problem import Config, Problem
from mipcash.models.xgboost import build, error

DIRECT = "monks-direct"


def looked_up(name: str, config: Config) -> float:
    """The error of the nearest setting in a table of the repository."""
    return table.kept(name)(config)


def _problem(name: str, objective: partial[float], source: str) -> Problem:
    return Problem(
        name=name,
        space=lambda: build()[0],
        objective=objective,
        group="free",
        optimum=0.0,
        certificate="lower bound",
        source=f"Daxberger et al., Section 4 (a) and Table 5; {source}",
        tolerance=0.0,
    )


def problems() -> dict[str, Problem]:
    """By name: ``monks-table``, ``phoneme-table``, and ``monks-direct``, which trains at every evaluation."""
    made = [
        _problem(f"{n}-table", partial(looked_up, n), f"nearest of real trainings on {d}")
        for n, d in table.DATA.items()
    ]
    made.append(_problem(DIRECT, partial(error, seed=0), "trained on monks-problem-1"))
    return {p.name: p for p in made}
